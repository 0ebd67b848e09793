"""``Phase``, ``Event`` and ``choose``: what a turn is doing, and which events a node sends."""

from enum import StrEnum
from typing import NamedTuple, assert_never


class Phase(StrEnum):
    """What a turn is doing, where the engine has a part in it."""

    IDLE = "idle"
    THINKING = "thinking"
    REVIEWING = "reviewing"
    ACTING = "acting"
    SWITCHING = "switching"
    COMPACTING = "compacting"
    RETURNING = "returning"


class Event(StrEnum):
    """What moves the machine, where the engine sends it."""

    START = "start"
    """A turn begins."""
    ANSWER = "answer"
    """The model called no tool."""
    REVIEW = "review"
    """A person has to decide on a call."""
    DECIDED = "decided"
    """The person has decided, or the question is void, and no call is left to run."""
    ACT = "act"
    """Calls can run."""
    ACTED = "acted"
    """Every call of the message has run."""
    COMPLETE = "complete"
    """The task is done: the model says so, or there was only the history to compact."""
    COMPACT = "compact"
    """The history is too long to go on with, or a person wants it shorter."""
    COMPACTED = "compacted"
    """The history has been replaced by a summary, or cannot be; the turn goes on."""
    SWITCH = "switch"
    """Only a switch that a person approved is left to do."""
    SWITCH_MODE = "switch_mode"
    """The approved switch takes effect; needs the target's slug."""
    RETURN = "return"
    """A sub-task is at its end."""
    RETURNED = "returned"
    """The conversation that began the sub-task goes on; needs the slug of its mode."""
    NEXT = "next"
    """The next sub-task that was approved with it begins; needs the slug of its mode."""
    SET_MODE = "set_mode"
    """The host sets the mode, which it may at any time; needs the target's slug."""
    RESET = "reset"
    """The turn is abandoned, whatever was going on."""


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
