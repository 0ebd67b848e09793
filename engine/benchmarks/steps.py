"""``make bench``: milliseconds per model-and-tool step, and bytes of checkpoints.

Every contender runs in every round, one after the other, so that a ratio holds
when the machine's speed drifts. What is shown is the median of the rounds.
"""

import argparse
import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from threading import Event, Thread, get_ident
from types import FrameType

from langchain_core.runnables import RunnableConfig

from benchmarks.contenders import CONTENDERS, DATABASE, OURS, REFERENCE
from benchmarks.model import InstantModel

STEPS = (10, 100, 300)
PARTS = {
    "the journal": ("/modeshift/threads/journal", "/modeshift/threads/started_calls"),
    "the undo log": ("/modeshift/tools/workspace/undo_log",),
    "the store, the checkpointer, SQLite": (
        *("/modeshift/storage", "langgraph/checkpoint", "langgraph/store", "sqlite3", "ormsgpack"),
    ),
    "our nodes": ("/modeshift/", "/template/"),
    "LangGraph": ("/langgraph/",),
    "LangChain": ("/langchain",),
}
"""Whose time it is: the innermost of these that a frame's file has in its path."""
OTHERS = "asyncio"
SAMPLED = 20
"""Turns."""
IDLE = ("selectors.py", "concurrent/futures/thread.py", "threading.py")
"""Where a thread's innermost frame is while it waits."""


class Entrant:
    """A contender, built once as in a server, and its database."""

    def __init__(self, name: str, steps: int, folder: Path, *, on_sqlite: bool) -> None:
        self.name = name
        self.steps = steps
        self.workspace = folder / "workspace"
        self.folder = folder / name if on_sqlite else None
        """Of its database."""
        self.times: list[float] = []

    async def build(self, stack: AsyncExitStack) -> None:
        """Build the agent; it is closed with ``stack``."""
        if self.folder is not None:
            self.folder.mkdir()
        opened = CONTENDERS[self.name](InstantModel(steps=self.steps), self.workspace, self.folder)
        self.agent = await stack.enter_async_context(opened)

    async def run(self, thread: str) -> None:
        """One turn in a new thread; adds its milliseconds per step."""
        config: RunnableConfig = {
            "configurable": {"thread_id": thread},
            "recursion_limit": 10 * self.steps + 100,
        }
        start = time.perf_counter()
        result = await self.agent.ainvoke({"messages": [("user", "go")]}, config)
        self.times.append((time.perf_counter() - start) * 1000 / self.steps)
        answers = sum(message.type == "tool" for message in result["messages"])
        if answers != self.steps or result["messages"][-1].text != "done":
            raise RuntimeError(f"{self.name} made {answers} of {self.steps} steps")

    def size(self) -> int:
        """Bytes of one thread's checkpoints and writes, without what SQLite itself takes."""
        if self.folder is None:
            return 0
        total = 0
        with closing(sqlite3.connect(self.folder / DATABASE)) as connection:
            for column, table in (("checkpoint", "checkpoints"), ("value", "writes")):
                query = f"select sum(length({column})) from {table} where thread_id = '0'"  # noqa: S608
                total += connection.execute(query).fetchone()[0]
        return total


async def bench(rounds: int, counts: Sequence[int]) -> None:
    """Measure everything and print the table."""
    print(f"{'':24}{'steps':>6}{'ms/step':>9}{'ratio':>7}{'KiB':>10}{'ratio':>7}")
    for on_sqlite in (False, True):
        print("SQLite" if on_sqlite else "no checkpointer")
        for steps in counts:
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                (root / "workspace").mkdir()
                (root / "workspace/a.txt").write_text("hello\n" * 20)
                entrants = [Entrant(name, steps, root, on_sqlite=on_sqlite) for name in CONTENDERS]
                await _compare(entrants, rounds)
        await show_parts(counts[0], on_sqlite=on_sqlite)


async def show_parts(steps: int, *, on_sqlite: bool) -> None:
    """Print whose time a step of ours is, by samples of all threads that do not wait.

    A function of Python's, or of pydantic's, is its caller's.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "workspace").mkdir()
        (root / "workspace/a.txt").write_text("hello\n" * 20)
        entrant, seen, ended = (
            Entrant(OURS, steps, root, on_sqlite=on_sqlite),
            Counter[str](),
            Event(),
        )
        async with AsyncExitStack() as stack:
            await entrant.build(stack)
            await entrant.run("warm")
            sampler = Thread(target=_sample, args=(seen, ended))
            interval = sys.getswitchinterval()
            sys.setswitchinterval(0.0001)  # or it would sample where a thread waits
            sampler.start()
            for thread in range(SAMPLED):
                await entrant.run(str(thread))
            ended.set()
            sampler.join()
            sys.setswitchinterval(interval)
    shares = [f"{part} {seen[part] / seen.total():.0%}" for part in [*PARTS, OTHERS] if seen[part]]
    print(f"  of a step's time: {', '.join(shares)}", flush=True)


def _sample(seen: Counter[str], ended: Event) -> None:
    own = get_ident()
    while not ended.wait(0.001):
        for thread, frame in sys._current_frames().items():
            if thread != own and not frame.f_code.co_filename.endswith(IDLE):
                seen[_find_part(frame)] += 1


def _find_part(frame: FrameType | None) -> str:
    while frame is not None:
        path = frame.f_code.co_filename
        for part, names in PARTS.items():
            if any(name in path for name in names):
                return part
        frame = frame.f_back
    return OTHERS


async def _compare(entrants: list[Entrant], rounds: int) -> None:
    async with AsyncExitStack() as stack:
        for entrant in entrants:
            await entrant.build(stack)
        for thread in range(rounds + 1):  # the first round warms up
            for entrant in entrants:
                await entrant.run(str(thread))
    reference = next(entrant for entrant in entrants if entrant.name == REFERENCE)
    for entrant in entrants:
        times, others = entrant.times[1:], reference.times[1:]
        ratio = statistics.median(a / b for a, b in zip(times, others, strict=True))
        row = f"  {entrant.name:22}{entrant.steps:>6}{statistics.median(times):>9.2f}{ratio:>7.2f}"
        if entrant.folder is not None:
            row += f"{entrant.size() / 1024:>10.0f}{entrant.size() / reference.size():>7.2f}"
        print(row, flush=True)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds; 5 by default")
    parser.add_argument("--steps", type=int, nargs="+", default=STEPS, help="10 100 300 by default")
    given = parser.parse_args()
    print(f"Python {sys.version.split()[0]}; ratios are to {REFERENCE}, in the same round")
    asyncio.run(bench(given.rounds, given.steps))


if __name__ == "__main__":
    main()
