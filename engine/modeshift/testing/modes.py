"""``load_modes``: what a modes file loads to, with its notices."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from modeshift.configuration.settings import Settings, get_modes_folder
from modeshift.configuration.sources import GLOBAL_FILES, PERMISSIONS, Sources
from modeshift.modes.catalog import Catalog
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
