"""``PlainPanel``: lines alone, for a terminal without a cursor, or a screen reader."""

import asyncio
import signal
import sys
import termios
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input.typeahead import clear_typeahead

from modeshift.configuration.databases import make_private
from modeshift.modes.plain_text import make_readable
from modeshift.terminal.choosing import Choice, find_choice, number_choices


class PlainPanel:
    """A ``Panel`` that erases no line: its choices are numbered, and end with Enter."""

    def __init__(self, history: Path) -> None:
        make_private(history)
        self.build_bar: Callable[[int], str] = lambda _: ""
        self.choose_next_mode: Callable[[], str] = str
        self.get_pages: Callable[[], str] = lambda: ""
        self._messages: PromptSession[str] = PromptSession(history=FileHistory(str(history)))
        self._answers: PromptSession[str] = PromptSession(history=InMemoryHistory())
        self._words = ""
        """What was typed in the place of an answer: the next message begins with it."""

    async def run(self, talk: Awaitable[None]) -> None:
        """Wait until the conversation has ended."""
        await talk

    def print(self, text: str) -> None:
        """Print lines."""
        sys.stdout.write(text)
        sys.stdout.flush()

    @contextmanager
    def working(self, stop: Callable[[], object]) -> Iterator[None]:
        """While the agent works; Ctrl-C calls ``stop``."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, stop)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    def do(self, *_: object) -> None:
        """Do nothing: these are lines that ``Panel`` erases again."""

    pend = show_output = take_back = page = do

    async def read_message(self, prompt: str, **_: object) -> str:
        """What the person says next."""
        self.print(f"\n{self.build_bar(1000)}\n")
        words, self._words = self._words, ""
        # A default would not be shown on such a terminal.
        said = await self._messages.prompt_async(make_readable(prompt + words))
        return (words + said).strip()

    async def read_answer(self, prompt: str, default: str = "") -> str:
        """An answer in words, which the history does not keep."""
        return await self._answers.prompt_async(make_readable(prompt), default=default)

    async def choose(self, title: str, choices: Sequence[Choice], _no: str, at: int = 0) -> str:
        """The key of a choice, ended by Enter; Enter alone is the choice ``at``.

        Raises ``KeyboardInterrupt`` for a sentence, which answers nothing.
        """
        lines = [f"  {line}" for line in number_choices(choices)]
        self.print("\n".join([make_readable(title), *lines, ""]))
        while True:
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            clear_typeahead(self._answers.app.input)
            chosen = choices[at].text
            key = (await self._answers.prompt_async(f"  Enter is {chosen!r}> ")).strip()
            place = find_choice(choices, key) if key else at
            if place is not None:
                return choices[place].key
            if " " in key:
                self._words = key
                raise KeyboardInterrupt
