"""Patterns of ``*`` and ``?``, for a word or a path, in time that grows with its length alone."""

import re
from collections.abc import Sequence
from functools import lru_cache

MAX_CHARACTERS = 300


def check_glob(pattern: str) -> None:
    """Raise ``ValueError`` for a pattern that would not mean what it seems to."""
    if len(pattern) > MAX_CHARACTERS:
        raise ValueError(f"a pattern of {len(pattern)} characters; {MAX_CHARACTERS} are the limit")
    if not pattern.strip() or not pattern.isprintable():
        raise ValueError(f"the pattern {pattern!r} is blank or not printable")
    if any(character in pattern for character in "[]\\"):
        raise ValueError(f"the pattern {pattern!r} may hold '*' and '?', and no '[', ']' or '\\'")


def word_matches(pattern: str, word: str) -> bool:
    """Whether the whole word is of the pattern."""
    return _compiled(pattern).fullmatch(word) is not None


@lru_cache(maxsize=5000)
def _compiled(pattern: str) -> re.Pattern[str]:
    first, *rest = (
        "".join("." if character == "?" else re.escape(character) for character in piece)
        for piece in re.split(r"\*+", pattern)
    )
    if not rest:
        return re.compile(first, re.DOTALL)
    # Atomic: the first place where a piece fits is as good as any, so none is tried twice.
    middle = "".join(f"(?>.*?{piece})" for piece in rest[:-1])
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)


def path_matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether a path, by its names, is of the pattern; ``**`` stands for any names, or none."""
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
