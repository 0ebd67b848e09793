"""The graph that the server serves, as the modes' files are now."""

import asyncio
import logging
from threading import Lock

from graph.agent import Agent, build_agent
from graph.configuration.loading import AgentLoader
from graph.settings import load_settings

log = logging.getLogger("modeshift")


class _Served:
    """Makes the agent at its first use, and anew when a file changes that it was made from."""

    def __init__(self) -> None:
        self._lock = Lock()  # or the first requests would make one each
        self._loader: AgentLoader | None = None
        self._agent: Agent | None = None

    def agent(self) -> Agent:
        with self._lock:
            if self._agent is None or self._loader is None:
                # doors/server/single_resume.py names the question where the user need not.
                self._settings = load_settings().model_copy(update={"bound_answers": True})
                self._loader = AgentLoader(self._settings)
                self._agent = self._build(self._loader)
            elif self._loader.is_outdated():
                self._agent = self._build(self._loader)
            return self._agent

    def _build(self, loader: AgentLoader) -> Agent:
        deps = loader.deps()
        for notice in deps.notices:
            log.warning(notice)
        return build_agent(deps, max_steps=self._settings.max_steps)


_served = _Served()


async def agent() -> Agent:
    """The graph ``agent`` of ``langgraph.json``; the server asks for it at every run.

    To a thread, because reading files is forbidden in its event loop.
    """
    return await asyncio.to_thread(_served.agent)
