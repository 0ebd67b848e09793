"""``EdgeTable``: which mode the model may ask for from which, and under which condition."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from modeshift.modes.edges.edges import ANY, Context, EntryEdge, SwitchEdge, parse_condition
from modeshift.modes.mode import ModeText

MAX_NAMED = 10
"""The most modes that are named to the model."""
MAX_TRIED = 12
"""The most modes that are tried, to name those that allow a call."""


class Way(StrEnum):
    """Which of the chart's events leads to a mode; each is followed by ``:`` and the slug."""

    HAND = "to_mode"
    """The host or a person chooses the mode, or a sub-task ends: from any mode to any."""
    ASK = "ask_for"
    """The model asks for the mode: along an edge, where its condition holds."""
    TASK = "begin_in"
    """The model begins a sub-task there: by ``subtasks``, and the mode's ``enterFrom``."""


@dataclass(frozen=True)
class Edge:
    """How the model may get from one mode to another, by what the files of both say."""

    when: str = ""
    """The condition; empty for none."""
    otherwise: str = ""
    is_free: bool = False
    """Whether no person is asked, where the engine finds that no rights are gained."""
    plan: bool = False
    context: Context = "all"
    """``plan`` and ``context`` are as in ``SwitchEdge``."""

    @property
    def facts(self) -> tuple[str, ...]:
        """The facts that decide whether it is open."""
        return parse_condition(self.when).facts if self.when else ()

    def is_open(self, facts: Mapping[str, bool | None]) -> bool:
        """Whether the condition holds; a fact that cannot be determined is None."""
        return not self.when or parse_condition(self.when).holds(facts)


class EdgeTable:
    """The edges between some modes; immutable."""

    def __init__(self, modes: Iterable[ModeText]) -> None:
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
        self.find = cache(self._find)
        """The edge from one mode to another by a way; None if there is none."""
        self.list_ways = cache(self._list_ways)
        """The modes to which there is an edge by a way, whether it is open or not."""
        self.list_facts = cache(self._list_facts)
        """The facts that the ways from a mode depend on."""
        self._groups = dict[tuple[object, ...], dict[str, list[str]]]()
        self._tasks = {
            slug: mode.subtasks for slug, mode in by_slug.items() if mode.subtasks is not None
        }

    def _find(self, source: str, target: str, way: Way) -> Edge | None:
        if way is Way.HAND:
            return Edge()
        # A sub-task in the mode that begins it enters nothing.
        into = None if source == target else self._into.get(target)
        entry = None if into is None else into.get(source, into.get(ANY))
        if into is not None and entry is None:
            return None
        if way is Way.TASK:
            tasks = self._tasks.get(source, (ANY,))
            return _join(None, entry) if target in tasks or ANY in tasks else None
        out = self._out.get(source)
        exit = None if out is None else out.get(target, out.get(ANY))
        return _join(exit, entry) if out is None or exit is not None else None

    def has_table(self, source: str, way: Way) -> bool:
        """Whether the ways out of a mode are its own edges, rather than from any to any."""
        if way is Way.TASK:
            return source in self._tasks
        out = self._out.get(source) if way is Way.ASK else None
        return out is not None and (ANY not in out or any(edge.when for edge in out.values()))

    def is_guarded(self, target: str) -> bool:
        """Whether the ways into a mode are its own edges."""
        return target in self._into

    def is_entered_freely(self, source: str, target: str) -> bool:
        """Whether the mode's ``enterFrom`` lets one in from there, whatever the facts."""
        entries = self._into.get(target)
        entry = None if entries is None else entries.get(source, entries.get(ANY))
        return entries is None or (entry is not None and not entry.when)

    @property
    def by_hand(self) -> list[str]:
        """The modes that only a person enters: their ``enterFrom`` is an empty list."""
        return [slug for slug, table in self._into.items() if not table]

    def list_edges(self, way: Way) -> Iterator[tuple[str, str, Edge]]:
        """Source, target and edge of all edges but those from any mode to any."""
        for source in self._slugs if way is not Way.HAND else ():
            targets = [*self._slugs] if self.has_table(source, way) else [*self._into]
            if way is Way.ASK and not self.has_table(source, way):
                targets += [slug for slug in self._out.get(source, ()) if slug not in self._into]
            for target in targets:
                edge = self.find(source, target, way) if target in self._slugs else None
                if edge is not None and (source != target or way is Way.TASK):
                    yield source, target, edge

    def _list_ways(self, source: str, way: Way) -> list[tuple[str, Edge]]:
        targets = (slug for slug in self._slugs if slug != source or way is Way.TASK)
        edges = ((target, self.find(source, target, way)) for target in targets)
        return [(slug, edge) for slug, edge in edges if edge is not None]

    def _list_facts(self, source: str, way: Way) -> tuple[str, ...]:
        names = (name for _, edge in self.list_ways(source, way) for name in edge.facts)
        return tuple(dict.fromkeys(names))

    def describe_others(
        self, source: str, target: str, way: Way, values: Mapping[str, bool | None]
    ) -> str:
        """In words, the modes beside the target that are open, or would be under a condition."""
        key = source, way, frozenset(values.items())
        if key not in self._groups:
            ways = self.list_ways(source, way)
            self._groups[key] = group_ways(
                (slug, Edge() if edge.is_open(values) else edge) for slug, edge in ways
            )
        groups = self._groups[key].items()
        others = {when: [slug for slug in slugs if slug != target] for when, slugs in groups}
        return describe_groups({when: slugs for when, slugs in others.items() if slugs})

    def is_limited(self, source: str, way: Way) -> bool:
        """Whether not every mode is open from there, so that the model must be told which are."""
        if way is Way.TASK and self._tasks.get(source) == ():
            return False  # it has no tool for it
        return self.has_table(source, way) or any(target != source for target in self._into)

    @property
    def has_limits(self) -> bool:
        """Whether there is a mode from which not every mode is open."""
        return any(self.is_limited(slug, way) for slug in self._slugs for way in Way)


def group_ways(ways: Iterable[tuple[str, Edge]]) -> dict[str, list[str]]:
    """The modes by the condition of the edge that leads to them."""
    groups = dict[str, list[str]]()
    for slug, edge in ways:
        groups.setdefault(edge.when, []).append(slug)
    return groups


def describe_groups(groups: Mapping[str, Sequence[str]]) -> str:
    """The groups and their modes, in words."""
    parts = list[str]()
    for when in sorted(groups):
        more = len(groups[when]) - MAX_NAMED
        names = ", ".join(groups[when][:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
        parts.append(f"once `{when}`: {names}" if when else names)
    return "; ".join(parts) or "none"


def _join(exit: SwitchEdge | None, entry: EntryEdge | None) -> Edge:
    ends = [end for end in (exit, entry) if end is not None]
    conditions = list(dict.fromkeys(end.when for end in ends if end.when))
    return Edge(
        " and ".join(f"({each})" for each in conditions) if conditions[1:] else "".join(conditions),
        " ".join(end.otherwise for end in ends if end.otherwise),
        exit is not None and exit.ask == "never",
        exit is not None and exit.plan,
        "all" if exit is None else exit.context,
    )
