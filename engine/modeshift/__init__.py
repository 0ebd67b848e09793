"""The engine of an agent that works in modes: everything that holds a guarantee.

``serve`` is what a clone calls. Imports nothing of the clone.
"""

from modeshift.graph.agent_graph import AgentGraph
from modeshift.graph.deps import AgentDeps
from modeshift.graph.entry.compiled import Agent
from modeshift.graph.state import State, Update
from modeshift.graph.step import Step
from modeshift.modes.phases import EACH_MODE, ChartData, Event, Phase
from modeshift.serving import serve

__all__ = [
    "EACH_MODE",
    "Agent",
    "AgentDeps",
    "AgentGraph",
    "ChartData",
    "Event",
    "Phase",
    "State",
    "Step",
    "Update",
    "serve",
]
