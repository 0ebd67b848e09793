"""``Moves``: what the model, a person and the host can do next in a place."""

from collections.abc import Callable, Iterator
from itertools import chain, product
from typing import Any, NamedTuple

from modeshift.calls.turn_end import end_turn
from modeshift.modes.chart import ENGINE_NODES
from modeshift.modes.errors import ModeshiftError
from modeshift.modes.machine import Configuration, IllegalEventError
from modeshift.modes.phases import Event, Phase, Seen, choose
from modeshift.proof.decisions import POLICIES, Decided
from modeshift.proof.nodes import NODES, Nodes, Outside
from modeshift.proof.places import Place, Task, build_state, read_true_facts
from modeshift.proof.seats import PHASES, Seats
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import PLAN, enter_mode

_NODE_OF = {**ENGINE_NODES, Phase.IDLE: "intake"}
MANY = 10
"""With more modes than this, the host sets no limit on the way: see ``prove``."""
_EVENTS = frozenset(Event)
DONE, SAID = Outside(), Outside(is_said=True)
WHO = frozenset({"model", "person", "says", "host", "edge", "end", "illegal"})


class Move(NamedTuple):
    """One step of a thread."""

    who: str
    """``model``, ``person``, ``says`` (one who does not wait), ``host``, ``edge``, ``end`` of a
    sub-task; ``illegal``: it fails."""
    what: str
    to: Place
    given: Place | None = None
    """The place with what the host has set, or a person has decided: ``to`` is what the engine
    makes of it."""


class Moves:
    """The moves from each place."""

    def __init__(self, deps: AgentDeps, seats: Seats, nodes: Nodes, *, is_exact: bool) -> None:
        """``is_exact``: what the host can do is tried in each place, not once in a seat."""
        self._deps = deps
        self._seats = seats
        self._nodes = nodes
        self._real = Nodes(deps, seats.facts, is_direct=True)
        self._is_exact = is_exact
        self._valid: dict[object, bool] = {}
        planning = deps.catalog.values() if PLAN in seats.facts else ()
        self._planning = {mode.slug for mode in planning if mode.edit_limit}
        """The modes in which a sub-task's plan counts."""
        self._limits = (None, *deps.catalog) if len(deps.catalog) <= MANY else ()
        self._by_phase: dict[str, Callable[[Place], Iterator[Move]]] = {
            Phase.IDLE: self._start,
            Phase.THINKING: self._think,
            Phase.REVIEWING: self._review,
            Phase.ACTING: self._act,
            Phase.SWITCHING: self._switch,
            Phase.COMPACTING: self._compact,
            Phase.RETURNING: self._end if is_exact else lambda _: iter(()),
        }

    def from_(self, place: Place) -> Iterator[Move]:
        """Every move; one that fails is ``illegal``, and leads nowhere."""
        nodes = self._by_phase.get(place.phase, self._leave_own)
        return chain(_guard(place, nodes(place)), _guard(place, self._set(place)))

    def end(self, place: Place) -> Iterator[Move]:
        """A sub-task ends; the conversation that began it is the last in ``place.parents``."""
        return _guard(place, self._end(place))

    def _go(self, place: Place, seen: Seen) -> Place:
        """Where the events lead that the node of this phase chooses."""
        now = Configuration(place.mode, place.phase)
        for event in choose(Phase(place.phase), seen):
            now = self._send(now, event)
        return place._replace(phase=now.phase)

    def _end_turn(self, to: Place) -> Place:
        """The place, or where the end of a turn leads from it."""
        if to.phase != Phase.IDLE or self._deps.catalog[to.mode].then is None:
            return to
        now = Configuration(to.mode, to.phase)
        update = end_turn(self._deps, build_state(self._deps, to), now)
        facts = read_true_facts(update["facts"]) & self._seats.facts if update else to.facts
        return to._replace(mode=update.get("mode", to.mode), facts=facts)

    def _send(self, now: Configuration, event: str, *target: Any) -> Configuration:
        if (now.phase, event) not in self._deps.chart.targets:
            raise ModeshiftError(f"in the phase {now.phase!r} there is no event {event!s}")
        return self._deps.machine.send(now, event, *target)

    def _start(self, place: Place) -> Iterator[Move]:
        yield Move("person", "a person says something", self._nodes.run("intake", place, SAID))
        yield Move("host", "a run begins without a message", self._nodes.run("intake", place))

    def _think(self, place: Place) -> Iterator[Move]:
        seen = Seen(in_subtask=place.task is not None)
        yield Move("model", "the model answers", self._end_turn(self._go(place, seen)))
        others = {
            "the model asks for what needs a person": seen._replace(needs_person=True),
            "the model calls what needs nobody": seen._replace(has_calls=True),
            "the history is nearly full": seen._replace(needs_summary=True),
        }
        if place.task is not None:
            others["the sub-task's model fails"] = seen._replace(has_failed=True)
        for what, other in others.items():
            yield Move("model", what, self._go(place, other))
        yield from self._leave_own(place)

    def _review(self, place: Place) -> Iterator[Move]:
        answered = {place.facts, self._seats.answered(place)}
        for decided in self._list_decided(place):
            now = self._send(Configuration(place.mode, place.phase), decided.event)
            given = place._replace(switch=decided.meant)
            who = decided.meant.who if decided.meant else "person"
            for facts in answered:
                to = place._replace(phase=now.phase, switch=decided.switch, facts=facts)
                yield Move(who, decided.what, to, given)

    def _list_decided(self, place: Place) -> Iterator[Decided]:
        """All decisions; in the exact exploration also on two sub-tasks at once."""
        yield from self._seats.decided(place)
        tasks = self._seats.tasks(place) if self._is_exact else []
        policies, events = (None, *POLICIES), (Event.SWITCH, Event.ACT)
        for first, then, policy, event in product(tasks, tasks, policies, events):
            switch = first._replace(approvals=policy, then=(then,))
            yield Decided(f"a person approves {switch}, and {then}", event, switch, switch)

    def _act(self, place: Place) -> Iterator[Move]:
        ends = [(True, False), (False, False), *([] if place.switch else [(False, True)])]
        for has_calls, is_done in ends:
            to = self._nodes.run("act", place, Outside(has_calls=has_calls, is_done=is_done))
            what = "the model says that it is done" if is_done else "a call runs"
            for facts in self._seats.outcomes(place):
                yield Move("model", what, self._end_turn(to._replace(facts=facts)))

    def _switch(self, place: Place) -> Iterator[Move]:
        assert place.switch is not None
        target = place.switch.target
        to = self._nodes.run("switch_mode", place)
        if self._is_valid(place, to):
            verb = "the sub-task begins in" if place.switch.is_task else "the mode is now"
            yield Move(place.switch.who, f"{verb} {target}", to)
        else:
            to = self._nodes.run("switch_mode", place, Outside(is_void=True))
            yield Move("model", f"the switch to {target} is void", to)

    def _is_valid(self, place: Place, to: Place) -> bool:
        """Whether the node leads there on the real modes, too, or drops the switch."""
        pending = place.switch
        switch = pending and pending._replace(approvals=None, then=())
        key = place.mode, place.limit, place.facts, switch
        if key not in self._valid:
            real = self._real.run("switch_mode", place)
            self._valid[key] = (real.mode, real.depth) == (to.mode, to.depth)
        return self._valid[key]

    def _check(self, place: Place, event: Event, to: Place) -> None:
        """Check that the chart of the real modes leads where the node does."""
        chart = self._send(Configuration(place.mode, place.phase), event, to.mode)
        if chart != (to.mode, to.phase):
            raise ModeshiftError(f"the chart leads to {chart}, and the node to {to.mode!r}")

    def _compact(self, place: Place) -> Iterator[Move]:
        for is_turn in (True, False):
            yield Move("model", "the history is summarized", self._go(place, Seen(is_turn=is_turn)))

    def _end(self, place: Place) -> Iterator[Move]:
        task = place.task or Task(place.mode, place.approvals, 0)
        # As if the sub-task had begun with something else: what the host has set stays.
        begun = {"": task, "mode": task._replace(mode=""), "approvals": task._replace(approvals="")}
        for name, began in begun.items():
            to = self._nodes.run("end_subtask", place, Outside(name, getattr(place, name, None)))
            given = place._replace(task=began)
            self._check(place, Event.NEXT if to.switch else Event.RETURNED, to)
            what = "the sub-task ends" + (f"; the host has set the {name} anew" if name else "")
            yield Move("host" if name else "end", what, to, given)
            if to.mode in self._planning and to.mode == place.parents[-1].mode:
                # Whichever file it wrote, and whoever wrote it for the sub-task.
                to = to._replace(facts=to.facts | {PLAN})
                yield Move("host" if name else "end", f"{what}, and has written a plan", to, given)

    def _leave_own(self, place: Place) -> Iterator[Move]:
        """The clone's own events, after a node of its own, which may run a command."""
        is_own = place.phase not in PHASES
        for source, event in self._deps.chart.targets:
            if source == place.phase and (is_own or event not in _EVENTS):
                now = self._send(Configuration(place.mode, place.phase), event)
                for facts in self._seats.outcomes(place) if is_own else [place.facts]:
                    to = place._replace(phase=now.phase, facts=facts)
                    yield Move("model", f"the node sends {event}", self._end_turn(to))

    # The host, and a person who does not wait.

    def _set(self, place: Place) -> Iterator[Move]:
        others = [slug for slug in self._deps.catalog if slug != place.mode]
        policies = [policy for policy in POLICIES if policy != place.approvals]
        is_free = self._is_exact or place.limit is None  # else the way to another is by none
        limits = [limit for limit in (self._limits if is_free else (None,)) if limit != place.limit]
        for limit in limits:
            given = place._replace(limit=limit)
            yield Move("host", f"the host sets the limit {limit}", given, given)
            if limit == limits[0] and place.limit is None:
                to = self._nodes.run("intake", place, Outside("limit", limit))
                yield Move("host", f"the host sets the limit {limit} during the run", to, given)
        # The host's setting wins over what a person has chosen with an earlier switch.
        later = place
        if place.switch is not None and place.switch.approvals is not None:
            later = place._replace(switch=place.switch._replace(approvals=None))
        for policy in policies:
            what, given = f"the host sets approvals {policy}", later._replace(approvals=policy)
            yield Move("host", what, given, given)
            if is_free:
                to = self._nodes.run("intake", place, Outside("approvals", policy))
                yield Move("host", f"{what} during the run", to, given)
        # Elsewhere it leads to where the mode's own turn leads, too.
        is_all = self._is_exact or place.phase == Phase.IDLE
        is_some = place.limit is None and place.phase in (Phase.REVIEWING, Phase.SWITCHING)
        some = (*others[:1], place.switch and place.switch.target) if is_some else ()
        for slug in (slug for slug in others if is_all or slug in some):
            yield from self._set_mode(place, slug)
        if self._is_exact or place.phase in (Phase.IDLE, Phase.THINKING):
            yield from self._interrupt(place, others)
        if self._is_exact or place.phase in (Phase.THINKING, Phase.SWITCHING):
            to = self._nodes.run("intake", place, SAID)
            yield Move("says", "a person says something else", to)

    def _set_mode(self, place: Place, slug: str) -> Iterator[Move]:
        """The host writes the mode into the state, and the run goes on where it was."""
        given, node = place._replace(mode=slug), _NODE_OF.get(place.phase)
        if node in NODES:  # to which it matters
            to = self._nodes.run(node, given, Outside(before=place.mode))
        else:  # the next node but ``act`` enters it; behind the calls the switch is void
            entered = (
                read_true_facts(enter_mode(build_state(self._deps, place))) & self._seats.facts
            )
            to = given._replace(facts=entered, switch=None)
        yield Move("host", f"the host sets the mode {slug}", to, given)

    def _interrupt(self, place: Place, others: list[str]) -> Iterator[Move]:
        """What ``intake`` takes in; it leads to the same place from every phase of a turn."""
        intake = self._nodes.run
        for slug in others:
            to, given = (intake("intake", place, Outside("mode", slug)), place._replace(mode=slug))
            yield Move("host", f"the host sets the mode {slug}", to, given)
        summary = intake("intake", place, Outside(wants_summary=True))
        yield Move("host", "the host wants a summary", summary)
        if place.task is not None:
            stopped = intake("intake", place, Outside(is_stopped=True))
            yield Move("host", "a person stops the sub-task", stopped)


def _guard(place: Place, moves: Iterator[Move]) -> Iterator[Move]:
    try:
        yield from moves
    except (ModeshiftError, IllegalEventError, StopIteration) as error:
        yield Move("illegal", f"{type(error).__name__}: {error}", place)
