"""``find_way_out``: what in a workspace's ``.git`` leads git to another repository."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ALTERNATES = ".git/objects/info/alternates"
"""Names repositories of which git takes objects, too."""


def find_way_out(root: Path) -> str | None:
    """A path relative to ``root``, which is resolved; None where there is nothing. Blocks."""
    git = root / ".git"
    for path in _list_links(git):
        name = os.path.relpath(path, root)
        # What is linked among its hooks runs, if at all, for a command that asks.
        is_hook = name.startswith(".git/hooks")
        if not (is_hook or Path(os.path.realpath(path)).is_relative_to(root)):
            return name
    names = (".git/commondir", ALTERNATES)
    is_file = ".git" if git.is_file() else None
    return next((name for name in names if os.path.lexists(root / name)), is_file)


def _list_links(folder: Path) -> Iterator[str]:
    """The folder, and what is below it, as far as these are links."""
    if folder.is_symlink():
        yield str(folder)
    due = [str(folder)]
    while due:
        # Not pathlib: without a ``stat`` of each of maybe 20,000 objects, which may be links, too.
        with suppress(OSError), os.scandir(due.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield entry.path
                elif entry.is_dir(follow_symlinks=False):
                    due.append(entry.path)


def is_shared(root: Path) -> bool:
    """Whether ``.git`` has hard links, or takes objects of another repository. Blocks."""
    paths = (path for path in (root / ".git").rglob("*") if path.is_file())
    return any(path.lstat().st_nlink > 1 or path == root / ALTERNATES for path in paths)
