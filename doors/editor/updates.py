"""``SessionUpdates``: tells an editor what the graph does, as it does it, or what it has done."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from acp.interfaces import Client
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    PlanEntry,
    ToolCallProgress,
    UserMessageChunk,
)
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    HumanMessage,
    ToolCall,
    ToolMessage,
)
from langgraph.types import Overwrite

from doors.editor.content import as_output, as_text, shown, text_block
from doors.editor.folder import Folder
from doors.editor.tool_calls import ToolCallView
from graph.deps import AgentDeps
from graph.messages.from_model import CUT_OFF
from graph.messages.normal_form import is_sound_id
from graph.messages.repair import call_id, open_calls
from graph.state import Planned
from modes.errors import InvalidCallError
from modes.plain_text import plain

OUTPUT_SECONDS = 0.2
"""Between two updates of what a command has printed so far."""
MAX_OUTPUT = 20_000
REPAIRING = ("intake", "review")
"""Nodes that write the history anew; what it says has been said."""
STOPPED = "Stopped."
STOPPED_IN_IT = "Stopped while it ran: it may have taken effect, in whole or in part."


class SessionUpdates:
    """Of one session; mutable."""

    def __init__(self, client: Client, session_id: str, folder: Folder) -> None:
        self.folder = folder
        self._client = client
        self._id = session_id
        self._open: dict[str, ToolCallView] = {}
        """The calls that have not ended, by id."""
        self._endings: dict[str, ToolMessage] = {}
        """Of the calls that have ended since the last catching up."""
        self._running = set[str]()
        self._output: dict[str, str] = {}
        self._shown_at = 0.0
        self._notices = set[str]()
        self._used = set[str]()
        """Ids of all calls so far."""
        self.streamed = ""
        """What was heard of the answer that is coming in."""
        self._has_streamed = False
        self.was_cut_off = False
        """Whether the last answer has reached the model's limit of tokens."""

    async def send(self, update: Any) -> None:
        """One update."""
        await self._client.session_update(session_id=self._id, update=update)

    async def say(self, text: str) -> None:
        """Words of the agent's."""
        chunk = AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text))
        await self.send(chunk)

    async def notice(self, text: str) -> None:
        """What a person should know of the modes, once."""
        if text not in self._notices:
            self._notices.add(text)
            await self.say(f"> Notice: {text}\n\n")

    async def piece(self, deps: AgentDeps, message: AnyMessage) -> None:
        """A piece of the model's answer, from the stream ``messages``."""
        if not isinstance(message, AIMessageChunk):
            return  # it comes with the node's update
        self.streamed += message.text
        self._has_streamed = True
        await self._words(message)
        for call in message.tool_call_chunks:
            if call["id"] and call["name"]:
                await self._announce(deps, call["id"], call["name"])

    async def _words(self, message: AIMessage) -> None:
        for block in message.content_blocks:
            if block["type"] == "reasoning" and (thought := block.get("reasoning")):
                content = text_block(thought)
                await self.send(
                    AgentThoughtChunk(session_update="agent_thought_chunk", content=content)
                )
            elif block["type"] == "text" and (text := block["text"]):
                await self.say(text)

    async def _announce(self, deps: AgentDeps, id: str, name: str) -> None:
        """A call of which the arguments are still on their way."""
        if id in self._used or not is_sound_id(id):
            return  # it will get another one
        try:
            kind = deps.toolbox[name].spec.effect.shown_as
        except InvalidCallError:
            kind = "other"
        self._used.add(id)
        view = self._open[id] = ToolCallView(id, plain(name), kind)
        await self.send(view.start())

    async def update(self, deps: AgentDeps, node: str, update: Mapping[str, Any]) -> None:
        """What a node has changed, from the stream ``updates``."""
        messages = update.get("messages") or []
        messages = messages.value if isinstance(messages, Overwrite) else messages
        for message in messages:
            if isinstance(message, AIMessage) and node not in REPAIRING:
                await self._answer(deps, message)
            elif isinstance(message, ToolMessage) and message.tool_call_id in self._open:
                await self._ended(message)
        if (todos := update.get("todos")) is not None:
            await self.plan(todos)

    async def _answer(self, deps: AgentDeps, message: AIMessage) -> None:
        """The whole answer: what of it was not heard, and its calls.

        Announced calls that are not among them are none.
        """
        if not self._has_streamed:
            await self._words(message)
        elif message.text != self.streamed:
            # Why it was cut off, say, or words that do not come in pieces.
            await self.say(message.text.removeprefix(self.streamed))
        self.streamed, self._has_streamed = "", False
        self.was_cut_off = message.text.endswith(CUT_OFF)
        ids = {call_id(call) for call in message.tool_calls}
        for id in [id for id in self._open if id not in ids]:
            await self.send(self._open.pop(id).failed("The model did not finish this call."))
        for call in message.tool_calls:
            view = await ToolCallView.of(deps, self.folder, call)
            is_new = view.id not in self._open
            self._open[view.id] = view
            self._used.add(view.id)
            await self.send(view.start() if is_new else view.progress("pending"))

    async def catch_up(self, deps: AgentDeps, messages: Sequence[AnyMessage]) -> None:
        """Of earlier calls the editor has cards: those with an answer have ended.

        Those without are open, if the editor has not been told that they are not.
        """
        for message in messages:
            if isinstance(message, ToolMessage) and message.tool_call_id in self._open:
                await self._ended(message)
        self._endings.clear()
        for call in open_calls(messages):
            if call_id(call) not in self._used:
                self.waits(await ToolCallView.of(deps, self.folder, call))
        answers = (message for message in messages if isinstance(message, AIMessage))
        self._used |= {call_id(call) for message in answers for call in message.tool_calls}

    def waits(self, view: ToolCallView) -> None:
        """A card that the editor is asked about, and so knows."""
        self._open[view.id] = view

    async def begins(self, deps: AgentDeps, planned: Planned) -> None:
        """A call that is about to run, from the stream ``tasks``."""
        call, approved = planned["call"], planned["approved"]
        if approved is not None:
            call = ToolCall(name=call["name"], args=approved["args"], id=call["id"])
        self._running.add(call_id(call))
        view = self._open.get(call_id(call)) or await ToolCallView.of(deps, self.folder, call)
        if not view.is_due or view.given != call["args"]:
            view = self._open[view.id] = await ToolCallView.of(deps, self.folder, call, is_due=True)
        await self.send(view.progress("in_progress"))

    async def output(self, id: str, text: str) -> None:
        """What a call prints, from the stream ``custom``."""
        if id not in self._open:
            return
        self._output[id] = (self._output.get(id, "") + text)[-MAX_OUTPUT:]
        now = time.monotonic()
        if now - self._shown_at < OUTPUT_SECONDS:
            return
        self._shown_at = now
        await self.send(
            ToolCallProgress(
                session_update="tool_call_update",
                tool_call_id=id,
                status="in_progress",
                content=[as_output(self._output[id])],
            )
        )

    async def _ended(self, message: ToolMessage) -> None:
        view = self._open.pop(message.tool_call_id)
        self._endings[view.id] = message
        self._output.pop(view.id, None)
        self._running.discard(view.id)
        await self.send(view.ended(message))

    async def stopped(self, why: str = STOPPED) -> None:
        """No call is under way any more."""
        while self._open:
            id, view = self._open.popitem()
            output = self._output.pop(id, "")
            is_begun = id in self._running and view.effect.changes_the_world
            await self.send(view.failed(STOPPED_IN_IT if is_begun else why, output))
        self._running.clear()
        self.streamed, self._has_streamed = "", False
        self.was_cut_off = False

    async def plan(self, todos: Sequence[Mapping[str, str]]) -> None:
        """The todo list, whole."""
        entries = [
            PlanEntry(content=todo["content"], priority="medium", status=todo["status"])
            for todo in todos
        ]
        await self.send(AgentPlanUpdate(session_update="plan", entries=entries))

    async def reopen(
        self, deps: AgentDeps, messages: Sequence[AnyMessage], *, is_asked: bool
    ) -> None:
        """No call is under way; those without an answer wait for a person, or for nobody."""
        self._open.clear()
        for call in open_calls(messages) if is_asked else ():
            self.waits(await ToolCallView.of(deps, self.folder, call))

    async def replay(self, deps: AgentDeps, messages: Sequence[AnyMessage]) -> None:
        """The whole history; the last calls may be under way, or wait for a person."""
        answers = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
        announced = dict(self._open)
        for message in messages:
            if isinstance(message, HumanMessage):
                for block in shown(message):
                    await self.send(
                        UserMessageChunk(session_update="user_message_chunk", content=block)
                    )
            elif isinstance(message, AIMessage):
                await self._words(message)
                for call in message.tool_calls:
                    await self._retold(deps, call, answers.get(call_id(call)))
                    self._used.add(call_id(call))
                    announced.pop(call_id(call), None)
        # Of the answer that is coming in, which is not among the messages yet.
        if self.streamed:
            await self.say(self.streamed)
        for view in announced.values():
            if view.id in self._open:
                await self.send(view.start(self._status(view.id)))

    async def _retold(self, deps: AgentDeps, call: ToolCall, answer: ToolMessage | None) -> None:
        view = await ToolCallView.of(deps, self.folder, call)
        answer = answer or self._endings.get(view.id)  # it has ended since the history was read
        if answer is None and view.id in self._open:
            self._open[view.id] = view
            await self.send(view.start(self._status(view.id)))
        elif answer is not None:
            await self.send(view.retold(answer))
        else:
            start = view.start("failed")
            await self.send(start.model_copy(update={"content": [as_text(STOPPED)]}))

    def _status(self, id: str) -> Literal["in_progress", "pending"]:
        return "in_progress" if id in self._running else "pending"
