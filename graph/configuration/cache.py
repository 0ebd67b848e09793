"""The graph that the server serves, as the modes' files are now."""

import asyncio
import logging
from threading import Lock

from graph.agent import Agent, build_agent
from graph.configuration.loading import Workshop
from graph.settings import load_settings

log = logging.getLogger("modeshift")


class _Served:
    """Makes the agent at its first use, and anew when a file changes that it was made from."""

    def __init__(self) -> None:
        self._lock = Lock()  # or the first requests would make one each
        self._workshop: Workshop | None = None
        self._agent: Agent | None = None

    def agent(self) -> Agent:
        with self._lock:
            if self._agent is None or self._workshop is None:
                # doors/server/single_resume.py names the question where the user need not.
                self._settings = load_settings().model_copy(update={"bound_answers": True})
                self._workshop = Workshop(self._settings)
                self._agent = self._build(self._workshop)
            elif self._workshop.is_outdated():
                self._agent = self._build(self._workshop)
            return self._agent

    def _build(self, workshop: Workshop) -> Agent:
        harness = workshop.harness()
        for notice in harness.notices:
            log.warning(notice)
        return build_agent(harness, max_steps=self._settings.max_steps)


_served = _Served()


async def agent() -> Agent:
    """The graph ``agent`` of ``langgraph.json``; the server asks for it at every run.

    To a thread, because reading files is forbidden in its event loop.
    """
    return await asyncio.to_thread(_served.agent)
