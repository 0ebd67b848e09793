"""``make bench``: what a thread's input costs with Anthropic's cache, against what it does without.

The requests are those that the real client sends; they are priced by the service's rules. A
prefix (tools, system prompt, messages) that ended an earlier request is read for a tenth, if it
ends in one of the last 20 blocks; what is behind it is written for a quarter more. A switch of
the mode changes the tools and the prompt, and begins anew. Four letters count as a token.
"""

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

from modes.policy import Approvals
from tests.harness.conversation import Conversation, make_agent
from tests.provider.script import Answer, call, say
from tests.provider.server import KEY, serving

MODEL = "anthropic:claude-sonnet-5-5"
MODES = ("architect", "code", "debug")
"""Those that are switched to; a thread starts in ask."""
LOOKBACK = 20
SMALLEST = 512
"""Tokens; a shorter prefix is not cached."""
READ, WRITE = 0.1, 1.25


async def requests(steps: int) -> list[dict[str, Any]]:
    """The bodies of a thread that reads a file at each step, and changes its mode in between."""
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
        return [request.body for request in provider.requests]


def _script(steps: int) -> Iterator[Answer]:
    each = steps // (len(MODES) + 1)
    for number in range(steps - 1):
        turn, rest = divmod(number + 1, each)
        if rest == 0 and turn <= len(MODES):
            yield call("switch_mode", mode_slug=MODES[turn - 1], reason="It is the next one's.")
        else:
            yield call("read_file", text=f"I read file {number} now.", path=f"{number}.txt")
    yield say("All read.")


def costs(bodies: list[dict[str, Any]]) -> tuple[float, float]:
    """In tokens of plain input: without the cache, and as the requests ask for it."""
    written: set[str] = set()
    plain = cached = 0.0
    for body in bodies:
        blocks = [json.dumps(block, sort_keys=True) for block in _blocks(body)]
        sizes = [*accumulate(len(block) / 4 for block in blocks)]
        ends = [*accumulate(blocks, lambda a, b: sha256((a + b).encode()).hexdigest(), initial="")]
        plain += sizes[-1]
        if "cache_control" not in body or sizes[-1] < SMALLEST:
            cached += sizes[-1]
            continue
        near = range(len(blocks) - 1, max(len(blocks) - 1 - LOOKBACK, -1), -1)
        read = next((sizes[one] for one in near if ends[one + 1] in written), 0)
        cached += READ * read + WRITE * (sizes[-1] - read)
        written.add(ends[-1])
    return plain, cached


def _blocks(body: dict[str, Any]) -> Iterator[Any]:
    yield from body["tools"]
    yield body["system"]
    for message in body["messages"]:
        content = message["content"]
        texts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        yield from ([message["role"], block] for block in texts)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40, help="40 by default, 8 at least")
    bodies = asyncio.run(requests(parser.parse_args().steps))
    plain, cached = costs(bodies)
    title = f"input of {len(bodies)} steps, {len(MODES)} switches"
    print(f"{title:34}{'tokens':>10}{'ratio':>8}")
    print(f"  {'without the cache':32}{plain:10.0f}{1:8.2f}")
    print(f"  {'as it is sent':32}{cached:10.0f}{cached / plain:8.2f}")


if __name__ == "__main__":
    main()
