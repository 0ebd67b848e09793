"""``python -m benchmarks.trace``: how often a call goes from one of our modules to another.

A hop is a call of a function in another module than its caller's, both ours; what a library calls
is none, nor is a coroutine that goes on. A return is a hop to a module that was there before.
Traced at run time, in the event loop's thread and in worker threads. ``--hops`` prints them all.
"""

import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from typing_extensions import override

from benchmarks.contenders import build_modeshift
from tests.harness.scripted import ScriptedModel, calling

OURS = frozenset({"modeshift", "graph", "tools", "modes", "prompts"})
"""The top-level packages that are followed; the last three are of versions before the engine."""


class Hop(NamedTuple):
    """A call between two of our modules."""

    source: str
    target: str
    function: str


class Figures(NamedTuple):
    """What is printed of a way."""

    modules: int
    hops: int
    returns: int


def count(way: Sequence[Hop]) -> Figures:
    """Modules touched, hops, and hops to a module that was there before."""
    modules = {module for hop in way for module in (hop.source, hop.target)}
    seen = {way[0].source} if way else set[str]()
    returns = 0
    for hop in way:
        returns += hop.target in seen
        seen |= {hop.source, hop.target}
    return Figures(len(modules), len(way), returns)


def _name_module(frame: FrameType | None) -> str:
    """The module of a function that runs; empty for one that is not ours."""
    name = "" if frame is None else str(frame.f_globals.get("__name__"))
    return name if name.partition(".")[0] in OURS else ""


class Tracer(BaseCallbackHandler):
    """Notes the hops while it is on, and where each run of ``act`` is among them."""

    run_inline = True

    def __init__(self) -> None:
        self.hops: list[Hop] = []
        self.acts: list[tuple[int, int]] = []
        self._is_on = False
        self._frames: dict[int, FrameType] = {}
        """Those called so far, kept so that no other gets the same id."""
        self._began: dict[Any, int] = {}

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not self._is_on or id(frame) in self._frames:
            return
        self._frames[id(frame)] = frame
        source, target = _name_module(frame.f_back), _name_module(frame)
        if source and target and source != target:
            self.hops.append(Hop(source, target, frame.f_code.co_name))

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Trace this thread and those that it starts."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Begin anew, and note what is called from now on."""
        self.hops, self.acts, self._frames = [], [], {}
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False
            self._frames = {}

    @override
    def on_chain_start(self, serialized: Any, inputs: Any, **more: Any) -> None:
        if more.get("name") == "act":
            self._began[more["run_id"]] = len(self.hops)

    @override
    def on_chain_end(self, outputs: Any, **more: Any) -> None:
        if (start := self._began.pop(more["run_id"], None)) is not None:
            self.acts.append((start, len(self.hops)))


READ = ("read_file", {"path": "a.txt"})
SWITCH = ("switch_mode", {"mode_slug": "architect", "reason": "to plan"})
ASK = ("ask_followup_question", {"question": "Which?", "follow_up": [{"text": "a"}]})


class Journey:
    """The agent as it is served, with a scripted model; each conversation in its own thread."""

    def __init__(self, folder: Path, tracer: Tracer, answers: Sequence[AIMessage]) -> None:
        self._tracer = tracer
        self._agent = build_modeshift(
            ScriptedModel(answers=[*answers, *answers]), folder, InMemorySaver(), InMemoryStore()
        )

    async def say(self, thread: str) -> tuple[list[Hop], list[list[Hop]]]:
        """A turn, or its part up to a question: its way, and that of each run of ``act``."""
        return await self._run({"messages": [("user", "go")]}, thread)

    async def approve(self, thread: str) -> tuple[list[Hop], list[list[Hop]]]:
        """What follows a yes to the question that is open."""
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        asked = (await self._agent.aget_state(config)).interrupts
        if not asked:
            raise RuntimeError("nothing asks")
        decisions = [{"type": "approve"} for _ in asked[0].value["action_requests"]]
        return await self._run(Command(resume={"decisions": decisions}), thread)

    async def _run(self, input: Any, thread: str) -> tuple[list[Hop], list[list[Hop]]]:
        config: RunnableConfig = {
            "configurable": {"thread_id": thread},
            "callbacks": [self._tracer],
        }
        with self._tracer.on():
            await self._agent.ainvoke(input, config)
        hops = self._tracer.hops
        return hops, [hops[start:end] for start, end in self._tracer.acts]


async def trace(folder: Path, tracer: Tracer) -> dict[str, list[Hop]]:
    """The ways, by what is done; each is gone once before it is traced."""
    (folder / "a.txt").write_text("hello\n" * 20)
    read = Journey(folder, tracer, [calling(READ), AIMessage("done")])
    switch = Journey(folder, tracer, [calling(SWITCH), calling(ASK, prefix="ask")])
    for _ in range(2):
        turn, acts = await read.say(uuid4().hex)
        thread = uuid4().hex
        await switch.say(thread)
        switched, _ = await switch.approve(thread)
    (act,) = acts
    return {
        "`act` of one read_file": act,
        "a turn with one read": turn,
        "an approved switch to the next question": switched,
    }


def measure_ways() -> dict[str, list[Hop]]:
    """The ways, in a folder of their own."""
    tracer = Tracer()
    with tempfile.TemporaryDirectory() as folder, tracer.installed():
        return asyncio.run(trace(Path(folder), tracer))


def main() -> None:
    """Print the figures."""
    print(f"{'':<44}{'modules':>9}{'hops':>6}{'returns':>9}")
    for what, way in measure_ways().items():
        modules, hops, returns = count(way)
        print(f"{what:<44}{modules:>9}{hops:>6}{returns:>9}")
        if "--hops" in sys.argv:
            print("\n".join(f"    {hop.source} -> {hop.target}.{hop.function}" for hop in way))


if __name__ == "__main__":
    main()
