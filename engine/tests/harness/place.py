"""A user's folders in a temporary folder, and the settings that point at them."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.project_files import read_project
from modeshift.configuration.settings import Settings
from modeshift.configuration.trust_file import TrustFile
from modeshift.threads.deps import AgentDeps
from modeshift.tools.processes.sandboxes import Commands
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import MODES

MODE = (
    "  - slug: '{slug}'\n    name: 'N {name}'\n    roleDefinition: {role}\n    groups: [{groups}]\n"
)


def modes_file(*slugs: str, groups: str = "read", role: str = "You help.", rest: str = "") -> str:
    """The text of a modes file."""
    modes = [
        MODE.format(slug=slug, name=slug.capitalize(), role=role, groups=groups) + rest
        for slug in slugs
    ]
    return "customModes:\n" + "".join(modes)


def environment(folder: Path, **settings: str) -> dict[str, str]:
    """This process's, with the data and settings of a user in ``folder`` instead of its own."""
    names = {name.upper() for name in Settings.model_fields}
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in names and not name.endswith(("_API_KEY", "_BASE_URL"))
    }
    (folder / "home").mkdir(exist_ok=True)
    return {
        **kept,
        "CHECKPOINTS": str(folder / "checkpoints.sqlite"),
        "SESSIONS": str(folder / "sessions.sqlite"),
        "CONFIG_FOLDER": str(folder / "home"),
        "TRUST_FILE": str(folder / "trusted.json"),
        "MODES_FOLDER": str(MODES),
        "SANDBOX": "off",
        **settings,
    }


JUDGED_SANDBOX: Any = SimpleNamespace(has_network=False)
"""A sandbox to judge calls with, on any machine; nothing runs in it."""


def in_sandbox(deps: AgentDeps) -> AgentDeps:
    """The same where there is a sandbox; to judge, not to run."""
    commands = Commands(JUDGED_SANDBOX)
    toolbox = build_toolbox(deps.toolbox.workspace, deps.catalog, commands)
    return replace(deps, toolbox=toolbox)


class UserFolders:
    """A user's home, workspace and modes files."""

    def __init__(self, root: Path) -> None:
        self.root, self.home, self.workspace = root, root / "home", root / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        self.global_modes = self.home / "custom_modes.yaml"
        self.permissions = self.home / "permissions.yaml"
        self.project_modes = self.workspace / ".kilocodemodes"

    def settings(self, **given: Any) -> Settings:
        folders: dict[str, Any] = {
            "workspace": self.workspace,
            "config_folder": self.home,
            "trust_file": self.root / "trusted.json",
            "checkpoints": self.root / "checkpoints.sqlite",
            "sessions": self.root / "sessions.sqlite",
            "rules_folders": (str(self.root / ".kilocode"), str(self.root / ".roo")),
        }
        return Settings(**{**folders, **given})

    def environment(self, **given: str) -> dict[str, str]:
        """For a process that works in the workspace."""
        here = {"WORKSPACE": str(self.workspace), "MODEL": "offline"}
        return environment(self.root, **{**here, **given})

    def loader(self, **given: Any) -> AgentLoader:
        return AgentLoader(self.settings(**given))

    def trust(self) -> None:
        workspace = Workspace(self.workspace)
        digests = read_project(workspace).digests
        TrustFile(self.settings().trust_file).trust(workspace.root, digests)

    def rule(self, name: str, text: str) -> None:
        file = self.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
