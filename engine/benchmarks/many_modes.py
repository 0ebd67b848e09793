"""``make bench``: what many custom modes cost, against the built-in ones alone.

start: reading the files and building the agent. switch: the node ``switch_mode``, to a
mode to which nobody has switched before. step: a model-and-tool step. Then ``make prove``, once,
in processor seconds without the start of the process; the last row is both examples of docs.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graph.agent import build as build_agent
from modeshift import Agent
from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.settings import Settings
from modeshift.proof.prove import prove
from modeshift.threads.deps import AgentDeps
from modeshift.threads.state import Input
from tests.harness.modes import load_catalog
from tests.proof.test_explore import BOTH_EXAMPLES, make_deps

MODE = """
  - slug: m-{number}
    name: Mode {number}
    roleDefinition: You are a specialist who knows all about it. {filler}
    whenToUse: For what only a specialist can do.
    customInstructions: Do it well. {filler}
    groups: [read, [edit, {{fileRegex: '\\.m{number}$', description: its files}}], command]
"""


class Case:
    """So many custom modes, in a folder of their own."""

    def __init__(self, modes: int, folder: Path) -> None:
        self.modes = modes
        self.targets = [f"m-{number}" for number in range(modes)] or list(load_catalog())[1:]
        self.settings = Settings(
            model="offline", workspace=folder, config_folder=folder, trust_file=folder / "none"
        )
        (folder / "a.txt").write_text("hello")
        filler = "And so on, for as long as such a text may be. " * 20
        text = "".join(MODE.format(number=n, filler=filler) for n in range(modes))
        if modes:
            (folder / "custom_modes.yaml").write_text(f"customModes:{text}")
        self.times: dict[str, list[float]] = {"start": [], "switch": [], "step": []}

    async def run(self, number: int) -> None:
        """One round; adds milliseconds to ``times``."""
        start = time.perf_counter()
        agent = build_agent(AgentLoader(self.settings).deps(), InMemorySaver())
        self.times["start"].append((time.perf_counter() - start) * 1000)
        target = self.targets[-1 - number % len(self.targets)]
        self.times["switch"].append(await _switch(agent, target))
        self.times["step"].append(await _step(agent))


async def _switch(agent: Agent, target: str) -> float:
    config: RunnableConfig = {"configurable": {"thread_id": "switch"}}
    await agent.ainvoke({"messages": [HumanMessage(f"switch to {target}: why")]}, config)
    answer: Command[str] = Command(resume={"decisions": [{"type": "approve"}]})
    started = 0.0
    async for event in agent.astream(answer, config, stream_mode="debug"):
        if event["payload"].get("name") == "switch_mode":
            if event["type"] == "task":
                started = time.perf_counter()
            else:
                return (time.perf_counter() - started) * 1000
    raise RuntimeError(f"no switch to {target}")


async def _step(agent: Agent) -> float:
    config: RunnableConfig = {"configurable": {"thread_id": "step"}}
    steps = 30
    given: Input = {"messages": [HumanMessage("\n".join(["read a.txt"] * steps))]}
    start = time.perf_counter()
    await agent.ainvoke(given, config)
    return (time.perf_counter() - start) * 1000 / steps


async def bench(rounds: int, counts: Sequence[int]) -> None:
    """Measure and print the table; the cases take turns."""
    print(f"{'':24}" + "".join(f"{name:>10} ms" for name in ("start", "switch", "step")))
    with tempfile.TemporaryDirectory() as root:
        folders = [Path(root, str(count)) for count in counts]
        for folder in folders:
            folder.mkdir()
        cases = [Case(count, folder) for count, folder in zip(counts, folders, strict=True)]
        for number in range(rounds + 1):  # the first round warms up
            for case in cases:
                await case.run(number)
    for case in cases:
        medians = [statistics.median(times[1:]) for times in case.times.values()]
        print(f"  {case.modes:>4} custom modes     " + "".join(f"{ms:>13.2f}" for ms in medians))


def bench_proof(name: str, deps: AgentDeps) -> None:
    """Measure and print ``make prove`` with these modes."""
    start = time.process_time()
    proof = prove(deps)
    seconds = time.process_time() - start
    print(f"  {len(deps.catalog):>4} {name:<18}{seconds:>11.1f} s{proof.transitions:>14,}")


def bench_proofs(counts: Sequence[int]) -> None:
    """The clone's own modes and so many custom ones; the examples of docs/own/machine.md."""
    with tempfile.TemporaryDirectory() as root:
        for count in counts:
            bench_proof("modes proved", AgentLoader(Case(count, Path(root)).settings).deps())
        examples = make_deps(Path(root), *load_catalog(), changes=BOTH_EXAMPLES)
        bench_proof("with both examples", examples)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds; 5 by default")
    parser.add_argument("--modes", type=int, nargs="+", default=(0, 200), help="0 200 by default")
    parser.add_argument("--proofs", type=int, nargs="*", default=(0, 25), help="0 25 by default")
    given = parser.parse_args()
    asyncio.run(bench(given.rounds, given.modes))
    if given.proofs:
        print(f"{'':24}{'seconds':>13}{'transitions':>14}")
        bench_proofs(given.proofs)


if __name__ == "__main__":
    main()
