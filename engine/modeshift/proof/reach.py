"""``Reach``: where a thread can come to without the host, for what must be reached."""

from collections import defaultdict
from collections.abc import Callable, Iterator

from modeshift.modes.phases import Phase
from modeshift.proof.explore import Exploration
from modeshift.proof.moves import Move
from modeshift.proof.places import Frame, Place, Task


class Reach:
    """The steps of the model and of persons, as places are kept in an exploration.

    A sub-task comes back to the conversation that began it, with what that had, and only as it
    can end that begins so: with callers instead of stacks, no other end is its own.
    """

    def __init__(self, exploration: Exploration) -> None:
        self._exploration = exploration
        self._next = defaultdict[Place, set[Place]](set)
        """Without a sub-task's beginning and end."""
        self._calls: dict[Place, list[tuple[Place, Frame]]] = {}
        """By the place in which a sub-task begins: who begins it."""
        self._ends: dict[Place, dict[tuple[Task, Frame], Place]] = {}
        """Where it ends under no limit: where who began it goes on."""

    def note(self, place: Place, move: Move, bare: Place, to: Place) -> None:
        """Add a step, as ``Exploration`` shows it."""
        if to.task is not None and to.depth > place.depth:
            frame = self._exploration.forget(move.to.parents[-1])
            self._calls.setdefault(to, []).append((bare, frame))
        elif move.who == "end" and place.task is not None:
            self._ends.setdefault(bare, {})[place.task, place.parents[-1]] = to
        elif move.who not in ("end", "says"):
            self._next[bare].add(to)

    def list_stuck(self, goal: Callable[[Place], bool]) -> Iterator[Place]:
        """The places from which none is reached that is a goal."""
        self._add_returns()
        before = dict[Place, list[Place]]()
        for place in self._exploration.places:
            for to in (*self._next.get(place, ()), *self._list_ends(place)):
                before.setdefault(to, []).append(place)
        reached = {place for place in self._exploration.places if goal(place)}
        waiting = [*reached]
        while waiting:
            new = {*before.get(waiting.pop(), ())} - reached
            reached |= new
            waiting += new
        yield from (place for place in self._exploration.places if place not in reached)

    def _list_ends(self, place: Place) -> list[Place]:
        """Where any goes on that may have begun the sub-task that ends here."""
        if place.phase != Phase.RETURNING:
            return []
        ends = {*self._ends.get(place._replace(limit=None), {}).values()}
        return [to._replace(limit=place.limit) for to in ends]

    def _add_returns(self) -> None:
        """Steps over each sub-task, the deepest ones first."""
        for begin in sorted(self._calls, key=lambda place: -place.depth):
            for end in self._find_ends(begin):
                ends = self._ends.get(end._replace(limit=None), {})
                for caller, frame in self._calls[begin]:
                    assert begin.task is not None
                    if (to := ends.get((begin.task, frame))) is not None:
                        after = to._replace(limit=caller.limit)
                        self._next[caller].add(after)

    def _find_ends(self, begin: Place) -> Iterator[Place]:
        """How a sub-task can end that begins in this place."""
        seen, waiting = {begin}, [begin]
        while waiting:
            place = waiting.pop()
            if place.phase == Phase.RETURNING:
                yield place
            new = self._next.get(place, set()) - seen
            seen |= new
            waiting += new
