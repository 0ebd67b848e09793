"""``fileRegex``: patterns that users write, on an engine that they cannot hang.

``regex`` with a time bound, and not ``google-re2``, which is linear in time: modes
files written for Kilo Code and Roo Code use lookaheads such as ``(?!.*test)``, which
RE2 does not have. What it leaves open is closed here: the length of a pattern, and
counted repetitions, which the compiler would unroll into memory.
"""

from functools import lru_cache
from math import prod

import regex

MAX_CHARACTERS = 1000
MAX_UNROLLED = 100_000
"""Characters of a pattern, times the repetitions that it counts."""
SECONDS = 0.1
# Flags that let blanks and comments into a count, and a pattern that calls itself.
_REFUSED = regex.compile(r"\(\?[a-zA-Z0-9-]*x|\(\?(?:R|[+-]?\d|&|P>)")


class SlowPatternError(Exception):
    """A pattern that did not come to an end in time."""


def check_file_regex(pattern: str) -> None:
    """Raise ``ValueError`` for what is no regular expression, or too large a one."""
    if len(pattern) > MAX_CHARACTERS:
        raise ValueError(
            f"the pattern has {len(pattern)} characters; {MAX_CHARACTERS} are the limit"
        )
    if found := _REFUSED.search(pattern):
        raise ValueError(f"'{pattern[:60]}' may not hold {found[0]!r}")
    counts = [int(count) for count in regex.findall(r"\{(\d+)", pattern)]
    if len(pattern) * prod(max(count, 1) for count in counts) > MAX_UNROLLED:
        raise ValueError(f"'{pattern[:60]}' repeats too much: {' x '.join(map(str, counts))} times")
    try:
        _compiled(pattern)
    except (regex.error, RecursionError, MemoryError) as error:
        raise ValueError(f"'{pattern[:60]}' is no regular expression: {error}") from error


def is_found(pattern: str, text: str) -> bool:
    """Whether the pattern is found in a path; raises ``SlowPatternError``.

    ``$`` also matches before a final line break, so in text with a control character
    nothing is found.
    """
    if any(ord(character) < 32 for character in text):
        return False
    try:
        return _compiled(pattern).search(text, timeout=SECONDS, concurrent=True) is not None
    except (TimeoutError, MemoryError) as error:
        raise SlowPatternError(pattern) from error


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> regex.Pattern[str]:
    # ASCII: in the modes files' own language \d, \w and \b know no other letters.
    return regex.compile(pattern, regex.ASCII)
