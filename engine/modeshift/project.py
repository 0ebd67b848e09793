"""``Project``: the clone that the engine serves, and where it is. The engine imports none of it."""

import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from modeshift.modes.chart import ChartData
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.facts import BUILT_IN, Fact

MARK = "langgraph.json"
"""The file that every clone has in its folder."""
GRAPH = "agent"
"""The graph's name there."""
ENGINE = "modeshift"
"""The engine's distribution; a clone's ``pyproject.toml`` names the versions that it fits."""
ENGINE_FOLDER = "engine"
"""The folder in which a clone has the engine, unless it has a wheel."""
AGENT = "graph.agent"
"""The clone's module that calls ``modeshift.serve``."""


@dataclass(frozen=True)
class Project:
    """What a clone gives to the engine."""

    root: Path
    """The folder with ``modes``, ``prompts``, ``.env`` and the rest."""
    build: Callable[..., Any]
    """Makes the graph; see ``graph/agent.py`` of the clone."""
    chart: ChartData
    """Phases and edges: ``graph/chart.py`` of the clone."""
    state: type
    """The clone's ``State``, which inherits ``modeshift.State``."""
    tools: Sequence[tuple[str | None, str]]
    """Tool groups, each with ``module:function``, which makes its tools; None: in every mode."""
    own_facts: Sequence[Fact] = ()
    """What conditions of edges may name beside the engine's facts."""

    @property
    def facts(self) -> dict[str, Fact]:
        """The engine's facts and the clone's own, by name."""
        return {fact.name: fact for fact in (*BUILT_IN, *self.own_facts)}

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that a mode can name; in ``mcp`` are the tools of MCP servers."""
        return tuple(dict.fromkeys([*(group for group, _ in self.tools if group), "mcp"]))


_registered: list[Project] = []
_named: list[Path] = []


def register(project: Project) -> None:
    """Make the process serve this project; ``modeshift.serve`` does that."""
    _registered[:] = [project]


def use_root(folder: Path) -> None:
    """Serve the clone in this folder, whatever folder the process runs in.

    Raises ``ConfigurationError`` where there is none.
    """
    if not (folder / MARK).is_file():
        raise ConfigurationError(f"--project {str(folder)!r} is no project: it has no {MARK}")
    _named[:] = [folder.absolute()]


def find_root() -> Path:
    """The clone's folder: as registered, as named, or the nearest one above this process's."""
    for root in (*(project.root for project in _registered), *_named):
        return root
    start = Path.cwd()
    for folder in (start, *start.parents):
        if (folder / MARK).exists():
            return folder
    raise ConfigurationError(
        f"{start} is not in a project: no folder from there up has a {MARK}; go to your clone, "
        "or name it with --project"
    )


def say_how_to_add(extra: str) -> str:
    """How a user adds a part of the engine that is missing."""
    return f"make add EXTRA={extra}"


def check_engine(root: Path) -> None:
    """Raise ``ConfigurationError`` if another engine is installed than the clone has or fits.

    Its ``pyproject.toml`` says which it fits, in ``[tool.modeshift]`` or, as until 0.2, among the
    dependencies.
    """
    from packaging.requirements import Requirement  # noqa: PLC0415  # an editor is answered before
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415

    _check_copy(root / ENGINE_FOLDER / ENGINE, Path(__file__).parent)
    file = root / "pyproject.toml"
    if not file.exists():
        return
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        fits = SpecifierSet(data.get("tool", {}).get(ENGINE, {}).get("engine", ""))
        named = data.get("project", {}).get("dependencies", [])
        for needed in (Requirement(text) for text in named if " @ " not in text):
            if needed.name.lower() == ENGINE:
                fits &= needed.specifier
    except (OSError, ValueError, TypeError, AttributeError) as error:  # of packaging's, too
        raise ConfigurationError(f"{file} does not say which engine fits: {error}") from error
    installed = version(ENGINE)
    if not fits.contains(installed, prereleases=True):
        raise ConfigurationError(
            f"this clone needs {ENGINE}{fits}, says {file}, and {installed} is "
            "installed: install one that fits, or upgrade the clone (docs/own/upgrading.md)"
        )


def _check_copy(folder: Path, installed: Path) -> None:
    """Raise ``ConfigurationError`` if pip has installed a copy of the folder that is old."""
    if not folder.is_dir() or folder.samefile(installed):
        return
    files = [file for file in folder.rglob("*.py") if file.is_file()]
    copies = ((file, installed / file.relative_to(folder)) for file in files)
    if any(not copy.is_file() or copy.read_bytes() != file.read_bytes() for file, copy in copies):
        raise ConfigurationError(
            f"the engine that is installed is not that of {folder.parent}: run pip install -e . "
            "again (make and uv use the folder as it is)"
        )


def load_project() -> Project:
    """The clone, imported if it is not yet. Raises ``ConfigurationError``."""
    if not _registered:
        folder = find_root()
        check_engine(folder)  # here, too: its imports may be what an old engine does not have
        root = str(folder)
        if root not in sys.path:
            sys.path.insert(0, root)
        import_module(AGENT)
    if not _registered:
        raise ConfigurationError(f"{AGENT} does not call modeshift.serve")
    return _registered[0]
