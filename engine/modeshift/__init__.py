"""The engine of an agent that works in modes: everything that holds a guarantee.

``README.md`` beside this package lists what is public, each name with a line. Imports nothing of
the clone. A name is imported at its first use: an editor is answered before LangGraph is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modeshift.agent import Agents, open_agent
    from modeshift.events import Chunk, Printed, Wrote
    from modeshift.modes.chart import EACH_MODE, ChartData
    from modeshift.modes.errors import UserError
    from modeshift.modes.facts import Done, Fact
    from modeshift.modes.phases import Event, Phase
    from modeshift.serving import serve
    from modeshift.thread import APPROVE, REJECT, Thread, edit
    from modeshift.threads.compiled import Agent
    from modeshift.threads.deps import AgentDeps
    from modeshift.threads.state import State, Update
    from modeshift.turns.agent_graph import AgentGraph
    from modeshift.turns.step import Step

__all__ = [
    "APPROVE",
    "EACH_MODE",
    "REJECT",
    "Agent",
    "AgentDeps",
    "AgentGraph",
    "Agents",
    "ChartData",
    "Chunk",
    "Done",
    "Event",
    "Fact",
    "Phase",
    "Printed",
    "State",
    "Step",
    "Thread",
    "Update",
    "UserError",
    "Wrote",
    "edit",
    "open_agent",
    "serve",
]
_MODULES = {
    **dict.fromkeys(("Agents", "open_agent"), "agent"),
    **dict.fromkeys(("APPROVE", "REJECT", "Run", "Thread", "edit"), "thread"),
    **dict.fromkeys(("Begun", "Chunk", "Printed", "RunEvent", "Wrote"), "events"),
    "Agent": "threads.compiled",
    "AgentDeps": "threads.deps",
    "AgentGraph": "turns.agent_graph",
    "ChartData": "modes.chart",
    "Done": "modes.facts",
    "EACH_MODE": "modes.chart",
    "Fact": "modes.facts",
    "State": "threads.state",
    "Step": "turns.step",
    "Update": "threads.state",
    "UserError": "modes.errors",
    "serve": "serving",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'modeshift' has no attribute {name!r}")
    module = import_module(f"modeshift.{_MODULES.get(name, 'modes.phases')}")
    return getattr(module, name)
