"""``Output``: what a command prints; of any length, shown as it comes."""

import asyncio
import codecs
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

from tools.sandbox.terminal_text import Printed

HEAD_BYTES = TAIL_BYTES = 10_000
SHOWN_CHARACTERS = 200_000
"""How much of it a client is shown as it comes."""
SECONDS_BETWEEN = 0.1
# A process that left the command's group holds the output open for ever.
LAST_OUTPUT_SECONDS = 1


class Output:
    """The first and the last bytes; the rest is counted."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._head = b""
        self._tail = b""
        self._left_out = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._printed = Printed()
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
            output._keep(output._printed.take("", is_last=True))
            output._show_now()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while block := await stream.read(65536):
            room = HEAD_BYTES - len(self._head)
            self._head += block[:room]
            tail = self._tail + block[room:]
            self._left_out += max(len(tail) - TAIL_BYTES, 0)
            self._tail = tail[-TAIL_BYTES:]
            if self._room > len(self._unshown):
                self._keep(self._printed.take(self._decoder.decode(block)))

    def _keep(self, text: str) -> None:
        self._unshown += text[: self._room - len(self._unshown)]

    async def _show(self) -> None:
        """In pieces as large as they get in a moment: each is a message to the client."""
        while self._room:
            await asyncio.sleep(SECONDS_BETWEEN)
            self._show_now()

    def _show_now(self) -> None:
        text, self._unshown = self._unshown, ""
        if text:
            self._room -= len(text)
            self._emit(text if self._room else f"{text}\n[the rest is not shown as it comes]\n")

    def text(self) -> str:
        """Head and tail, and how much there is between them."""
        gap = f"\n[{self._left_out} bytes left out]\n".encode() if self._left_out else b""
        text = (self._head + gap + self._tail).decode("utf-8", "replace")
        return Printed().take(text, is_last=True).rstrip("\n")
