"""``find_way_out``: what in a workspace's ``.git`` leads git to another repository."""

import os
from collections.abc import Iterator
from pathlib import Path

ALTERNATES = ".git/objects/info/alternates"
"""Names repositories of which git takes objects, too."""


def find_way_out(root: Path) -> str | None:
    """A path relative to ``root``, which is resolved; None where there is nothing. Blocks."""
    if (root / ".git").is_symlink() or (root / ".git").is_file():
        return ".git"
    for name in (".git/commondir", ALTERNATES):
        if os.path.lexists(root / name):
            return name
    for path in _list_entries(root / ".git"):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            return path.relative_to(root).as_posix()
    return None


def has_shared_files(root: Path) -> bool:
    """Whether a file of its ``.git`` is a hard link: who changes it changes another's. Blocks."""
    paths = (path.lstat() for path in _list_entries(root / ".git") if path.is_file())
    return any(details.st_nlink > 1 for details in paths)


def _list_entries(folder: Path) -> Iterator[Path]:
    """All in a ``.git`` but its hooks, which only a command that asks can run."""
    for parent, folders, files in os.walk(folder):
        if parent == str(folder) and "hooks" in folders:
            folders.remove("hooks")
        yield from (Path(parent, name) for name in (*folders, *files))
