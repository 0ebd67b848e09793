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
MAX_REPETITIONS = 10_000
SECONDS = 0.1


class SlowPatternError(Exception):
    """A pattern that did not come to an end in time."""


def check_file_regex(pattern: str) -> None:
    """Raise ``ValueError`` for what is no regular expression, or too large a one."""
    if len(pattern) > MAX_CHARACTERS:
        raise ValueError(
            f"the pattern has {len(pattern)} characters; {MAX_CHARACTERS} are the limit"
        )
    counts = [int(count) for count in regex.findall(r"\{(\d+)", pattern)]
    if prod(max(count, 1) for count in counts) > MAX_REPETITIONS:
        raise ValueError(
            f"{pattern!r} repeats {' x '.join(map(str, counts))} times; "
            f"{MAX_REPETITIONS} are the limit"
        )
    try:
        _compiled(pattern)
    except (regex.error, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error


def is_found(pattern: str, text: str) -> bool:
    """Whether the pattern is found in a path or a word; raises ``SlowPatternError``.

    ``$`` also matches before a final line break, so in text with a control character
    nothing is found.
    """
    if any(ord(character) < 32 for character in text):
        return False
    try:
        return _compiled(pattern).search(text, timeout=SECONDS, concurrent=True) is not None
    except TimeoutError as error:
        raise SlowPatternError(pattern) from error


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> regex.Pattern[str]:
    # ASCII: in the modes files' own language \d, \w and \b know no other letters.
    return regex.compile(pattern, regex.ASCII)
