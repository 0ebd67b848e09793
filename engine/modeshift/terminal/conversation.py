"""``Transcript`` and ``Chat``: a thread in a terminal, until the person leaves."""

import asyncio
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.types import Interrupt, StateSnapshot

from modeshift.agent import Run, Thread
from modeshift.calls.requests import Request, build_title
from modeshift.events import STOPPED, STOPPED_RUNNING, Chunk, Printed, RunEvent, Wrote
from modeshift.messages.normal_form import get_call_id
from modeshift.messages.repair import VOID, remove_marks, show_result
from modeshift.modes.errors import InvalidInputError, UserError
from modeshift.modes.policy import Approvals
from modeshift.terminal.cards import Cards, find_effect
from modeshift.terminal.screen import ALERT, BOLD, FAINT, Keyboard, Screen
from modeshift.threads.deps import AgentDeps
from modeshift.threads.routing import is_cut_off


class Transcript:
    """What a terminal shows of one thread; mutable."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._streamed = ""
        self._calls: dict[str, ToolCall] = {}
        """The calls that have no result yet, by id."""
        self._printed = set[str]()
        """The ids of calls whose output was shown as it came."""
        self._shown: str | None = None
        """The id of the call whose title, or question, was shown last."""
        self._told = {VOID}  # the calls say so themselves
        """Notices that a person has read."""

    def show_event(self, deps: AgentDeps, event: RunEvent) -> None:
        """Show what happens in a run."""
        match event:
            case Chunk(message):
                self._streamed += message.text
                self._screen.write(message.text)
            case Printed(id, text):
                self._begin(deps, id)
                self._printed.add(id)
                self._screen.write(text, FAINT)
            case Wrote():
                self._show_update(deps, event)

    def _show_update(self, deps: AgentDeps, written: Wrote) -> None:
        node, update = written.node, written.update
        for message in written.messages:
            if isinstance(message, AIMessage) and not written.is_repair:
                self._show_answer(message)
            elif isinstance(message, ToolMessage):
                self._show_result(deps, message)
        for planned in [each for batch in update.get("plan") or () for each in batch][:1]:
            self._begin(deps, get_call_id(planned["call"]))
        if (mode := update.get("mode", "")) in deps.catalog and update.get("mode_changes"):
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

    def show_history(self, deps: AgentDeps, messages: Sequence[AnyMessage]) -> None:
        """Show what the thread holds."""
        for message in messages:
            if isinstance(message, HumanMessage):
                self._screen.line(f"> {remove_marks(message.text)}", BOLD)
            elif isinstance(message, AIMessage):
                self._show_answer(message)
            elif isinstance(message, ToolMessage):
                self._show_result(deps, message)


HELP = """\
/<mode>                  change to the mode; with a text behind it, say that there
/approvals manual|auto   what runs without asking
/compact                 put a summary in the place of the conversation
/status                  the thread, its mode, approvals and model
/quit                    leave, as Ctrl-D does
Ctrl-C stops the agent. Enter alone asks an open question again, or goes on with a turn."""
CUT_OFF = "The last turn has not come to its end. Enter goes on with it; so does a message."
_COMMAND = re.compile(r"/([\w-]+)(?:\s+(.*))?", re.DOTALL)


class Chat:
    """One thread in one terminal."""

    def __init__(self, thread: Thread, where: str, screen: Screen, keyboard: Keyboard) -> None:
        """``where`` it runs, in words."""
        self._thread = thread
        self._where = where
        self._screen = screen
        self._keyboard = keyboard
        self._cards = Cards(screen, keyboard)
        self._transcript = Transcript(screen)
        self._chosen: dict[str, Any] = {}
        """What the person has set and the thread does not have yet."""
        self._postponed: str | None = None
        """The id of the question that the person did not answer."""
        self._deps: AgentDeps
        self._state: StateSnapshot

    async def run(self, mode: str | None) -> None:
        """Show the thread and go on with it, in ``mode``; raises ``UserError`` for a wrong one."""
        self._deps = await self._thread.deps()
        self._transcript.show_notices(self._deps.notices, FAINT)
        if mode is not None:
            self._choose_mode(mode)
        self._state = await self._thread.state()
        self._transcript.show_history(self._deps, self._state.values.get("messages", []))
        while True:
            try:
                await self._take_turn()
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            except UserError as error:
                self._screen.words(str(error), ALERT)

    async def _take_turn(self) -> None:
        question = await self._look()
        state, run = self._state, None
        if question is not None and question.id != self._postponed:
            try:
                run = await self._ask(question, state.values)
            except KeyboardInterrupt:
                self._postponed = question.id
                self._screen.words("Nothing is approved. Enter asks again; a message goes on.")
        else:
            cut_off = is_cut_off(state.values, state.tasks, state.interrupts)
            if cut_off:
                self._screen.words(CUT_OFF, ALERT)
            self._screen.line()
            message = await self._keyboard.read_message(self._build_prompt())
            self._postponed = self._postponed if message else None
            if message:
                run = await self._obey(message)
            elif cut_off:
                run = self._thread.go_on()
        if run is not None:
            await self._show_run(run)

    async def _look(self) -> Interrupt | None:
        """Read what may have changed; gives the question that waits. Where that fails, says so."""
        try:
            self._deps = await self._thread.deps()
            self._state = await self._thread.state()
        except UserError as error:
            self._screen.words(str(error), ALERT)
            return None
        return None if "mode" in self._chosen else next(iter(self._state.interrupts), None)

    def _build_prompt(self) -> str:
        mode, approvals = self._get_current()
        return f"{mode}> " if approvals == Approvals.MANUAL else f"{mode} ({approvals})> "

    def _get_current(self) -> tuple[str, str]:
        values = {**self._state.values, **self._chosen}
        mode = values.get("mode")
        mode = mode if mode in self._deps.catalog else self._deps.catalog.default
        return str(mode), str(values.get("approvals") or self._deps.approvals.value)

    async def _obey(self, text: str) -> Run | None:
        """What a message begins; None for a command that runs nothing."""
        if match := _COMMAND.fullmatch(text):
            name, text = match[1], match[2] or ""
            match name:
                case "quit" | "exit":
                    raise EOFError
                case "help":
                    self._screen.lines(HELP.splitlines())
                    return None
                case "status":
                    self._show_status()
                    return None
                case "approvals":
                    self._choose_approvals(text)
                    return None
                case "compact":
                    said = {"messages": [{"role": "user", "content": text}]} if text else {}
                    return self._thread.run({**self._chosen, **said, "compact": True})
                case _:
                    self._choose_mode(name)
                    if not text:
                        return None
        return self._thread.say(text, **self._chosen)

    def _choose_mode(self, slug: str) -> None:
        if slug not in self._deps.catalog:
            raise InvalidInputError(
                f"there is no mode or command {slug!r}; the modes are: "
                f"{', '.join(self._deps.catalog)}; /help lists the commands; to say a text that "
                "begins with a slash, put a space before it"
            )
        if problem := self._deps.models.problem(self._deps.catalog[slug]):
            raise InvalidInputError(problem)
        self._chosen["mode"] = slug

    def _choose_approvals(self, policy: str) -> None:
        if policy not in (known := [each.value for each in Approvals]):
            raise InvalidInputError(
                f"unknown approvals {policy!r}; give one of: {', '.join(known)}"
            )
        self._chosen["approvals"] = policy

    def _show_status(self) -> None:
        values = self._state.values
        mode, approvals = self._get_current()
        last = (values.get("usage") or {}).get("last") or {}
        window = last.get("window")
        size = f" of {window}" if window else "; its size is not known, CONTEXT_WINDOW sets it"
        lines = [
            f"thread     {self._thread.id}",
            f"mode       {mode}" + (f", at most {limit}" if (limit := values.get("limit")) else ""),
            f"approvals  {approvals}",
            f"model      {self._deps.catalog[mode].model or self._deps.models.default}",
            f"switches   {self._deps.seat(mode).describe_way(values.get('instructions') or ())}",
            f"window     {last.get('used') or 0} tokens{size}",
            f"runs       {self._where}",
        ]
        toolbox = self._deps.toolbox
        if toolbox.has_workspace:
            lines.insert(-1, f"workspace  {values.get('workspace') or toolbox.workspace.root}")
        self._screen.lines(lines)

    async def _ask(self, question: Interrupt, state: dict[str, Any]) -> Run:
        request: Request = question.value
        decisions = await self._cards.decide(self._deps, request["action_requests"], state)
        self._transcript.asked(request["action_requests"][-1]["id"])
        return self._thread.answer(question, decisions)

    async def _show_run(self, run: Run) -> None:
        """Show a run until its end, a question or Ctrl-C; raises ``UserError``."""
        task = asyncio.ensure_future(self._show_events(run))
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            self._transcript.stop()
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            self._transcript.end_run()

    async def _show_events(self, run: Run) -> None:
        async for event in run:
            if isinstance(event, Wrote):
                self._chosen = {}
            self._transcript.show_event(self._deps, event)
