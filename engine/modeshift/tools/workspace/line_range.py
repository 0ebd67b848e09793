"""Some lines of a file of any size, in bounded memory and time."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from modeshift.modes.errors import ToolFailedError
from modeshift.tools.workspace.encoding import TextFormat, is_binary, show

MAX_LINE_BYTES = 2000
MAX_BYTES = 80_000
"""Of all lines together; less than what the model gets of any result."""
COUNTED_BYTES = 10_000_000
"""How far a file is read to say how many lines it has."""
SECONDS = 10
_BLOCK = 1 << 20


@dataclass
class LineRange:
    """The lines from ``start`` on, as far as they fit."""

    start: int
    count: int
    lines: list[str] = field(default_factory=list)
    last: int | None = None
    """The number of the file's last line; None where it was not read that far."""
    read: int = 0
    """How many bytes were read, of ``size``."""
    size: int = 0

    @classmethod
    def of(cls, file: BinaryIO, start: int, count: int) -> "LineRange":
        """Read it; raises ``ToolFailedError`` for what is not text.

        What is appended to the file in the meantime is not read.
        """
        found = cls(start, count, size=file.seek(0, os.SEEK_END))
        file.seek(0)
        head = file.read(min(_BLOCK, found.size))
        text_format = TextFormat.of(head)
        found.read = len(text_format.mark)
        if text_format.encoding == "utf-8":
            rest = found.size - len(head)
            found._take(_read_blocks(file, head.removeprefix(text_format.mark), rest))
        elif found.size > COUNTED_BYTES:
            raise ToolFailedError(
                f"is {text_format.encoding} and has {found.size} bytes; {COUNTED_BYTES} are the "
                "limit"
            )
        else:
            text = text_format.decode(head + file.read(found.size - len(head)))
            found._take(iter([text.encode("utf-8", "surrogatepass")] if text else []))
        return found

    def show(self, name: str) -> str:
        """The lines with their numbers, and what of ``name`` is not shown, and why."""
        lines = [f"{number}\t{line}" for number, line in enumerate(self.lines, self.start)]
        return "\n".join([*lines, *self._notices(name)])

    def _notices(self, name: str) -> Iterator[str]:
        end = self.start + len(self.lines) - 1
        if self.last == 0:
            yield f"{name} is empty."
        elif self.last is None and not self.lines:
            yield f"[{name}: line {self.start} was not reached in {self.read} of {self.size} bytes]"
        elif self.last is None:
            yield f"[{name} has {self.size} bytes; it goes on with offset={end + 1}]"
        elif not self.lines:
            yield f"{name} has {self.last} lines; nothing from line {self.start}."
        elif end < self.last:
            yield f"[{name} has {self.last} lines; it goes on with offset={end + 1}]"

    def _take(self, blocks: Iterator[bytes]) -> None:
        """Fill in the lines. ``number``, ``line`` and ``left_out`` are of the unfinished line."""
        number = 1
        line, left_out, room = b"", 0, MAX_BYTES
        ends_with_newline = True
        deadline = time.monotonic() + SECONDS
        for block in blocks:
            if is_binary(block):
                raise ToolFailedError(f"is binary ({self.size} bytes); it has no lines to show")
            self.read += len(block)
            ends_with_newline = block.endswith(b"\n")
            is_wanted = number + block.count(b"\n") >= self.start and not self._is_full(room)
            if not is_wanted:
                number += block.count(b"\n")
            else:
                for index, piece in enumerate(block.split(b"\n")):
                    if index:
                        room = self._keep(number, line, left_out, room)
                        number, line, left_out = number + 1, b"", 0
                    kept = piece[: MAX_LINE_BYTES - len(line)]
                    line, left_out = line + kept, left_out + len(piece) - len(kept)
            is_enough = self._is_full(room) and COUNTED_BYTES < self.read < self.size
            if is_enough or time.monotonic() > deadline:
                return
        if not ends_with_newline:
            self._keep(number, line, left_out, room)
        self.last = number - ends_with_newline

    def _is_full(self, room: int) -> bool:
        return len(self.lines) >= self.count or room <= 0

    def _keep(self, number: int, line: bytes, left_out: int, room: int) -> int:
        """Keep the line if it is wanted; return how much room is left."""
        if number < self.start or self._is_full(room):
            return room
        text = show(line.removesuffix(b"\r").decode("utf-8", "surrogateescape"))
        self.lines.append(f"{text}[{left_out} more bytes]" if left_out else text)
        return room - len(text)


def _read_blocks(file: BinaryIO, head: bytes, rest: int) -> Iterator[bytes]:
    if head:
        yield head
    while rest > 0 and (block := file.read(min(_BLOCK, rest))):
        rest -= len(block)
        yield block
