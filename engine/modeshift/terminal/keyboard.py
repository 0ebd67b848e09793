"""``Keyboard``: what a person types: lines with a history, and single keys."""

import sys
import termios
from collections.abc import Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys

from modeshift.graph.configuration.user_files import make_private
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
