"""``Transcript``: prints what a run does, and what a thread holds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolCall, ToolMessage

from modeshift.graph.approvals.requests import build_title
from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.normal_form import get_call_id
from modeshift.graph.messages.repair import VOID
from modeshift.graph.messages.untrusted import remove_marks, show_result
from modeshift.terminal.cards import find_effect
from modeshift.terminal.connection import read_message
from modeshift.terminal.screen import ALERT, BOLD, FAINT, Screen

REPAIRING = ("intake", "review", "end_subtask", "compact_history")
"""Nodes that rewrite the history, whose answers have been shown before."""
STOPPED = "Stopped."
STOPPED_RUNNING = "Stopped while it ran: it may have taken effect, in whole or in part."


class Transcript:
    """Of one thread; mutable."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._streamed = ""
        self._calls: dict[str, ToolCall] = {}
        """Those that have no result yet."""
        self._printed = set[str]()
        """The ids of calls whose output was shown as it came."""
        self._shown: str | None = None
        """The id of the call whose title, or question, was shown last."""
        self._told = {VOID}  # the calls say so themselves
        """Notices that a person has read."""

    def show_part(self, deps: AgentDeps, kind: str, part: Any) -> None:
        """Show a part of a run's stream."""
        match kind, part:
            case "messages", (given, _):
                message = read_message(given)
                if isinstance(message, AIMessageChunk):
                    self._streamed += message.text
                    self._screen.write(message.text)
            case "custom", {"type": "tool_output", "tool_call_id": str(id), "text": str(text)}:
                self._begin(deps, id)
                self._printed.add(id)
                self._screen.write(text, FAINT)
            case "updates", dict():
                for node, update in part.items():
                    if isinstance(update, Mapping):
                        self._show_update(deps, node, update)

    def _show_update(self, deps: AgentDeps, node: str, update: Mapping[str, Any]) -> None:
        messages = update.get("messages") or []
        if not isinstance(messages, list):  # the whole history, rewritten
            messages = getattr(messages, "value", messages)
            messages = messages.get("value", []) if isinstance(messages, Mapping) else messages
        for message in map(read_message, messages):
            if isinstance(message, AIMessage) and node not in REPAIRING:
                self._show_answer(message)
            elif isinstance(message, ToolMessage):
                self._show_result(deps, message)
        for planned in [one for batch in update.get("plan") or () for one in batch][:1]:
            self._begin(deps, get_call_id(planned["call"]))
        if (mode := update.get("mode")) in deps.catalog and update.get("mode_changes"):
            self._screen.line(f"Now in {deps.catalog[mode].name} mode.", BOLD)
        if update.get("todos"):
            self._show_todos(update["todos"])
        if node == "compact_history":
            self._told.discard(update["notices"][-1])  # it may fail twice for one reason
        self.show_notices(update.get("notices") or ())

    def show_notices(self, notices: Iterable[str], style: str = ALERT) -> None:
        """Show what a person should know, once."""
        for notice in notices:
            if notice not in self._told:
                self._told.add(notice)
                self._screen.words(f"Notice: {notice}", style)

    def _show_answer(self, message: AIMessage) -> None:
        """What of an answer has not been streamed; its calls are shown when they begin."""
        self._screen.write(message.text.removeprefix(self._streamed))
        self._streamed = ""
        self._screen.end_line()
        self._calls |= {get_call_id(call): call for call in message.tool_calls}

    def _begin(self, deps: AgentDeps, id: str) -> None:
        if id in self._calls and self._shown != id:
            call = self._calls[id]
            self._screen.line(build_title(deps, call["name"], call["args"]), BOLD)
            self._shown = id

    def _show_result(self, deps: AgentDeps, message: ToolMessage) -> None:
        id = message.tool_call_id
        if id not in self._calls:
            return
        effect = find_effect(deps, self._calls[id]["name"])
        if not (effect.switches_mode or effect.takes_answer or effect.ends_turn) or (
            message.status == "error"
        ):
            self._begin(deps, id)
            self._screen.end_line()
            style = ALERT if message.status == "error" else FAINT
            show = self._screen.result if effect.result_is_data else self._screen.words
            text = show_result(message)
            # What came already is not shown again, but for how it ended.
            show(text.rpartition("\n")[2] if id in self._printed else text, style)
        del self._calls[id]

    def asked(self, id: str) -> None:
        """Remember that a question has shown the call."""
        self._shown = id

    def _show_todos(self, todos: Iterable[Mapping[str, str]]) -> None:
        marks = {"completed": "x", "in_progress": "-"}
        for todo in todos:
            self._screen.words(f"[{marks.get(todo['status'], ' ')}] {todo['content']}")

    def stop(self) -> None:
        """Show that the run was stopped, and what it may have done."""
        is_running = self._shown in self._calls
        self._screen.words(f"\n{STOPPED_RUNNING if is_running else STOPPED}", ALERT, "")
        self._calls.clear()

    def end_run(self) -> None:
        """Forget what was coming in."""
        self._screen.end_line()
        self._streamed = ""

    def show_history(self, deps: AgentDeps, messages: Sequence[Any]) -> None:
        """Show what the thread holds."""
        for message in map(read_message, messages):
            if isinstance(message, HumanMessage):
                self._screen.line(f"> {remove_marks(message.text)}", BOLD)
            elif isinstance(message, AIMessage):
                self._show_answer(message)
            elif isinstance(message, ToolMessage):
                self._show_result(deps, message)
