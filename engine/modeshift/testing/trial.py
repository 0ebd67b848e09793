"""``Trial``: one thread of a clone's graph, with tools that note what they are called with."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from typing_extensions import override

from modeshift.graph.deps import AgentDeps
from modeshift.graph.entry.compiled import Agent
from modeshift.graph.models.loading import Models
from modeshift.graph.state import get_depth
from modeshift.project import load_project
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
        self.switches = [
            spec.name
            for spec in toolbox.specs
            if spec.effect.switches_mode and not spec.effect.starts_subtask
        ]
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


def expect(holds: object, otherwise: str) -> None:
    """Raise ``AssertionError`` unless it holds."""
    if not holds:
        raise AssertionError(otherwise)
