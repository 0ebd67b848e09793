"""The record of mode changes, and the changes that the host makes."""

from datetime import UTC, datetime
from typing import Literal

from graph.deps import AgentDeps
from graph.state import ModeChange, State
from modes.machine import Configuration, Event, Phase


def reconcile_mode(deps: AgentDeps, state: State) -> tuple[Configuration, list[ModeChange]]:
    """Where the thread is, and the record of a change that nobody has recorded yet.

    Only the host writes the mode from outside, in a run's input or with
    ``update_state``: a mode that stands in the state and not in the record is its.
    A mode that has been taken out of the clone gives way to the default one.
    """
    phase = Phase(state.get("phase", Phase.IDLE))
    before = Configuration(_recorded_mode(deps, state), phase)
    wanted = state.get("mode", before.mode)
    if wanted not in deps.catalog:
        return before, [record_change(wanted, before.mode, f"mode {wanted!r} is no more", "nobody")]
    if wanted == before.mode:
        return before, []
    after = deps.machine.send(before, Event.SET_MODE, wanted)
    return after, [record_change(before.mode, after.mode, "set by the host", "host")]


def _recorded_mode(deps: AgentDeps, state: State) -> str:
    """The last change's target, or the mode in which the thread started."""
    changes = state.get("mode_changes")
    slug = changes[-1]["target"] if changes else state.get("first_mode")
    return slug if slug is not None and slug in deps.catalog else deps.catalog.default


def record_change(
    source: str, target: str, reason: str, decided_by: Literal["human", "host", "nobody"]
) -> ModeChange:
    """A record of a change that happens now."""
    return ModeChange(
        source=source,
        target=target,
        reason=reason,
        decided_by=decided_by,
        when=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )
