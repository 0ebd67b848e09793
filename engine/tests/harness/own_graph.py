"""The clone's graph with other nodes in the place of its own, or beside them."""

from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from graph import nodes
from modeshift import Agent, AgentDeps, AgentGraph

NAMES = ("intake", "review", "act", "switch_mode", "end_subtask", "compact_history")
Node = Callable[..., Awaitable[Any]]
Build = Callable[..., Agent]


def build_with(**others: Node) -> Build:
    """A name that is not the clone's is an own phase's; ``think`` is that of every mode."""

    def build(
        deps: AgentDeps, saver: BaseCheckpointSaver[Any] | None = None, max_steps: int = 500
    ) -> Agent:
        graph = AgentGraph(deps)
        for mode in graph.modes:
            graph.add_mode(mode, others.get("think", nodes.think))
        for name in sorted({*NAMES, *others} - {"think"}):
            graph.add_node(name, others.get(name) or getattr(nodes, name))
        return graph.compile(saver, max_steps)

    return build
