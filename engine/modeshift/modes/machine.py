"""The state machine: phase and mode, which node is next, which tools are bound.

Two parallel regions, generated from the catalog: ``mode`` (one state per mode) and ``phase`` (what
the turn is doing). The only module that imports python-statemachine.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from threading import Lock
from types import SimpleNamespace
from typing import Any, NamedTuple

from statemachine import StateChart
from statemachine.exceptions import TransitionNotAllowed
from statemachine.io import create_machine_class_from_definition
from statemachine.orderedset import OrderedSet

from modeshift.modes.catalog import Catalog
from modeshift.modes.chart import EACH_MODE, ChartData
from modeshift.modes.edges.edge_table import Edge, EdgeTable, Way
from modeshift.modes.effects import ToolSpec
from modeshift.modes.errors import InvalidInputError, UnknownModeError
from modeshift.modes.mode import ModeText
from modeshift.modes.phases import Event, Phase
from modeshift.modes.policy import is_offered, only_looks
from modeshift.modes.rules.matching import is_server_tool

IllegalEventError = TransitionNotAllowed


class Configuration(NamedTuple):
    """The chart's current states, as plain strings that a checkpoint can hold."""

    mode: str
    phase: str


MAX_CHARTS = 16
_NO_FACTS: Mapping[str, bool | None] = {}
_Known = tuple[tuple[str, bool | None], ...]


class Chart:
    """The chart of some modes.

    It has no memory beyond its configuration, so each event is sent to it once in each state of its
    region, and the outcome is kept: from then on it is looked up. Threads may share it: the chart
    itself, which is not safe for threads, is behind a lock.
    """

    def __init__(self, modes: Sequence[ModeText], default: str, data: ChartData) -> None:
        self._slugs = [mode.slug for mode in modes]
        self._phases = data.phases
        self.edges = EdgeTable(modes)
        self._class = _build_class(modes, default, data, self.edges)
        # The model object on which a chart finds, and leaves, its state, and finds the facts.
        state = self._raw(Configuration(default, Phase.IDLE))
        self._seat = SimpleNamespace(state=state, facts=_NO_FACTS)
        self._chart = self._class(self._seat)
        self._lock = Lock()
        self._moves: dict[tuple[str, str, _Known], Configuration] = {}

    def send(
        self,
        now: Configuration,
        event: str,
        mode_slug: str | None = None,
        way: Way = Way.HAND,
        facts: Mapping[str, bool | None] = _NO_FACTS,
    ) -> Configuration:
        """The configuration after ``event``; one that changes the mode does so by ``way``.

        Raises ``UnknownModeError`` for a mode that is not in the catalog, and
        ``statemachine``'s ``TransitionNotAllowed`` for an event that is illegal now, or an edge
        that is not there, or not open by ``facts``; a fact that is not in there opens nothing.
        """
        known: _Known = ()
        if facts and mode_slug is not None and (edge := self.edges.find(now.mode, mode_slug, way)):
            known = tuple((name, facts.get(name)) for name in edge.facts)
        # A chart does not notice an unknown state, so slugs are checked before it sees them.
        self._check(now.mode)
        if now.phase not in self._phases:
            raise InvalidInputError(
                f"unknown phase {now.phase!r}; there are: {', '.join(self._phases)}"
            )
        changes_mode = event in (Event.SWITCH_MODE, Event.SET_MODE, Event.RETURNED, Event.NEXT)
        change = f"{way}:{self._check(mode_slug)}" if changes_mode else ""
        if event != Event.SET_MODE:
            now = now._replace(phase=self._move(now, event, (), now.phase).phase)
        if change:
            now = now._replace(mode=self._move(now, change, known, _state(now.mode)).mode)
        return now

    def _move(self, now: Configuration, event: str, known: _Known, state: str) -> Configuration:
        """Where an event leads, which depends on the state of its own region alone."""
        key = state, event, known
        if key not in self._moves:
            self._moves[key] = self._ask_chart(now, event, known)
        return self._moves[key]

    def _ask_chart(self, now: Configuration, event: str, known: _Known) -> Configuration:
        with self._lock:
            # Making a new chart takes 2 ms in a catalog of 200 modes.
            self._seat.state, self._seat.facts = self._raw(now), dict(known)
            self._chart.send(event)
            values = {str(value) for value in self._chart.configuration_values}
        return Configuration(
            mode=next(slug for slug in self._slugs if _state(slug) in values),
            phase=next(phase for phase in self._phases if phase in values),
        )

    @staticmethod
    def _raw(now: Configuration) -> OrderedSet[str]:
        return OrderedSet(["agent", "mode", _state(now.mode), "phase", now.phase])

    def _check(self, slug: str | None) -> str:
        if slug not in self._slugs:
            raise UnknownModeError(slug, self._slugs)
        return slug

    def mermaid(self) -> str:
        """The chart as a Mermaid state diagram."""

        def write(match: re.Match[str]) -> str:
            number = int(match[1].split()[0].removeprefix("m_"))
            edge = self.edges.find(self._slugs[number], match[3], Way.ASK)
            asks = "switch_mode, nobody is asked" if edge and edge.is_free else "switch_mode"
            return match[1] + (asks if match[2] == "Ask for" else "new_task")

        return _LABEL.sub(write, f"{self._class:mermaid}".strip())


_Transitions = dict[str, list[dict[str, object]]]
"""By event, where it leads; as the library takes it."""
_charts: dict[tuple[object, str, ChartData], Chart] = {}
"""The charts made last: making one takes 5 ms, and a new tool does not change it."""


def build_chart(modes: Sequence[ModeText], default: str, data: ChartData) -> Chart:
    """The one chart of these modes."""
    fields = ("slug", "name", "switches", "enter_from", "subtasks")
    drawn = tuple(tuple(getattr(mode, field) for field in fields) for mode in modes)
    key = (drawn, default, data)
    if key not in _charts:
        if len(_charts) >= MAX_CHARTS:
            _charts.clear()
        _charts[key] = Chart(modes, default, data)
    return _charts[key]


_ANYWHERE = "Mode: from any to any by switch_mode, once a person approves"
_ALONG_EDGES = (
    "Mode: by hand from any to any; the model asks along the edges, without edges for any"
)
_BY_HAND = " (a person alone enters it)"
_LABEL = re.compile(r"^( *m_\d+ --> m_\d+ : )(Ask for|Begin in):(\S+)", re.MULTILINE)


def _state(slug: str) -> str:
    # Prefixed: a mode may be called "idle" or "phase" too.
    return f"mode {slug}"


def _list_ways(
    edges: EdgeTable, ids: Mapping[str, str]
) -> tuple[_Transitions, dict[str, _Transitions]]:
    """The events that move only the mode region: on the parent of the modes, and by mode.

    On the parent, and internal: one edge per target rather than per pair, and the sibling region
    keeps its state. An event per target, too: with one event and a guard per target a first send
    takes 9 ms in a catalog of 200 modes. What an own edge does not allow must not fall through to
    the parent's, which is why a person's event is another.
    """
    own: dict[str, _Transitions] = {slug: {} for slug in ids}
    on_parent: _Transitions = {}
    tables = {way: tuple(ids[slug] for slug in ids if edges.has_table(slug, way)) for way in Way}
    for slug, id in ids.items():
        ways = [way for way in Way if way is Way.HAND or not edges.is_guarded(slug)]
        for guard in dict.fromkeys(tables[way] for way in ways):
            events = " ".join(f"{way}:{slug}" for way in ways if tables[way] == guard)
            unless = {"unless": _build_guard(guard)} if guard else {}
            on_parent[events] = [{"target": id, "internal": True, **unless}]
    for way in Way:
        for source, target, edge in edges.list_edges(way):
            when = {"cond": _build_condition(edge)} if edge.when else {}
            own[source][f"{way}:{target}"] = [{"target": ids[target], **when}]
    return on_parent, own


def _build_guard(ids: Collection[str]) -> Callable[[StateChart[Any]], bool]:
    def In(machine: StateChart[Any]) -> bool:  # noqa: N802  # as the library's, which takes 40 000 at 200 modes
        return any(state.id in ids for state in machine.configuration)

    return In


def _build_condition(edge: Edge) -> Callable[[SimpleNamespace], bool]:
    def holds(model: SimpleNamespace) -> bool:
        return edge.is_open(model.facts)

    holds.__name__ = edge.when  # as the diagram has it
    return holds


def _build_class(
    modes: Sequence[ModeText], default: str, data: ChartData, edges: EdgeTable
) -> type[StateChart[Any]]:
    # Ids are m_0, m_1, ...: a slug can collide with an attribute of the chart.
    ids = {mode.slug: f"m_{number}" for number, mode in enumerate(modes)}
    to_modes, own = _list_ways(edges, ids)
    states: dict[str, Any] = {
        ids[mode.slug]: {
            "value": _state(mode.slug),
            "name": mode.name.replace('"', "'") + _BY_HAND * (mode.slug in edges.by_hand),
            "on": own[mode.slug],
        }
        for mode in modes
    }
    states[ids[default]]["initial"] = True
    phases: dict[str, Any] = {
        phase: {"value": phase, "initial": phase == Phase.IDLE, "on": {}} for phase in data.phases
    }
    for source, event, target in data.edges:
        phases[source]["on"].setdefault(event, []).append({"target": target})
    to_idle: _Transitions = {Event.RESET: [{"target": Phase.IDLE, "internal": True}]}
    regions = {
        "mode": {
            "name": _ALONG_EDGES if edges.has_limits else _ANYWHERE,
            "states": states,
            "on": to_modes,
        },
        "phase": {"states": phases, "on": to_idle},
    }
    # By default a chart ignores an illegal event and swallows an exception in a guard.
    agent: Any = {"parallel": True, "initial": True, "states": regions}
    return create_machine_class_from_definition(
        "ModeshiftChart",
        states={"agent": agent},
        allow_event_without_transition=False,
        catch_errors_as_events=False,
    )


MAX_SERVER_TOOLS = 100
"""The most tools of all MCP servers in a mode: several providers take 128 tools in all."""


class Machine:
    """The chart of one catalog and one set of tools, with the node and the tools of each state."""

    def __init__(
        self,
        catalog: Catalog,
        tools: Iterable[ToolSpec],
        data: ChartData,
        taken: Collection[str] = (),
    ) -> None:
        """``taken`` are names that the graph uses for something other than a mode's node."""
        self._catalog = catalog
        # No slug has an underscore, so a name with one is free.
        self._nodes = data.nodes
        taken = {*taken, *filter(None, data.nodes.values())}
        self._mode_nodes = {slug: f"mode_{slug}" if slug in taken else slug for slug in catalog}
        self.chart = build_chart([*catalog.values()], catalog.default, data)
        self.send = self.chart.send
        self._specs = tuple(tools)
        self._list_bound = cache(self._find_bound)
        self._list_whole = cache(self._find_whole)
        """The tools of a mode but those that run only commands which change nothing."""

    def send_all(self, now: Configuration, events: Iterable[str]) -> Configuration:
        """As ``send``, one event after the other."""
        for event in events:
            now = self.send(now, event)
        return now

    def node(self, now: Configuration) -> str | None:
        """The node that runs next; None when the turn is over."""
        node = self._nodes[now.phase]
        return self.mode_node(now.mode) if node == EACH_MODE else node

    def mode_node(self, slug: str) -> str:
        """The name of a mode's node: its slug, unless that name is taken."""
        return self._mode_nodes[slug]

    def bound_tools(self, now: Configuration) -> tuple[str, ...]:
        """The names of the tools that the model has now; it has none unless it is thinking."""
        return self._list_bound(now.mode) if now.phase == Phase.THINKING else ()

    @cached_property
    def left_out(self) -> dict[str, list[str]]:
        """The tools of MCP servers that are too many for a mode, if any are."""
        servers = [tool for tool in self._specs if is_server_tool(tool.name)]
        left_out = {
            slug: [tool.name for tool in servers if is_offered(mode, tool)][MAX_SERVER_TOOLS:]
            for slug, mode in self._catalog.items()
            if len(servers) > MAX_SERVER_TOOLS
        }
        return {slug: names for slug, names in left_out.items() if names}

    def _find_bound(self, slug: str) -> tuple[str, ...]:
        mode, left_out = self._catalog[slug], self.left_out.get(slug, ())
        offered = (tool.name for tool in self._specs if is_offered(mode, tool))
        return tuple(name for name in offered if name not in left_out)

    def _find_whole(self, slug: str) -> list[str]:
        mode, bound = self._catalog[slug], self._list_bound(slug)
        to_look = {tool.name for tool in self._specs if only_looks(mode, tool)}
        return [name for name in bound if name not in to_look]

    def compare_tools(self, source: str, target: str) -> tuple[list[str], list[str]]:
        """The names of the tools gained, and of those lost, by a change of mode.

        A tool that runs only commands which change nothing does not count.
        """
        before, after = self._list_whole(source), self._list_whole(target)
        gained = [name for name in after if name not in before]
        return gained, [name for name in before if name not in after]
