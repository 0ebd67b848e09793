"""What a program prints: of any length, as plain text, shown to the client as it comes."""

import asyncio
import codecs
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

from modeshift.modes.plain_text import make_readable

HEAD_BYTES = TAIL_BYTES = 200_000
SHOWN_CHARACTERS = 200_000
"""How much of it a client is shown as it comes."""
SECONDS_BETWEEN = 0.1
# A process that left the command's group holds the output open for ever.
LAST_OUTPUT_SECONDS = 1
MAX_SEQUENCE = 2000
"""Characters of a terminal's sequence; a longer one is shown, so that it swallows nothing."""
_TEXT = rf"[^\x07\x1b\n]{{0,{MAX_SEQUENCE}}}"
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]{0,99}[ -/]{0,9}[@-~]"  # colours, the place of the cursor
    rf"|\x1b[]PX^_]{_TEXT}(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[ -/]{1,9}[0-~]|\x1b[0-OQ-WYZ`-~]"  # character sets, the terminal's modes
)
_BEGUN = re.compile(
    rf"\x1b(?:\[[0-?]{{0,99}}[ -/]{{0,9}}|[]PX^_]{_TEXT}\x1b?|[ -/]{{0,9}})?\Z",
)


class PlainText:
    """Takes a terminal's sequences out; each state of a progress bar gets a line of its own."""

    def __init__(self) -> None:
        self._held = ""

    def take(self, text: str, *, is_last: bool = False) -> str:
        """The plain text as far as it is known; a piece may end within a sequence."""
        text = self._held + text
        self._held = ""
        if text.endswith("\r") and not is_last:
            text, self._held = text[:-1], "\r"
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        begun = None if is_last else _BEGUN.search(text, max(len(text) - MAX_SEQUENCE - 3, 0))
        if begun is not None:
            text, self._held = text[: begun.start()], begun[0] + self._held
        return make_readable(_SEQUENCE.sub("", text))


class Output:
    """Keeps the first and the last bytes, and counts the rest."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._head = b""
        self._tail = b""
        self._left_out = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._plain_text = PlainText()
        self._unshown = ""
        self._room = SHOWN_CHARACTERS

    @classmethod
    @asynccontextmanager
    async def of(cls, descriptor: int, emit: Callable[[str], None]) -> AsyncIterator[Self]:
        """Read the descriptor until its end, or until shortly after the block's."""
        output = cls(emit)
        stream = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb")
        )
        reader = asyncio.create_task(output._read(stream))
        shower = asyncio.create_task(output._show())
        try:
            yield output
        finally:
            await asyncio.wait({reader}, timeout=LAST_OUTPUT_SECONDS)
            reader.cancel()
            shower.cancel()
            transport.close()
            output._keep(output._plain_text.take("", is_last=True))
            output._show_now()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while block := await stream.read(65536):
            room = HEAD_BYTES - len(self._head)
            self._head += block[:room]
            tail = self._tail + block[room:]
            self._left_out += max(len(tail) - TAIL_BYTES, 0)
            self._tail = tail[-TAIL_BYTES:]
            if self._room > len(self._unshown):
                self._keep(self._plain_text.take(self._decoder.decode(block)))

    def _keep(self, text: str) -> None:
        self._unshown += text[: self._room - len(self._unshown)]

    async def _show(self) -> None:
        """Show it in pieces as large as they get in a moment: each is a message to the client."""
        while self._room:
            await asyncio.sleep(SECONDS_BETWEEN)
            self._show_now()

    def _show_now(self) -> None:
        text, self._unshown = self._unshown, ""
        if text:
            self._room -= len(text)
            self._emit(text if self._room else f"{text}\n[the rest is not shown as it comes]\n")

    def text(self) -> str:
        """The head and the tail, and between them how much was left out."""
        gap = f"\n[{self._left_out} bytes left out]\n".encode() if self._left_out else b""
        text = (self._head + gap + self._tail).decode("utf-8", "replace")
        return PlainText().take(text, is_last=True).rstrip("\n")
