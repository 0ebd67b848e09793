"""``fileRegex``: users' patterns, on an engine with a time limit.

Modes files written for Kilo Code and Roo Code use lookaheads such as ``(?!.*test)``, which
linear-time engines (RE2) lack. What a time limit leaves open is closed here: the length of a
pattern, and counted repetitions, which the compiler would unroll into memory.
"""

from functools import lru_cache
from math import prod

import regex

MAX_CHARACTERS = 1000
MAX_UNROLLED = 100_000
"""The characters of a pattern, multiplied by its counted repetitions."""
SECONDS = 0.1
# The flag that allows blanks and comments within a count, and patterns that call themselves.
_REFUSED = regex.compile(r"\(\?[a-zA-Z0-9-]*x|\(\?(?:R|[+-]?\d|&|P>)")

_ANYTHING = regex.compile(r"\^?\(?(?:\.|\[\\s\\S\])[*+]\??\)?\$?|\.|\^")
# Anchors and look-arounds, and all else that might look to the left.
_LOOKS_BEHIND = regex.compile(r"(?<!\[)\^|\(\?|\\[a-zA-CE-RT-VX-Z](?<!\\[dsw])")


class SlowPatternError(Exception):
    """A pattern that took too long."""


def check_file_regex(pattern: str) -> None:
    """Raise ``ValueError`` for an invalid or too large regular expression."""
    if len(pattern) > MAX_CHARACTERS:
        raise ValueError(
            f"the pattern has {len(pattern)} characters; {MAX_CHARACTERS} are the limit"
        )
    if found := _REFUSED.search(pattern):
        raise ValueError(f"'{pattern[:60]}' may not have {found[0]!r}")
    counts = [int(count) for count in regex.findall(r"\{(\d+)", pattern)]
    if len(pattern) * prod(max(count, 1) for count in counts) > MAX_UNROLLED:
        raise ValueError(f"'{pattern[:60]}' repeats too much: {' x '.join(map(str, counts))} times")
    try:
        _compile(pattern)
    except (regex.error, RecursionError, MemoryError) as error:
        raise ValueError(f"'{pattern[:60]}' is no regular expression: {error}") from error


def is_found(pattern: str, text: str) -> bool:
    """Whether the pattern is found in a path; raises ``SlowPatternError``.

    Never in a path with a control character: ``$`` also matches before a final line break.
    """
    if any(ord(character) < 32 for character in text):
        return False
    try:
        return _compile(pattern).search(text, timeout=SECONDS, concurrent=True) is not None
    except (TimeoutError, MemoryError) as error:
        raise SlowPatternError(pattern) from error


def is_found_in_every_path(pattern: str) -> bool:
    """Whether the pattern certainly restricts nothing, as ``.*`` does; it must be valid.

    One that matches the empty text matches at the end of every path, unless it looks to the left.
    """
    if _ANYTHING.fullmatch(pattern):
        return True
    return _LOOKS_BEHIND.search(pattern) is None and is_found(pattern, "")


@lru_cache(maxsize=1000)
def _compile(pattern: str) -> regex.Pattern[str]:
    # ASCII as in JavaScript, for which these patterns were written.
    return regex.compile(pattern, regex.ASCII)
