"""The engine of an agent that works in modes: everything that holds a guarantee.

``README.md`` beside this package lists what is public, each name with a line. Imports nothing of
the clone. A name is imported at its first use: an editor is answered before LangGraph is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modeshift.agent import Agents as Agents
    from modeshift.agent import open_agent as open_agent
    from modeshift.events import Chunk as Chunk
    from modeshift.events import Printed as Printed
    from modeshift.events import Wrote as Wrote
    from modeshift.modes.chart import EACH_MODE as EACH_MODE
    from modeshift.modes.chart import ChartData as ChartData
    from modeshift.modes.errors import UserError as UserError
    from modeshift.modes.facts import Done as Done
    from modeshift.modes.facts import Fact as Fact
    from modeshift.modes.phases import Event as Event
    from modeshift.modes.phases import Phase as Phase
    from modeshift.serving import serve as serve
    from modeshift.thread import APPROVE as APPROVE
    from modeshift.thread import REJECT as REJECT
    from modeshift.thread import Thread as Thread
    from modeshift.thread import edit as edit
    from modeshift.threads.compiled import Agent as Agent
    from modeshift.threads.deps import AgentDeps as AgentDeps
    from modeshift.threads.state import State as State
    from modeshift.threads.state import Update as Update
    from modeshift.turns.agent_graph import AgentGraph as AgentGraph
    from modeshift.turns.step import Step as Step

_MODULES = {
    **dict.fromkeys(("Agents", "open_agent"), "agent"),
    **dict.fromkeys(("Chunk", "Printed", "Wrote"), "events"),
    **dict.fromkeys(("EACH_MODE", "ChartData"), "modes.chart"),
    "UserError": "modes.errors",
    **dict.fromkeys(("Done", "Fact"), "modes.facts"),
    **dict.fromkeys(("Event", "Phase"), "modes.phases"),
    "serve": "serving",
    **dict.fromkeys(("APPROVE", "REJECT", "Thread", "edit"), "thread"),
    "Agent": "threads.compiled",
    "AgentDeps": "threads.deps",
    **dict.fromkeys(("State", "Update"), "threads.state"),
    "AgentGraph": "turns.agent_graph",
    "Step": "turns.step",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'modeshift' has no attribute {name!r}")
    return getattr(import_module(f"modeshift.{_MODULES[name]}"), name)
