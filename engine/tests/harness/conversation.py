"""``modeshift.testing`` with the modes and tools of the template."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore

import tools
from graph.agent import build as build_agent
from modeshift import Agent
from modeshift.models.loading import Models
from modeshift.models.offline import OfflineModel
from modeshift.modes.catalog import Catalog
from modeshift.modes.policy import Approvals
from modeshift.testing.conversation import Conversation, problems
from modeshift.testing.scripted import ScriptedModel, ScriptStep
from modeshift.thread import APPROVE, REJECT, edit
from modeshift.threads.deps import AgentDeps
from modeshift.tools.processes.sandboxes import Commands
from modeshift.tools.tool import ToolDeps
from modeshift.tools.toolbox import Toolbox, make_tools
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_catalog

__all__ = ["APPROVE", "REJECT", "Conversation", "Step", "edit", "problems"]
Step = ScriptStep


def make_toolbox(place: Workspace, catalog: Catalog, commands: Commands | None = None) -> Toolbox:
    """The tools of the template."""
    commands = commands or Commands()
    modes = {slug: catalog[slug] for slug in catalog}
    made = make_tools(tools.TOOLS, ToolDeps(place, modes, commands))
    return Toolbox(place, made, commands)


def make_agent(
    workspace: Path | Workspace,
    model: BaseChatModel | Models | str | None = None,
    approvals: Approvals = Approvals.MANUAL,
    saver: BaseCheckpointSaver[Any] | None = None,
    catalog: Catalog | None = None,
    commands: Commands | None = None,
    *,
    store: BaseStore | None = None,
    build: Callable[..., Agent] = build_agent,
    **more: Any,
) -> Agent:
    """An agent on ``workspace``, with the offline model unless another is given."""
    catalog = catalog or load_catalog()
    place = Workspace(workspace) if isinstance(workspace, Path) else workspace
    toolbox = make_toolbox(place, catalog, commands)
    models = model if isinstance(model, Models) else Models(model or OfflineModel())
    deps = AgentDeps(catalog, toolbox, models, approvals, **more)
    agent = build(deps, saver or InMemorySaver())
    agent.store = store
    return agent


def open_thread(deps: AgentDeps, store: BaseStore | None = None) -> Conversation:
    """A thread of an agent that is made of ``deps``."""
    agent = build_agent(deps, InMemorySaver())
    agent.store = store
    return Conversation(agent)


def reload(talk: Conversation, deps: AgentDeps) -> None:
    """Go on with the thread in another agent, as a process does that has taken over."""
    saver = talk.agent.checkpointer
    talk.agent = build_agent(deps, saver)  # type: ignore[arg-type]  # it is one


def restart(talk: Conversation, workspace: Path, **options: Any) -> None:
    """The same with an agent on ``workspace``, and with the model that ``script`` made, if any."""
    saver: Any = talk.agent.checkpointer
    if talk.model.answers:
        options.setdefault("model", talk.model)
    talk.agent = make_agent(workspace, saver=saver, **options)


def script(workspace: Path, *steps: ScriptStep, **options: Any) -> Conversation:
    """A conversation with a model that takes one step after the other.

    The ids of calls are as ``ScriptedModel.of`` says.
    """
    model = ScriptedModel.of(*steps)
    talk = Conversation(make_agent(workspace, model, **options))
    talk.model = model
    return talk


async def run_script(
    workspace: Path, *steps: ScriptStep, mode: str = "ask", limit: str | None = None, **options: Any
) -> Conversation:
    """The same, and the user has said "go" in ``mode``, under the host's ``limit``."""
    talk = script(workspace, *steps, **options)
    await talk.say("go", mode=mode, **({"limit": limit} if limit else {}))
    return talk


SECONDS = 120
"""What a test waits for at most, of what takes a second on a machine with nothing else to do."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait until another task or process has made ``condition`` true."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.02)


async def cut_off(run: Coroutine[Any, Any, None], condition: Callable[[], bool]) -> None:
    """Cancel a run once ``condition`` is true."""
    task = asyncio.create_task(run)
    await until(condition)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
