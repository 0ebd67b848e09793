"""Which events a node sends: one pure function, which the nodes and the proof share."""

from typing import NamedTuple, assert_never

from modeshift.modes.phases import Event, Phase


class Seen(NamedTuple):
    """What a node knows when its work is done; what does not matter in its phase is left out."""

    has_calls: bool = False
    """Whether calls are left to run."""
    needs_person: bool = False
    """Whether a person has to decide on one of them."""
    has_switch: bool = False
    """Whether an approved switch, or a sub-task, is left to do and may be done."""
    in_subtask: bool = False
    is_done: bool = False
    """Whether the model says that the task is done."""
    is_turn: bool = False
    """Whether somebody has said what the model has not answered."""
    needs_summary: bool = False
    """Whether the history is to be summarized."""
    has_failed: bool = False
    """Whether the sub-task cannot go on, or is stopped."""


def choose(phase: Phase, seen: Seen) -> tuple[Event, ...]:  # noqa: PLR0911  # a table
    """The events that the node of ``phase`` sends; ``idle`` stands for ``intake``."""
    match phase:
        case Phase.IDLE:
            return (Event.RESET, *_open(seen))
        case Phase.THINKING:
            return (_think(seen),)
        case Phase.REVIEWING:
            return (_go_on(seen) or Event.DECIDED,)
        case Phase.ACTING:
            end = Event.RETURN if seen.in_subtask else Event.COMPLETE
            return (_go_on(seen) or (end if seen.is_done else Event.ACTED),)
        case Phase.SWITCHING:
            return (Event.SWITCH_MODE,) if seen.has_switch else (Event.RESET, Event.START)
        case Phase.COMPACTING:
            return (Event.COMPACTED if seen.is_turn else Event.COMPLETE,)
        case Phase.RETURNING:
            return (Event.NEXT if seen.has_switch else Event.RETURNED,)
        case _:
            assert_never(phase)


def _open(seen: Seen) -> tuple[Event, ...]:
    starts = (Event.START,) if seen.is_turn else ()
    if seen.in_subtask and (seen.has_failed or not seen.is_turn):
        return (*starts, Event.RETURN)
    return (*starts, Event.COMPACT) if seen.needs_summary else starts


def _think(seen: Seen) -> Event:
    if seen.needs_summary:
        return Event.COMPACT
    if seen.needs_person or seen.has_calls:
        return Event.REVIEW if seen.needs_person else Event.ACT
    return Event.RETURN if seen.in_subtask else Event.ANSWER


def _go_on(seen: Seen) -> Event | None:
    """The event for what is left to do: calls first, then the switch."""
    if seen.has_calls:
        return Event.ACT
    return Event.SWITCH if seen.has_switch else None
