"""``survey``: what lies in the workspace that a command must not read, or must not change."""

import os
from collections.abc import Iterator
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
    """Files in ``.git`` that lead to settings elsewhere."""

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
        for name, is_folder in _entries(root / prefix):
            scanned += 1
            path = f"{prefix}{name}"
            secret, steers = is_secret(name), name.casefold() in STEERING
            if secret:
                found.secrets.add(path)
            if name == ".git" and is_folder:
                found.repositories.add(path)
                found.links |= _links(root, path)
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


def _entries(folder: Path) -> Iterator[tuple[str, bool]]:
    try:
        with os.scandir(folder) as scan:
            for entry in scan:
                yield entry.name, entry.is_dir(follow_symlinks=False)
    except OSError:  # what cannot be listed, a command cannot list either
        return


def _links(root: Path, repository: str) -> set[str]:
    names = (f"{repository}/commondir", f"{repository}/config.worktree")
    return {name for name in names if os.path.lexists(root / name)}
