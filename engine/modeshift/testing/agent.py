"""``make_agent``, ``script`` and ``load_modes``: an agent, and modes, in this process."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from modeshift.configuration.settings import Settings, get_modes_folder
from modeshift.configuration.sources import GLOBAL_FILES, PERMISSIONS, Sources
from modeshift.models.loading import Models
from modeshift.models.providers import PROVIDERS
from modeshift.modes.catalog import Catalog
from modeshift.modes.policy import Approvals
from modeshift.project import load_project
from modeshift.testing.conversation import Build, Conversation
from modeshift.testing.scripted import ScriptedModel, ScriptStep
from modeshift.threads.compiled import Agent
from modeshift.threads.deps import AgentDeps
from modeshift.tools.processes.sandboxes import Commands
from modeshift.tools.tool import Tool, ToolDeps
from modeshift.tools.toolbox import Toolbox, make_tools
from modeshift.tools.workspace.workspace import Workspace


class LoadedModes(NamedTuple):
    """The modes, and what a person is told of their files."""

    catalog: Catalog
    """Modes by slug, the default one first."""
    notices: tuple[str, ...]


def load_modes(
    text: str = "",
    *,
    permissions: str = "",
    is_project: bool = False,
    folder: Path | None = None,
    default: str | None = None,
) -> LoadedModes:
    """The modes of ``folder``, the clone's ``modes`` if none is given, with those of a modes file.

    ``text`` is the file's: the user's own, or, if it ``is_project``, a workspace's that is trusted.
    ``permissions`` is the text of a ``permissions.yaml``. A mode that cannot be used is left out,
    and a notice says why. ``default`` is a mode instead of the one whose file says so, or ``ask``.
    Raises ``ConfigurationError`` where there is no such mode, and ``ModeFileError`` for
    permissions that do not load.
    """
    folder = folder or get_modes_folder()
    with TemporaryDirectory() as temporary:
        root = Path(temporary).resolve()
        home, workspace = root / "home", root / "workspace"
        home.mkdir()
        workspace.mkdir()
        (home / PERMISSIONS).write_text(permissions, encoding="utf-8")
        file = workspace / ".kilocodemodes" if is_project else home / GLOBAL_FILES[-1]
        if text:
            file.write_text(text, encoding="utf-8")
        settings = Settings(
            workspace=workspace,
            config_folder=home,
            modes_folder=folder,
            trust_file=root / "trusted.json",
            checkpoints=root / "checkpoints.sqlite",
            sessions=root / "sessions.sqlite",
            rules_folders=(),
            trust_workspace=is_project,
            default_mode=default,
        )
        loaded = Sources(settings, Workspace(workspace)).load()
        found = (
            notice for notice in loaded.notices if not notice.startswith("DEFAULT_MODE is set")
        )
        notices = (notice.replace(f"{home}/", "") for notice in found)
        return LoadedModes(loaded.catalog, tuple(notices))


Tools = Sequence[tuple[str | None, str | Callable[[ToolDeps], Sequence[Tool]]]]
"""Groups of tools as in ``tools/__init__.py``, where a function itself may stand for its name."""
KEY = "sk-modeshift-test-0123456789abcdef"
"""The key of models that have none: they are replayed, and not asked."""
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
    only_tools: Collection[str] | None = None,
) -> Agent:
    """An agent that works in the folder ``workspace``; what is left out is the clone's.

    With another agent's ``saver`` it has that one's threads, too. ``is_sandboxed``: calls are
    judged as if there were a sandbox, and no command runs. ``only_tools``: the names of the tools
    that it has. Raises ``ConfigurationError``.
    """
    project, place = load_project(), Workspace(workspace)
    catalog = modes or load_modes().catalog
    commands = Commands(_JUDGED_SANDBOX if is_sandboxed else None)
    made = _make_tools(tools or project.tools, ToolDeps(place, catalog, commands))
    kept = (tool for tool in made if only_tools is None or tool.spec.name in only_tools)
    toolbox = Toolbox(place, kept, commands)
    keys = {provider.key: KEY for provider in PROVIDERS.values() if provider.key}
    missing = {name: key for name, key in keys.items() if not os.environ.get(name)}
    with patch.dict(os.environ, missing):
        models = Models(model)
        deps = AgentDeps(catalog, toolbox, models, Approvals(approvals))
        for mode in catalog.values():
            models.problem(mode)  # loads it, while there is a key
    return (build or project.build)(deps, saver or InMemorySaver())


def _make_tools(listed: Tools, deps: ToolDeps) -> Iterator[Tool]:
    for group, make in listed:
        if isinstance(make, str):
            yield from make_tools([(group, make)], deps)
        else:
            yield from (tool.in_group(group) for tool in make(deps))


def script(workspace: Path, *steps: ScriptStep, **options: Any) -> Conversation:
    """A thread of an agent whose model takes one step after the other, whatever it is asked.

    ``options`` are those of ``make_agent``; the result's ``model`` has the requests that it got.
    """
    model = ScriptedModel.of(*steps)
    return Conversation(make_agent(workspace, model, **options), model=model)
