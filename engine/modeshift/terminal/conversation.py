"""``Conversation``: takes messages, commands and decisions until the person leaves."""

import asyncio
import re
import signal
from typing import Any

from langgraph.types import Command, Interrupt, StateSnapshot

from modeshift.graph.approvals.requests import Request
from modeshift.graph.deps import AgentDeps
from modeshift.graph.routing import is_cut_off
from modeshift.modes.errors import InvalidInputError, UserError
from modeshift.modes.policy import Approvals
from modeshift.terminal.cards import Cards
from modeshift.terminal.connection import Connection, find_question
from modeshift.terminal.keyboard import Keyboard
from modeshift.terminal.screen import ALERT, FAINT, Screen
from modeshift.terminal.transcript import Transcript

HELP = """\
/<mode>                  change to the mode; with a text behind it, say that there
/approvals manual|auto   what runs without asking
/compact                 put a summary in the place of the conversation
/status                  the thread, its mode, approvals and model
/quit                    leave, as Ctrl-D does
Ctrl-C stops the agent. Enter alone asks an open question again, or goes on with a turn."""
CUT_OFF = "The last turn has not come to its end. Enter goes on with it; so does a message."
_COMMAND = re.compile(r"/([\w-]+)(?:\s+(.*))?", re.DOTALL)


class Conversation:
    """One thread in one terminal."""

    def __init__(self, connection: Connection, screen: Screen, keyboard: Keyboard) -> None:
        self._connection = connection
        self._screen = screen
        self._keyboard = keyboard
        self._cards = Cards(screen, keyboard)
        self._transcript = Transcript(screen)
        self._chosen: dict[str, Any] = {}
        """What the person has set and the thread does not have yet."""
        self._postponed: str | None = None
        """The id of the question that the person did not answer."""
        self._deps: AgentDeps
        self._state: StateSnapshot | None = None

    async def run(self, mode: str | None) -> None:
        """Show the thread and go on with it, in ``mode``; raises ``UserError`` for a wrong one."""
        self._deps = await self._connection.load()
        self._transcript.show_notices(self._deps.notices, FAINT)
        if mode is not None:
            self._choose_mode(mode)
        if (state := await self._connection.read()) is not None:
            self._transcript.show_history(self._deps, state.values.get("messages", []))
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
        state = self._state
        given: Command[Any] | dict[str, Any] | None
        if question is not None and question.id != self._postponed:
            try:
                given = await self._ask(question, state.values if state else {})
            except KeyboardInterrupt:
                self._postponed = question.id
                self._screen.words("Nothing is approved. Enter asks again; a message goes on.")
                return
        else:
            cut_off = state is not None and is_cut_off(state.values, state.next, state.interrupts)
            if cut_off:
                self._screen.words(CUT_OFF, ALERT)
            self._screen.line()
            said = await self._keyboard.read_message(self._build_prompt(state))
            self._postponed = self._postponed if said else None
            given = await self._read_input(said, state) if said else None
            if cut_off and not said:
                await self._run(None)
        if given is not None:
            await self._run(given)

    async def _look(self) -> Interrupt | None:
        """Read what may have changed; gives the question that waits. Where that fails, says so."""
        try:
            self._deps = await self._connection.load()
            self._state = await self._connection.read()
        except UserError as error:
            self._screen.words(str(error), ALERT)
            return None
        return None if "mode" in self._chosen else find_question(self._state)

    def _build_prompt(self, state: StateSnapshot | None) -> str:
        mode, approvals = self._get_current(state)
        return f"{mode}> " if approvals == Approvals.MANUAL else f"{mode} ({approvals})> "

    def _get_current(self, state: StateSnapshot | None) -> tuple[str, str]:
        values = {**(state.values if state else {}), **self._chosen}
        mode = values.get("mode")
        mode = mode if mode in self._deps.catalog else self._deps.catalog.default
        return str(mode), str(values.get("approvals") or self._deps.approvals.value)

    async def _read_input(self, said: str, state: StateSnapshot | None) -> dict[str, Any] | None:
        """What to run with; None for a command that runs nothing."""
        more: dict[str, Any] = {}
        if found := _COMMAND.fullmatch(said):
            name, said = found[1], found[2] or ""
            match name:
                case "quit" | "exit":
                    raise EOFError
                case "help":
                    self._screen.lines(HELP.splitlines())
                    return None
                case "status":
                    self._show_status(state)
                    return None
                case "approvals":
                    self._choose_approvals(said)
                    return None
                case "compact":
                    more["compact"] = True
                case _:
                    self._choose_mode(name)
                    if not said:
                        return None
        if said:
            more["messages"] = [{"role": "user", "content": said}]
        return {**self._chosen, **more}

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

    def _choose_approvals(self, given: str) -> None:
        if given not in (known := [one.value for one in Approvals]):
            raise InvalidInputError(f"unknown approvals {given!r}; give one of: {', '.join(known)}")
        self._chosen["approvals"] = given

    def _show_status(self, state: StateSnapshot | None) -> None:
        values = state.values if state else {}
        mode, approvals = self._get_current(state)
        last = (values.get("usage") or {}).get("last") or {}
        where = self._connection.where
        lines = [
            f"thread     {self._connection.thread}",
            f"mode       {mode}" + (f", at most {limit}" if (limit := values.get("limit")) else ""),
            f"approvals  {approvals}",
            f"model      {self._deps.catalog[mode].model or self._deps.models.default}",
            f"window     {last.get('used') or 0} of {last.get('window') or 'unknown'} tokens",
            f"workspace  {self._connection.agents.settings.workspace}",
            f"runs       {where}",
        ]
        self._screen.lines(lines)

    async def _ask(self, question: Interrupt, state: dict[str, Any]) -> Command[Any]:
        request: Request = question.value
        decisions = await self._cards.decide(self._deps, request["action_requests"], state)
        self._transcript.asked(request["action_requests"][-1]["id"])
        answer = {"decisions": decisions, "question": request["question"]}
        return Command(resume={question.id: answer})

    async def _run(self, given: Any) -> None:
        """Run until the end, a question or Ctrl-C; raises ``UserError``."""
        task = asyncio.ensure_future(self._stream(given))
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            self._transcript.stop()
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            self._transcript.end_run()

    async def _stream(self, given: Any) -> None:
        async for kind, part in self._connection.stream(given):
            if kind == "updates":
                self._chosen = {}
            self._transcript.show_part(self._deps, kind, part)
