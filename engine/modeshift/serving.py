"""``serve``: hands a clone's graph, state and tools to the engine."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langgraph_sdk.runtime import ServerRuntime

from modeshift.modes.chart import ChartData
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.facts import BUILT_IN, Fact
from modeshift.project import Project, check_engine, register
from modeshift.threads.compiled import Agent

USER = "langgraph_auth_user_id"
"""The key under which the server names a run's user; it replaces what a client says there."""


def serve(
    build: Callable[..., Agent],
    *,
    root: Path,
    chart: ChartData,
    state: type,
    tools: Sequence[tuple[str | None, str]],
    facts: Sequence[Fact] = (),
) -> Callable[[Mapping[str, Any], ServerRuntime[Any]], Awaitable[Any]]:
    """Make ``build`` the graph of this process; returns what ``langgraph.json`` names as graph.

    ``root`` is the clone's folder, ``tools`` the list in its ``tools/__init__.py``, ``facts`` are
    its own. Raises ``ConfigurationError`` for an engine that is too old or too new for the clone.
    """
    names = [fact.name for fact in (*BUILT_IN, *facts)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigurationError(f"two facts are called {twice[0]!r}; rename yours")
    folder = Path(os.path.abspath(root))  # noqa: PTH100  # resolve() would follow links
    check_engine(folder)
    register(Project(folder, build, chart, state, tuple(tools), tuple(facts)))

    async def agent(config: Mapping[str, Any], runtime: ServerRuntime[Any]) -> Agent:
        from modeshift.configuration.loading import get_served  # noqa: PLC0415  # a second

        configurable = config.get("configurable") or {}
        thread, user = (str(configurable.get(key) or "") for key in ("thread_id", USER))
        return (await get_served(thread, user or "anybody", runtime.store, enters=True)).agent

    return agent
