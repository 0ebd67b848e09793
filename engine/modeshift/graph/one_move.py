"""``OneMove``: a run of a node moves the machine once, and writes what is its own."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast

from langgraph.types import Command

from modeshift.graph.deps import AgentDeps
from modeshift.graph.state import Update
from modeshift.modes.edge_table import Way
from modeshift.modes.errors import NodeError
from modeshift.modes.machine import Configuration

Result = Update | Command[Any]
Moved = TypeVar("Moved", Update, Command[Any])


class OneMove:
    """The move that a run of a node makes; ``NodeError`` where it is none, or another."""

    _now: Configuration

    def __init__(self, deps: AgentDeps, node: str) -> None:
        self._deps = deps
        self._node = node
        self._update = Update()
        """What the engine writes whatever the node decides."""
        self._result: Any = None

    @property
    def update(self) -> Update:
        """What the node is to return: what its move gave."""
        if self._result is None:
            raise self._refuse("returns without a move; let it end with step.go(...)")
        return cast("Update", self._result)

    def _move(
        self,
        event: str,
        update: Update,
        mode_slug: str | None = None,
        way: Way = Way.HAND,
        facts: Mapping[str, bool | None] = MappingProxyType({}),
    ) -> Update:
        now = self._deps.machine.move(self._now, event, mode_slug, way, facts)
        if now is None:
            edge = f"from {self._now.phase!r} by {event!s}"
            raise self._refuse(f"takes an edge that is not in graph/chart.py: {edge}")
        moved: Update = {**self._update, **update, "phase": now.phase}
        return self._finish(moved)

    def _finish(self, result: Moved) -> Moved:
        if self._result is not None:
            raise self._refuse("moves twice; a node makes one move")
        self._result = result
        return result

    def _check_own(self, keys: Collection[str]) -> None:
        if wrong := sorted({*keys} - self._deps.own_keys):
            own = ", ".join(sorted(self._deps.own_keys)) or "none"
            raise self._refuse(f"must not write {wrong[0]!r}; the keys of your own State: {own}")

    def _refuse(self, what: str) -> NodeError:
        return NodeError(f"the node {self._node!r} {what}")
