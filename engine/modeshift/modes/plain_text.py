"""Showing other people's text inside our own: on one line, with invisible characters escaped."""

import re

# They count as printable and show nothing: words can be written with them.
_EMPTY = "\u115f\u1160\u17b4\u17b5\u3164\ufe00-\ufe0d\uffa0"
_PRINTS_NOTHING = re.compile(f"[{_EMPTY}\u2800]")
# They join or colour the emoji that people put into names.
_IN_PICTURES = frozenset("\u200d\ufe0f")
# In text of several lines: control characters, those that reverse the order of text, and those
# without width. Not what joins letters or chooses their form, which U+200C does in every other word
# of Persian. But three in a row do neither.
_UNSEEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    f"\ufeff\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff{_EMPTY}]"
    "|[\u034f\u180b-\u180d\u180f\u200c\u200d\ufe0e\ufe0f]{3,}"
)


def is_plain(text: str) -> bool:
    """Whether a reader sees the whole text, in its order, on one line."""
    return all(map(_is_plain, text))


def to_one_line(text: str, limit: int = 300) -> str:
    """``text`` on one line, invisible characters escaped, cut at ``limit`` characters."""
    shown = escape_invisible(" ".join(text.split())[:limit])
    return shown if len(text) <= limit else f"{shown}..."


def name_count(number: int, noun: str) -> str:
    """``1 line``, or ``2 lines``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def escape_invisible(text: str) -> str:
    """``text`` with invisible characters escaped; its spaces stay."""
    return "".join(c if _is_plain(c) else _escape(c) for c in text)


def make_readable(text: str) -> str:
    """``text`` of several lines, with characters escaped that are invisible or reorder others."""
    return _UNSEEN.sub(lambda match: "\r" if _ends_line(match) else _escape(match[0]), text)


def find_invisible(text: str, around: int = 30) -> list[str]:
    """The places of ``text`` in which ``make_readable`` escapes something, escaped."""
    places, end = [], 0
    for match in _UNSEEN.finditer(text):
        if match.start() >= end and not _ends_line(match):
            start, end = max(match.start() - around, end), match.end() + around
            places.append(make_readable(text[start:end]))
    return places


def _ends_line(match: re.Match[str]) -> bool:
    return match[0] == "\r" and match.string.startswith("\n", match.end())


def _escape(characters: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in characters)


def _is_plain(character: str) -> bool:
    if character in _IN_PICTURES:
        return True
    return character.isprintable() and _PRINTS_NOTHING.match(character) is None
