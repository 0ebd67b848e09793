"""What the tests of the tools share."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from modeshift.modes.errors import InvalidCallError, ToolFailedError
from modeshift.tools.toolbox import Toolbox, build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_catalog
from tests.harness.sleepers import new_mark

LIMIT = 100_000
Run = Callable[..., Coroutine[Any, Any, str]]


@pytest.fixture
def run(workspace: Path) -> Run:
    """Run a tool by name, as ``act`` does; no result is longer than the model gets."""
    return make_run(build_toolbox(Workspace(workspace), load_catalog()))


def make_run(toolbox: Toolbox) -> Run:
    async def run(name: str, **args: Any) -> str:
        tool = toolbox[name]
        checked = toolbox.check(tool, args)
        text = str(
            await tool.runnable.ainvoke(args | {path: checked[path] for path in tool.spec.paths})
        )
        assert len(text) < LIMIT
        return text

    return run


async def run_wrongly(run: Run, *calls: tuple[str, dict[str, Any]]) -> dict[str, str]:
    """Calls that are refused or fail, and what the model is told of each."""
    told = {}
    for name, args in calls:
        with pytest.raises((ToolFailedError, InvalidCallError)) as caught:
            await run(name, **args)
        told[f"{name} {str(args)[:200]}"] = str(caught.value)
    assert len(told) == len(calls)
    return told


@pytest.fixture
def mark() -> str:
    """What a process of this test alone sleeps."""
    return new_mark()
