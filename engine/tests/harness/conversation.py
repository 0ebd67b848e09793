"""Runs an agent in this process as a client would, and shows what it did."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, StreamMode

import tools
from graph.agent import build as build_agent
from modeshift import Agent
from modeshift.graph.deps import AgentDeps
from modeshift.graph.models.loading import Models
from modeshift.graph.models.offline import OfflineModel
from modeshift.modes.catalog import Catalog
from modeshift.modes.policy import Approvals
from modeshift.tools.processes.sandboxes import Commands
from modeshift.tools.tool import ToolDeps
from modeshift.tools.toolbox import Toolbox, make_tools
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import has_engines_modes, load_catalog, load_test_catalog
from tests.harness.scripted import Call, ScriptedModel, calling

TOOLS = (
    ("read", "tools.read:read_tools"),
    ("edit", "tools.edit:edit_tools"),
    ("command", "tools.command:command_tools"),
    (None, "tools.conversation:conversation_tools"),
)
"""That of the engine's tests: each tool is part of a request, and so of each cassette."""
APPROVE = {"type": "approve"}
REJECT = {"type": "reject"}
Step = Sequence[Call] | str | Exception
"""The calls of a scripted answer, its words, or how the model fails."""


def edit(name: str, **args: Any) -> dict[str, Any]:
    """The decision to run the tool with other arguments."""
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def make_toolbox(place: Workspace, catalog: Catalog, commands: Commands | None = None) -> Toolbox:
    """The tools of the engine's tests; in the owner's, those of the clone."""
    commands = commands or Commands()
    modes = {slug: catalog[slug] for slug in catalog}
    listed = TOOLS if has_engines_modes() else tools.TOOLS
    made = make_tools(listed, ToolDeps(place, modes, commands))
    return Toolbox(place, made, commands)


def make_agent(
    workspace: Path | Workspace,
    model: BaseChatModel | Models | str | None = None,
    approvals: Approvals = Approvals.MANUAL,
    saver: BaseCheckpointSaver[Any] | None = None,
    catalog: Catalog | None = None,
    commands: Commands | None = None,
    *,
    build: Callable[..., Agent] = build_agent,
    **more: Any,
) -> Agent:
    """An agent on ``workspace``, with the offline model unless another is given."""
    catalog = catalog or (load_test_catalog() if has_engines_modes() else load_catalog())
    place = Workspace(workspace) if isinstance(workspace, Path) else workspace
    toolbox = make_toolbox(place, catalog, commands)
    models = model if isinstance(model, Models) else Models(model or OfflineModel())
    deps = AgentDeps(catalog, toolbox, models, approvals, **more)
    return build(deps, saver or InMemorySaver())


class Conversation:
    """One thread."""

    def __init__(self, agent: Agent, *, is_streamed: bool = False) -> None:
        """``is_streamed``: the client reads the model's answer while it is written."""
        self.agent = agent
        self.config: RunnableConfig = {"configurable": {"thread_id": str(uuid4())}}
        self.nodes: list[str] = []
        self.chunks: list[AIMessageChunk] = []
        self.model = ScriptedModel(answers=[])
        """The one that ``script`` made, with what it was asked."""
        self._modes: list[StreamMode] = ["updates", "messages"] if is_streamed else ["updates"]

    async def send(self, given: Any) -> None:
        """Run with an input or a ``Command`` until it ends or waits; the history must be valid."""
        async for mode, part in self.agent.astream(given, self.config, stream_mode=self._modes):
            if mode == "updates":
                self.nodes += [name for name in part if name != "__interrupt__"]
            elif isinstance(part[0], AIMessageChunk):
                self.chunks.append(part[0])
        assert problems(await self.messages()) == []

    async def send_until(self, node: str, given: Any) -> None:
        """Run and stop after a node, like a process that ends between two steps."""
        await self.agent.ainvoke(given, self.config, interrupt_after=[node])

    async def say(self, text: str, **host: Any) -> None:
        """A user's message; ``host`` is the rest of the input."""
        await self.send({"messages": [{"role": "user", "content": text}], **host})

    async def decide(self, *decisions: dict[str, Any]) -> None:
        """Resume the interrupt with decisions."""
        await self.send(Command(resume={"decisions": list(decisions)}))

    async def approve_all(self) -> list[str]:
        """Approve everything until the run ends; gives the names of the tools that asked."""
        asked = []
        while waiting := await self.waiting():
            asked += [request["name"] for request in waiting]
            await self.decide(*[APPROVE] * len(waiting))
        return asked

    async def values(self) -> dict[str, Any]:
        """The state."""
        return dict((await self.agent.aget_state(self.config)).values)

    async def mode(self) -> str:
        return str((await self.values())["mode"])

    async def messages(self) -> list[BaseMessage]:
        return list((await self.values()).get("messages", []))

    async def results(self) -> dict[str, ToolMessage]:
        """The tool messages, by call id."""
        return {
            message.tool_call_id: message
            for message in await self.messages()
            if isinstance(message, ToolMessage)
        }

    async def waiting(self) -> list[dict[str, Any]]:
        """The action requests of the interrupt; empty if there is none."""
        interrupts = (await self.agent.aget_state(self.config)).interrupts
        assert len(interrupts) <= 1
        return list(interrupts[0].value["action_requests"]) if interrupts else []


def open_thread(deps: AgentDeps) -> Conversation:
    """A thread of an agent that is made of ``deps``."""
    return Conversation(build_agent(deps, InMemorySaver()))


def reload(talk: Conversation, deps: AgentDeps) -> None:
    """Go on with the thread in another agent, as a process does that has taken over."""
    saver = talk.agent.checkpointer
    talk.agent = build_agent(deps, saver)  # type: ignore[arg-type]  # it is one


def restart(talk: Conversation, workspace: Path, **options: Any) -> None:
    """The same with an agent on ``workspace``, and with the model that ``script`` made, if any."""
    saver: Any = talk.agent.checkpointer
    if talk.model.answers:
        options.setdefault("model", talk.model)
    talk.agent = make_agent(workspace, saver=saver, **options)


def script(workspace: Path, *steps: Step, **options: Any) -> Conversation:
    """A conversation with a model that takes one step after the other.

    The ids of calls are ``call_0``, ``call_1``, ... in the first, ``step1_0``, ... in the second.
    """
    model = ScriptedModel(answers=[_answer(*step) for step in enumerate(steps)])
    talk = Conversation(make_agent(workspace, model, **options))
    talk.model = model
    return talk


def _answer(number: int, step: Step) -> AIMessage | Exception:
    if isinstance(step, str):
        return AIMessage(step)
    if isinstance(step, Exception):
        return step
    return calling(*step, prefix=f"step{number}" if number else "call")


async def run_script(
    workspace: Path, *steps: Step, mode: str = "ask", limit: str | None = None, **options: Any
) -> Conversation:
    """The same, and the user has said "go" in ``mode``, under the host's ``limit``."""
    talk = script(workspace, *steps, **options)
    await talk.say("go", mode=mode, **({"limit": limit} if limit else {}))
    return talk


SECONDS = 120
"""What a test waits for at most, of what takes a second on a machine with nothing else to do."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait until another task or process has made ``condition`` true."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.02)


async def cut_off(run: Coroutine[Any, Any, None], condition: Callable[[], bool]) -> None:
    """Cancel a run once ``condition`` is true."""
    task = asyncio.create_task(run)
    await until(condition)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def problems(messages: list[BaseMessage]) -> list[str]:
    """Reasons why a provider would refuse this history; none if it is valid."""
    found = []
    due: Counter[str] = Counter()
    for message in messages:
        if isinstance(message, ToolMessage):
            if due[message.tool_call_id] != 1:
                found.append(f"answer to {message.tool_call_id!r}, which is not due")
            due[message.tool_call_id] -= 1
            continue
        found += [f"no answer to {id!r} before {message.type}" for id, n in due.items() if n > 0]
        due.clear()
        if isinstance(message, AIMessage):
            due.update(str(call["id"]) for call in message.tool_calls)
    return found
