"""``Panel``: the lines below what is printed: what goes on, the input, the choices, the bar."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, VerticalAlign, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import BeforeInput

from modeshift.configuration.databases import make_private
from modeshift.modes.plain_text import make_readable, to_one_line
from modeshift.terminal.choices import Choice, find_choice, number_choices
from modeshift.terminal.pager import NO_EDITOR, edit_text, show_pages
from modeshift.terminal.screen import fit_to_width, get_width, wrap

BURST = 0.05
"""Seconds between two writes: what comes in meanwhile is written at once."""
MAX_BURST = 65_536
MAX_PENDING = 8
"""Lines of what is not complete yet."""
ESCAPE = 0.1
"""Seconds after which Esc is a key of its own: others begin with it."""
ALONE = 0.5
"""Seconds without another key after which one key is an answer, and not the start of a word."""
WAITS = "Modeshift waits for you"
TYPING, PAUSE = 1.0, 0.5
"""Who has typed so shortly before a question has to pause so long before a key answers it."""
BUSY, QUIET = "ansicyan", "dim"
Reading = Literal["message", "answer", "choice"]


class WentBackError(Exception):
    """The person pressed Esc where an answer in words is asked for."""


class Panel:
    """All that reads raises ``KeyboardInterrupt`` for Ctrl-C, and ``EOFError`` for Ctrl-D."""

    def __init__(self, history: Path, completer: Completer) -> None:
        """``history`` is the file with earlier messages."""
        make_private(history)
        self.build_bar: Callable[[int], str] = lambda _: ""
        """The line at the bottom, of a width."""
        self.choose_next_mode: Callable[[], str] = str
        """Gives the prompt."""
        self.get_pages: Callable[[], str] = lambda: ""
        """What Ctrl-O shows."""
        self._pending: Sequence[str] = []
        """The lines that have come of an answer, and are not complete."""
        self._kept: list[str] = []
        """Messages for when the agent is done."""
        self._doing, self._last_line, self._since = "", "", 0.0
        self._stop: Callable[[], object] | None = None
        self._prompt = ""
        self._reading: Reading | None = None
        self._result: asyncio.Future[str]
        self._title, self._choices, self._at, self._no = "", list[Choice](), 0, ""
        self._is_shown, self._quiet_until, self._typed = False, 0.0, -TYPING
        self._first: str | None = None
        """A key that was pressed at the choices, until it is known that it is alone."""
        self._safe = 0
        """The choice that the cursor is on at first."""
        self._words = ""
        """What was typed at the choices, and is no answer."""
        self._printed, self._is_due, self._wrote = list[str](), False, 0.0
        self._message = Buffer(
            history=FileHistory(str(history)), multiline=True, complete_while_typing=True,
            completer=ThreadedCompleter(completer),
            on_text_changed=lambda _: self._note_typing(),
        )  # fmt: skip
        self._answer = Buffer(multiline=True)
        self._app = self._build_app()

    def _build_app(self) -> Application[None]:
        def input(buffer: Buffer) -> Window:
            prompt = BeforeInput(lambda: make_readable(self._prompt))
            return Window(
                BufferControl(buffer, input_processors=[prompt]), wrap_lines=True,
                dont_extend_height=True, height=Dimension(min=1, max=12),
            )  # fmt: skip

        def show(get: Callable[[], StyleAndTextTuples], **options: Any) -> Window:
            control = FormattedTextControl(get, focusable=True, show_cursor=False)
            return Window(control, wrap_lines=True, dont_extend_height=True, **options)

        self._windows = {
            "choice": show(self._show_choices),
            "answer": input(self._answer),
            "message": input(self._message),
        }
        areas = [
            show(self._show_live),
            ConditionalContainer(self._windows["choice"], self._is_reading("choice")),
            ConditionalContainer(self._windows["answer"], self._is_reading("answer")),
            ConditionalContainer(self._windows["message"], self._is_reading("message", None)),
            ConditionalContainer(CompletionsMenu(max_height=8), has_completions),
            show(lambda: [(QUIET, self.build_bar(get_width()))], height=1),
        ]
        app: Application[None] = Application(
            layout=Layout(HSplit(areas, align=VerticalAlign.TOP), self._windows["message"]),
            key_bindings=self._bind(), erase_when_done=True, min_redraw_interval=BURST / 3,
            before_render=lambda _: self._arm(), refresh_interval=1,
        )  # fmt: skip
        app.timeoutlen = app.ttimeoutlen = ESCAPE
        return app

    async def run(self, talk: Awaitable[None]) -> None:
        """Show the panel until the conversation has ended; raises what that raises."""
        talking = asyncio.ensure_future(talk)
        showing = asyncio.ensure_future(self._app.run_async(set_exception_handler=False))
        try:
            await asyncio.wait({talking, showing}, return_when=asyncio.FIRST_COMPLETED)
            await self._drain()
        finally:
            talking.cancel()
            if self._app.is_running:
                self._app.exit()
            await asyncio.wait({talking, showing})
        if not talking.cancelled():
            talking.result()

    # What is printed.

    def print(self, text: str) -> None:
        """Print lines above the panel."""
        self._printed.append(text)
        if not self._is_due:
            self._is_due = True
            loop = asyncio.get_running_loop()
            loop.call_at(max(self._wrote + BURST, loop.time()), self._write)

    def _write(self) -> None:
        if not self._printed:
            return
        text = "".join(self._printed)
        end = text.find("\n", MAX_BURST) + 1 or len(text)  # keys come between
        self._app.renderer.erase(leave_alternate_screen=False)
        self._app.output.write_raw(text[:end])
        self._app.output.flush()
        self._app.invalidate()
        loop = asyncio.get_running_loop()
        self._wrote, self._is_due = loop.time(), end < len(text)
        self._printed = [text[end:]] if self._is_due else []
        if self._is_due:
            loop.call_soon(self._write)

    async def _drain(self) -> None:
        while self._printed:
            self._write()
            await asyncio.sleep(0)

    # What goes on.

    @contextmanager
    def working(self, stop: Callable[[], object]) -> Iterator[None]:
        """While the agent works; Esc and Ctrl-C call ``stop``."""
        self._stop = stop
        self.do("Thinking")
        try:
            yield
        finally:
            self._stop, self._pending = None, []

    def do(self, what: str) -> None:
        """Show what goes on, in a line that goes away."""
        if (what := to_one_line(what)) != self._doing:
            self._doing, self._last_line = what, ""
            self._since = asyncio.get_running_loop().time()
            self._app.invalidate()

    def pend(self, lines: Sequence[str]) -> None:
        """Show what has come of an answer, and is not complete."""
        self._pending = lines
        self._app.invalidate()

    def show_output(self, text: str) -> None:
        """Show the last line that a command has printed."""
        lines = [line for line in text.rstrip("\n").split("\n") if line.strip()]
        self._last_line = to_one_line(lines[-1]) if lines else self._last_line
        self._app.invalidate()

    def _show_live(self) -> StyleAndTextTuples:
        pending = [part for line in self._pending for part in wrap(line)]
        lines = [("", line) for line in [*pending[-MAX_PENDING:], ""]]
        if self._reading is None:
            seconds = int(asyncio.get_running_loop().time() - self._since)
            doing = f"{self._doing} · {seconds} s · Esc stops" if self._stop is not None else "…"
            lines.append((BUSY, doing))
            lines += [(QUIET, f"  {self._last_line}")] if self._last_line else []
        when = "after this" if self._reading is None else "when the question is answered"
        lines += [(QUIET, f"Kept, sent {when}: {to_one_line(text, 200)}") for text in self._kept]
        lines = [(style, fit_to_width(line, get_width())) for style, line in lines]
        if self._reading == "choice" and self._title:
            more = " · v shows all" if self.get_pages() else ""
            lines += [("bold", line) for line in wrap(make_readable(self._title) + more)]
        if self._reading == "choice" and self._words:
            said = f"Typed: {to_one_line(self._words, 100)} · Enter approves nothing and keeps it"
            lines += [(QUIET, line) for line in wrap(said)]
        return _join(lines)

    def _show_choices(self) -> StyleAndTextTuples:
        return _join(
            ("bold" if place == self._at else "", part)
            for place, line in enumerate(number_choices(self._choices))
            for part in wrap(line, "▸ " if place == self._at else "  ", "    ")
        )

    # What is read.

    async def read_message(self, prompt: str, *, sends_kept: bool) -> str:
        """What the person says next; what was kept, if ``sends_kept``: no question is open."""
        self._prompt = prompt
        text = self._kept.pop(0) if sends_kept and self._kept else await self._read("message")
        self.print(f"\n{make_readable(prompt + text)}\n")
        return text.strip()

    async def read_answer(self, prompt: str, default: str = "") -> str:
        """An answer in words, which the history does not keep; raises ``WentBackError`` for Esc."""
        shown, self._prompt = self._prompt, prompt
        self._answer.text = default
        self._answer.cursor_position = len(default)
        try:
            text = await self._read("answer")
        except WentBackError:
            self.print("  ▸ back\n")
            raise
        finally:
            self._prompt = shown
        self.print(make_readable(f"{prompt}{text}") + "\n")
        return text

    async def choose(self, title: str, choices: Sequence[Choice], no: str, at: int = 0) -> str:
        """The key of a choice; Esc is ``no``, and Enter at first the choice ``at``.

        A key that was pressed before the list was shown does not count, nor does one of somebody
        who was typing when it came.
        """
        self._title, self._choices, self._at, self._no = title, list(choices), at, no
        self._first, self._words, self._safe = None, "", at
        await self._drain()
        now = asyncio.get_running_loop().time()
        self._quiet_until = now + PAUSE if now - self._typed < TYPING else 0
        self._is_shown = False
        self._call(WAITS)
        try:
            key = await self._read("choice")
        finally:
            self._call("")
        chosen = next(choice.text for choice in choices if choice.key == key)
        self.print(make_readable(f"  ▸ {chosen}\n") if title or chosen else "")
        return key

    def _call(self, title: str) -> None:
        """Set the terminal's title, and ring its bell where that is not empty."""
        output = self._app.output
        output.set_title(title)
        if title:
            output.bell()
        output.flush()

    def take_back(self) -> None:
        """What was kept is in the input again, before what is typed there."""
        if self._kept:
            self._message.text = "\n".join([*self._kept, self._message.text]).rstrip("\n")
            self._message.cursor_position = len(self._message.text)
            self._kept.clear()

    async def _read(self, what: Reading) -> str:
        self._result = asyncio.get_running_loop().create_future()
        await self._drain()
        self._reading = what
        self._app.layout.focus(self._windows[what])
        self._app.invalidate()
        return await self._result

    def _end(self, result: str | BaseException) -> None:
        self._reading, self._typed = None, -TYPING
        self._app.layout.focus(self._windows["message"])
        if isinstance(result, str):
            self._result.set_result(result)
        else:
            self._result.set_exception(result)

    # Keys.

    def _note_typing(self) -> None:
        if self._reading is None and self._app.is_running:
            self._typed = asyncio.get_running_loop().time()

    def _arm(self) -> None:
        """Before the choices are shown: what has been pressed up to here is for the message."""
        if self._reading == "choice" and not self._is_shown:
            while pressed := self._app.input.read_keys():
                self._keep("".join(press.data for press in pressed))
            self._is_shown = True

    def _keep(self, data: str) -> None:
        self._message.insert_text("".join(filter(str.isprintable, data)))

    def _counts(self, event: KeyPressEvent) -> bool:
        """Whether a key answers the question; one that does not is part of the message."""
        now = asyncio.get_running_loop().time()
        if self._is_shown and now >= self._quiet_until:
            return True
        self._quiet_until = max(now + PAUSE, self._quiet_until)
        self._keep(event.data)
        return False

    def _bind(self) -> KeyBindings:
        everywhere: tuple[Reading | None, ...] = ("message", "answer", "choice", None)
        in_words: tuple[Reading | None, ...] = ("message", "answer", None)
        table: list[tuple[str, tuple[Reading | None, ...], Callable[[KeyPressEvent], object]]] = [
            ("c-c", everywhere, lambda _: self._interrupt()),
            ("<sigint>", everywhere, lambda _: self._interrupt()),
            ("c-d", ("message", "answer", "choice"), lambda _: self._leave()),
            ("escape", (None,), lambda _: self._stop and self._stop()),
            ("escape", ("answer",), lambda _: self._end(WentBackError())),
            ("enter", in_words, lambda event: self._accept(event.current_buffer)),
            ("c-j", in_words, lambda event: event.current_buffer.insert_text("\n")),
            ("escape enter", in_words, lambda event: event.current_buffer.insert_text("\n")),
            # What takes the whole screen: not while something is printed.
            ("c-x c-e", ("message", "answer"), lambda event: self._edit(event.current_buffer)),
            ("c-o", ("message", "choice"), lambda _: self.page()),
            ("s-tab", ("message",), lambda _: self._shift_mode()),
        ]
        keys = ("up", "down", "enter", "escape", "backspace", Keys.BracketedPaste, Keys.Any)
        table += [(key, ("choice",), self._press) for key in keys]
        bindings = KeyBindings()
        for sequence, what, act in table:
            bindings.add(*sequence.split(), filter=self._is_reading(*what))(
                lambda event, act=act: act(event) and None  # what is given would be awaited
            )
        return bindings

    def _is_reading(self, *what: Reading | None) -> Condition:
        return Condition(lambda: self._reading in what)

    def _interrupt(self) -> None:
        if self._reading in ("choice", "answer"):
            self._end(KeyboardInterrupt())
        elif self._reading is None and self._stop is not None:
            self._stop()
        else:
            self._message.reset()

    def _leave(self) -> None:
        if self._reading != "message" or not self._message.text:
            self._end(EOFError())

    def _shift_mode(self) -> None:
        self._prompt = self.choose_next_mode()

    def _press(self, event: KeyPressEvent) -> None:
        """A key at the choices, if it counts."""
        if not self._counts(event):
            return
        key, data = event.key_sequence[0].key, event.data
        first, self._first = self._first, None
        match key:
            case "up" | "down":
                self._at = (self._at + (1 if key == "down" else -1)) % len(self._choices)
            case "c-m":
                if first is None or not self._take(first):
                    # Words are a message in the place of an answer.
                    self._end(KeyboardInterrupt() if self._words else self._choices[self._at].key)
            case "c-h" if self._words:
                self._words = self._words[:-1]
                self._message.delete_before_cursor()
            case "escape":
                self._end(self._no)
            case Keys.BracketedPaste:
                pass
            case _ if first is not None or self._words:
                self._say((first or "") + data)
            case _:
                self._first = data
                if (place := find_choice(self._choices, data)) is not None:
                    self._at = place
                asyncio.get_running_loop().call_later(ALONE, self._take_alone, data)

    def _take_alone(self, data: str) -> None:
        """Take a key that no other one followed: somebody who types a sentence answers nothing."""
        if self._reading == "choice" and self._first is data:
            self._first = None
            self._take(data)

    def _take(self, data: str) -> bool:
        """Whether the key is one that does something here; one that is not begins a message."""
        if data == "v":
            self.page()
        elif (place := find_choice(self._choices, data)) is not None:
            self._end(self._choices[place].key)
        else:
            self._say(data)
            return False
        return True

    def _say(self, data: str) -> None:
        """What is typed at the choices is the start of a message."""
        self._words += data
        self._at = self._safe
        self._keep(data)

    def _accept(self, buffer: Buffer) -> None:
        if buffer.complete_state is not None and buffer.complete_state.current_completion:
            buffer.complete_state = None
            return
        text = buffer.text
        buffer.append_to_history()
        buffer.reset()
        if self._reading is not None:
            self._end(text)
        elif text.strip():
            self._kept.append(text)

    def _edit(self, buffer: Buffer) -> None:
        async def edit() -> None:
            text = await run_in_terminal(lambda: edit_text(buffer.text), in_executor=True)
            if text is None:
                self.print(NO_EDITOR)
            else:
                buffer.document = Document(text)

        self._app.create_background_task(edit())

    def page(self) -> None:
        """Show the whole of what was shown in part."""
        if pages := self.get_pages():
            self._app.create_background_task(self._show_pages(pages))

    async def _show_pages(self, pages: str) -> None:
        def show() -> str:
            problem = show_pages(pages)
            self._is_shown = False  # until the choices are drawn anew: no key of the pager answers
            return problem

        if problem := await run_in_terminal(show, in_executor=True):
            self.print(problem)


def _join(lines: Iterable[tuple[str, str]]) -> StyleAndTextTuples:
    joined: StyleAndTextTuples = [part for line in lines for part in (("", "\n"), line)]
    return joined[1:]
