"""``Calling``: the context in which a tool runs, in the context variable ``calling``."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from modeshift.tools.processes.background import TurnCommands


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
    call_id: str = ""
    commands: TurnCommands | None = None
    """Those of the turn; None where it is not known when a turn ends."""


calling: ContextVar[Calling] = ContextVar("calling", default=Calling())  # noqa: B039  # it is frozen
