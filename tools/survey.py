"""``survey``: what lies in the workspace that a command must not read, or must not change."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from modes.errors import ToolFailedError
from modes.guarded import ASK, NEVER, is_secret

STEERING = ASK | NEVER
MAX_SCANNED = 500_000
MAX_FOUND = 300  # each of them takes a mount, or a descriptor
DEPENDENCIES = frozenset({"node_modules", "site-packages", ".venv", "venv", ".tox", ".nox"})
"""Folders with what others have written, certificates among it: nothing is looked for in them."""


@dataclass
class Survey:
    """Paths relative to the workspace; what is in a folder that is named is not named."""

    secrets: set[str] = field(default_factory=set)
    """What looks as if it held a secret."""
    steering: set[str] = field(default_factory=set)
    """What steers people or tools."""
    repositories: set[str] = field(default_factory=set)
    """``.git``, as a folder."""
    links: set[str] = field(default_factory=set)
    """Links that steer, with where they lead; and files in ``.git`` that lead elsewhere."""

    @property
    def makers(self) -> set[str]:
        """All that decides what runs next."""
        return self.steering | self.repositories | self.links


def survey(root: Path) -> Survey:
    """Look at all names; raises ``ToolFailedError`` where there are too many. Blocks."""
    found = Survey()
    scanned = 0
    folders = [""]
    while folders:
        prefix = folders.pop()
        for entry in _entries(root, prefix):
            scanned += 1
            name, path = entry.name, f"{prefix}{entry.name}"
            is_folder = entry.is_dir(follow_symlinks=False)
            secret, steers = is_secret(name), name.casefold() in STEERING
            if secret:
                found.secrets.add(path)
            if name == ".git" and is_folder:
                found.repositories.add(path)
                found.links |= _leading(root, path)
            elif steers and entry.is_symlink():
                found.links.add(f"{path} -> {(root / path).readlink()}")
            elif steers:
                found.steering.add(path)
            elif is_folder and not secret and name not in DEPENDENCIES:
                folders.append(f"{path}/")
        if scanned > MAX_SCANNED or len(found.makers) > MAX_FOUND:
            raise ToolFailedError(
                "the workspace has too many files for the sandbox to protect those that steer "
                f"people and tools: more than {MAX_FOUND} of them, or more than {MAX_SCANNED} in "
                "all; work in a folder below"
            )
    return found


def _entries(root: Path, prefix: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root / prefix) as scan:
            return list(scan)
    except (FileNotFoundError, NotADirectoryError):  # it has gone meanwhile
        return []
    except OSError as error:
        # What is not ours, and not to be entered, no command can enter either.
        if isinstance(error, PermissionError) and _is_closed(root / prefix):
            return []
        raise ToolFailedError(
            f"the folder {prefix!r} cannot be looked into ({error.strerror}), so the sandbox "
            "cannot protect what is in it; make it readable, or move it away"
        ) from error


def _is_closed(folder: Path) -> bool:
    return folder.stat().st_uid != os.geteuid() and not os.access(folder, os.X_OK)


def _leading(root: Path, repository: str) -> set[str]:
    names = ("commondir", "config", "config.worktree")
    return {f"{repository}/{name}" for name in names if os.path.lexists(root / repository / name)}
