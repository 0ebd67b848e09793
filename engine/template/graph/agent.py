"""The wiring: nodes, and compile. The edges are those of ``chart.py``."""

from pathlib import Path
from typing import Any

import modeshift
from langgraph.checkpoint.base import BaseCheckpointSaver
from modeshift import Agent, AgentDeps, AgentGraph

from graph import nodes
from graph.chart import CHART
from graph.state import State
from tools import TOOLS


def build(
    deps: AgentDeps, checkpointer: BaseCheckpointSaver[Any] | None = None, max_steps: int = 500
) -> Agent:
    """The agent of the modes and tools in ``deps``."""
    graph = AgentGraph(deps)
    graph.add_node("intake", nodes.intake)
    for mode in graph.modes:
        graph.add_mode(mode, nodes.think)
    graph.add_node("review", nodes.review)
    graph.add_node("act", nodes.act)
    graph.add_node("switch_mode", nodes.switch_mode)
    graph.add_node("end_subtask", nodes.end_subtask)
    graph.add_node("compact_history", nodes.compact_history)
    return graph.compile(checkpointer, max_steps)


ROOT = Path(__file__).parent.parent
agent = modeshift.serve(build, root=ROOT, chart=CHART, state=State, tools=TOOLS)
"""What ``langgraph.json`` names: the agent as modes and settings are now."""
