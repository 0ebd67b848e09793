"""Patterns of ``*`` and ``?`` for words and paths, matched in time linear in their length."""

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache

MAX_CHARACTERS = 300


def check_glob(pattern: str) -> str:
    """Return the pattern; raises ``ValueError`` for one that means not what it seems to mean."""
    if len(pattern) > MAX_CHARACTERS:
        raise ValueError(f"a pattern of {len(pattern)} characters; {MAX_CHARACTERS} are the limit")
    if not pattern.strip() or not pattern.isprintable():
        raise ValueError(f"the pattern {pattern!r} is blank or not printable")
    if any(character in pattern for character in "[]\\"):
        raise ValueError(f"the pattern {pattern!r} may have '*' and '?', and no '[', ']' or '\\'")
    return pattern


def word_matches(pattern: str, word: str) -> bool:
    """Whether the pattern matches the whole word."""
    return _compile(pattern).fullmatch(word) is not None


@lru_cache(maxsize=5000)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))  # atomic between its stars: no backtracking


def path_matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether the pattern matches a path, name by name; ``**`` stands for any names or none."""
    at, place = 0, 0
    star, retry = -1, 0
    while place < len(path):
        if at < len(pattern) and pattern[at] == "**":
            star, retry = at, place
            at += 1
        elif at < len(pattern) and word_matches(pattern[at], path[place]):
            at, place = at + 1, place + 1
        elif star >= 0:
            retry += 1
            at, place = star + 1, retry
        else:
            return False
    return all(name == "**" for name in pattern[at:])
