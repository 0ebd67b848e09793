"""Files in the workspace that have another name outside of it.

Who changes one changes the other: uv and pnpm link what they install to their caches.
"""

import os
import stat
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from modeshift.modes.rules.protected_paths import DEPENDENCIES
from modeshift.sandbox.scan import MAX_PATH, Scan

MAX_FILES = 5_000  # each of them takes 4 µs, for each command
MAX_LINKED = 50  # each takes a mount, and cannot be replaced


def find_few_linked_outside(found: Scan) -> set[str]:
    """Those outside of dependencies; none if they are many, or the workspace is large. Blocks."""
    if sum(found.sizes.values()) > MAX_FILES:
        return set()
    linked = find_linked_outside(found.root, DEPENDENCIES | {".git"}, MAX_FILES)
    mountable = {path for path in linked if len(os.fsencode(path)) < MAX_PATH}
    return mountable if len(mountable) <= MAX_LINKED else set()


def find_linked_outside(
    root: Path, left_out: Collection[str] = (), limit: int | None = None
) -> set[str]:
    """Paths in the workspace, except in folders whose names are in ``left_out``. Blocks.

    With a ``limit`` only so many entries of these are looked at: files with another name there
    may then count as linked outside.
    """
    inside = defaultdict[int, list[str]](list)
    links: dict[int, int] = {}
    folders: list[str] = []
    for path, entry in _walk(root, left_out):
        if entry.is_dir(follow_symlinks=False):
            folders.append(path)  # one that is left out
            continue
        with suppress(OSError):  # it has gone meanwhile
            details = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(details.st_mode) and details.st_nlink > 1:
                inside[details.st_ino].append(path)
                links[details.st_ino] = details.st_nlink
    known = Counter({inode: len(paths) for inode, paths in inside.items()})
    if any(known[inode] < links[inode] for inode in inside):
        others = (entry for folder in folders for _, entry in _walk(root / folder))
        known.update(entry.inode() for entry in islice(others, limit))
    return {
        path for inode, paths in inside.items() if known[inode] < links[inode] for path in paths
    }


def _walk(root: Path, left_out: Collection[str] = ()) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All entries, except the folders that it descends into."""
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        with suppress(OSError), os.scandir(root / prefix) as entries:
            for entry in entries:
                path = f"{prefix}{entry.name}"
                if entry.name in left_out or not entry.is_dir(follow_symlinks=False):
                    yield path, entry
                else:
                    waiting.append(f"{path}/")
