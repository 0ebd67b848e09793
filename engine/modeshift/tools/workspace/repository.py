"""``find_way_out``: what in a workspace's ``.git`` leads git to another repository."""

import os
from pathlib import Path

ALTERNATES = ".git/objects/info/alternates"
"""Names repositories of which git takes objects, too."""


def find_way_out(root: Path) -> str | None:
    """A path relative to ``root``, which is resolved; None where there is nothing. Blocks."""
    git = root / ".git"
    for path in (git, *git.rglob("*")):
        name = path.relative_to(root).as_posix()
        is_link = path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root)
        # What is linked among its hooks runs, if at all, for a command that asks.
        if (is_link and not name.startswith(".git/hooks")) or name in (
            ".git/commondir",
            ALTERNATES,
        ):
            return name
    return ".git" if git.is_file() else None


def is_shared(root: Path) -> bool:
    """Whether ``.git`` has hard links, or takes objects of another repository. Blocks."""
    paths = (path for path in (root / ".git").rglob("*") if path.is_file())
    return any(path.lstat().st_nlink > 1 or path == root / ALTERNATES for path in paths)
