"""``serve``: hands a clone's graph and tools to the engine."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from modeshift.graph.entry.compiled import Agent
from modeshift.project import Project, register


def serve(
    build: Callable[..., Agent], *, root: Path, tools: Sequence[tuple[str | None, str]]
) -> Callable[[], Awaitable[Any]]:
    """Make ``build`` the graph of this process; gives what ``langgraph.json`` names as graph.

    ``root`` is the clone's folder, ``tools`` the list in its ``tools/__init__.py``.
    """
    register(Project(root, build, tuple(tools)))

    async def agent() -> Agent:
        from modeshift.graph.configuration.cache import get_served  # noqa: PLC0415  # a second

        return (await get_served()).agent

    return agent
