"""``ChartData``: what a turn can do, as data. A clone's is in its ``graph/chart.py``.

The engine sends the events below itself, so their edges must be there; an owner adds phases,
events and edges between them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from modeshift.modes.errors import ConfigurationError

EACH_MODE = "each mode"
"""In ``ChartData.nodes``: the node of whichever mode the thread is in."""
PhaseEdge = tuple[str, str, str]
"""A phase, an event, and the phase that it leads to."""


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
    """The task is done: the model says so, or it was but to compact the history."""
    COMPACT = "compact"
    """The history is too long to go on with, or a person wants it shorter."""
    COMPACTED = "compacted"
    """It has been replaced by a summary, or cannot be; the turn goes on."""
    SWITCH = "switch"
    """Only a switch that a person approved is left to do."""
    SWITCH_MODE = "switch_mode"
    """The approved switch takes effect; needs the target's slug."""
    RETURN = "return"
    """A sub-task is at its end."""
    RETURNED = "returned"
    """The conversation that it belongs to goes on; needs the slug of that one's mode."""
    NEXT = "next"
    """That conversation has one more to begin, as approved; needs the slug of its mode, too."""
    SET_MODE = "set_mode"
    """The host sets the mode, which it may at any time; needs the target's slug."""
    RESET = "reset"
    """The turn is abandoned, whatever was going on."""


ENGINE_NODES: Mapping[str, str | None] = {
    Phase.IDLE: None,
    Phase.THINKING: EACH_MODE,
    Phase.REVIEWING: "review",
    Phase.ACTING: "act",
    Phase.SWITCHING: "switch_mode",
    Phase.COMPACTING: "compact_history",
    Phase.RETURNING: "end_subtask",
}
NEEDED: Sequence[PhaseEdge] = (
    (Phase.IDLE, Event.START, Phase.THINKING),
    (Phase.IDLE, Event.COMPACT, Phase.COMPACTING),
    (Phase.IDLE, Event.RETURN, Phase.RETURNING),
    (Phase.THINKING, Event.ANSWER, Phase.IDLE),
    (Phase.THINKING, Event.REVIEW, Phase.REVIEWING),
    (Phase.THINKING, Event.ACT, Phase.ACTING),
    (Phase.THINKING, Event.COMPACT, Phase.COMPACTING),
    (Phase.THINKING, Event.RETURN, Phase.RETURNING),
    (Phase.REVIEWING, Event.ACT, Phase.ACTING),
    (Phase.REVIEWING, Event.SWITCH, Phase.SWITCHING),
    (Phase.REVIEWING, Event.DECIDED, Phase.THINKING),
    (Phase.ACTING, Event.ACT, Phase.ACTING),
    (Phase.ACTING, Event.ACTED, Phase.THINKING),
    (Phase.ACTING, Event.SWITCH, Phase.SWITCHING),
    (Phase.ACTING, Event.COMPLETE, Phase.IDLE),
    (Phase.ACTING, Event.RETURN, Phase.RETURNING),
    (Phase.SWITCHING, Event.SWITCH_MODE, Phase.THINKING),
    (Phase.COMPACTING, Event.COMPACTED, Phase.THINKING),
    (Phase.COMPACTING, Event.COMPLETE, Phase.IDLE),
    (Phase.RETURNING, Event.RETURNED, Phase.THINKING),
    (Phase.RETURNING, Event.NEXT, Phase.SWITCHING),
)
"""What the engine sends, and where it must lead, at once or by way of an owner's own phases."""
_EVERYWHERE = (Event.SET_MODE, Event.RESET)


@dataclass(frozen=True, eq=False)
class ChartData:
    """The phases with the node of each, and the edges between them.

    Raises ``ConfigurationError`` for a table in which a turn could get stuck, or go past a gate.
    """

    nodes: Mapping[str, str | None]
    """By phase, the name of the node that runs in it, ``EACH_MODE``, or None: the turn is over."""
    edges: Sequence[PhaseEdge]

    def __post_init__(self) -> None:
        for problem in self._find_problems():
            raise ConfigurationError(f"graph/chart.py: {problem}")

    @cached_property
    def targets(self) -> Mapping[tuple[str, str], str]:
        """Where an event leads, by phase and event."""
        return {(source, event): target for source, event, target in self.edges}

    @property
    def phases(self) -> tuple[str, ...]:
        """All phases, as plain text."""
        return tuple(map(str, self.nodes))

    def _find_problems(self) -> Iterator[str]:
        yield from self._find_misplaced()
        for source, event, target in NEEDED:
            if (source, event) not in self.targets:
                yield f"the engine needs an edge from {source!s} by {event!s}, to {target!s}"
            elif problem := self._find_way_past(source, event, target):
                yield problem

    def _find_misplaced(self) -> Iterator[str]:
        for phase, node in ENGINE_NODES.items():
            if self.nodes.get(phase, "") != node:
                actual = repr(self.nodes[phase]) if phase in self.nodes else "missing"
                yield f"the node of the phase {phase!s} is {actual}; the engine needs {node!r}"
        seen = dict[tuple[str, str], str]()
        for source, event, target in self.edges:
            if unknown := {source, target} - self.nodes.keys():
                yield f"an edge names the phase {min(unknown)!r}, which has no row in `nodes`"
            if event in _EVERYWHERE:
                yield f"{event!s} is possible in every phase; it takes no edge"
            if seen.setdefault((source, event), target) != target:
                yield f"from {source!s} the event {event!s} leads to two phases"
        for phase in self._own:
            if not any(source == phase for source, _, _ in self.edges):
                yield f"no edge leads out of the phase {phase!r}"
            if not any(target == phase for _, _, target in self.edges):
                yield f"no edge leads to the phase {phase!r}"

    @property
    def _own(self) -> set[str]:
        return {str(phase) for phase in self.nodes if phase not in ENGINE_NODES}

    def _find_way_past(self, source: str, event: str, target: str) -> str | None:
        """Why the edge does not lead where the engine needs it; own phases may lie between."""
        reached, waiting = set[str](), [self.targets[source, event]]
        while waiting:
            phase = waiting.pop()
            if phase not in reached:
                reached.add(phase)
                if phase in self._own:
                    waiting += [to for (start, _), to in self.targets.items() if start == phase]
        ends = reached - self._own
        if target not in ends:
            return f"from {source!s} by {event!s} no way leads to {target!s}"
        if wrong := ends - {target, Phase.IDLE, Phase.THINKING}:
            return f"from {source!s} by {event!s} a way leads to {min(wrong)!s}, past {target!s}"
        return None
