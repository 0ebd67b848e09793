"""``make bench``: what a fresh start at a switch, and an undo, cost with a provider's cache.

One thread of ``--steps`` reads in architect, a plan, the switch to code, and as many reads there:
with the whole conversation, and with the plan alone (``context: plan``); then a last message of as
many reads, as it is, and undone and said once more. Counted as ``benchmarks.cache`` counts.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cache import SERVICES, TASK, compute_price
from modeshift.modes.policy import Approvals
from modeshift.threads.deps import StartedCalls
from modeshift.threads.journal import Journal
from tests.harness.conversation import Conversation, make_agent
from tests.harness.modes import load_catalog
from tests.provider.prompt_cache import Input
from tests.provider.script import Answer, call, say
from tests.provider.server import KEY, serving

PLAN = "# Plan\n\nSay what is in the files.\n\n## Files\n\n- `notes.txt`\n"


@dataclass(frozen=True)
class Way:
    """One way through the conversation."""

    name: str
    context: str = "all"
    is_undone: bool = False


WAYS = (
    Way("the whole conversation"),
    Way("the plan alone", context="plan"),
    Way("undone, and said once more", is_undone=True),
)


def _script(steps: int, way: Way) -> Iterator[Answer]:
    reads = [call("read_file", path=f"{number}.txt") for number in range(steps)]
    yield from reads
    yield call("write_file", path="plan.md", content=PLAN)
    yield call("switch_mode", mode_slug="code", reason="The plan is written.")
    for _ in range(2 + way.is_undone):
        yield from reads
        yield say("All read.")


def _fill(place: str, steps: int) -> Path:
    folder = Path(place, "workspace")
    folder.mkdir()
    for number in range(steps):
        lines = (f"line {line} of file {number}, of about this length\n" for line in range(60))
        (folder / f"{number}.txt").write_text("".join(lines))
    return folder


async def measure(way: Way, steps: int) -> list[Input]:
    """The input of each request."""
    script = [*_script(steps, way)]
    with tempfile.TemporaryDirectory() as place, serving(script) as provider:
        folder = _fill(place, steps)
        os.environ |= {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": KEY}
        started_calls = StartedCalls(Journal(beside=Path(place, "threads")), undo_days=1)
        models, catalog = SERVICES["Anthropic"].load(), load_catalog()
        agent = make_agent(
            folder, models, Approvals.AUTO, catalog=catalog, started_calls=started_calls
        )
        talk = Conversation(agent)
        talk.config["recursion_limit"] = 20 * steps
        await talk.say(TASK, mode="architect")
        await talk.decide({"type": "approve", "context": way.context})
        for _ in range(1 + way.is_undone):
            await talk.say("Read them once more.")
            if way.is_undone:
                preview = await talk.thread.undo()
                await talk.thread.undo("last", preview["digest"])
        if provider.refused:
            raise RuntimeError(f"the script did not fit: {provider.refused}")
        return provider.inputs


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--steps", type=int, default=15, help="reads in each part; 15 by default")
    steps = parser.parse_args().steps
    title = f"after a plan, {steps} reads each"
    print(f"{title:34}{'tokens':>10}{'share':>8}{'price':>10}{'ratio':>8}")
    first = 0.0
    for way in WAYS:
        inputs = asyncio.run(measure(way, steps))
        total, price = sum(one.total for one in inputs), compute_price(inputs)
        first = first or price
        read = sum(one.read for one in inputs) / total
        print(f"  {way.name:32}{total:10}{read:8.3f}{price:10.0f}{price / first:8.2f}", flush=True)


if __name__ == "__main__":
    main()
