"""``Screen`` and ``Keyboard``: other people's text cannot act on the terminal."""

import shutil
import sys
import termios
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession, print_formatted_text
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys

from modeshift.configuration.databases import make_private
from modeshift.modes.plain_text import make_readable


class Keyboard:
    """All methods raise ``KeyboardInterrupt`` for Ctrl-C and ``EOFError`` for Ctrl-D."""

    def __init__(self, history: Path) -> None:
        """``history`` is the file with earlier messages."""
        make_private(history)
        self._messages: PromptSession[str] = PromptSession(history=FileHistory(str(history)))
        self._answers: PromptSession[str] = PromptSession(history=InMemoryHistory())

    async def read_message(self, prompt: str) -> str:
        """A line, with the history behind the arrow keys."""
        return (await self._messages.prompt_async(prompt)).strip()

    async def read_answer(self, prompt: str, default: str = "") -> str:
        """A line that the history does not keep, or several: Esc and then Enter end those."""
        return await self._answers.prompt_async(
            make_readable(prompt), default=default, multiline="\n" in default
        )

    async def read_key(self, prompt: str, keys: Mapping[str, str], default: str) -> str:
        """One of the keys, shown as the word that it stands for; Enter is the ``default``.

        What was typed or pasted before the prompt appeared does not count.
        """
        bindings = KeyBindings()

        @bindings.add(Keys.Any)
        @bindings.add(Keys.BracketedPaste)
        def ignore(_: KeyPressEvent) -> None:
            pass

        def choose(event: KeyPressEvent, key: str) -> None:
            event.current_buffer.text = keys[key]
            event.app.exit(result=key)

        for key in keys:
            bindings.add(key)(lambda event, key=key: choose(event, key))
        bindings.add("enter")(lambda event: choose(event, default))
        session: PromptSession[str] = PromptSession(
            history=InMemoryHistory(), key_bindings=bindings
        )
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        clear_typeahead(session.app.input)
        return await session.prompt_async(make_readable(prompt))


MAX_WIDTH = 100
MAX_LINES = 12
"""Of a call's result: more of it is in the thread."""
FAINT, BOLD, ADDED, REMOVED, ALERT = "ansibrightblack", "bold", "ansigreen", "ansired", "ansiyellow"


class Screen:
    """What has been printed is not changed again."""

    def __init__(self) -> None:
        self._is_in_line = False

    def write(self, text: str, style: str = "") -> None:
        """Print text as it comes in."""
        if text:
            text = make_readable(text).replace("\r", "")
            self._is_in_line = not text.endswith("\n")
            print_formatted_text(FormattedText([(style, text)]), end="", flush=True)

    def line(self, text: str = "", style: str = "") -> None:
        """Print text on lines of its own, as long as they are."""
        self.write(f"{self._break()}{text}\n", style)

    def words(self, text: str, style: str = "", indent: str = "  ") -> None:
        """Print prose, its lines wrapped and indented."""
        for line in text.splitlines():
            self.line(self._wrap(line, indent), style)

    def result(self, text: str, style: str = FAINT) -> None:
        """Print what a call has said, folded if it is long."""
        lines = text.splitlines()
        self.lines(lines[:MAX_LINES], style)
        if (more := len(lines) - MAX_LINES) > 0:
            self.line(f"  ... and {more} more lines", FAINT)

    def lines(self, lines: Sequence[str], style: str = "") -> None:
        """Print lines as they are, indented."""
        for line in lines:
            self.line(f"  {line}", style)

    def diff(self, lines: Sequence[str]) -> None:
        """Print a diff whole: it is what is being approved."""
        styles = {"+": ADDED, "-": REMOVED}
        for line in lines:
            self.line(f"  {line}", styles.get(line[:1], FAINT))

    def end_line(self) -> None:
        """Whatever comes next begins on a line of its own."""
        self.write(self._break())

    def _break(self) -> str:
        return "\n" if self._is_in_line else ""

    def _wrap(self, line: str, indent: str) -> str:
        width = min(shutil.get_terminal_size().columns - 1, MAX_WIDTH)
        return textwrap.fill(
            line,
            max(width, 20),
            initial_indent=indent,
            subsequent_indent=indent,
            replace_whitespace=False,
            break_on_hyphens=False,
        )
