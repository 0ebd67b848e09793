"""``Calling``: the context in which a tool runs, in the context variable ``calling``."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass


def _nobody(_: str) -> None:
    pass


@dataclass(frozen=True)
class Calling:
    """Set by whoever runs the tool; the defaults are the strictest."""

    edits_freely: bool = False
    """Whether the mode may change every file."""
    is_read_only: bool = False
    """Whether it runs unasked as a read-only command: it can change nothing and see no secret."""
    emit: Callable[[str], None] = _nobody
    """Shows a client text while the tool runs."""


calling: ContextVar[Calling] = ContextVar("calling", default=Calling())  # noqa: B039  # it is frozen
