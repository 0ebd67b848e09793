"""``AgentCache``: an agent per folder and model, rebuilt when the files it was made from change."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END
from langgraph.types import Interrupt, StateSnapshot

from doors.editor.options import Modes, modes_of
from graph.agent import Agent, build_agent
from graph.configuration.loading import AgentLoader
from graph.deps import AgentDeps, StartedCalls
from graph.settings import Settings
from modes.machine import Phase
from tools.workspace.client_files import buffers

log = logging.getLogger("modeshift")


@dataclass(frozen=True)
class LoadedAgent:
    """An agent, and the harness that it was built from."""

    deps: AgentDeps
    agent: Agent
    modes: Modes
    """As an editor shows them; there may be many."""

    async def state(self, id: str) -> StateSnapshot:
        """Of the thread of this id."""
        return await self.agent.aget_state(config_of(id))

    async def question(self, id: str) -> Interrupt | None:
        """What waits for a person in the thread."""
        return next(iter((await self.state(id)).interrupts), None)

    async def settle(self, id: str) -> None:
        """Keep what a run that was cut off has done by then; nothing of it goes on.

        LangGraph has the answers of finished calls beside the checkpoint, and the input of
        another run would drop them. ``next`` does not name the calls that have one.
        """
        state = await self.state(id)
        if state.interrupts:
            await self.write(id, {"phase": Phase.IDLE.value})
        elif state.tasks:
            await self.agent.aupdate_state(config_of(id), None, as_node=END)

    async def write(self, id: str, values: dict[str, Any]) -> None:
        """Write into the thread, between two steps; the machine says anew what comes next."""
        await self.agent.aupdate_state(config_of(id), values, as_node="intake")


def config_of(id: str) -> RunnableConfig:
    """Of a run in the thread of this id."""
    return {"configurable": {"thread_id": id}}


class AgentCache:
    """One to a process."""

    def __init__(self, settings: Settings, saver: BaseCheckpointSaver[str]) -> None:
        self.settings = settings
        self._saver = saver
        self._loaders: dict[tuple[Path, str], AgentLoader] = {}
        self._agents: dict[tuple[Path, str], LoadedAgent] = {}
        self._lock = asyncio.Lock()
        self._started_calls = StartedCalls()

    async def get(self, cwd: Path, model: str) -> LoadedAgent:
        """For the folder as its files are now; raises ``UserError``."""
        async with self._lock:
            return await asyncio.to_thread(_on_disk, lambda: self._get(cwd, model))

    def _get(self, cwd: Path, model: str) -> LoadedAgent:
        key = cwd, model
        loader = self._loaders.get(key)
        if loader is None:
            settings = self.settings.model_copy(update={"workspace": cwd, "model": model})
            loader = AgentLoader(settings, self._started_calls)
        elif key in self._agents and not loader.is_outdated():
            return self._agents[key]
        deps = loader.deps()
        agent = build_agent(deps, self._saver, self.settings.max_steps)
        self._loaders[key] = loader
        loaded = self._agents[key] = LoadedAgent(deps, agent, modes_of(deps.catalog))
        for notice in deps.notices:
            log.warning(notice)
        return loaded


def _on_disk(make: Callable[[], LoadedAgent]) -> LoadedAgent:
    """What is trusted is what is on disk, not what an editor has open."""
    buffers.set(None)
    return make()
