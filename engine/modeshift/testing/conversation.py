"""``Conversation`` and ``judge_call``: what a test does with an agent."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StreamMode

from modeshift.calls.judging import CallContext, judge
from modeshift.events import Chunk, Wrote
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.policy import Verdict
from modeshift.testing.scripted import ScriptedModel
from modeshift.thread import APPROVE, GivenDecision, Thread
from modeshift.threads.compiled import Agent
from modeshift.threads.state import State

Build = Callable[..., Agent]


class Conversation:
    """A thread of an agent, as a test talks to it."""

    def __init__(
        self, agent: Agent, *, is_streamed: bool = False, model: ScriptedModel | None = None
    ) -> None:
        """``is_streamed``: the client reads the model's answer while it is written."""
        self.agent = agent
        streams: list[StreamMode] = ["updates", "messages"] if is_streamed else ["updates"]
        config: RunnableConfig = {"configurable": {"thread_id": str(uuid4())}}
        self.thread = Thread(config, self._get_agent, streams=streams)
        self.nodes: list[str] = []
        """The nodes that have run, in this object's runs."""
        self.chunks: list[AIMessageChunk] = []
        self.model = model or ScriptedModel(answers=[])
        """The model that ``script`` made, with the requests that it got."""

    async def _get_agent(self) -> Agent:
        return self.agent

    @property
    def config(self) -> RunnableConfig:
        """LangGraph's config: the thread's id, and the ``checkpoint_id`` to go on from, if any."""
        return self.thread.config

    @config.setter
    def config(self, config: RunnableConfig) -> None:
        self.thread = replace(self.thread, config=config)

    async def send(self, input: object) -> None:
        """Run with an input or a ``Command`` until it ends or waits; the history must be valid."""
        async for event in self.thread.run(input):
            if isinstance(event, Wrote):
                self.nodes.append(event.node)
            elif isinstance(event, Chunk):
                self.chunks.append(event.message)
        assert problems(await self.messages()) == []

    async def send_until(self, node: str, input: Any) -> None:
        """Run and stop after a node, like a process that ends between two steps."""
        await self.agent.ainvoke(input, self.config, interrupt_after=[node])

    async def say(self, text: str, **host: object) -> None:
        """Send a user's message; ``host`` is the rest of the input, such as ``mode``."""
        await self.send({"messages": [{"role": "user", "content": text}], **host})

    async def decide(self, *decisions: GivenDecision) -> None:
        """Answer the open question, with a decision for each of its requests."""
        await self.send(Command(resume={"decisions": list(decisions)}))

    async def approve_all(self) -> list[str]:
        """Approve everything until the run ends; returns the names of the tools that asked."""
        asked = []
        while waiting := await self.waiting():
            answers = [each for each in await self.messages() if isinstance(each, AIMessage)]
            # A question of the clone's own node has no call.
            calls = {call["id"] for answer in answers for call in answer.tool_calls}
            asked += [request["name"] for request in waiting if request["id"] in calls]
            await self.decide(*[APPROVE] * len(waiting))
        return asked

    async def values(self) -> JsonObject:
        """The state."""
        return dict((await self.thread.state()).values)

    async def mode(self) -> str:
        """The thread's mode."""
        return str((await self.values())["mode"])

    async def messages(self) -> list[BaseMessage]:
        """The history."""
        return [*await self.thread.history()]

    async def results(self) -> dict[str, ToolMessage]:
        """The tool messages, by call id."""
        return {
            message.tool_call_id: message
            for message in await self.messages()
            if isinstance(message, ToolMessage)
        }

    async def waiting(self) -> list[JsonObject]:
        """The action requests of the open question; empty if there is none."""
        question = await self.thread.question()
        return list(question.value["action_requests"]) if question else []

    async def files(self) -> dict[str, str]:
        """The text of each file in the workspace, by its path in it."""
        return await asyncio.to_thread(_read_files, self.agent.live.deps.toolbox.workspace.root)


Recorded = Callable[..., Conversation]
"""The fixture ``recorded``: takes a script's steps, as ``script`` does, and returns the thread."""


def _read_files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def problems(messages: list[BaseMessage]) -> list[str]:
    """Reasons why a provider would refuse this history; none if it is valid."""
    faults = []
    due: Counter[str] = Counter()
    for message in messages:
        if isinstance(message, ToolMessage):
            if due[message.tool_call_id] != 1:
                faults.append(f"answer to {message.tool_call_id!r}, which is not due")
            due[message.tool_call_id] -= 1
            continue
        faults += [f"no answer to {id!r} before {message.type}" for id, n in due.items() if n > 0]
        due.clear()
        if isinstance(message, AIMessage):
            due.update(str(call["id"]) for call in message.tool_calls)
    return faults


async def judge_call(
    agent: Agent,
    mode: str,
    name: str,
    args: Mapping[str, object],
    approvals: str = "manual",
    limit: str | None = None,
    **own: object,
) -> Verdict:
    """Whether the call would run in the mode: its ``kind`` is ``allow``, ``ask`` or ``deny``.

    Its ``reason`` is in words; ``limit`` is the host's, ``own`` are keys of State. A call of an
    unknown tool, or with arguments that do not fit, is denied. Raises ``UnknownModeError``.
    """
    deps = agent.live.deps
    state = cast("State", {"mode": mode, "approvals": approvals, "limit": limit, **own})
    call = tool_call(name=name, args=dict(args), id="call")
    return (await judge(deps, CallContext.of(deps, state), call)).verdict
