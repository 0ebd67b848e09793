"""``Panel``: the lines below what is printed: what goes on, the input, the choices, the bar."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from modeshift.terminal.choosing import QUIET, TYPING, Choice, Choosing
from modeshift.terminal.pager import NO_EDITOR, edit_text, show_pages
from modeshift.terminal.printing import BURST, Printer
from modeshift.terminal.screen import fit_to_width, get_width, wrap

MAX_PENDING = 8
"""Lines of an incomplete answer that are shown."""
ESCAPE = 0.1
"""Seconds after which Esc counts as a key: other keys' codes begin with it."""
WAITS = "Modeshift waits for you"
BUSY = "ansicyan"
Reading = Literal["message", "answer", "choice"]


class WentBackError(Exception):
    """The person pressed Esc where an answer in words is asked for."""


@dataclass
class Activity:
    """What the agent does, for lines that go away."""

    what: str = ""
    since: float = 0.0
    stop: Callable[[], object] | None = None
    last_line: str = ""
    """The last line that a command has printed."""
    pending: Sequence[str] = ()
    """The lines that have come of an answer, and are not complete."""


class Panel:
    """Methods that read raise ``KeyboardInterrupt`` for Ctrl-C, and ``EOFError`` for Ctrl-D."""

    def __init__(self, history: Path, completer: Completer) -> None:
        """``history`` is the file with earlier messages."""
        make_private(history)
        self.build_bar: Callable[[int], str] = lambda _: ""
        """Returns the line at the bottom, for a width."""
        self.choose_next_mode: Callable[[], str] = str
        """Chooses it, and returns the prompt."""
        self.get_pages: Callable[[], str] = lambda: ""
        """Returns what Ctrl-O shows."""
        self._kept: list[str] = []
        """Messages for when the agent is done."""
        self._activity = Activity()
        self._prompt = ""
        self._reading: Reading | None = None
        self._result: asyncio.Future[str]
        self._message = Buffer(
            history=FileHistory(str(history)), multiline=True, complete_while_typing=True,
            completer=ThreadedCompleter(completer),
            on_text_changed=lambda _: self._note_typing(),
        )  # fmt: skip
        self._answer = Buffer(multiline=True)
        self._choosing = Choosing(
            self._message, lambda: self._reading == "choice", self._end, self.page
        )
        self._app = self._build_app()
        self._printer = Printer(self._app)

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
            "choice": show(lambda: _join(self._choosing.show())),
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
            before_render=lambda app: self._choosing.arm(app.input), refresh_interval=1,
        )  # fmt: skip
        app.timeoutlen = app.ttimeoutlen = ESCAPE
        return app

    async def run(self, talk: Awaitable[None]) -> None:
        """Show the panel until the conversation has ended; raises what that raises."""
        talking = asyncio.ensure_future(talk)
        showing = asyncio.ensure_future(self._app.run_async(set_exception_handler=False))
        try:
            await asyncio.wait({talking, showing}, return_when=asyncio.FIRST_COMPLETED)
            await self._printer.drain()
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
        self._printer.print(text)

    # What goes on.

    @contextmanager
    def working(self, stop: Callable[[], object]) -> Iterator[None]:
        """While the agent works; Esc and Ctrl-C call ``stop``."""
        self._activity.stop = stop
        self.do("Thinking")
        try:
            yield
        finally:
            self._activity.stop, self._activity.pending = None, ()

    def do(self, what: str) -> None:
        """Show what goes on, in a line that goes away."""
        now, what = self._activity, to_one_line(what)
        if what != now.what:
            now.what, now.last_line = what, ""
            now.since = asyncio.get_running_loop().time()
            self._app.invalidate()

    def pend(self, lines: Sequence[str]) -> None:
        """Show the lines of an answer that are not complete."""
        self._activity.pending = lines
        self._app.invalidate()

    def show_output(self, text: str) -> None:
        """Show the last line that a command has printed."""
        lines = [line for line in text.rstrip("\n").split("\n") if line.strip()]
        if lines:
            self._activity.last_line = to_one_line(lines[-1])
        self._app.invalidate()

    def _show_live(self) -> StyleAndTextTuples:
        now, is_busy = self._activity, self._reading is None
        pending = [part for line in now.pending for part in wrap(line)]
        lines = [("", line) for line in [*pending[-MAX_PENDING:], ""]]
        if is_busy:
            seconds = int(asyncio.get_running_loop().time() - now.since)
            doing = f"{now.what} · {seconds} s · Esc stops" if now.stop is not None else "…"
            lines.append((BUSY, doing))
            lines += [(QUIET, f"  {now.last_line}")] if now.last_line else []
        when = "after this" if is_busy else "when the question is answered"
        lines += [(QUIET, f"Kept, sent {when}: {to_one_line(text, 200)}") for text in self._kept]
        lines = [(style, fit_to_width(line, get_width())) for style, line in lines]
        if self._reading == "choice":
            lines += self._choosing.show_title(" · v shows all" if self.get_pages() else "")
        return _join(lines)

    # What is read.

    async def read_message(self, prompt: str, *, sends_kept: bool) -> str:
        """The person's next message; a kept one, if ``sends_kept`` because no question is open."""
        self._prompt = prompt
        text = self._kept.pop(0) if sends_kept and self._kept else await self._read("message")
        self.print(f"\n{make_readable(prompt + text)}\n")
        return text.strip()

    async def read_answer(self, prompt: str, default: str = "") -> str:
        """An answer in words, which the history does not keep; raises ``WentBackError`` for Esc."""
        shown, self._prompt = self._prompt, prompt
        self._answer.document = Document(default)
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
        await self._printer.drain()
        self._choosing.begin(title, choices, no, at)
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
        """Put the messages that were kept into the input again, before what is typed there."""
        if self._kept:
            kept = "\n".join([*self._kept, self._message.text])
            self._message.document = Document(kept.rstrip("\n"))
            self._kept.clear()

    async def _read(self, what: Reading) -> str:
        self._result = asyncio.get_running_loop().create_future()
        await self._printer.drain()
        self._reading = what
        self._app.layout.focus(self._windows[what])
        self._app.invalidate()
        return await self._result

    def _end(self, result: str | BaseException) -> None:
        self._reading, self._choosing.typed = None, -TYPING
        self._app.layout.focus(self._windows["message"])
        if isinstance(result, str):
            self._result.set_result(result)
        else:
            self._result.set_exception(result)

    # Keys.

    def _note_typing(self) -> None:
        if self._reading is None and self._app.is_running:
            self._choosing.typed = asyncio.get_running_loop().time()

    def _bind(self) -> KeyBindings:
        everywhere: tuple[Reading | None, ...] = ("message", "answer", "choice", None)
        in_words: tuple[Reading | None, ...] = ("message", "answer", None)
        table: list[tuple[str, tuple[Reading | None, ...], Callable[[KeyPressEvent], object]]] = [
            ("c-c", everywhere, lambda _: self._interrupt()),
            ("<sigint>", everywhere, lambda _: self._interrupt()),
            ("c-d", ("message", "answer", "choice"), lambda _: self._leave()),
            ("escape", (None,), lambda _: self._activity.stop and self._activity.stop()),
            ("escape", ("answer",), lambda _: self._end(WentBackError())),
            ("enter", in_words, lambda event: self._accept(event.current_buffer)),
            ("c-j", in_words, lambda event: event.current_buffer.insert_text("\n")),
            ("escape enter", in_words, lambda event: event.current_buffer.insert_text("\n")),
            # These take the whole screen, and so must wait while something is printed.
            ("c-x c-e", ("message", "answer"), lambda event: self._edit(event.current_buffer)),
            ("c-o", ("message", "choice"), lambda _: self.page()),
            ("s-tab", ("message",), lambda _: self._shift_mode()),
        ]
        keys = ("up", "down", "enter", "escape", "backspace", Keys.BracketedPaste, Keys.Any)
        table += [(key, ("choice",), self._choosing.press) for key in keys]
        bindings = KeyBindings()
        for sequence, what, act in table:
            bindings.add(*sequence.split(), filter=self._is_reading(*what))(
                lambda event, act=act: act(event) and None  # a result would be awaited
            )
        return bindings

    def _is_reading(self, *what: Reading | None) -> Condition:
        return Condition(lambda: self._reading in what)

    def _interrupt(self) -> None:
        if self._reading in ("choice", "answer"):
            self._end(KeyboardInterrupt())
        elif self._reading is None and self._activity.stop is not None:
            self._activity.stop()
        else:
            self._message.reset()

    def _leave(self) -> None:
        if self._reading != "message" or not self._message.text:
            self._end(EOFError())

    def _shift_mode(self) -> None:
        self._prompt = self.choose_next_mode()

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
            # Until they are drawn again: no key of the pager counts.
            self._choosing.is_shown = False
            return problem

        if problem := await run_in_terminal(show, in_executor=True):
            self.print(problem)


def _join(lines: Iterable[tuple[str, str]]) -> StyleAndTextTuples:
    joined: StyleAndTextTuples = [part for line in lines for part in (("", "\n"), line)]
    return joined[1:]
