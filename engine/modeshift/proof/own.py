"""The owner's properties: ``modes/properties.yaml``, and what each means."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from modeshift.modes.edges.conditions import check_condition, parse_condition
from modeshift.modes.errors import ConfigurationError, describe_misfit
from modeshift.modes.plain_data import JsonObject, parse_data
from modeshift.modes.policy import only_looks
from modeshift.proof.moves import Move
from modeshift.proof.places import Place
from modeshift.proof.properties import MoveCheck, Property, find_beyond
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


_FILE: TypeAdapter[list[_Never | _Before | _Always]] = TypeAdapter(list[_Never | _Before | _Always])


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
