"""``Transcript``: what a terminal shows of a thread's runs and history."""

from collections.abc import Iterable, Mapping, Sequence

from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

from modeshift import events
from modeshift.calls.requests import build_title
from modeshift.messages.normal_form import get_call_id
from modeshift.messages.repair import VOID, remove_marks, show_result
from modeshift.modes.effects import NO_EFFECT, Effect
from modeshift.modes.errors import InvalidCallError
from modeshift.terminal.panel import Panel
from modeshift.terminal.plain import PlainPanel
from modeshift.terminal.screen import ALERT, BOLD, FAINT, Markdown, Screen
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import StateValues
from modeshift.threads.state import EndedSubtask

MARKS = {"completed": "x", "in_progress": "-"}
MAX_KEPT = 20_000
"""Characters of a command's output that are kept, to show them if it is stopped."""


class Transcript:
    """Shows what happens in a thread; mutable, as it knows what has been shown."""

    def __init__(self, screen: Screen, panel: Panel | PlainPanel) -> None:
        self._screen = screen
        self._panel = panel
        self._streamed, self._markdown = "", Markdown()
        self._calls: dict[str, ToolCall] = {}
        """The calls that have no result yet, by id."""
        self._printed = ""
        """What the command that runs has printed."""
        self._shown: str | None = None
        """The id of the call whose title, or question, was shown last."""
        self._subtask: str | None = None
        """The id of the sub-task that goes on."""
        self._told = {VOID}  # the calls say so themselves
        """Notices that a person has read."""

    def show_event(self, deps: AgentDeps, event: events.RunEvent) -> None:
        """Show what happens in a run."""
        match event:
            case events.Chunk(message):
                self._stream(message.text)
            case events.Printed(id, text):
                self._begin(deps, id)
                self._printed = (self._printed + text)[-MAX_KEPT:]
                self._panel.show_output(self._printed)
            case events.Wrote():
                self._show_update(deps, event)

    def _stream(self, text: str) -> None:
        if text and not self._streamed:
            self._screen.gap()
            self._panel.do("Answering")
        self._streamed += text
        self._screen.ready(self._markdown.feed(text))
        self._panel.pend(self._markdown.incomplete)

    def _show_update(self, deps: AgentDeps, written: events.Wrote) -> None:
        node, update = written.node, written.update
        for message in written.messages:
            if isinstance(message, AIMessage) and not written.is_repair:
                self._show_answer(message)
            elif isinstance(message, ToolMessage):
                self._show_result(deps, message)
        for planned in [each for batch in update.get("due_calls") or () for each in batch][:1]:
            self._begin(deps, get_call_id(planned["call"]))
        begins, mode = self._follow_subtask(deps, update), update.get("mode", "")
        if mode in deps.catalog and update.get("mode_changes") and not begins:
            self._screen.line(f"Now in {deps.catalog[mode].name} mode.", BOLD)
        for todo in update.get("todos") or ():
            self._screen.words(f"[{MARKS.get(todo['status'], ' ')}] {todo['content']}")
        if node == "compact_history":
            self._told.discard(update["notices"][-1])  # it may fail twice for one reason
        self.show_notices(update.get("notices") or ())

    def _follow_subtask(self, deps: AgentDeps, update: StateValues) -> bool:
        """Show that a sub-task begins or ends; returns whether one begins."""
        subtask, begins = update.get("subtask") or {}, False
        if isinstance(ended := update.get("subtasks"), list):
            for each in ended:
                self._end_subtask(deps, each)
        elif subtask.get("id", self._subtask) != self._subtask:
            self._begin_subtask(deps, subtask["mode"])
            begins = True
        self._subtask = subtask.get("id") if "subtask" in update else self._subtask
        return begins

    def _begin_subtask(self, deps: AgentDeps, mode: str) -> None:
        self._screen.gap()
        self._screen.line(f"Sub-task in {deps.catalog.get_name(mode)} mode", BOLD)

    def _end_subtask(self, deps: AgentDeps, ended: EndedSubtask) -> None:
        is_done, name = ended["status"] == "completed", deps.catalog.get_name(ended["mode"])
        how = "has ended." if is_done else f"was not finished: {ended['result']}"
        self._screen.line(f"The sub-task in {name} mode {how}", BOLD)

    def show_notices(self, notices: Iterable[str], style: str = ALERT) -> None:
        """Show what a person should know, once."""
        for notice in notices:
            if notice not in self._told:
                self._told.add(notice)
                self._screen.words(f"Notice: {notice}", style)

    def _show_answer(self, message: AIMessage) -> None:
        """Show what of an answer has not been streamed; its calls are shown when they begin."""
        self._stream(message.text.removeprefix(self._streamed))
        self.end_run()
        self._panel.do("Thinking")
        self._calls |= {get_call_id(call): call for call in message.tool_calls}

    def _begin(self, deps: AgentDeps, id: str) -> None:
        if id in self._calls:
            title = call_title(deps, self._calls[id]["name"], self._calls[id]["args"])
            self._panel.do(title)
            if self._shown != id:
                self._screen.folded = ""
                self._screen.gap()
                self._screen.line(title, BOLD)
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
            style = ALERT if message.status == "error" else ""
            show = self._screen.result if effect.result_is_data else self._screen.words
            show(show_result(message), style)
        del self._calls[id]
        self._printed = ""
        self._panel.do("Thinking")

    def asked(self, id: str) -> None:
        """Remember that a question has shown the call."""
        self._shown = id

    def stop(self) -> None:
        """Show that the run was stopped, and what it may have done."""
        self.end_run()
        if self._printed:
            self._screen.result(self._printed)
        is_running = self._shown in self._calls
        self._screen.words(events.STOPPED_RUNNING if is_running else events.STOPPED, FAINT, "")
        self._calls.clear()
        self._printed = ""

    def end_run(self) -> None:
        """Print the rest of an answer that was coming in."""
        self._screen.ready(self._markdown.end())
        self._panel.pend([])
        self._streamed, self._markdown = "", Markdown()

    def show_history(self, deps: AgentDeps, values: StateValues) -> None:
        """Show the thread's messages, each sub-task where it began."""
        ended = {each["id"]: each for each in values.get("subtasks") or ()}
        for each in (*(values.get("parents") or ()), values):
            if subtask := each.get("subtask"):
                self._begin_subtask(deps, subtask["mode"])
            self._show_messages(deps, each.get("messages") or (), ended)
            self._subtask = subtask and subtask["id"]

    def _show_messages(
        self, deps: AgentDeps, messages: Sequence[object], ended: Mapping[str, EndedSubtask]
    ) -> None:
        for message in events.read_messages(messages):
            if isinstance(message, HumanMessage):
                self._screen.line(f"\n> {remove_marks(message.text)}", BOLD)
            elif isinstance(message, AIMessage):
                self._show_answer(message)
            elif isinstance(message, ToolMessage):
                if subtask := ended.get(message.tool_call_id):
                    self._begin_subtask(deps, subtask["mode"])
                    self._show_messages(deps, subtask["messages"], ended)
                    self._end_subtask(deps, subtask)
                self._show_result(deps, message)


def call_title(deps: AgentDeps, name: str, args: Mapping[str, object]) -> str:
    """What a call does, in one line; a command's begins with ``$``."""
    title = build_title(deps, name, args)
    try:
        is_command = deps.toolbox[name].spec.command is not None
    except InvalidCallError:
        return title
    return f"$ {title}" if is_command else title


def find_effect(deps: AgentDeps, name: str) -> Effect:
    """The effect of a tool; ``NO_EFFECT`` if there is no such tool."""
    try:
        return deps.toolbox[name].spec.effect
    except InvalidCallError:
        return NO_EFFECT
