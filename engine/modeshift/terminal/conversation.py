"""``Chat``: a thread in a terminal, until the person leaves."""

import asyncio
import re
from collections.abc import Mapping
from decimal import Decimal

from langgraph.types import Interrupt, StateSnapshot

from modeshift.agent import Agents
from modeshift.configuration.prices import Prices
from modeshift.events import Wrote
from modeshift.modes.errors import InvalidInputError, UserError
from modeshift.modes.plain_text import to_one_line
from modeshift.terminal.cards import Cards
from modeshift.terminal.panel import Panel
from modeshift.terminal.plain import PlainPanel
from modeshift.terminal.screen import ALERT, FAINT, Screen, fit_to_width, measure
from modeshift.terminal.thread_commands import (
    choose_thread,
    show_changes,
    take_back_allowed,
    tell_allowed,
    undo,
)
from modeshift.terminal.transcript import Transcript
from modeshift.thread import Run, Thread, find_title
from modeshift.threads.deps import AgentDeps
from modeshift.threads.routing import is_cut_off

BEGINNING = "── "
MIN_TITLE = 10


COMMANDS = {
    "approvals": "show what runs unasked; manual or auto sets it",
    "allowed": 'show what an "always" of yours allows, and take it back',
    "compact": "replace the conversation by a summary",
    "diff": "show what the thread has changed",
    "undo": "go back to before your last message; or, back, to before the undo",
    "threads": "go on with another thread",
    "status": "show the thread, its mode, approvals and model",
    "help": "show the commands and keys",
    "quit": "leave, as Ctrl-D does",
}
KEYS = """\
/<mode>          change to the mode; with a text behind it, say that there
Shift-Tab        choose the next mode
@                the project's files
Ctrl-J           begin a line; Ctrl-X Ctrl-E opens the editor
Esc, Ctrl-C      stop the agent; what is typed while it works is kept for when it is done
v, Ctrl-O        show the whole of what was shown in part; at a question v alone
Enter alone asks an open question again, or goes on with a turn."""
FILES_KEY = "@                the project's files\n"
CUT_OFF = "The last turn was interrupted. Enter goes on with it; so does a message."
POSTPONED = "Nothing is approved. Enter asks again; a message goes on without it."
SHOWN_AT_ONCE = {"mode", "approvals", "subtask", "remembered"}
_COMMAND = re.compile(r"/([\w-]+)(?:\s+(.*))?", re.DOTALL)


def describe_keys(*, has_files: bool) -> str:
    """The commands and keys, a line each; without files no key that is for files."""
    lines = [f"{f'/{name}':17}{words}" for name, words in COMMANDS.items()]
    return "\n".join([*lines, KEYS if has_files else KEYS.replace(FILES_KEY, "")])


class Chat:
    """One terminal, with one thread at a time."""

    def __init__(
        self, agents: Agents, thread: Thread, deps: AgentDeps, panel: Panel | PlainPanel,
        prices: Prices, where: str,
    ) -> None:  # fmt: skip
        """``where`` says in words where the agent runs."""
        self._agents = agents
        self.thread = thread
        self._deps = deps
        self._panel = panel
        self._prices = prices
        self._where = where
        self._screen = Screen(panel.print)
        self._transcript = Transcript(self._screen, panel)
        self._chosen: dict[str, object] = {}
        """Settings that the person chose and the thread does not have yet."""
        self._postponed: str | None = None
        """The id of the question that the person left open."""
        self._cost: Decimal | None = None
        self._state = StateSnapshot({}, (), thread.config, None, None, None, (), ())
        panel.get_pages = lambda: self._screen.folded
        panel.choose_next_mode = self._choose_next_mode
        panel.build_bar = self._build_bar

    def list_commands(self) -> Mapping[str, str]:
        """The modes and commands behind ``/``, each with a sentence."""
        modes = self._deps.catalog.items()
        return {**{slug: f"change to {mode.name} mode" for slug, mode in modes}, **COMMANDS}

    async def run(self, mode: str | None, told: str) -> None:
        """Show the text ``told`` and the thread, and go on with it in ``mode``.

        Raises ``UserError`` for an unknown mode.
        """
        self._screen.words(told, FAINT, "")
        self._transcript.show_notices(self._deps.notices, FAINT)
        if mode is not None:
            self._choose_mode(mode)
        await self._open(self.thread)
        while True:
            try:
                await self._take_turn()
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            except UserError as error:
                self._panel.take_back()
                self._screen.words(str(error), ALERT)

    async def _open(self, thread: Thread) -> None:
        self.thread, self._state = thread, await thread.state()
        self._transcript.show_history(self._deps, self._state.values)

    async def _take_turn(self) -> None:
        question = await self._look()
        state, run = self._state, None
        if question is not None and question.id != self._postponed:
            try:
                run = await self._ask(question)
            except KeyboardInterrupt:
                self._postponed = question.id
                self._screen.words(POSTPONED)
        else:
            cut_off = is_cut_off(state.values, state.tasks, state.interrupts)
            if cut_off:
                self._screen.words(CUT_OFF, ALERT)
            is_free = not cut_off and question is None
            message = await self._panel.read_message(self._build_prompt(), sends_kept=is_free)
            self._postponed = self._postponed if message else None
            if message:
                run = await self._obey(message)
            elif cut_off:
                run = self.thread.go_on()
        if run is not None:
            await self._show_run(run)

    async def _look(self) -> Interrupt | None:
        """Read what may have changed; returns the question that waits. An error is shown."""
        question = None
        try:
            self._state = await self.thread.state()
            question = next(iter(self._state.interrupts), None)
            taken = (self._state.values.get("usage") or {}).get("thread") or {}
            self._cost = await asyncio.to_thread(self._prices.find_cost, taken)
            self._deps = await self.thread.deps()
        except UserError as error:
            self._panel.take_back()
            self._screen.words(str(error), ALERT)
        return None if "mode" in self._chosen else question

    def _build_prompt(self) -> str:
        return f"{self._name_place()}> "

    def _name_place(self) -> str:
        """The mode, and whether the thread is in a sub-task."""
        mode, _ = self._get_current()
        if self.thread.server is not None:  # it may have a mode that the files here no longer have
            mode = {**self._state.values, **self._chosen}.get("mode") or mode
        return f"{mode} / sub-task" if self._state.values.get("subtask") else mode

    def _get_current(self) -> tuple[str, str]:
        values = {**self._state.values, **self._chosen}
        mode = values.get("mode")
        mode = mode if mode in self._deps.catalog else self._deps.catalog.default
        return str(mode), str(values.get("approvals") or self._deps.approvals.value)

    def _build_bar(self, width: int) -> str:
        """One line of at most ``width`` columns: what matters less is left out first."""
        deps, values, (mode, approvals) = self._deps, self._state.values, self._get_current()
        last = (values.get("usage") or {}).get("last") or {}
        used, window = last.get("used") or 0, last.get("window")
        parts = [
            self._name_place(),
            deps.approval_words[approvals].name,
            f"{used:,} tokens" + (f" ({used / window:.0%})" if window else ""),
            deps.catalog[mode].model or deps.models.default,
            "" if self._cost is None else f"${self._cost:.2f}",
        ]
        bar = BEGINNING
        for part in filter(None, parts):
            longer = f"{bar}{' · ' if bar != BEGINNING else ''}{part}"
            bar = longer if measure(longer) <= width else bar
        title, room = to_one_line(find_title(values)), width - measure(bar) - 3
        return f"{bar} · {fit_to_width(title, room)}" if title and room >= MIN_TITLE else bar

    async def _obey(self, text: str) -> Run | None:
        """The run that a message begins; None for a command that runs nothing."""
        if text == "v" and self._screen.folded:
            self._panel.page()
            return None
        if match := _COMMAND.fullmatch(text):
            name, text = match[1], match[2] or ""
            if name in ("quit", "exit"):
                raise EOFError
            if name == "compact":
                said = {"messages": [{"role": "user", "content": text}]} if text else {}
                return self.thread.run({**self._chosen, **said, "compact": True})
            if name in COMMANDS:
                await self._command(name, text)
                return None
            self._choose_mode(name)
            if not text:
                return None
        return self.thread.say(text, **self._chosen)

    async def _command(self, name: str, text: str) -> None:
        match name:
            case "help":
                self._screen.block(describe_keys(has_files=self._deps.toolbox.has_workspace))
            case "status":
                self._show_status()
            case "approvals":
                self._choose_approvals(text)
            case "allowed":
                await take_back_allowed(self.thread, self._deps, self._screen, self._panel)
            case "diff":
                await show_changes(self.thread, self._deps, self._screen)
            case "threads":
                if id := await choose_thread(self._agents, self.thread.id, self._panel):
                    self._chosen = {}
                    await self._open(self._agents.thread(id))
            case "undo":
                if await undo(self.thread, text, self._screen, self._panel):
                    self._chosen = {}

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

    def _choose_next_mode(self) -> str:
        """Choose the next mode that can be used; returns the prompt."""
        slugs = [*self._deps.catalog]
        at = slugs.index(self._get_current()[0])
        for slug in slugs[at + 1 :] + slugs[:at]:
            if self._deps.models.problem(self._deps.catalog[slug]) is None:
                self._choose_mode(slug)
                break
        return self._build_prompt()

    def _choose_approvals(self, policy: str) -> None:
        if not policy:
            words = self._deps.approval_words[self._get_current()[1]]
            self._screen.words(f"{words.value}: {words.name}. {words.sentence}")
            return
        if policy not in (known := self._deps.approval_words):
            raise InvalidInputError(
                f"there are no approvals {policy!r}; type one of: {', '.join(known)}"
            )
        self._chosen["approvals"] = policy

    def _show_status(self) -> None:
        values, (mode, _) = self._state.values, self._get_current()
        toolbox = self._deps.toolbox
        last = (values.get("usage") or {}).get("last") or {}
        lines = {
            "thread": self.thread.id,
            "now": self._build_bar(1000).removeprefix(BEGINNING),
            "limit": values.get("limit"),
            "switches": self._deps.seat(mode).describe_way(values.get("instructions") or ()),
            "window": not last.get("window") and "its size is not known; CONTEXT_WINDOW sets it",
            "workspace": toolbox.has_workspace
            and (values.get("workspace") or toolbox.workspace.root),
            "runs": self._where,
        }
        self._screen.block("\n".join(f"{name:10} {it}" for name, it in lines.items() if it))

    async def _ask(self, question: Interrupt) -> Run:
        actions, state = question.value["action_requests"], {**self._state.values, **self._chosen}
        cards = Cards(self._screen, self._panel, self._deps, state)
        decisions = await cards.decide(actions)
        self._transcript.asked(actions[-1]["id"])
        if self._chosen:  # chosen meanwhile: an answer cannot carry it
            await self.thread.set(**self._chosen)
        return self.thread.answer(question, decisions)

    async def _show_run(self, run: Run) -> None:
        """Show a run until it ends, asks or is stopped; raises ``UserError``."""
        task = asyncio.ensure_future(self._show_events(run))
        with self._panel.working(task.cancel):
            try:
                await task
            except asyncio.CancelledError:
                self._transcript.stop()
                self._panel.take_back()
                if (this := asyncio.current_task()) is not None and this.cancelling():
                    raise  # the terminal is gone
            finally:
                self._transcript.end_run()

    async def _show_events(self, run: Run) -> None:
        async for event in run:
            if isinstance(event, Wrote):
                self._chosen = {}
                tell_allowed(self._state.values, event.update, self._deps, self._screen)
                for key in SHOWN_AT_ONCE & event.update.keys():
                    self._state.values[key] = event.update[key]
            self._transcript.show_event(self._deps, event)
