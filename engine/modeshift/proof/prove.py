"""``prove``: explores, checks each property, and finds the shortest way to break one.

The owner's properties are in ``modes/properties.yaml``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Annotated, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Tag,
    TypeAdapter,
    ValidationError,
)

from modeshift.modes.edges.edge_table import Edge, Way
from modeshift.modes.edges.edges import check_condition, parse_condition
from modeshift.modes.errors import ConfigurationError, describe_misfit
from modeshift.modes.phases import Event, Phase
from modeshift.modes.plain_data import JsonObject, parse_data
from modeshift.modes.policy import Approvals, only_looks
from modeshift.proof.explore import Exploration, Reach
from modeshift.proof.moves import MANY, WHO, Move
from modeshift.proof.places import Place, describe, describe_start, drop_parents
from modeshift.proof.properties import BUILT_IN, ENTERS, MoveCheck, Property, find_beyond
from modeshift.proof.seats import Seats
from modeshift.threads.deps import AgentDeps


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _NeverBound(_Data):
    mode: str
    bound: str


class _Enter(_Data):
    enter: str
    must: Annotated[str, AfterValidator(check_condition)]


class _Gain(_Data):
    gain: str
    must: Annotated[str, AfterValidator(check_condition)]


class _Never(_Data):
    never: _NeverBound


class _Before(_Data):
    before: _Enter | _Gain


class _Always(_Data):
    always_reachable: str


def get_first_key(value: object) -> str:
    """The first key, by which a property that does not fit is told."""
    return str(next(iter(value), None)) if isinstance(value, dict) else repr(value)


_Property = Annotated[
    Annotated[_Never, Tag("never")]
    | Annotated[_Before, Tag("before")]
    | Annotated[_Always, Tag("always_reachable")],
    Discriminator(get_first_key),
]
_FILE: TypeAdapter[list[_Property]] = TypeAdapter(list[_Property])


class Own(NamedTuple):
    """A property that the owner has written."""

    kind: str
    """``never``, ``before`` or ``always_reachable``."""
    values: Mapping[str, str]

    def __str__(self) -> str:
        if self.kind == "always_reachable":
            return f"{self.kind}: {self.values['mode']}"
        named = ", ".join(f"{key}: {value}" for key, value in self.values.items())
        return f"{self.kind}: {{{named}}}"


def read_own(deps: AgentDeps, text: str, name: str) -> list[Own]:
    """The properties in the file ``name``; raises ``ConfigurationError``."""
    try:
        entries = _FILE.validate_python(parse_data(text, name) or [])
    except ValidationError as error:
        example = "'- never: {mode: ask, bound: edit}', or before, or always_reachable"
        raise ConfigurationError(
            f"{name}: {describe_misfit(error)}; it is a list such as {example}"
        ) from error
    properties = list[Own]()
    for entry in entries:
        ((kind, value),) = entry.model_dump().items()
        values = {"mode": value} if isinstance(value, str) else value
        properties.append(Own(kind, values))
        _check_names(deps, values, name)
    return properties


def _check_names(deps: AgentDeps, values: JsonObject, name: str) -> None:
    groups = {spec.group for spec in deps.toolbox.specs if spec.group is not None}
    tools = [*sorted(groups), *(spec.name for spec in deps.toolbox.specs)]
    modes, facts = [*deps.catalog], [*deps.facts]
    known = {"mode": modes, "enter": modes, "bound": tools, "gain": tools}
    for key, value in values.items():
        named = parse_condition(value).facts if key == "must" else [value]
        for word in named:
            if word not in (there := known.get(key, facts)):
                raise ConfigurationError(
                    f"{name}: unknown {key} {word!r}; there are: {', '.join(there)}"
                )


def build_own(own: Own) -> Property:
    """The check of a property of the owner's."""
    values, name = own.values, str(own)
    if own.kind == "always_reachable":
        slug = values["mode"]
        return Property(
            name,
            must_reach=lambda place: place.mode == slug and place.task is None,
            applies=lambda seats, place: (
                find_beyond(seats, place, seats.deps.catalog[slug]) is None
            ),
        )
    if own.kind == "never":

        def is_bound(seats: Seats, place: Place) -> str | None:
            bound = _list_bound(seats, place, values["bound"])
            return f"{bound[0]} is bound" if place.mode == values["mode"] and bound else None

        return Property(name, of_seat=is_bound)
    return Property(name, _build_before(values), whose=("person", "edge", "model"))


def _build_before(values: Mapping[str, str]) -> MoveCheck:
    condition = parse_condition(values["must"])

    def comes_too_early(seats: Seats, place: Place, move: Move) -> str | None:
        if place.switch is not None and place.switch.how == "by hand":
            return None
        if "enter" in values:
            is_due = place.mode != move.to.mode == values["enter"]
        else:
            before = _list_bound(seats, place, values["gain"])
            is_due = bool(_list_bound(seats, move.to, values["gain"])) and not before
        if is_due and not condition.holds(seats.values(place)):
            return f"{move.to.mode} is entered, and `{values['must']}` does not hold"
        return None

    return comes_too_early


def _list_bound(seats: Seats, place: Place, what: str) -> list[str]:
    """The model's tools of this group or name, without those of a group that only read here."""
    seat = seats.deps.seat(place.mode, place.limit, place.depth)
    specs = [seats.deps.toolbox[name].spec for name in seat.tools]
    return [
        tool.name
        for tool in specs
        if what == tool.name or (tool.group == what and not only_looks(seat.mode, tool))
    ]


MAX_DEPTH = 2
"""How deep sub-tasks are explored; those deeper down can do no more."""
MOST = 20_000
"""How many places are searched for the shortest way."""
EDGES = "every edge can be taken"


@dataclass
class PropertyResult:
    """Whether a property holds, and if not, why and by which steps."""

    name: str
    problem: str = ""
    steps: list[str] = field(default_factory=list)


@dataclass
class Proof:
    """What was explored, and whether the properties hold."""

    configurations: int
    transitions: int
    reduction: str
    results: list[PropertyResult]

    @property
    def holds(self) -> bool:
        """Whether every property holds."""
        return not any(result.problem for result in self.results)


class _Observer:
    """Checks each move against the properties, and keeps what those of all places need."""

    def __init__(self, exploration: Exploration, properties: Sequence[Property]) -> None:
        self._seats = exploration.seats
        self._places = exploration.places
        self._of_move = {
            who: [
                (rule.name, rule.of_move)
                for rule in properties
                if rule.of_move and who in rule.whose
            ]
            for who in WHO
        }
        self._of_seat = [(rule.name, rule.of_seat) for rule in properties if rule.of_seat]
        self._seen = set[tuple[str, str | None, str, int]]()
        self.problems: dict[str, tuple[str, Place, list[str]]] = {}
        """By property, why it is broken, and in which place by which steps."""
        self.reach = Reach(exploration)
        self.phases = set[tuple[str, str]]()
        self.entered = set[tuple[str, str, bool]]()

    def watch(self, place: Place, move: Move, bare: Place, to: Place) -> bool:
        """Check a move, and a seat that is new; returns False, so that all others are checked."""
        self.phases.add((place.phase, to.phase))
        if move.who != "host":
            self.reach.note(place, move, bare, to)
        switch = place.switch if move.who in ("person", "edge") else None
        if switch is not None and place.phase == Phase.SWITCHING and switch.how != "by hand":
            self.entered.add((place.mode, to.mode, switch.is_task))
        if move.to is not move.given:
            for name, check in self._of_move[move.who]:
                if (problem := check(self._seats, place, move)) is not None:
                    self.problems.setdefault(name, (problem, bare, [move.what]))
        via, seat = self._places[to], (to.mode, to.limit, to.approvals, to.depth)
        if (via is None or via[1] is move) and seat not in self._seen:
            self._seen.add(seat)
            for name, check_seat in self._of_seat:
                if (problem := check_seat(self._seats, to)) is not None:
                    self.problems.setdefault(name, (problem, bare, [move.what]))
        return False


def prove(deps: AgentDeps, own: Sequence[Own] = ()) -> Proof:
    """Explore every configuration of these modes, and check the properties in them."""
    properties = [*BUILT_IN, *map(build_own, own)]
    deps = replace(deps, subtask_depth=min(deps.subtask_depth, MAX_DEPTH))
    exploration = Exploration(deps, find_facts(deps, own))
    observer = _Observer(exploration, properties)
    exploration.run(observer.watch)
    if len(deps.catalog) > MANY:
        observer.problems |= _check_limits(exploration.seats, properties)
    problems = observer.problems
    for rule in properties:
        if rule.must_reach is not None:
            stuck = (
                place
                for place in observer.reach.list_stuck(rule.must_reach)
                if rule.applies(exploration.seats, place)
            )
            if (place := next(stuck, None)) is not None:
                problems[rule.name] = f"not from {describe(place)}", place, []
    results = [PropertyResult(rule.name) for rule in properties]
    for result in results:
        if result.name in problems:
            result.problem, place, last = problems[result.name]
            result.steps = [*find_steps(deps, exploration, place), *last]
    untaken = list(_list_untaken(deps, observer))
    results.insert(len(BUILT_IN), PropertyResult(EDGES, "; ".join(untaken)))
    reduction = "callers instead of stacks, the host once in a seat, modes that nodes cannot tell"
    if len(deps.catalog) > MANY:
        reduction = (
            "every mode, depth and approvals is a start, under every limit for one step, with "
            "whatever facts can come to hold: a way shown may begin where no thread comes"
        )
    return Proof(len(exploration.places), exploration.transitions, reduction, results)


def _check_limits(
    seats: Seats, properties: Sequence[Property]
) -> dict[str, tuple[str, Place, list[str]]]:
    """Check each mode under each limit, as if a thread began there: one step is enough."""
    problems: dict[str, tuple[str, Place, list[str]]] = {}
    for mode, limit in product(seats.deps.catalog, seats.deps.catalog):
        start = Place(mode, Phase.IDLE, None, Approvals.AUTO)
        place = Place(mode, Phase.THINKING, limit, Approvals.AUTO)
        last = [f"the host sets the limit {limit}"]
        for rule in properties:
            if rule.of_seat is not None and (problem := rule.of_seat(seats, place)):
                problems.setdefault(rule.name, (problem, start, last))
        if mode not in (seats.deps.catalog.default, limit):  # any is chosen by hand from these
            continue
        wishes = [decided.switch for decided in seats.decided(place) if decided.switch is not None]
        for slug in dict.fromkeys(wish.target for wish in wishes):
            if problem := find_beyond(seats, place, seats.deps.catalog[slug]):
                problems.setdefault(ENTERS, (problem, start, [*last, "a person says yes"]))
    return problems


def find_facts(deps: AgentDeps, own: Sequence[Own]) -> frozenset[str]:
    """The facts that a condition names; no others matter."""
    edges = [edge for way in (Way.ASK, Way.TASK) for _, _, edge in deps.edges.list_edges(way)]
    named = [name for edge in edges for name in edge.facts]
    for condition in (node.values["must"] for node in own if "must" in node.values):
        named += parse_condition(condition).facts
    return frozenset(named)


def _list_untaken(deps: AgentDeps, observer: _Observer) -> Iterator[str]:
    """The edges of the chart, and those between modes, that no move follows."""
    ways = list(_list_mode_edges(deps))
    has_tasks = any(way is Way.TASK for *_, way in ways)
    unused = () if has_tasks else (Event.RETURN, Event.RETURNED, Event.NEXT)
    for source, event, target in deps.chart.edges:
        if event not in unused and (str(source), str(target)) not in observer.phases:
            yield f"{source!s} by {event!s} to {target!s}"
    for source, target, edge, way in ways:
        if (source, target, way is Way.TASK) not in observer.entered:
            why = f": `{edge.when}` never holds there" if edge.when else ""
            yield f"{'a sub-task ' if way is Way.TASK else ''}from {source} to {target}{why}"


def _list_mode_edges(deps: AgentDeps) -> Iterator[tuple[str, str, Edge, Way]]:
    for way in (Way.ASK, Way.TASK) if deps.subtask_depth else (Way.ASK,):
        for source in deps.catalog:
            for target, edge in deps.edges.list_ways(source, way):
                yield source, target, edge, way


def find_steps(deps: AgentDeps, exploration: Exploration, place: Place) -> list[str]:
    """The shortest way to the place from a new thread.

    If a sub-task ends on the way, the search knows every conversation that waits.
    """
    if place not in exploration.places:
        return [describe_start(place)]
    places, steps = exploration.trace(place)
    if len(deps.catalog) > MANY or all(step.phase != Phase.RETURNING for step in places[:-1]):
        return steps
    exact = Exploration(deps, exploration.seats.facts, is_exact=True)
    exact.run(lambda *seen: drop_parents(seen[-1]) == place, MOST)
    match = next((nested for nested in exact.places if drop_parents(nested) == place), None)
    return steps if match is None else exact.trace(match)[1]
