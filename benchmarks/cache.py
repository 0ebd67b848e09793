"""``make bench``: what a thread's input costs with Anthropic's cache, against what it does without.

The requests are those that the real client sends; the scripted provider counts what of them is
read from the cache, for a tenth of the price, and written to it, for a quarter more.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from modes.policy import Approvals
from tests.harness.conversation import Conversation, make_agent
from tests.provider.prompt_cache import Input
from tests.provider.script import Answer, call, say
from tests.provider.server import KEY, serving

MODEL = "anthropic:claude-sonnet-5-5"
MODES = ("architect", "code", "debug")
"""Those that are switched to; a thread starts in ask."""
READ, WRITE = 0.1, 1.25


async def requests(steps: int) -> list[Input]:
    """Of a thread that reads a file at each step, and changes its mode in between."""
    with tempfile.TemporaryDirectory() as folder, serving([*_script(steps)]) as provider:
        for number in range(steps):
            lines = (f"line {line} of file {number}, of about this length\n" for line in range(60))
            (Path(folder) / f"{number}.txt").write_text("".join(lines))
        os.environ |= {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": KEY}
        talk = Conversation(make_agent(Path(folder), MODEL, Approvals.AUTO))
        talk.config["recursion_limit"] = 10 * steps
        await talk.say("Read the files, one after the other, and say what is in them.")
        await talk.approve_all()
        if provider.refused or provider.steps_left:
            raise RuntimeError(f"the script did not fit: {provider.refused}")
        return provider.inputs


def _script(steps: int) -> Iterator[Answer]:
    each = steps // (len(MODES) + 1)
    for number in range(steps - 1):
        turn, rest = divmod(number + 1, each)
        if rest == 0 and turn <= len(MODES):
            yield call("switch_mode", mode_slug=MODES[turn - 1], reason="It is the next one's.")
        else:
            yield call("read_file", text=f"I read file {number} now.", path=f"{number}.txt")
    yield say("All read.")


def costs(inputs: list[Input]) -> tuple[float, float]:
    """In tokens of plain input: without the cache, and as the requests ask for it."""
    plain = sum(one.total for one in inputs)
    return plain, sum(one.plain + READ * one.read + WRITE * one.written for one in inputs)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40, help="40 by default, 8 at least")
    inputs = asyncio.run(requests(parser.parse_args().steps))
    plain, cached = costs(inputs)
    title = f"input of {len(inputs)} steps, {len(MODES)} switches"
    print(f"{title:34}{'tokens':>10}{'ratio':>8}")
    print(f"  {'without the cache':32}{plain:10.0f}{1:8.2f}")
    print(f"  {'as it is sent':32}{cached:10.0f}{cached / plain:8.2f}")


if __name__ == "__main__":
    main()
