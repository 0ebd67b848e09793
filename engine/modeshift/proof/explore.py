"""``Exploration``: the places that can be reached, or as many as show all that can happen."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from modeshift.modes.chart import find_reached
from modeshift.modes.phases import Phase
from modeshift.proof.decisions import POLICIES
from modeshift.proof.moves import MANY, Move, Moves
from modeshift.proof.nodes import Nodes
from modeshift.proof.places import Frame, Place, Task, describe_start, drop_parents
from modeshift.proof.seats import Seats
from modeshift.threads.deps import AgentDeps

Watch = Callable[[Place, Move, Place, Place], bool]
"""Gets each move, with the places kept for its start and its end; returns whether to stop."""


_BY_FACTS = (Phase.THINKING, Phase.REVIEWING, Phase.SWITCHING)


class Exploration:
    """A breadth-first walk over places.

    Unless ``is_exact``, a sub-task knows that a conversation waits for it, but not which one: what
    happens in it depends only on how it began. At its end, all go on that began one like it.
    """

    def __init__(
        self, deps: AgentDeps, facts: frozenset[str] = frozenset(), *, is_exact: bool = False
    ) -> None:
        # The place itself says whether the test files have changed.
        tests = deps.tests and deps.tests.model_copy(update={"files": ()})
        self.deps = deps = replace(deps, tests=tests)
        self.seats = Seats(deps, facts)
        self._is_exact = is_exact
        self._is_many = len(deps.catalog) > MANY and not is_exact
        self._moves = Moves(deps, self.seats, Nodes(deps, facts), is_exact=is_exact)
        self.places: dict[Place, tuple[Place, Move] | None] = {}
        """The places, each with the move that led to it first."""
        self.transitions = 0
        self._of_workspace = {name for name in facts if deps.facts[name].scope == "workspace"}
        self._callers: dict[Task, dict[Frame, None]] = {}
        self._ends: dict[Task, list[Place]] = {}
        self._waiting: deque[tuple[Place, Frame | None]] = deque()
        self._any = Frame(deps.catalog.default, deps.approvals.value, None, ())

    def list_seats(self) -> Iterator[Place]:
        """With many modes: a thread in each mode, at each depth, with all facts that can hold."""
        deps, facts = self.deps, self.seats.free_facts()
        depths = range(1, deps.subtask_depth + 1)
        for slug in deps.catalog:
            modes = (slug, self._find_other(slug))
            tasks = [None, *(Task(*task) for task in product(modes, POLICIES, depths))]
            for policy, task, true in product(POLICIES, tasks, facts):
                yield Place(slug, Phase.THINKING, None, policy, None, task, (), true)

    def _find_other(self, slug: str) -> str:
        return next(other for other in self.deps.catalog if other != slug)

    def _keep(self, place: Place) -> Place:
        """The kept place that stands for this one."""
        if self._is_exact:
            return place
        if self._is_many:
            # Of the mode that a sub-task began in it matters whether it is still in it; while
            # calls run, in a sub-task's end and between turns, any facts can come to hold.
            task = place.task
            if task is not None and task.mode != place.mode:
                task = task._replace(mode=self._find_other(place.mode))
            facts = place.facts if place.phase in _BY_FACTS else frozenset[str]()
            if task or facts != place.facts:
                place = place._replace(task=task, facts=facts)
        return drop_parents(place)

    def run(self, watch: Watch | None = None, most: int | None = None) -> bool:
        """Explore from a new thread in each mode; whether ``watch`` has stopped it."""
        for slug in self.deps.catalog:
            self._reach(Place(slug, Phase.IDLE, None, self.deps.approvals.value), None)
        for place in self.list_seats() if self._is_many else ():
            self._reach(place, None)
        while self._waiting and (most is None or len(self.places) < most):
            bare, frame = self._waiting.popleft()
            if bare.depth > self.deps.subtask_depth:  # which breaks a property, and may go on so
                continue
            place = bare
            if bare.task is not None and not self._is_exact:
                place = bare._replace(parents=(frame or self._any,))
            for move in self._moves.from_(place) if frame is None else self._moves.end(place):
                self.transitions += 1
                if len(move.to.parents) > len(place.parents):
                    self._note_call(place, move.to)
                to = self._keep(move.to)
                self._reach(to, (bare, move))
                if watch is not None and watch(place, move, bare, to):
                    return True
        return False

    def trace(self, place: Place) -> tuple[list[Place], list[str]]:
        """The places on the way from a new thread, and the steps."""
        places, steps = [place], list[str]()
        while (via := self.places[places[-1]]) is not None:
            before, move = via
            places.append(before)
            steps.append(move.what)
        steps.append(describe_start(places[-1]))
        return places[::-1], steps[::-1]

    def _reach(self, place: Place, via: tuple[Place, Move] | None) -> None:
        if place in self.places:
            return
        self.places[place] = via
        self._waiting.append((place, None))
        # Under a limit it ends in the same way: the host can set that limit afterwards.
        is_end = place.phase == Phase.RETURNING and place.limit is None
        if is_end and place.task is not None and not self._is_exact:
            self._ends.setdefault(place.task, []).append(place)
            self._waiting.extend((place, frame) for frame in self._callers.get(place.task, ()))

    def _note_call(self, place: Place, to: Place) -> None:
        if self._is_exact or to.task is None:
            return
        callers = self._callers.setdefault(to.task, {})
        for then in ((), tuple(self.seats.tasks(place)[:1])):
            frame = self.forget(to.parents[-1])._replace(then=then)
            if frame not in callers:
                callers[frame] = None
                self._waiting.extend((end, frame) for end in self._ends.get(to.task, ()))

    def forget(self, frame: Frame) -> Frame:
        """The frame without what no longer matters when the sub-task ends."""
        # What holds of the workspace is then what the sub-task knows.
        facts = frozenset[str]() if self._is_many else frame.facts - self._of_workspace
        return frame._replace(then=(), facts=facts)


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
        goals = filter(goal, self._exploration.places)
        reached = find_reached(goals, lambda place: before.get(place, ()))
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
            inside = find_reached([begin], lambda place: self._next.get(place, ()))
            for end in (place for place in inside if place.phase == Phase.RETURNING):
                ends = self._ends.get(end._replace(limit=None), {})
                for caller, frame in self._calls[begin]:
                    assert begin.task is not None
                    if (to := ends.get((begin.task, frame))) is not None:
                        self._next[caller].add(to._replace(limit=caller.limit))
