"""``ChartData``: what a turn can do, as data. A clone's is in its ``graph/chart.py``.

The engine sends the events of ``phases.py`` itself, so their edges must be there; an owner adds
phases, events and edges between them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import TypeVar

from modeshift.modes.errors import ConfigurationError
from modeshift.modes.phases import Event, Phase, Seen, choose

EACH_MODE = "each mode"
"""In ``ChartData.nodes``: the node of whichever mode the thread is in."""
T = TypeVar("T")
PhaseEdge = tuple[str, str, str]
"""A phase, an event, and the phase that it leads to."""
ENGINE_NODES: Mapping[str, str | None] = {
    Phase.IDLE: None,
    Phase.THINKING: EACH_MODE,
    Phase.REVIEWING: "review",
    Phase.ACTING: "act",
    Phase.SWITCHING: "switch_mode",
    Phase.COMPACTING: "compact_history",
    Phase.RETURNING: "end_subtask",
}
_TARGETS: Mapping[Event, Phase] = {
    Event.START: Phase.THINKING,
    Event.ANSWER: Phase.IDLE,
    Event.REVIEW: Phase.REVIEWING,
    Event.DECIDED: Phase.THINKING,
    Event.ACT: Phase.ACTING,
    Event.ACTED: Phase.THINKING,
    Event.COMPLETE: Phase.IDLE,
    Event.COMPACT: Phase.COMPACTING,
    Event.COMPACTED: Phase.THINKING,
    Event.SWITCH: Phase.SWITCHING,
    Event.SWITCH_MODE: Phase.THINKING,
    Event.RETURN: Phase.RETURNING,
    Event.RETURNED: Phase.THINKING,
    Event.NEXT: Phase.SWITCHING,
    Event.RESET: Phase.IDLE,
}
"""Where an event must lead, from whichever phase it is sent in."""
_EVERYWHERE = (Event.SET_MODE, Event.RESET)


@cache
def list_needed() -> Sequence[PhaseEdge]:
    """The edges that a chart needs for the events of the engine; own phases may lie between."""
    found = dict[PhaseEdge, None]()
    for phase in Phase:
        for seen in product((False, True), repeat=len(Seen._fields)):
            source = phase
            for event in choose(phase, Seen(*seen)):
                if event not in _EVERYWHERE:
                    found[source, event, _TARGETS[event]] = None
                source = _TARGETS[event]
    return tuple(found)


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

    @cached_property
    def phases(self) -> tuple[str, ...]:
        """All phases, as plain text."""
        return tuple(map(str, self.nodes))

    def _find_problems(self) -> Iterator[str]:
        yield from self._find_misplaced()
        for source, event, target in list_needed():
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
        own = [edge for edge in self.edges if edge[0] in self._own]
        first = self.targets[source, event]
        reached = find_reached([first], lambda phase: [edge[2] for edge in own if edge[0] == phase])
        ends = reached - self._own
        if target not in ends:
            return f"from {source!s} by {event!s} no way leads to {target!s}"
        if wrong := ends - {target, Phase.IDLE, Phase.THINKING}:
            return f"from {source!s} by {event!s} a way leads to {min(wrong)!s}, past {target!s}"
        return None


def find_reached(starts: Iterable[T], list_next: Callable[[T], Iterable[T]]) -> set[T]:
    """The starts, and all to which any number of steps lead from them."""
    reached = {*starts}
    waiting = [*reached]
    while waiting:
        new = {*list_next(waiting.pop())} - reached
        reached |= new
        waiting += new
    return reached
