"""``Reach``: finds the places from which a thread cannot get to a goal without the host."""

from collections import defaultdict
from collections.abc import Callable, Iterator

from modeshift.modes.phases import Phase
from modeshift.proof.explore import Exploration
from modeshift.proof.moves import Move
from modeshift.proof.places import Frame, Place, Task


class Reach:
    """The steps of the model and of persons between the places that an exploration keeps.

    A sub-task returns to the conversation that began it, with what that had, and only by an end
    that such a sub-task can have: the exploration knows callers, and no stacks.
    """

    def __init__(self, exploration: Exploration) -> None:
        self._exploration = exploration
        self._next = defaultdict[Place, set[Place]](set)
        """The next places of each, without steps into and out of a sub-task."""
        self._calls: dict[Place, list[tuple[Place, Frame]]] = {}
        """The conversations that begin a sub-task, by the place in which it begins."""
        self._ends: dict[Place, dict[tuple[Task, Frame], Place]] = {}
        """By the place of its end under no limit: where each one goes on that began it."""

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
        """The places from which no goal can be reached."""
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
        """Where the conversations go on that may have begun the sub-task that ends here."""
        if place.phase != Phase.RETURNING:
            return []
        ends = {*self._ends.get(place._replace(limit=None), {}).values()}
        return [to._replace(limit=place.limit) for to in ends]

    def _add_returns(self) -> None:
        """Add a step over each sub-task, the deepest first."""
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
