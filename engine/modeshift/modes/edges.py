"""Edges: which mode the model may ask for from which, and under which condition."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from modeshift.modes.conditions import check_condition, join_conditions, parse_condition

if TYPE_CHECKING:
    from modeshift.modes.mode import ModeText


class Way(StrEnum):
    """Which of the chart's events leads to a mode; each is followed by ``:`` and the slug."""

    HAND = "to_mode"
    """A host's or a person's own choice, and the way back from a sub-task: from any to any."""
    ASK = "ask_for"
    """The model asks for the mode: along an edge, where its condition holds."""
    TASK = "begin_in"
    """The model begins a sub-task there: by ``subtasks``, and the mode's ``enterFrom``."""


_When = Annotated[str, AfterValidator(check_condition)]


class _Edge(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True)

    when: _When | None = None
    """A condition; None for none."""
    otherwise: str = Field("", max_length=500)
    """What the model is told to do where it does not hold."""


class SwitchEdge(_Edge):
    """An edge out of a mode: in YAML a slug, or a mapping with ``to``."""

    to: str
    ask: Literal["never"] | None = None
    """``never``: such a switch runs without a question to a person."""


class EntryEdge(_Edge):
    """An edge into a mode: in YAML a slug, or a mapping with ``from``."""

    source: str = Field(alias="from")


def _read_short(name: str) -> BeforeValidator:
    def read(edges: Any) -> Any:
        if not isinstance(edges, list):
            return edges
        return [{name: edge} if isinstance(edge, str) else edge for edge in edges]

    return BeforeValidator(read)


def _refuse_twice(slugs: Iterable[str]) -> None:
    seen = set[str]()
    for slug in slugs:
        if slug in seen:
            raise ValueError(f"{slug!r} is there twice; join the conditions with 'or'")
        seen.add(slug)


def _check_exits(edges: tuple[SwitchEdge, ...]) -> tuple[SwitchEdge, ...]:
    _refuse_twice(edge.to for edge in edges)
    return edges


def _check_entries(edges: tuple[EntryEdge, ...]) -> tuple[EntryEdge, ...]:
    _refuse_twice(edge.source for edge in edges)
    return edges


SwitchEdges = Annotated[tuple[SwitchEdge, ...], _read_short("to"), AfterValidator(_check_exits)]
EntryEdges = Annotated[tuple[EntryEdge, ...], _read_short("from"), AfterValidator(_check_entries)]


@dataclass(frozen=True)
class Edge:
    """A way for the model from one mode to another, of both its ends."""

    when: str = ""
    """The condition; empty for none."""
    otherwise: str = ""
    is_free: bool = False
    """Whether no person is asked, where the engine finds that no rights are gained."""

    @property
    def facts(self) -> tuple[str, ...]:
        """The facts that decide whether it is open."""
        return parse_condition(self.when).facts if self.when else ()

    def is_open(self, facts: Mapping[str, bool | None]) -> bool:
        """Whether the condition holds; a fact that cannot be determined is None."""
        return not self.when or parse_condition(self.when).holds(facts)


class EdgeTable:
    """The edges between some modes; immutable."""

    def __init__(self, modes: Iterable["ModeText"]) -> None:
        by_slug = {mode.slug: mode for mode in modes}
        self._slugs = tuple(by_slug)
        self._out = {
            slug: {edge.to: edge for edge in mode.switches}
            for slug, mode in by_slug.items()
            if mode.switches is not None
        }
        self._into = {
            slug: {edge.source: edge for edge in mode.enter_from}
            for slug, mode in by_slug.items()
            if mode.enter_from is not None
        }
        self._tasks = {
            slug: mode.subtasks for slug, mode in by_slug.items() if mode.subtasks is not None
        }

    @property
    def is_empty(self) -> bool:
        """Whether every way leads from any to any."""
        return not (self._out or self._into or self._tasks)

    def find(self, source: str, target: str, way: Way) -> Edge | None:
        """The edge from one mode to another; None if there is none."""
        entry = self._into.get(target, {}).get(source)
        # A sub-task in its own conversation's mode enters nothing.
        is_shut = (
            target in self._into and entry is None and not (way is Way.TASK and source == target)
        )
        match way:
            case Way.HAND:
                return Edge()
            case Way.TASK:
                if is_shut or target not in self._tasks.get(source, (target,)):
                    return None
                return Edge(entry.when or "", entry.otherwise) if entry else Edge()
            case Way.ASK:
                exit = self._out[source].get(target) if source in self._out else None
                if is_shut or (source in self._out and exit is None):
                    return None
                ends = [end for end in (exit, entry) if end is not None]
                return Edge(
                    join_conditions(*(end.when or "" for end in ends)),
                    " ".join(end.otherwise for end in ends if end.otherwise),
                    exit is not None and exit.ask == "never",
                )

    def has_table(self, source: str, way: Way) -> bool:
        """Whether ways out of a mode are its own edges, rather than from any to any."""
        return source in (self._out if way is Way.ASK else self._tasks if way is Way.TASK else ())

    def is_guarded(self, target: str) -> bool:
        """Whether ways into a mode are its own edges."""
        return target in self._into

    def list_edges(self, way: Way) -> Iterator[tuple[str, str, Edge]]:
        """Source, target and edge, as far as they are not from any to any."""
        for target in self._slugs:
            sources = self._slugs if way is not Way.HAND and target in self._into else ()
            exits = self._out if way is Way.ASK else self._tasks if way is Way.TASK else {}
            for source in dict.fromkeys([*sources, *exits]):
                edge = (
                    self.find(source, target, way) if source != target or way is Way.TASK else None
                )
                if edge is not None:
                    yield source, target, edge

    def list_targets(self, source: str, way: Way) -> list[str]:
        """The modes to which there is an edge, whether it is open or not."""
        return [
            target
            for target in self._slugs
            if (target != source or way is Way.TASK) and self.find(source, target, way) is not None
        ]

    def says_something(self, source: str, way: Way) -> bool:
        """Whether the model is to be told which modes are open from here."""
        if self.has_table(source, way):
            return True
        return any(target != source for target in self._into)
