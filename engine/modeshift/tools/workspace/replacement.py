"""Replacing several pieces of a text at once, and what is said of one that is not there."""

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, NamedTuple

from modeshift.modes.errors import ToolFailedError
from modeshift.tools.workspace.encoding import is_utf8, show

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


class Replacement(NamedTuple):
    """One piece of text, and what is put in its place."""

    old: str
    new: str
    replace_all: bool = False


def read_replacements(args: Mapping[str, Any]) -> list[Replacement] | None:
    """The ``edits`` of a call; None where they have another shape, as an own tool's may have."""
    edits, found = args.get("edits"), []
    for edit in edits if isinstance(edits, list) else []:
        match edit:
            case {"old": str(old), "new": str(new)}:
                found.append(Replacement(old, new, edit.get("replace_all") is True))
            case _:
                return None
    return found or None


class Place(NamedTuple):
    """Where a piece stands, and what is put there."""

    start: int
    end: int
    new: str
    number: int
    """Of the edit, from 1."""


def find_places(path: str, text: str, edits: Sequence[Replacement]) -> list[Place]:
    """All places that the edits change, in order; every piece is looked for in ``text`` as it is.

    Raises ``ToolFailedError`` where one cannot be made, or two change the same characters.
    """
    has_crlf = "\r\n" in text
    size, total, pieces = len(text), 0, []
    for number, edit in enumerate(edits, 1):
        which = f"edit {number}: " if len(edits) > 1 else ""
        old, new = edit.old, edit.new
        if has_crlf and "\r" not in old:  # read_file shows no carriage returns
            old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
        _check(f"{which}{_quote(edit.old)}", path, text, old, new)
        starts = _find(text, old) if edit.replace_all else iter([text.index(old)])
        if not edit.replace_all and text.find(old, text.index(old) + 1) >= 0:
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
        Place(start, start + length, new, number)
        for starts, length, new, number in pieces
        for start in starts
    )
    for one, other in pairwise(places):
        if other.start < one.end:
            first, second = sorted((one.number, other.number))
            raise ToolFailedError(
                f"edits {first} and {second} both change line {_line(text, other.start)} of "
                f"{path}, as it is before any of them; make them one edit"
            )
    return places


def replace(text: str, places: Sequence[Place]) -> str:
    """``text`` with the places changed."""
    parts, end = [], 0
    for place in places:
        parts += [text[end : place.start], place.new]
        end = place.end
    return "".join([*parts, text[end:]])


def _check(quoted: str, path: str, text: str, old: str, new: str) -> None:
    if not old:
        raise ToolFailedError(f"{quoted}: old is empty; give the text to replace, or write_file")
    if old == new:
        raise ToolFailedError(f"{quoted}: old and new are the same; leave this edit out")
    if not new.isascii() and not is_utf8(text):
        raise ToolFailedError(f"{path} is not UTF-8; only ASCII can be put into it")
    if old not in text:
        nearest = "\n".join(_show_nearest(text, old))
        raise ToolFailedError(
            f"{quoted} is not in {path}; copy the text exactly, blanks and line breaks included"
            + (", from these nearest lines:" if nearest else ", after reading the file again"),
            nearest,
        )


def _find(text: str, old: str, step: int = 0) -> Iterator[int]:
    start = text.find(old)
    while start >= 0:
        yield start
        start = text.find(old, start + (step or len(old)))


def _name_lines(text: str, old: str) -> str:
    """How often it is there, and in which lines."""
    found = [start for start, _ in zip(_find(text, old, 1), range(MAX_NAMED + 1), strict=False)]
    lines = ", ".join(str(_line(text, start)) for start in found[:MAX_NAMED])
    if len(found) > MAX_NAMED:
        return f"more than {MAX_NAMED} times, first in lines {lines}"
    return f"{len(found)} times, in lines {lines}"


def _line(text: str, start: int) -> int:
    return text.count("\n", 0, start) + 1


def _quote(text: str) -> str:
    return repr(text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}...")


def _show_nearest(text: str, old: str) -> Iterator[str]:
    """The lines that are most like ``old``, with their numbers; none where none is.

    Its longest line is looked for; of the lines that share the most words with it those are
    compared letter by letter, which takes longer.
    """
    wanted = [line.strip()[:MAX_WIDTH] for line in old.splitlines()]
    longest = max(wanted, key=len, default="")
    if not longest:
        return
    at, words = wanted.index(longest), set(_WORDS.findall(longest))
    lines = text.split("\n", MAX_LINES)[:MAX_LINES]
    matcher = SequenceMatcher(None, "", longest, autojunk=False)

    def count_shared(number: int) -> int:
        return len(words.intersection(_WORDS.findall(lines[number][:MAX_WIDTH])))

    def compare(number: int) -> tuple[float, int, int]:
        matcher.set_seq1(lines[number].strip()[:MAX_WIDTH])
        around = lines[max(number - at, 0) : number - at + len(wanted)][:MAX_NAMED]
        same = sum(line.strip() == other for line, other in zip(around, wanted, strict=False))
        is_like = matcher.quick_ratio() >= MIN_LIKENESS
        return matcher.ratio() if is_like else 0, same, -number

    candidates = heapq.nlargest(MAX_COMPARED, range(len(lines)), key=count_shared)
    likeness, _, best = max(map(compare, candidates), default=(0, 0, 0))
    if likeness >= MIN_LIKENESS:
        first = max(-best - min(at, MAX_NAMED - 1), 0)
        nearest = lines[first : first + min(len(wanted), MAX_NAMED)]
        for number, line in enumerate(nearest, first + 1):
            text = show(line.rstrip("\r"))[:MAX_QUOTED]
            yield f"{number}\t{text}"
