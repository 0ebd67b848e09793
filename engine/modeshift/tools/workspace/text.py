"""Text of files: its encoding, ranges of its lines, pieces that are replaced."""

import codecs
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import islice, pairwise
from typing import BinaryIO, NamedTuple, Self

from modeshift.modes.errors import ToolFailedError
from modeshift.modes.plain_text import escape_invisible, name_count

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


@dataclass(frozen=True, slots=True)
class TextFormat:
    """The encoding of a file, and how its lines end."""

    mark: bytes = b""
    encoding: str = "utf-8"
    has_crlf: bool = False
    """Whether every line ends with a carriage return too."""

    @classmethod
    def of(cls, data: bytes) -> Self:
        """The format of a file that begins with these bytes."""
        mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
        encoding = _MARKS.get(mark, "utf-8")
        crlf, newline = ("\r\n".encode(encoding), "\n".encode(encoding))
        # One byte is found much sooner than two, and most files hold none.
        has_crlf = b"\r" in data and 0 < data.count(crlf) == data.count(newline)
        return cls(mark, encoding, has_crlf)

    def decode(self, data: bytes) -> str:
        """The text of the whole file; raises ``ToolFailedError``."""
        if self.encoding == "utf-8" and is_binary(data):
            raise ToolFailedError(f"is binary ({len(data)} bytes), which these tools do not edit")
        try:
            return data.removeprefix(self.mark).decode(self.encoding, self._errors)
        except UnicodeDecodeError as error:
            raise ToolFailedError(f"is not {self.encoding} text: {error.reason}") from None

    def encode(self, text: str) -> bytes:
        """The bytes of ``text``; its lines end as those of the file, unless they say how."""
        if self.has_crlf and "\r" not in text:
            text = text.replace("\n", "\r\n")
        return self.mark + text.encode(self.encoding, self._errors)

    @property
    def _errors(self) -> str:
        return "surrogateescape" if self.encoding == "utf-8" else "strict"


def is_binary(data: bytes) -> bool:
    """Whether it is not text: no text holds a NUL."""
    return b"\0" in data


def is_plain_utf8(data: bytes) -> bool:
    """Whether an editor can give and take it as text: no mark, no other encoding."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return not data.startswith(codecs.BOM_UTF8) and not is_binary(data)


def is_utf8(text: str) -> bool:
    """Whether all of the file was UTF-8; what was not is a lone surrogate by now."""
    return not any("\udc80" <= character <= "\udcff" for character in text)


def show(text: str) -> str:
    r"""``text`` with what is not UTF-8 written as ``\xNN``."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def show_name(name: str) -> str:
    """A file's name on one line, with what a reader would not see written out."""
    return escape_invisible(show(name))


MAX_LINE_BYTES = 2000
MAX_BYTES = 80_000
"""The most bytes of all lines together; less than what the model gets of any result."""
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
        """Read the file as long as it is now; raises ``ToolFailedError`` if it is not text."""
        lines = cls(start, count, size=file.seek(0, os.SEEK_END))
        file.seek(0)
        head = file.read(min(_BLOCK, lines.size))
        text_format = TextFormat.of(head)
        lines.read = len(text_format.mark)
        if text_format.encoding == "utf-8":
            rest = lines.size - len(head)
            lines._take(_read_blocks(file, head.removeprefix(text_format.mark), rest))
        elif lines.size > COUNTED_BYTES:
            raise ToolFailedError(
                f"is {text_format.encoding} and has {lines.size} bytes; {COUNTED_BYTES} are the "
                "limit"
            )
        else:
            text = text_format.decode(head + file.read(lines.size - len(head)))
            lines._take(iter([text.encode("utf-8", "surrogatepass")] if text else []))
        return lines

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
            yield f"{name} has {name_count(self.last, 'line')}; nothing from line {self.start}."
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
                    part = piece[: MAX_LINE_BYTES - len(line)]
                    line, left_out = line + part, left_out + len(piece) - len(part)
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


MAX_CHARACTERS = 10_000_000
MAX_PLACES = 100_000
MAX_NAMED = 10
MAX_QUOTED = 300
MAX_LINES = 100_000
"""How many lines are looked at for the nearest ones; what is compared of them is less."""
MAX_COMPARED = 200
MAX_WIDTH = 200
MIN_LIKENESS = 0.6
_WORDS = re.compile(r"\w+")
_BLANKED = {number: " " for number in range(128) if not re.match(r"\w|\n", chr(number))}


class Replacement(NamedTuple):
    """One piece of text, and what is put in its place."""

    old: str
    new: str
    replace_all: bool = False


def read_replacements(args: Mapping[str, object]) -> list[Replacement] | None:
    """The ``edits`` of a call; None where they have another shape, as an own tool's may have."""
    edits, replacements = args.get("edits"), []
    for edit in edits if isinstance(edits, list) else []:
        match edit:
            case {"old": str(old), "new": str(new)}:
                replacements.append(Replacement(old, new, edit.get("replace_all") is True))
            case _:
                return None
    return replacements or None


class Piece(NamedTuple):
    """Where a piece stands, and what is put there."""

    start: int
    end: int
    new: str
    number: int
    """The number of the edit, from 1."""


def find_places(path: str, text: str, edits: Sequence[Replacement]) -> list[Piece]:
    """All places that the edits change, in order; every piece is looked for in ``text`` as it is.

    Raises ``ToolFailedError`` where one cannot be made, or two change the same characters.
    """
    has_crlf = "\r" in text and "\r\n" in text
    size, total, pieces = len(text), 0, []
    for number, edit in enumerate(edits, 1):
        which = f"edit {number}: " if len(edits) > 1 else ""
        old, new = edit.old, edit.new
        if has_crlf and "\r" not in old:  # read_file shows no carriage returns
            old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
        start = _find_first(f"{which}{_quote(edit.old)}", path, text, old, new)
        starts = _find(text, old) if edit.replace_all else iter([start])
        if not edit.replace_all and text.find(old, start + 1) >= 0:
            raise ToolFailedError(
                f"{which}{_quote(edit.old)} is in {path} {_name_lines(text, old)}; add lines "
                "around it until it is unique, or set replace_all"
            )
        count = text.count(old) if edit.replace_all else 1
        size, total = size + count * (len(new) - len(old)), total + count
        pieces.append((starts, len(old), new, number))
    if size > MAX_CHARACTERS:
        raise ToolFailedError(f"{path} would get larger than {MAX_CHARACTERS} bytes")
    if total > MAX_PLACES:
        raise ToolFailedError(f"{total} places in {path}; {MAX_PLACES} are the limit")
    places = sorted(
        Piece(start, start + length, new, number)
        for starts, length, new, number in pieces
        for start in starts
    )
    for place, other in pairwise(places):
        if other.start < place.end:
            first, second = sorted((place.number, other.number))
            raise ToolFailedError(
                f"edits {first} and {second} both change line {_line(text, other.start)} of "
                f"{path}, as it is before any of them; make them one edit"
            )
    return places


def replace_pieces(text: str, places: Sequence[Piece]) -> str:
    """``text`` with the places changed."""
    parts, end = [], 0
    for place in places:
        parts += [text[end : place.start], place.new]
        end = place.end
    return "".join([*parts, text[end:]])


def _find_first(quoted: str, path: str, text: str, old: str, new: str) -> int:
    if not old:
        raise ToolFailedError(f"{quoted}: old is empty; give the text to replace, or write_file")
    if old == new:
        raise ToolFailedError(f"{quoted}: old and new are the same; leave this edit out")
    if not new.isascii() and not is_utf8(text):
        raise ToolFailedError(f"{path} is not UTF-8; only ASCII can be put into it")
    if (start := text.find(old)) < 0:
        nearest = "\n".join(_show_nearest(text, old))
        raise ToolFailedError(
            f"{quoted} is not in {path}; copy the text exactly, blanks and line breaks included"
            + (", from these nearest lines:" if nearest else ", after reading the file again"),
            nearest,
        )
    return start


def _find(text: str, old: str, step: int = 0) -> Iterator[int]:
    start = text.find(old)
    while start >= 0:
        yield start
        start = text.find(old, start + (step or len(old)))


def _name_lines(text: str, old: str) -> str:
    """How often it is there, and in which lines."""
    starts = [*islice(_find(text, old, 1), MAX_NAMED + 1)]
    lines = ", ".join(str(_line(text, start)) for start in starts[:MAX_NAMED])
    if len(starts) > MAX_NAMED:
        return f"more than {MAX_NAMED} times, first in lines {lines}"
    return f"{len(starts)} times, in lines {lines}"


def _line(text: str, start: int) -> int:
    return text.count("\n", 0, start) + 1


def _quote(text: str) -> str:
    return repr(text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}...")


def _show_nearest(text: str, old: str) -> Iterator[str]:
    """The lines that are most like ``old``, with their numbers; none where none is.

    Its longest line is looked for; of the lines that share the most words with it those are
    compared letter by letter, which takes longer.
    """
    old_lines = [line.strip()[:MAX_WIDTH] for line in old.splitlines()]
    longest = max(old_lines, key=len, default="")
    if not longest:
        return
    at, words = old_lines.index(longest), set(_WORDS.findall(longest))
    lines = text.split("\n", MAX_LINES)[:MAX_LINES]
    matcher = SequenceMatcher(None, "", longest, autojunk=False)
    split: Callable[[str], list[str]] = _WORDS.findall
    plain = lines
    if text.isascii():  # the same words, three times as fast
        split, plain = str.split, text.translate(_BLANKED).split("\n", MAX_LINES)[:MAX_LINES]
    begun = [line[:MAX_WIDTH] for line in plain]
    shared = [*map(len, map(words.intersection, map(split, begun)))]

    def compare(number: int) -> tuple[float, int, int]:
        matcher.set_seq1(lines[number].strip()[:MAX_WIDTH])
        around = lines[max(number - at, 0) : number - at + len(old_lines)][:MAX_NAMED]
        same = sum(line.strip() == other for line, other in zip(around, old_lines, strict=False))
        is_like = matcher.quick_ratio() >= MIN_LIKENESS
        return matcher.ratio() if is_like else 0, same, -number

    candidates = sorted(range(len(lines)), key=shared.__getitem__, reverse=True)[:MAX_COMPARED]
    likeness, _, best = max(map(compare, candidates), default=(0, 0, 0))
    if likeness >= MIN_LIKENESS:
        first = max(-best - min(at, MAX_NAMED - 1), 0)
        nearest = lines[first : first + min(len(old_lines), MAX_NAMED)]
        for number, line in enumerate(nearest, first + 1):
            text = show(line.rstrip("\r"))[:MAX_QUOTED]
            yield f"{number}\t{text}"
