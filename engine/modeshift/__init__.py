"""The engine of an agent that works in modes: everything that holds a guarantee.

``README.md`` beside this package lists what is public, each name with a line. Imports nothing of
the clone. A name is imported at its first use: an editor is answered before LangGraph is there.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modeshift.graph.agent_graph import AgentGraph
    from modeshift.graph.deps import AgentDeps
    from modeshift.graph.entry.compiled import Agent
    from modeshift.graph.state import State, Update
    from modeshift.graph.step import Step
    from modeshift.modes.facts import Done, Fact
    from modeshift.modes.phases import EACH_MODE, ChartData, Event, Phase
    from modeshift.serving import serve

__all__ = [
    "EACH_MODE",
    "Agent",
    "AgentDeps",
    "AgentGraph",
    "ChartData",
    "Done",
    "Event",
    "Fact",
    "Phase",
    "State",
    "Step",
    "Update",
    "serve",
]
_MODULES = {
    "Agent": "graph.entry.compiled",
    "AgentDeps": "graph.deps",
    "AgentGraph": "graph.agent_graph",
    "Done": "modes.facts",
    "Fact": "modes.facts",
    "State": "graph.state",
    "Step": "graph.step",
    "Update": "graph.state",
    "serve": "serving",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'modeshift' has no attribute {name!r}")
    module = import_module(f"modeshift.{_MODULES.get(name, 'modes.phases')}")
    return getattr(module, name)
