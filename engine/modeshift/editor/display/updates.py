"""``SessionUpdates``: shows an editor what the graph does, or what it has done."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

from acp import (
    plan_entry,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message,
)
from acp.utils import serialize_params
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    HumanMessage,
    ToolCall,
    ToolMessage,
)
from pydantic import BaseModel

from modeshift.editor.display.tool_calls import (
    LiveOutput,
    ToolCallView,
    as_prose,
    as_text,
    content_blocks,
)
from modeshift.editor.files import Folder
from modeshift.editor.store import Record
from modeshift.editor.transport import Editor
from modeshift.events import COMPACTING, STOPPED, STOPPED_RUNNING, Wrote
from modeshift.messages.from_model import CUT_OFF
from modeshift.messages.normal_form import get_call_id, is_sound_id
from modeshift.messages.repair import find_open_calls, show_result
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import to_one_line
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import StateValues
from modeshift.threads.state import Planned, Subtask
from modeshift.turns.compaction import is_summary


class SessionUpdates:
    """The updates of one session; mutable."""

    def __init__(self, editor: Editor, record: Record, get_deps: Callable[[], AgentDeps]) -> None:
        """``get_deps`` gives the modes and tools as they are by now."""
        self.editor = editor
        self.id = record.id
        self.folder = Folder(Path(record.cwd), Path(record.cwd))
        self._get_deps = get_deps
        self.streamed: str | None = None
        """The text so far of the answer that is coming in; None before its first piece."""
        self.was_cut_off = False
        """Whether the last answer reached the model's limit of tokens."""
        self.subtask: Subtask | None = None
        """The sub-task whose calls are shown."""
        self.cut_off = frozenset[str]()
        """The ids of calls that may have begun when a run was cut off."""
        self._compaction: str | None = None
        """The id of the compaction that goes on."""
        self._open: dict[str, ToolCallView] = {}
        """The calls that have not ended, by id."""
        self._results: dict[str, ToolMessage] = {}
        """Results of calls that ended in this turn; the stored history may not have them yet."""
        self._known = set[str]()
        """The ids of all calls so far."""
        self._output = LiveOutput(editor.offered)
        self._notices = set[str]()
        """The notices that were shown."""

    async def send(self, update: BaseModel | dict[str, object]) -> None:
        """Send one update, also of a kind or with a field that the SDK would leave out."""
        given = update if isinstance(update, dict) else serialize_params(update)
        params = {"sessionId": self.id, "update": given}
        await self.editor.client.ext_notification("session/update", params)

    async def say(self, text: str) -> None:
        """Send text of our own."""
        await self.send(update_agent_message_text(text))

    async def say_plainly(self, text: str) -> None:
        """Send text that quotes somebody else, with nothing in it that acts as Markdown."""
        await self.send(update_agent_message(as_prose(text).content))

    async def show_notice(self, text: str) -> None:
        """Show what a person should know, once."""
        if text not in self._notices:
            self._notices.add(text)
            if "notices" in self.editor.shows:
                await self.send({"sessionUpdate": "notice", "severity": "warning", "title": text})
            else:
                await self.say(f"> Notice: {text}\n\n")

    async def show_todos(self, todos: Sequence[JsonObject]) -> None:
        """Show the todo list."""
        entries = [plan_entry(todo["content"], status=todo["status"]) for todo in todos]
        await self.send(update_plan(entries))

    async def show_text(self, message: AIMessage) -> None:
        """Send the words and thoughts of an answer."""
        for block in message.content_blocks:
            if block["type"] == "reasoning" and (thought := block.get("reasoning")):
                await self.send(update_agent_thought_text(thought))
            elif block["type"] == "text" and (text := block["text"]):
                await self.say(text)

    # While the graph runs.

    async def show_chunk(self, message: AIMessageChunk) -> None:
        """Show a piece of the model's answer."""
        self.streamed = (self.streamed or "") + message.text
        await self.show_text(message)
        for call in message.tool_call_chunks:
            id, name = call["id"], call["name"]
            # A known or unsound id will be replaced before the message is stored.
            if id and name and id not in self._known and is_sound_id(id):
                view = self._view(ToolCall(name=name, args={}, id=id))
                view = replace(view, title=to_one_line(name))  # its arguments are still coming in
                self.track(view)
                await self.send(view.start())

    async def show_update(self, written: Wrote) -> None:
        """Show what a node has changed."""
        node, update, messages = written.node, written.update, written.messages
        if "subtask" in update:
            self.subtask = update["subtask"]
        if node == COMPACTING:
            self._notices.discard(update["notices"][-1])  # it may fail twice for one reason
            await self._show_compaction(
                *(("completed", messages[0].text) if messages else ("failed",))
            )
            self._compaction = None
        for message in messages:
            if isinstance(message, AIMessage) and not written.is_repair:
                await self._show_answer(message)
            await self._end_call(message)
        if (todos := update.get("todos")) is not None:
            await self.show_todos(todos)

    async def begin_compaction(self) -> None:
        """Show that the conversation is being summarized."""
        self._compaction = str(uuid4())
        await self._show_compaction("in_progress", "> The conversation is being summarized.")

    async def _show_compaction(self, status: str, words: str = "", id: str | None = None) -> None:
        """Send the protocol's update, or the words to an editor that does not know of it."""
        if "compaction" not in self.editor.shows:
            return await self.say(f"{words}\n\n") if words else None
        update = {"sessionUpdate": "compaction_update", "compactionId": id or self._compaction}
        summary = {"summary": [{"type": "text", "text": words}]} if status == "completed" else {}
        return await self.send({**update, "status": status, **summary})

    async def _show_answer(self, message: AIMessage) -> None:
        """Show what of an answer has not been streamed, and its calls."""
        if self.streamed is None:
            await self.show_text(message)
        elif message.text != self.streamed:  # such as why it was cut off
            await self.say(message.text.removeprefix(self.streamed))
        self.streamed = None
        self.was_cut_off = message.text.endswith(CUT_OFF)
        ids = {get_call_id(call) for call in message.tool_calls}
        ids |= {id for id, view in self._open.items() if view.effect.starts_subtask and view.args}
        for id in [id for id in self._open if id not in ids]:
            await self.send(self._open.pop(id).failed("The model did not finish this call."))
        for call in message.tool_calls:
            view = self._view(call)
            is_new = view.id not in self._open
            self.track(view)
            await self.send(view.start() if is_new else view.progress())

    def track(self, view: ToolCallView) -> None:
        """Remember a call as one that the editor knows and that has not ended."""
        self._open[view.id] = view
        self._known.add(view.id)

    async def begin_call(self, planned: Planned) -> None:
        """Show that a call begins to run, from the stream ``tasks``."""
        call, approved = planned["call"], planned["approved"]
        if approved is not None:
            call = ToolCall(name=call["name"], args=approved["args"], id=call["id"])
        view = replace(self._view(call), is_running=True)
        self.track(view)
        runs = view.effect.runs_programs
        if runs and (more := self._output.begin(view.id, str(self.folder.named))):
            await self.send(view.start().model_copy(update=more))  # Zed looks at no other update
        else:
            await self.send(view.progress())

    async def show_output(self, id: str, text: str) -> None:
        """Show what a call prints, from the stream ``custom``."""
        if id in self._open and (update := self._output.add(id, text)):
            await self.send(update)

    async def _end_call(self, message: AnyMessage) -> None:
        """Show the result of a call, if the message is one."""
        if isinstance(message, ToolMessage) and message.tool_call_id in self._open:
            view = self._open.pop(message.tool_call_id)
            self._results[view.id] = message
            ended = show_result(message).rpartition("\n")[2]
            await self.send(self._output.end(view.ended(message), ended))

    async def end_own_question(self, id: str, *, is_yes: bool) -> None:
        """Show the answer to a node's own question, for which no call has a result."""
        self._open.pop(id, None)
        await self.send(update_tool_call(id, status="completed" if is_yes else "failed"))

    async def end_open_calls(self, why: str = STOPPED) -> None:
        """Show all calls that have not ended as failed: nothing runs or waits any more."""
        if self._compaction is not None:
            await self._show_compaction("cancelled")
            self._compaction = None
        while self._open:
            _, view = self._open.popitem()
            has_effect = view.is_running and view.effect.changes_the_world
            reason = STOPPED_RUNNING if has_effect else why
            await self.send(self._output.end(view.failed(reason), reason, keeps_text=True))
        self.streamed, self.was_cut_off = None, False

    def _view(self, call: ToolCall) -> ToolCallView:
        deps = self._get_deps()
        return ToolCallView.of(deps, self.folder, call).of_subtask(deps, self.subtask)

    # Between two turns, and when a session is opened.

    async def catch_up(self, values: StateValues, *, is_waiting: bool) -> None:
        """End the calls that have results by now; remember those that wait."""
        messages = values.get("messages", [])
        for parent in values.get("parents", []):
            self.subtask = parent["subtask"]
            for each in [parent, *parent.get("then", ())]:
                self.track(replace(self._view(each["call"]), is_running=each is parent))
        self.subtask = values.get("subtask")
        for message in messages:
            await self._end_call(message)
            if isinstance(message, AIMessage):
                self._known |= {get_call_id(call) for call in message.tool_calls}
        self._results.clear()
        for call in find_open_calls(messages) if is_waiting else ():
            self.track(self._view(call))

    async def replay(self, parts: Iterable[tuple[Subtask | None, list[AnyMessage]]]) -> None:
        """Show the whole history; its last calls may be running or waiting for a person."""
        messages = [message for _, messages in parts for message in messages]
        results = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
        not_stored = set(self._open)
        for self.subtask, messages in parts:
            if self.subtask is not None:
                name = self._get_deps().catalog.get_name(self.subtask["mode"])
                await self.say(f"\n\n> Sub-task in {to_one_line(name)} mode:\n\n")
            for before, message in pairwise([None, *messages]):
                if isinstance(message, HumanMessage):
                    for block in content_blocks(message):
                        await self.send(update_user_message(block))
                elif isinstance(message, AIMessage):
                    await self._replay_text(message, is_next=isinstance(before, AIMessage))
                    for call in message.tool_calls:
                        not_stored.discard(get_call_id(call))
                        await self._replay_call(call, results.get(get_call_id(call)))
        if self.streamed:  # an answer that is coming in; neither it nor its calls are stored
            await self.say(self.streamed)
        for id in not_stored & self._open.keys():
            await self.send(self._open[id].start())

    async def _replay_text(self, message: AIMessage, *, is_next: bool) -> None:
        if is_summary(message) and "compaction" in self.editor.shows:
            await self._show_compaction("completed", message.text, message.id)
            return
        if is_next:  # it is a summary of what stands before
            await self.say("\n\n")
        await self.show_text(message)

    async def _replay_call(self, call: ToolCall, result: ToolMessage | None) -> None:
        result = result or self._results.get(get_call_id(call))
        match result and result.artifact:
            case {"changed_to": dict(args)}:  # a person's: what has run
                call = ToolCall(name=call["name"], args=args, id=call["id"])
        view = self._view(call)
        if result is not None:
            await self.send(view.replayed(result))
        elif view.id in self._open:
            self._open[view.id] = replace(view, is_running=self._open[view.id].is_running)
            await self.send(self._open[view.id].start())
        else:
            may_have_run = view.id in self.cut_off and view.effect.changes_the_world
            why = STOPPED_RUNNING if may_have_run else STOPPED
            failed = {"status": "failed", "content": [as_text(why)]}
            await self.send(view.start().model_copy(update=failed))
