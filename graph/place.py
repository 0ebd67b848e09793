"""Where a thread is: its configuration, and a change of mode that the host made."""

from datetime import UTC, datetime
from typing import Literal

from graph.harness import Harness
from graph.state import ModeChange, State
from modes.machine import Configuration, Event


def recorded_mode(harness: Harness, state: State) -> str:
    """The mode as the record has it: the last change's target, or where the thread started.

    The default mode where that one is no more.
    """
    changes = state.get("mode_changes")
    slug = changes[-1]["target"] if changes else state.get("first_mode")
    return slug if slug is not None and slug in harness.catalog else harness.catalog.default


def host_change(
    harness: Harness, state: State, now: Configuration
) -> tuple[Configuration, list[ModeChange]]:
    """Apply, and record, a mode that stands in the state and not yet in the record.

    Only the host writes the mode from outside: in a run's input, or with
    ``update_state``. ``now`` is in the recorded mode.
    """
    wanted = state.get("mode", now.mode)
    if wanted not in harness.catalog:  # a mode that has been taken out of the clone since
        return now, [record(wanted, now.mode, f"mode {wanted!r} is no more", "host")]
    if wanted == now.mode:
        return now, []
    after = harness.machine.send(now, Event.SET_MODE, wanted)
    return after, [record(now.mode, after.mode, "set by the host", "host")]


def record(
    source: str, target: str, reason: str, decided_by: Literal["human", "host"]
) -> ModeChange:
    """A record of a change that happens now."""
    return ModeChange(
        source=source,
        target=target,
        reason=reason,
        decided_by=decided_by,
        when=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )
