"""What can happen next: the model's, a person's and the host's every move from a place."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple, cast

from modeshift.graph.approvals.ways import choose_way, find_switch_problem
from modeshift.graph.deps import AgentDeps
from modeshift.graph.facts import PLAN, enter_mode
from modeshift.graph.state import Switch
from modeshift.graph.think import find_approved_switch
from modeshift.modes.choice import Seen, choose
from modeshift.modes.errors import ModeshiftError
from modeshift.modes.machine import Configuration, IllegalEventError
from modeshift.modes.phases import Event, Phase
from modeshift.modes.policy import Approvals
from modeshift.proof.nodes import Nodes, Outside
from modeshift.proof.places import Pending, Place, build_state, read_facts
from modeshift.proof.seats import Seats

MANY = 10
"""Modes. Where there are more, the host sets no limit on the way: see ``prove``."""
POLICIES = tuple(policy.value for policy in Approvals)
DONE, SAID = Outside(), Outside(is_said=True)


class Move(NamedTuple):
    """One step of a thread."""

    who: str
    """``model``, ``person``, ``says`` (one who does not wait), ``host``, ``edge``, ``end`` of a
    sub-task; ``illegal``: it fails."""
    what: str
    to: Place


class Moves:
    """The moves from each place."""

    def __init__(self, deps: AgentDeps, seats: Seats, nodes: Nodes, *, is_exact: bool) -> None:
        """``is_exact``: what the host does is tried everywhere, not once in a seat."""
        self._deps = deps
        self._seats = seats
        self._nodes = nodes
        self._is_exact = is_exact
        self._machine = deps.machine
        self._valid: dict[Any, bool] = {}
        self._decided: dict[Any, list[tuple[Pending | None, bool, str]]] = {}
        self._limits = (None, *deps.catalog) if len(deps.catalog) <= MANY else ()
        self._by_phase: dict[str, Callable[[Place], Iterator[Move]]] = {
            Phase.IDLE: self._start,
            Phase.THINKING: self._think,
            Phase.REVIEWING: self._review,
            Phase.ACTING: self._act,
            Phase.SWITCHING: self._switch,
            Phase.COMPACTING: self._compact,
            Phase.RETURNING: self._end if is_exact else _nothing,
        }

    def from_(self, place: Place) -> Iterator[Move]:
        """Every move; one that fails is ``illegal``, and leads nowhere."""
        nodes = self._by_phase.get(place.phase, self._leave_own)
        yield from _guard(place, nodes(place))
        yield from _guard(place, self._set(place))

    def end(self, place: Place) -> Iterator[Move]:
        """A sub-task ends; the conversation that began it is the last in ``place.parents``."""
        return _guard(place, self._end(place))

    def _go(self, place: Place, seen: Seen) -> Place:
        """Where the events lead that the node of the place's phase chooses."""
        now = Configuration(place.mode, place.phase)
        for event in choose(Phase(place.phase), seen):
            now = self._send(now, event)
        return place._replace(phase=now.phase)

    def _send(self, now: Configuration, event: str, *target: Any) -> Configuration:
        after = self._machine.move(now, event, *target)
        if after is None:
            raise ModeshiftError(f"in the phase {now.phase!r} there is no event {event!s}")
        return after

    def _start(self, place: Place) -> Iterator[Move]:
        yield Move("person", "a person says something", self._nodes.run("intake", place, SAID))
        yield Move("host", "a run begins without a message", self._nodes.run("intake", place))

    def _think(self, place: Place) -> Iterator[Move]:
        in_subtask = place.task is not None
        yield Move("model", "the model answers", self._go(place, Seen(in_subtask=in_subtask)))
        asks = Seen(needs_person=True, in_subtask=in_subtask)
        yield Move("model", "the model asks for what needs a person", self._go(place, asks))
        yield Move(
            "model", "the model calls what needs nobody", self._go(place, Seen(has_calls=True))
        )
        full = self._go(place, Seen(needs_summary=True, in_subtask=in_subtask))
        yield Move("model", "the history is nearly full", full)
        if in_subtask:
            failed = self._go(place, Seen(has_failed=True, in_subtask=True))
            yield Move("model", "the sub-task's model fails", failed)
        yield from self._leave_own(place)

    def _review(self, place: Place) -> Iterator[Move]:
        key = place.mode, place.limit, place.depth, place.facts
        if key not in self._decided:
            wishes = [None, *self._list_approved(place)]
            self._decided[key] = [
                (switch, has_calls, _describe(switch, has_calls))
                for switch, has_calls in product(wishes, (False, True))
            ]
        answered = {place.facts, self._seats.answered(place)}
        for switch, has_calls, what in self._decided[key]:
            to = self._go(place, Seen(has_calls=has_calls, has_switch=switch is not None))
            who = "edge" if switch is not None and switch.how == "by edge" else "person"
            for facts in answered:
                yield Move(who, what, Place(*to[:4], switch, *to[5:7], facts))

    def _list_approved(self, place: Place) -> Iterator[Pending]:
        """What a person can approve; with a sub-task another one, in the exact exploration."""
        wishes = self._seats.wishes(place)
        tasks = [wish for wish in (*wishes.asked, *wishes.by_hand) if wish.is_task]
        yield from wishes.by_edge
        yield from wishes.by_hand
        for wish, approvals in product(wishes.asked, (None, *POLICIES)):
            yield wish._replace(approvals=approvals)
        if self._is_exact:
            asked = (
                wish._replace(approvals=policy) for wish in tasks for policy in (None, *POLICIES)
            )
            yield from (wish._replace(then=(task,)) for wish, task in product(asked, tasks))

    def list_following(self, place: Place) -> list[tuple[Pending, ...]]:
        """What may follow a sub-task that is begun here; the other half of the same."""
        return [(wish,) for wish in self._seats.wishes(place).asked if wish.is_task]

    def _act(self, place: Place) -> Iterator[Move]:
        in_subtask, has_switch = place.task is not None, place.switch is not None
        ends = [(True, False), (False, False), *([] if has_switch else [(False, True)])]
        for (has_calls, is_done), facts in product(ends, self._seats.outcomes(place)):
            to = self._go(
                place,
                Seen(has_calls, has_switch=has_switch, in_subtask=in_subtask, is_done=is_done),
            )
            what = "the model says that it is done" if is_done else "a call runs"
            yield Move("model", what, to._replace(facts=facts))

    def _switch(self, place: Place) -> Iterator[Move]:
        assert place.switch is not None
        target, is_task = place.switch.target, place.switch.is_task
        if self._is_valid(place):
            to = self._nodes.run("switch_mode", place)
            way = choose_way(cast("Switch", {"task": is_task, "how": place.switch.how}))
            values = self._seats.values(place)
            self._check(place, Event.SWITCH_MODE, to, way, values)
            verb = "the sub-task begins in" if is_task else "the mode is now"
            who = "edge" if place.switch.how == "by edge" else "person"
            yield Move(who, f"{verb} {target}", to)
        else:
            to = self._nodes.run("switch_mode", place, Outside(is_void=True))
            yield Move("model", f"the switch to {target} is void", to)

    def _is_valid(self, place: Place) -> bool:
        """Whether the switch is applied, and not dropped; asked of the real modes."""
        pending = place.switch
        key = place.mode, place.limit, place.facts, pending and (*pending[:2], pending.how)
        if key not in self._valid:
            state = build_state(self._deps, place)
            switch = find_approved_switch(self._deps, state)
            values = self._seats.values(place)
            self._valid[key] = switch is not None and not find_switch_problem(
                self._deps, state, switch, values
            )
        return self._valid[key]

    def _check(self, place: Place, event: Event, to: Place, *way: Any) -> None:
        """The chart of the real modes leads where the node does."""
        chart = self._send(Configuration(place.mode, place.phase), event, to.mode, *way)
        if chart != (to.mode, to.phase):
            raise ModeshiftError(f"the chart leads to {chart}, and the node to {to.mode!r}")

    def _compact(self, place: Place) -> Iterator[Move]:
        for is_turn in (True, False):
            yield Move("model", "the history is summarized", self._go(place, Seen(is_turn=is_turn)))

    def _end(self, place: Place) -> Iterator[Move]:
        for news in ((), ("mode",), ("approvals",)):
            to = self._nodes.run("end_subtask", place, Outside(news=news))
            self._check(place, Event.NEXT if to.switch else Event.RETURNED, to)
            what = "the sub-task ends" + (f"; the host has set the {news[0]} anew" if news else "")
            yield Move("host" if news else "end", what, to)
            grant = self._deps.catalog[to.mode].grant("edit")
            is_limited = grant is not None and grant.file_regex is not None
            if PLAN in self._seats.facts and is_limited and to.mode == place.parents[-1].mode:
                # Whichever file it wrote, and whoever wrote it for the sub-task.
                to = to._replace(facts=to.facts | {PLAN})
                yield Move("host" if news else "end", f"{what}, and has written a plan", to)

    def _leave_own(self, place: Place) -> Iterator[Move]:
        """The events of the clone's own; behind a node of its own, which may run a command."""
        is_own = place.phase not in list(Phase)
        for source, event in self._deps.chart.targets:
            if source == place.phase and (is_own or event not in list(Event)):
                now = self._send(Configuration(place.mode, place.phase), event)
                for facts in self._seats.outcomes(place) if is_own else [place.facts]:
                    to = place._replace(phase=now.phase, facts=facts)
                    yield Move("model", f"the node sends {event}", to)

    # The host, and a person who does not wait.

    def _set(self, place: Place) -> Iterator[Move]:
        others = [slug for slug in self._deps.catalog if slug != place.mode]
        policies = [policy for policy in POLICIES if policy != place.approvals]
        is_free = self._is_exact or place.limit is None  # else the way to another is by none
        limits = [limit for limit in (self._limits if is_free else (None,)) if limit != place.limit]
        for limit in limits:
            yield Move("host", f"the host sets the limit {limit}", place._replace(limit=limit))
        for policy in policies:
            what, to = f"the host sets approvals {policy}", place._replace(approvals=policy)
            yield Move("host", what, to)
            is_kept = place.phase in (Phase.REVIEWING, Phase.ACTING, Phase.SWITCHING)
            if is_kept or self._is_exact:
                to = self._nodes.run("intake", to, Outside(news=("approvals",)))
                yield Move("host", f"{what} during the run", to)
        # Elsewhere it leads to where the mode's own turn leads, too.
        for slug in others if self._is_exact or place.phase == Phase.IDLE else ():
            yield from self._set_mode(place, slug)
        if self._is_exact or place.phase in (Phase.IDLE, Phase.THINKING):
            yield from self._interrupt(place, others)
        if self._is_exact or place.phase in (Phase.THINKING, Phase.SWITCHING):
            to = self._nodes.run("intake", place, SAID)
            yield Move("says", "a person says something else", to)

    def _set_mode(self, place: Place, slug: str) -> Iterator[Move]:
        """The host writes the mode into the state, and the run goes on where it was."""
        # Every node but ``act`` enters it first; what holds of the old one decides nothing there.
        entered = read_facts(enter_mode(build_state(self._deps, place))) & self._seats.facts
        what, to = f"the host sets the mode {slug}", place._replace(mode=slug, facts=entered)
        outside = Outside(before=place.mode)
        if place.phase == Phase.REVIEWING:
            to = self._go(to, Seen())
        elif place.phase == Phase.SWITCHING:
            to = self._nodes.run("switch_mode", to, outside)
        elif place.phase == Phase.RETURNING:
            if not self._is_exact:  # as where the host has set a mode before
                return
            to = self._nodes.run("end_subtask", to, outside)
        elif place.phase == Phase.IDLE:
            to = self._nodes.run("intake", to, outside)
        elif place.phase == Phase.ACTING:  # behind the calls the switch is void
            to = to._replace(switch=None)
        yield Move("host", what, to)

    def _interrupt(self, place: Place, others: list[str]) -> Iterator[Move]:
        """What ``intake`` takes in; it leads to the same place from every phase of a turn."""
        intake = self._nodes.run
        for slug in others:
            outside = Outside(news=("mode",), before=place.mode)
            to = intake("intake", place._replace(mode=slug), outside)
            yield Move("host", f"the host sets the mode {slug}", to)
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


def _nothing(_: Place) -> Iterator[Move]:
    return iter(())


def _describe(switch: Pending | None, has_calls: bool) -> str:
    if switch is None:
        return "a person approves a call" if has_calls else "a person says no"
    what = f"a sub-task in {switch.target}" if switch.is_task else f"the switch to {switch.target}"
    policy = f", with approvals {switch.approvals}" if switch.approvals else ""
    then = f", and then in {switch.then[0].target}" if switch.then else ""
    who = {"by edge": "nobody is asked about", "by hand": "a person chooses"}
    verb = who.get(switch.how, "a person approves")
    return f"{verb} {what}{policy}{then}" + (" behind a call" if has_calls else "")
