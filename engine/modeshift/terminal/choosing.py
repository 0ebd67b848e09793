"""``Choosing``: the choices that a person is shown, and the keys that are pressed at them."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys

from modeshift.modes.plain_text import make_readable, to_one_line
from modeshift.terminal.screen import wrap


@dataclass(frozen=True)
class Choice:
    """One of the choices; a ``key`` of more than one character is not shown."""

    key: str
    text: str
    also: str = ""
    """Other keys for the same choice, a character each."""

    @property
    def shown(self) -> str:
        """The text with its keys."""
        keys = [key for key in (self.key, *self.also) if len(key) == 1]
        return f"{self.text} ({', '.join(keys)})" if keys else self.text


def number_choices(choices: Sequence[Choice]) -> list[str]:
    """The choices as numbered lines."""
    return [make_readable(f"{n} {choice.shown}") for n, choice in enumerate(choices, 1)]


def find_choice(choices: Sequence[Choice], key: str) -> int | None:
    """The index of the choice that a key, or a number, stands for."""
    for place, choice in enumerate(choices):
        if key and (key in (choice.key, str(place + 1)) or (len(key) == 1 and key in choice.also)):
            return place
    return None


ALONE = 0.5
"""Seconds without another key after which one key is an answer, and not the start of a word."""
TYPING, PAUSE = 1.0, 0.5
"""Who has typed so shortly before a question has to pause so long before a key answers it."""
QUIET = "dim"


class Choosing:
    """The choices of the question that is open, or was last."""

    def __init__(
        self,
        message: Buffer,
        is_open: Callable[[], bool],
        end: Callable[[str | BaseException], None],
        page: Callable[[], None],
    ) -> None:
        """``message`` is the input that gets the keys which answer nothing."""
        self._message, self._is_open, self._end, self._page = message, is_open, end, page
        self._title, self._choices, self._at, self._no = "", list[Choice](), 0, ""
        self._first: str | None = None
        """A key that was pressed, until it is known that it is alone."""
        self._safe = 0
        """The choice that the cursor is on at first."""
        self._words = ""
        """What was typed and is no answer."""
        self._quiet_until = 0.0
        self.is_shown, self.typed = False, -TYPING

    def begin(self, title: str, choices: Sequence[Choice], no: str, at: int) -> None:
        """Show other choices; Esc is ``no``, and Enter at first the choice ``at``."""
        self._title, self._choices, self._at, self._no = title, list(choices), at, no
        self._first, self._words, self._safe = None, "", at
        now = asyncio.get_running_loop().time()
        self._quiet_until = now + PAUSE if now - self.typed < TYPING else 0
        self.is_shown = False

    def show_title(self, more: str) -> Iterator[tuple[str, str]]:
        """The lines above the choices, with ``more`` behind the title."""
        if self._title:
            yield from (("bold", line) for line in wrap(make_readable(self._title) + more))
        if self._words:
            typed = to_one_line(self._words, 100)
            said = f"Typed: {typed} · Enter approves nothing and keeps it"
            yield from ((QUIET, line) for line in wrap(said))

    def show(self) -> Iterator[tuple[str, str]]:
        """The lines of the choices."""
        for place, line in enumerate(number_choices(self._choices)):
            style, mark = ("bold", "▸ ") if place == self._at else ("", "  ")
            yield from ((style, part) for part in wrap(line, mark, "    "))

    def arm(self, input: Input) -> None:
        """Before the choices are shown: what has been pressed up to here is for the message."""
        if self._is_open() and not self.is_shown:
            while pressed := input.read_keys():
                self._keep("".join(press.data for press in pressed))
            self.is_shown = True

    def _keep(self, data: str) -> None:
        self._message.insert_text("".join(filter(str.isprintable, data)))

    def press(self, event: KeyPressEvent) -> None:
        """Take a key; one that does not answer the question yet is part of the message."""
        key, data, loop = event.key_sequence[0].key, event.data, asyncio.get_running_loop()
        if not self.is_shown or loop.time() < self._quiet_until:
            self._quiet_until = max(loop.time() + PAUSE, self._quiet_until)
            self._keep(data)
            return
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
                loop.call_later(ALONE, self._take_alone, data)

    def _take_alone(self, data: str) -> None:
        """Take a key that no other one followed: somebody who types a sentence answers nothing."""
        if self._is_open() and self._first is data:
            self._first = None
            self._take(data)

    def _take(self, data: str) -> bool:
        """Whether the key is one that does something here; one that is not begins a message."""
        if data == "v":
            self._page()
        elif (place := find_choice(self._choices, data)) is not None:
            self._end(self._choices[place].key)
        else:
            self._say(data)
            return False
        return True

    def _say(self, data: str) -> None:
        self._words += data
        self._at = self._safe
        self._keep(data)
