"""The state machine: phase and mode, which node is next, which tools are bound.

Two parallel regions, generated from the catalog: ``mode`` (one state per mode) and ``phase`` (what
the turn is doing). The only module that imports python-statemachine.
"""

from collections.abc import Collection, Iterable
from functools import lru_cache
from threading import Lock
from types import SimpleNamespace
from typing import Any, NamedTuple

from statemachine import StateChart
from statemachine.io import create_machine_class_from_definition
from statemachine.orderedset import OrderedSet

from modeshift.modes.catalog import Catalog
from modeshift.modes.effects import ToolSpec
from modeshift.modes.errors import InvalidInputError, UnknownModeError
from modeshift.modes.phases import EACH_MODE, ChartData, Event, Phase
from modeshift.modes.policy import is_offered, list_free_commands
from modeshift.modes.rules.matching import is_server_tool


class Configuration(NamedTuple):
    """The chart's current states, as plain strings that a checkpoint can hold."""

    mode: str
    phase: str


class Chart:
    """The chart of some modes.

    It has no memory beyond its configuration, so each (configuration, event, target) is sent to
    it once and the outcome is kept: from then on a send is a dictionary look-up. Threads may
    share it: the chart itself, which is not safe for threads, is behind a lock.
    """

    def __init__(self, names: tuple[tuple[str, str], ...], default: str, data: ChartData) -> None:
        """``names`` are the slugs with the modes' names."""
        self._slugs = [slug for slug, _ in names]
        self._phases = data.phases
        self._class = _build_class(dict(names), default, data)
        # The model object on which a chart finds, and leaves, its state.
        self._seat = SimpleNamespace(state=self._raw(Configuration(default, Phase.IDLE)))
        self._chart = self._class(self._seat)
        self._lock = Lock()
        self._outcomes: dict[tuple[Configuration, str, str | None], Configuration] = {}

    def send(self, now: Configuration, event: str, mode_slug: str | None = None) -> Configuration:
        """The configuration after ``event``.

        Raises ``UnknownModeError`` for a mode that is not in the catalog, and
        ``statemachine``'s ``TransitionNotAllowed`` for an event that is illegal now.
        """
        key = (now, event, mode_slug)
        if key not in self._outcomes:
            self._outcomes[key] = self._send(*key)
        return self._outcomes[key]

    def _send(self, now: Configuration, event: str, mode_slug: str | None) -> Configuration:
        # A chart does not notice an unknown state, so slugs are checked before it sees them.
        self._check(now.mode)
        if now.phase not in self._phases:
            raise InvalidInputError(
                f"unknown phase {now.phase!r}; there are: {', '.join(self._phases)}"
            )
        events: list[str] = [] if event == Event.SET_MODE else [event]
        if event in (Event.SWITCH_MODE, Event.SET_MODE, Event.RETURNED, Event.NEXT):
            events.append(_to(self._check(mode_slug)))
        with self._lock:
            # Making a new chart takes 2 ms in a catalog of 200 modes.
            self._seat.state = self._raw(now)
            for name in events:
                self._chart.send(name)
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
        return f"{self._class:mermaid}".strip()


@lru_cache(maxsize=16)  # making one takes 5 ms, and a tool that is new does not change it
def build_chart(names: tuple[tuple[str, str], ...], default: str, data: ChartData) -> Chart:
    """The one chart of these modes."""
    return Chart(names, default, data)


def _state(slug: str) -> str:
    # Prefixed: a mode may be called "idle" or "phase" too.
    return f"mode {slug}"


def _to(slug: str) -> str:
    """The event that moves only the mode region."""
    return f"to_mode:{slug}"  # a blank would make two events of it


def _build_class(names: dict[str, str], default: str, data: ChartData) -> type[StateChart[Any]]:
    # Ids are m_0, m_1, ...: a slug can collide with an attribute of the chart.
    ids = {slug: f"m_{number}" for number, slug in enumerate(names)}
    modes: dict[str, Any] = {
        ids[slug]: {"value": _state(slug), "name": name.replace('"', "'")}
        for slug, name in names.items()
    }
    modes[ids[default]]["initial"] = True
    phases: dict[str, Any] = {
        phase: {"value": phase, "initial": phase == Phase.IDLE, "on": {}} for phase in data.phases
    }
    for source, event, target in data.edges:
        phases[source]["on"].setdefault(event, []).append({"target": target})
    # On the parents, and internal: one edge per target rather than per pair, and the
    # sibling region keeps its state. An event per target, too: with one event and a guard
    # per target a first send takes 9 ms in a catalog of 200 modes.
    to_modes: dict[str, Any] = {
        _to(slug): [{"target": id, "internal": True}] for slug, id in ids.items()
    }
    to_idle: dict[str, Any] = {Event.RESET: [{"target": Phase.IDLE, "internal": True}]}
    regions = {
        "mode": {
            "name": "Mode: from any to any by switch_mode, once a person approves",
            "states": modes,
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
"""Of all MCP servers together, in a mode: several providers take 128 tools in all."""


class Machine:
    """The chart of one catalog with one set of tools, and what follows from where it is."""

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
        self._edges = data.targets
        taken = {*taken, *filter(None, data.nodes.values())}
        self._mode_nodes = {slug: f"mode_{slug}" if slug in taken else slug for slug in catalog}
        names = tuple((slug, catalog[slug].name) for slug in catalog)
        self.chart = build_chart(names, catalog.default, data)
        self.send = self.chart.send
        specs = tuple(tools)
        self._bound: dict[str, tuple[str, ...]] = {}
        self.left_out: dict[str, list[str]] = {}
        """The tools of MCP servers that are too many for a mode, if any are."""
        for slug in catalog:
            offered = [tool.name for tool in specs if is_offered(catalog[slug], tool)]
            if left_out := list(filter(is_server_tool, offered))[MAX_SERVER_TOOLS:]:
                self.left_out[slug] = left_out
            self._bound[slug] = tuple(name for name in offered if name not in left_out)
        self._to_look = {
            slug: {tool.name for tool in specs if list_free_commands(catalog[slug], tool)}
            for slug in catalog
        }

    def move(
        self, now: Configuration, event: str, mode_slug: str | None = None
    ) -> Configuration | None:
        """As ``send``; None if the chart has no edge for the event."""
        return self.send(now, event, mode_slug) if (now.phase, event) in self._edges else None

    def node(self, now: Configuration) -> str | None:
        """The node that runs next; None when the turn is over."""
        node = self._nodes[now.phase]
        return self.mode_node(now.mode) if node == EACH_MODE else node

    def mode_node(self, slug: str) -> str:
        """The name of a mode's node: its slug, unless that name is taken."""
        return self._mode_nodes[slug]

    def bound_tools(self, now: Configuration) -> tuple[str, ...]:
        """The names of the tools that the model has now; it has none unless it is thinking."""
        return self._bound[now.mode] if now.phase == Phase.THINKING else ()

    def compare_tools(self, source: str, target: str) -> tuple[list[str], list[str]]:
        """The names of the tools gained, and of those lost, by a change of mode.

        A tool of which a mode may only run a few commands does not count.
        """
        before, after = (
            [name for name in self._bound[slug] if name not in self._to_look[slug]]
            for slug in (self._catalog[source].slug, self._catalog[target].slug)
        )
        gained = [name for name in after if name not in before]
        return gained, [name for name in before if name not in after]
