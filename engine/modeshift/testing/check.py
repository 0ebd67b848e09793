"""``check_agent``: tries whether a clone's graph keeps what the engine promises."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.tool import ToolCall, tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from typing_extensions import override

from modeshift.graph.approvals.judging import CallContext, judge
from modeshift.graph.deps import AgentDeps
from modeshift.graph.entry.compiled import Agent
from modeshift.graph.models.loading import Models
from modeshift.modes.catalog import Catalog, with_prompt, with_source
from modeshift.modes.errors import NodeError
from modeshift.modes.files import ModesFile, parse_mode
from modeshift.modes.mode import Level
from modeshift.project import load_project
from modeshift.tools.tool import Tool
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace

SECONDS = 30
"""What a turn may take."""
MAX_QUESTIONS = 10
Build = Callable[..., Agent]


class _Model(BaseChatModel):
    """Makes one call, and then is done."""

    call: Any
    has_called: bool = False

    @property
    @override
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=tools)

    @override
    def _generate(self, messages: list[BaseMessage], *given: Any, **kwargs: Any) -> ChatResult:
        calls = [] if self.has_called else [self.call]
        self.has_called = True
        answer = AIMessage("" if calls else "done", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _read(file: Path) -> ModesFile:
    return parse_mode(file.read_text(encoding="utf-8"), file.name)


class _Trial:
    """One thread of the graph, in which the model makes one call."""

    def __init__(self, build: Build, folder: Path, name: str, args: dict[str, Any]) -> None:
        self.runs = 0
        self.hangs = False
        self.call: ToolCall = tool_call(name=name, args=args, id="call")
        project = load_project()
        modes = project.root / "modes"
        read = [
            with_prompt(mode, modes)
            for file in sorted(modes.glob("*.yaml"))
            for mode in with_source(_read(file), Level.BUILT_IN, file.name)
        ]
        catalog = Catalog(read, read[0].slug)

        async def probe(path: str) -> str:
            """Change a file."""
            self.runs += 1
            if self.hangs:
                await asyncio.Event().wait()
            return f"changed {path}"

        toolbox = build_toolbox(Workspace(folder), catalog)
        groups = [group for group in project.groups if group != "mcp"]
        probes = []
        for group in groups:
            probe.__name__ = f"probe_{group.replace('-', '_')}"
            probes.append(Tool.of(probe, "edit", paths=("path",)).in_group(group))
        self.probes = [tool.spec.name for tool in probes]
        models = Models(_Model(call=self.call))
        self.deps = AgentDeps(catalog, toolbox.with_tools(probes), models)
        self.switches = [spec.name for spec in toolbox.specs if spec.effect.name == "switch"]
        self.agent = build(self.deps, InMemorySaver())
        self.config: RunnableConfig = {"configurable": {"thread_id": str(uuid4())}}

    async def send(self, given: Any) -> None:
        async with asyncio.timeout(SECONDS):
            await self.agent.ainvoke(given, self.config)

    async def say(self, mode: str) -> None:
        await self.send({"messages": [{"role": "user", "content": "go"}], "mode": mode})

    async def mode(self) -> str:
        return str((await self.agent.aget_state(self.config)).values["mode"])

    async def waiting(self) -> Sequence[str]:
        interrupts = (await self.agent.aget_state(self.config)).interrupts
        return [one["name"] for each in interrupts for one in each.value["action_requests"]]

    async def decide(self, decision: str) -> bool:
        """Answer until nothing waits, a question of the clone's own with yes; whether one came."""
        was_asked = False
        for _ in range(MAX_QUESTIONS):
            if not (names := await self.waiting()):
                break
            was_asked |= self.call["name"] in names
            kinds = [decision if name == self.call["name"] else "approve" for name in names]
            await self.send(Command(resume={"decisions": [{"type": kind} for kind in kinds]}))
        return was_asked


def check_agent(build: Build) -> None:
    """Try the graph that ``build`` makes, in each of the clone's modes, with a scripted model.

    Raises ``AssertionError`` that names what is open: a call that runs though the mode denies it,
    nobody has approved it or a person has rejected it, or once more after a cancel; a switch that
    nobody has said yes to.
    """
    with TemporaryDirectory() as folder:
        asyncio.run(_check(build, Path(folder)))


async def _check(build: Build, folder: Path) -> None:
    first = _Trial(build, folder, "none", {})
    modes = [*first.deps.catalog]
    for mode in modes:
        for probe in first.probes:
            await _named(mode, probe, _try_call(build, folder, mode, probe))
        for switch in first.switches:
            for target in modes:
                if target != mode:
                    where = f"{switch} to {target}"
                    await _named(mode, where, _try_switch(build, folder, switch, mode, target))


async def _named(mode: str, what: str, trial: Any) -> None:
    try:
        await trial
    except NodeError as error:
        raise AssertionError(f"in {mode} mode, {what}: {error}") from error
    except AssertionError as error:
        raise AssertionError(f"in {mode} mode, {what} {error}") from None


async def _try_call(build: Build, folder: Path, mode: str, probe: str) -> None:
    def trial() -> _Trial:
        return _Trial(build, folder, probe, {"path": "probe.md"})

    talk = trial()
    state: Any = {"mode": mode, "approvals": "manual"}
    verdict = (await judge(talk.deps, CallContext.of(talk.deps, state), talk.call)).verdict.kind
    await talk.say(mode)
    if verdict != "allow":
        _expect(talk.runs == 0, f"runs although {_WHY[verdict]}")
    await talk.decide("reject")
    if verdict != "allow":
        _expect(talk.runs == 0, "runs although it is rejected, or denied")
    if verdict != "deny":
        talk = trial()
        await talk.say(mode)
        was_asked = await talk.decide("approve")
        _expect(was_asked == (verdict == "ask"), f"is {'' if was_asked else 'not '}asked about")
        _expect(talk.runs == 1, f"runs {talk.runs} times once it is approved")
        await _try_cut_off(trial(), mode)


_WHY = {"deny": "the mode denies it", "ask": "nobody has approved it"}


async def _try_cut_off(talk: _Trial, mode: str) -> None:
    async def go() -> None:
        await talk.say(mode)
        await talk.decide("approve")

    talk.hangs = True
    run = asyncio.create_task(go())
    async with asyncio.timeout(SECONDS):
        while not talk.runs and not run.done():  # noqa: ASYNC110  # the probe is of another graph
            await asyncio.sleep(0.01)
    run.cancel()
    await asyncio.wait({run})
    talk.hangs = False
    await talk.send(None)
    await talk.decide("approve")
    _expect(talk.runs == 1, "runs once more after it was cut off by a cancel")


async def _try_switch(build: Build, folder: Path, name: str, mode: str, target: str) -> None:
    for decision, after in (("reject", mode), ("approve", target)):
        talk = _Trial(build, folder, name, {"mode_slug": target, "reason": "a check"})
        await talk.say(mode)
        _expect(await talk.mode() == mode, "takes effect although nobody has said yes")
        await talk.decide(decision)
        holds = await talk.mode() == after
        _expect(holds, f"leads to {await talk.mode()} mode after {decision!r}")


def _expect(holds: object, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)
