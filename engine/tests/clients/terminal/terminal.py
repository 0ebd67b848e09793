"""A terminal of 80 columns, with a program in it: what is on its screen, and its keys."""

import os
import pty
import select
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyte
import pyte.modes

from tests.clients.terminal.drawing import draw
from tests.harness import prefork
from tests.harness.conversation import SECONDS
from tests.harness.server import Server

COLUMNS, LINES, FAINT_AS = 80, 100, 90
CTRL_C, CTRL_D, ENTER, ESC, UP, DOWN = "\x03", "\x04", "\r", "\x1b", "\x1b[A", "\x1b[B"
BACKSPACE = "\x7f"
BAR = "── "
ASK, CODE = "\n\nask>", "\n\ncode>"
"""What the screen ends with when the agent is done."""


class _Screen(pyte.Screen):
    """Answers where the cursor is, as terminals do; faint, which pyte leaves out, is grey."""

    descriptor: int

    def select_graphic_rendition(self, *attrs: int) -> None:
        super().select_graphic_rendition(*(FAINT_AS if each == 2 else each for each in attrs))

    def write_process_input(self, data: str) -> None:
        os.write(self.descriptor, data.encode())


class Terminal:
    """Tall enough for what a test shows."""

    def __init__(
        self, descriptor: int, process: prefork.Started, columns: int = COLUMNS, term: str = ""
    ) -> None:
        self.process = process
        self.received = b""
        """All that the program has sent."""
        self._has_bar = term != "dumb"
        """Without a cursor the line is above the prompt, and a read may end between the two."""
        self._had_bar = False
        self._descriptor = descriptor
        self._screen = _Screen(columns, LINES)
        self._screen.descriptor = descriptor
        self._rows: dict[int, str] = {}
        self._stream = pyte.ByteStream(self._screen)

    @property
    def text(self) -> str:
        """What a person sees, but the bar; up to the cursor, where there is one."""
        lines = self.screen.split("\n")
        if self.bar:
            self._had_bar = True
            cursor = self._screen.cursor
            lines = lines[: -1 if cursor.hidden else cursor.y + 1]
        elif self._had_bar:
            lines = []  # it is drawn last
        return "\n".join(lines).rstrip()

    @property
    def screen(self) -> str:
        """All that a person sees; a row is put together once it has changed."""
        screen = self._screen
        for row in screen.dirty:
            cells = map(screen.buffer[row].__getitem__, range(screen.columns))
            self._rows[row] = "".join(cell.data for cell in cells).rstrip()
        screen.dirty.clear()
        return "\n".join(map(self._rows.__getitem__, range(screen.lines))).rstrip()

    def draw(self, first: str) -> str:
        """A picture of it, from the line on that begins with ``first``."""
        return draw(self._screen, first)

    @property
    def bar(self) -> str:
        """The line below the input, while there is one."""
        last = self.screen.rpartition("\n")[2]
        return last if self._has_bar and last.startswith(BAR) else ""

    def resize(self, columns: int, lines: int = LINES) -> None:
        termios.tcsetwinsize(self._descriptor, (lines, columns))
        self._screen.resize(lines, columns)

    @property
    def title(self) -> str:
        return str(self._screen.title)

    def press(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    def until(self, shown: str, *, after: str = "") -> str:
        """Wait until the screen ends with ``shown``; what stands there since ``after``."""
        seen = self._wait(lambda: self.text, lambda seen: seen.endswith(shown), shown)
        return seen[seen.rindex(after) :] if after else seen

    def until_sent(self, shown: str) -> None:
        """Wait until ``shown`` is on the screen."""
        self._wait(lambda: self.screen, lambda seen: shown in seen, shown)

    def _wait(self, look: Callable[[], str], holds: Callable[[str], Any], shown: str) -> str:
        """Look at the end of each frame, which may come in several reads.

        prompt_toolkit lets no line wrap from a frame's first byte on to its last.
        """
        end = time.monotonic() + SECONDS
        while not (holds(seen := look()) and pyte.modes.DECAWM in self._screen.mode):
            if time.monotonic() > end or not self._read(end):
                raise AssertionError(f"no {shown!r} in:\n{seen}")
        return seen

    def say(self, text: str, shown: str) -> str:
        """Type a line, and wait for ``shown``."""
        self.press(text)
        self.until(text[-5:])
        self.press(ENTER)
        return self.until(shown)

    def play(self, *steps: str) -> str:
        """Lines or keys, each followed by what ends the screen then; the whole screen at the end.

        A single letter, and what has control characters, is pressed as it is.
        """
        for keys, shown in zip(steps[::2], steps[1::2], strict=True):
            if len(keys) > 1 and keys.isprintable():
                self.say(keys, shown)
            else:
                # One key counts once no other has followed for a while, or Enter has.
                self.press(keys + ENTER if len(keys) == 1 and keys.isprintable() else keys)
                self.until(shown)
        return self.text

    def leave(self) -> str:
        """Press Ctrl-D; the last line on the screen."""
        self.press(CTRL_D)
        assert self.wait() == 0, self.text
        return self.text.splitlines()[-1]

    def wait(self) -> int:
        """Read to the end; the process's exit status."""
        end = time.monotonic() + SECONDS
        while self._read(end):
            pass
        self._had_bar = False
        return self.process.wait(SECONDS)

    def _read(self, end: float) -> bool:
        """Take what has been sent; False at the end."""
        ready, _, _ = select.select([self._descriptor], [], [], max(end - time.monotonic(), 0))
        try:
            data = os.read(self._descriptor, 100_000) if ready else b""
        except OSError:  # Linux says so at the end
            data = b""
        self.received += data
        self._stream.feed(data)
        return bool(data)


@contextmanager
def open_terminal(
    *command: str, folder: Path, env: Mapping[str, str], columns: int, term: str
) -> Iterator[Terminal]:
    """Run ``python -m *command`` in a terminal of its own."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (LINES, columns))
    process = prefork.start(
        *command, env={**env, "TERM": term}, streams=(theirs, theirs, theirs), cwd=folder,
        is_leader=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Terminal(ours, process, columns, term)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(ours)


@contextmanager
def chatting(
    clone: Server, *options: str, shows: str = "", columns: int = COLUMNS,
    term: str = "xterm-256color", **settings: str,
) -> Iterator[Terminal]:  # fmt: skip
    """``make chat`` in a clone, once its screen ends with ``shows``."""
    clone.workspace.mkdir(exist_ok=True)
    with open_terminal(
        "modeshift", "chat", *options, folder=clone.folder, env=clone.environment(**settings),
        columns=columns, term=term,
    ) as terminal:  # fmt: skip
        terminal.until(shows)
        yield terminal


def in_code(clone: Server, **settings: Any) -> AbstractContextManager[Terminal]:
    """The same, in Code mode."""
    return chatting(clone, "--mode", "code", shows=CODE, **settings)
