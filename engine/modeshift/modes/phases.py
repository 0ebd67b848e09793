"""``Phase`` and ``Event``: what a turn is doing, and what moves the machine."""

from enum import StrEnum


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
