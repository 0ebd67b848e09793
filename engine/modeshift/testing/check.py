"""``check_agent``: tries whether a clone's graph keeps what the engine promises."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from typing_extensions import override

from modeshift.graph.deps import AgentDeps
from modeshift.graph.entry.compiled import Agent
from modeshift.graph.models.loading import Models
from modeshift.graph.state import get_depth
from modeshift.modes.errors import NodeError
from modeshift.project import load_project
from modeshift.testing.agent import judge_call
from modeshift.testing.conversation import Conversation
from modeshift.testing.modes import load_modes
from modeshift.testing.scripted import Call, ScriptedModel
from modeshift.tools.tool import Tool
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace

SECONDS = 30
"""What a turn may take."""
MAX_QUESTIONS = 10
Build = Callable[..., Agent]


class Trial(Conversation):
    """One thread of the graph, with tools that note what they are called with."""

    def __init__(self, build: Build, folder: Path, *calls: Call) -> None:
        """The model makes each of the calls in a message of its own."""
        self.ran: list[str] = []
        self.hangs = False
        self._build, self._folder = build, folder
        model = ScriptedModel.of(*([call] for call in calls))
        self._saver = InMemorySaver()
        super().__init__(self._make(model))
        self.model = model

    def _make(self, model: ScriptedModel) -> Agent:
        catalog = load_modes().catalog

        async def probe(path: str) -> str:
            """Change a file."""
            self.ran.append(path)
            if self.hangs:
                await asyncio.Event().wait()
            return f"changed {path}"

        toolbox = build_toolbox(Workspace(self._folder), catalog)
        probes = []
        for group in (group for group in load_project().groups if group != "mcp"):
            probe.__name__ = f"probe_{group.replace('-', '_')}"
            probes.append(Tool.of(probe, "edit", paths=("path",)).in_group(group))
        self.probes = [tool.spec.name for tool in probes]
        self.deps = AgentDeps(catalog, toolbox.with_tools(probes), Models(model))
        self.switches = [spec.name for spec in toolbox.specs if spec.effect.name == "switch"]
        return self._build(self.deps, self._saver)

    def restart(self) -> None:
        """Go on with the thread in another agent, as a process does that has taken over."""
        self.agent = self._make(self.model)

    @override
    async def send(self, given: Any) -> None:
        async with asyncio.timeout(SECONDS):
            await super().send(given)

    async def answer(self, decision: str) -> bool:
        """Answer until nothing waits, a question of the clone's own with yes; whether one came."""
        was_asked, calls = False, {*self.probes, *self.switches}
        for _ in range(MAX_QUESTIONS):
            if not (names := [request["name"] for request in await self.waiting()]):
                break
            was_asked |= not calls.isdisjoint(names)
            kinds = [decision if name in calls else "approve" for name in names]
            await self.send(Command(resume={"decisions": [{"type": kind} for kind in kinds]}))
        return was_asked

    async def check_tools(self) -> None:
        """Raise ``AssertionError`` unless the model was last offered the tools of the mode."""
        values = await self.values()
        seat = self.deps.seat(values["mode"], values.get("limit"), get_depth(values))  # type: ignore[arg-type]  # it is a State
        wrong = self.model.asked[-1].tools ^ {*seat.model.names}
        expect(not wrong, f"the model has the tools of another mode: {', '.join(sorted(wrong))}")


def check_agent(build: Build) -> None:
    """Try the graph that ``build`` makes, in each of the clone's modes, with a scripted model.

    Then say, decide, set modes and start anew at random, the same in each run. Raises
    ``AssertionError`` that names what is open: a call that runs though the mode denies it, nobody
    has approved it or a person has rejected it, or once more after a cancel; a switch that nobody
    has said yes to; a model that is offered the tools of another mode.
    """
    from modeshift.testing.walk import WALKS, walk  # noqa: PLC0415  # which uses Trial

    async def check(folder: Path) -> None:
        await _check(build, folder)
        for seed in range(WALKS):
            await named(f"in random walk {seed}", walk(Trial(build, folder), seed))

    with TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


async def _check(build: Build, folder: Path) -> None:
    first = Trial(build, folder)
    modes = [*first.deps.catalog]
    for mode in modes:
        for probe in first.probes:
            await named(f"in {mode} mode, {probe}", _try_call(build, folder, mode, probe))
        for switch in first.switches:
            for target in modes:
                if target != mode:
                    where = f"in {mode} mode, {switch} to {target}"
                    await named(where, _try_switch(build, folder, switch, mode, target))


async def named(where: str, trial: Any) -> None:
    """Await the trial; what it raises says where."""
    try:
        await trial
    except NodeError as error:
        raise AssertionError(f"{where}: {error}") from error
    except AssertionError as error:
        raise AssertionError(f"{where} {error}") from None


async def _try_call(build: Build, folder: Path, mode: str, probe: str) -> None:
    call = probe, {"path": "probe.md"}
    talk = Trial(build, folder, call)
    verdict = (await judge_call(talk.agent, mode, *call)).kind
    await talk.say("go", mode=mode)
    if verdict != "allow":
        expect(not talk.ran, f"runs although {_WHY[verdict]}")
    await talk.answer("reject")
    if verdict != "allow":
        expect(not talk.ran, "runs although it is rejected, or denied")
    if verdict != "deny":
        talk = Trial(build, folder, call)
        await talk.say("go", mode=mode)
        was_asked = await talk.answer("approve")
        expect(was_asked == (verdict == "ask"), f"is {'' if was_asked else 'not '}asked about")
        expect(len(talk.ran) == 1, f"runs {len(talk.ran)} times once it is approved")
        await _try_cut_off(Trial(build, folder, call), mode)


_WHY = {"deny": "the mode denies it", "ask": "nobody has approved it"}


async def _try_cut_off(talk: Trial, mode: str) -> None:
    async def go() -> None:
        await talk.say("go", mode=mode)
        await talk.answer("approve")

    talk.hangs = True
    run = asyncio.create_task(go())
    async with asyncio.timeout(SECONDS):
        while not talk.ran and not run.done():  # noqa: ASYNC110  # the probe is of another graph
            await asyncio.sleep(0.01)
    run.cancel()
    await asyncio.wait({run})
    talk.hangs = False
    await talk.send(None)
    await talk.answer("approve")
    expect(len(talk.ran) == 1, "runs once more after it was cut off by a cancel")


async def _try_switch(build: Build, folder: Path, name: str, mode: str, target: str) -> None:
    for decision, after in (("reject", mode), ("approve", target)):
        talk = Trial(build, folder, (name, {"mode_slug": target, "reason": "a check"}))
        await talk.say("go", mode=mode)
        expect(await talk.mode() == mode, "takes effect although nobody has said yes")
        await talk.check_tools()
        await talk.answer(decision)
        holds = await talk.mode() == after
        expect(holds, f"leads to {await talk.mode()} mode after {decision!r}")
        await named(f"after {decision!r}", talk.check_tools())


def expect(holds: object, otherwise: str) -> None:
    """Raise ``AssertionError`` unless it holds."""
    if not holds:
        raise AssertionError(otherwise)
