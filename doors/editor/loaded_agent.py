"""``LoadedAgent``: the agent for a session, and what is done with the session's thread."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.types import StateSnapshot

from doors.editor.options import Modes, list_modes
from graph.agent import Agent
from graph.configuration.cache import AgentCache
from graph.deps import AgentDeps
from modes.machine import Phase
from tools.workspace.client_files import buffers


@dataclass(frozen=True)
class LoadedAgent:
    """An agent, what its nodes share, and its modes."""

    deps: AgentDeps
    agent: Agent
    modes: Modes

    async def read(self, id: str) -> StateSnapshot:
        """The thread's state."""
        return await self.agent.aget_state(config_of(id))

    async def drop_open_question(self, id: str) -> None:
        """Drop an open question; keep what a run had finished when it was cut off.

        LangGraph stores the results of finished tasks beside the checkpoint, where the next
        run's input would drop them.
        """
        state = await self.read(id)
        if state.interrupts:
            await self.write(id, {"phase": Phase.IDLE.value})
        elif state.tasks:
            await self.agent.aupdate_state(config_of(id), None, as_node=END)

    async def write(self, id: str, values: dict[str, Any]) -> None:
        """Write between two steps; the state machine then decides anew what comes next."""
        await self.agent.aupdate_state(config_of(id), values, as_node="intake")


def config_of(id: str) -> RunnableConfig:
    """The LangGraph config for a run in the thread with this id."""
    return {"configurable": {"thread_id": id}}


async def load_agent(agents: AgentCache, cwd: Path, model: str) -> LoadedAgent:
    """The agent for the folder as its files are now; raises ``UserError``."""

    def load() -> LoadedAgent:
        buffers.set(None)  # what a person trusts is what is on disk, not what an editor has open
        cached = agents.get(cwd, model)
        return LoadedAgent(cached.deps, cached.agent, list_modes(cached.deps.catalog))

    return await asyncio.to_thread(load)
