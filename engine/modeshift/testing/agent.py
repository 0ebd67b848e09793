"""``make_agent`` and ``script``: an agent of the clone in this process; ``judge_call``."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from langchain_core.language_models import BaseChatModel
from langchain_core.messages.tool import tool_call
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from modeshift.graph.approvals.judging import CallContext, judge
from modeshift.graph.deps import AgentDeps
from modeshift.graph.entry.compiled import Agent
from modeshift.graph.models.loading import Models
from modeshift.graph.models.providers import PROVIDERS
from modeshift.graph.state import State
from modeshift.modes.catalog import Catalog
from modeshift.modes.policy import Approvals, Verdict
from modeshift.project import load_project
from modeshift.testing.conversation import Conversation
from modeshift.testing.modes import load_modes
from modeshift.testing.scripted import ScriptedModel, ScriptStep
from modeshift.tools.processes.sandboxes import Commands
from modeshift.tools.tool import Tool, ToolDeps
from modeshift.tools.toolbox import Toolbox, make_tools
from modeshift.tools.workspace.workspace import Workspace

Build = Callable[..., Agent]
Tools = Sequence[tuple[str | None, str | Callable[[ToolDeps], Sequence[Tool]]]]
"""As in ``tools/__init__.py``; a function may stand there itself."""
KEY = "sk-modeshift-test-0123456789abcdef"
"""What models are made with where there is no key: to be played, not asked."""
_JUDGED_SANDBOX: Any = SimpleNamespace(has_network=False)


def make_agent(  # noqa: PLR0913  # what a test may want to be otherwise
    workspace: Path,
    model: BaseChatModel | str = "offline",
    *,
    build: Build | None = None,
    modes: Catalog | None = None,
    tools: Tools | None = None,
    approvals: str = "manual",
    saver: BaseCheckpointSaver[Any] | None = None,
    is_sandboxed: bool = False,
) -> Agent:
    """An agent that works in the folder ``workspace``; what is not given is the clone's.

    A ``saver`` that another agent had has its threads, too. ``is_sandboxed``: calls are judged as
    where there is a sandbox, and no command runs. Raises ``ConfigurationError``.
    """
    project, place = load_project(), Workspace(workspace)
    catalog = modes or load_modes().catalog
    commands = Commands(_JUDGED_SANDBOX if is_sandboxed else None)
    given = ToolDeps(place, {slug: catalog[slug] for slug in catalog}, commands)
    toolbox = Toolbox(place, _make_tools(tools or project.tools, given), commands)
    keys = {provider.key: KEY for provider in PROVIDERS.values() if provider.key}
    missing = {name: key for name, key in keys.items() if not os.environ.get(name)}
    with patch.dict(os.environ, missing):
        models = Models(model)
        deps = AgentDeps(catalog, toolbox, models, Approvals(approvals))
        for slug in catalog:
            models.problem(catalog[slug])  # loads it, while there is a key
    return (build or project.build)(deps, saver or InMemorySaver())


def _make_tools(listed: Tools, deps: ToolDeps) -> Iterator[Tool]:
    for group, make in listed:
        if isinstance(make, str):
            yield from make_tools([(group, make)], deps)
        else:
            yield from (tool.in_group(group) for tool in make(deps))


def script(workspace: Path, *steps: ScriptStep, **options: Any) -> Conversation:
    """A thread of an agent whose model takes one step after the other, whatever it is asked.

    ``options`` are those of ``make_agent``; ``model`` of what is returned has what it was asked.
    """
    model = ScriptedModel.of(*steps)
    talk = Conversation(make_agent(workspace, model, **options))
    talk.model = model
    return talk


async def judge_call(
    agent: Agent,
    mode: str,
    name: str,
    args: Mapping[str, Any],
    approvals: str = "manual",
    limit: str | None = None,
) -> Verdict:
    """Whether the call would run in the mode: its ``kind`` is ``allow``, ``ask`` or ``deny``.

    Its ``reason`` is in words. ``limit`` is the host's. A call of no such tool, or with arguments
    that do not fit, is denied. Raises ``UnknownModeError``.
    """
    deps = agent.live.deps
    state = State(mode=mode, approvals=approvals, limit=limit)
    call = tool_call(name=name, args=dict(args), id="call")
    return (await judge(deps, CallContext.of(deps, state), call)).verdict
