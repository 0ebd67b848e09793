"""Which values the arguments of any tool call may hold."""

from math import isfinite
from typing import Any

MAX_DEPTH = 50
BROKEN = "not JSON"
"""The only argument of a call that arrived incomplete; its value says why."""


def find_unserializable(value: Any, depth: int = 0) -> str | None:  # noqa: PLR0911  # a table
    """What in ``value`` no checkpoint and no provider can hold; None if there is nothing.

    Lone surrogates above all: a person would be shown one text, and another would be stored and
    run.
    """
    if isinstance(value, dict | list):
        if depth == MAX_DEPTH:
            return f"more than {MAX_DEPTH} levels"
        parts: list[Any] = [*value, *value.values()] if isinstance(value, dict) else value
        return next(
            (found for part in parts if (found := find_unserializable(part, depth + 1))), None
        )
    match value:
        case str() if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            return "half a character (a lone surrogate)"
        case int() if not -(2**63) <= value < 2**63:
            return "a number that is too large"
        case float() if not isfinite(value):
            return "a number that is infinite or not a number"
        case str() | int() | float() | None:
            return None
        case _:
            return f"a {type(value).__name__}"
