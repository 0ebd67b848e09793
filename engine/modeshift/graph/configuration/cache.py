"""``AgentCache``: agents that are rebuilt when a file changes that they were made from."""

import asyncio
import json
import logging
from dataclasses import asdict
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from langgraph.checkpoint.base import BaseCheckpointSaver

from modeshift.graph.configuration.environment import load_settings
from modeshift.graph.configuration.loading import AgentLoader
from modeshift.graph.deps import AgentDeps
from modeshift.graph.entry.compiled import Agent
from modeshift.graph.settings import Settings
from modeshift.graph.threads.mailbox import Mailbox
from modeshift.graph.threads.started_calls import StartedCalls
from modeshift.mcp.pool import ServerPool
from modeshift.mcp.server import Server
from modeshift.project import load_project

log = logging.getLogger("modeshift")


class CachedAgent(NamedTuple):
    """An agent, and what its nodes share."""

    agent: Agent
    loader: AgentLoader

    @property
    def deps(self) -> AgentDeps:
        """What its nodes share, with the tools of MCP servers that are known by now."""
        return self.agent.live.deps


class AgentCache:
    """One agent for each workspace, model and editor's servers; one cache to a process."""

    def __init__(
        self,
        settings: Settings,
        saver: BaseCheckpointSaver[Any] | None = None,
        mailbox: Mailbox | None = None,
    ) -> None:
        """``mailbox`` is where the host sets a thread's mode while a run goes on."""
        self.settings = settings
        self._saver = saver
        self._cached: dict[tuple[Path, str, str], CachedAgent] = {}
        self._lock = Lock()  # or the first requests would make one each
        # Shared by all: a conversation may go from one model to another.
        self._started_calls = StartedCalls(mailbox)
        self._pool = ServerPool()

    def get(self, workspace: Path, model: str, servers: tuple[Server, ...] = ()) -> CachedAgent:
        """The agent for the files as they are now. Blocks; raises ``UserError``.

        ``servers`` are the MCP servers that an editor's session has.
        """
        key = (workspace, model, json.dumps([asdict(server) for server in servers]))
        with self._lock:
            cached = self._cached.get(key)
            if cached is not None and not cached.loader.is_outdated():
                return cached
            if cached is None:
                settings = self.settings.model_copy(update={"workspace": workspace})
                loader = AgentLoader(
                    settings.with_model(model), self._started_calls, servers, self._pool
                )
            else:
                loader = cached.loader
            deps = loader.deps()
            for notice in deps.notices:
                log.warning(notice)
            agent = load_project().build(deps, self._saver, self.settings.max_steps)
            self._cached[key] = CachedAgent(agent, loader)
            return self._cached[key]

    async def delete_thread(self, thread: str) -> None:
        """Delete all that is stored of a thread."""
        if self._saver is not None:
            await self._saver.adelete_thread(thread)

    async def copy_thread(self, source: str, target: str) -> None:
        """Copy all that is stored of a thread to a new one."""
        if self._saver is not None:
            await self._saver.acopy_thread(source, target)


_first = Lock()


@cache
def _served() -> AgentCache:
    # doors/server/bind_answers.py names the question where the user need not.
    settings = load_settings().model_copy(update={"bound_answers": True})
    return AgentCache(settings, mailbox=Mailbox(settings.checkpoints))


async def agent() -> Agent:
    """The graph ``agent`` of ``langgraph.json``; the server asks for it at every run."""
    return (await get_served()).agent


async def get_served() -> CachedAgent:
    """The agent that this process serves.

    In a thread, because reading files is forbidden in the server's event loop.
    """

    def get() -> CachedAgent:
        with _first:  # or the first requests would make one each
            served = _served()
        return served.get(served.settings.workspace, served.settings.model)

    return await asyncio.to_thread(get)
