"""Which paths of the workspace are hidden or read-only: one by one, or as whole folders.

Each mount costs bubblewrap more than the one before: 500 take half a second, 3000 do not work.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from modeshift.sandbox.scan import Scan
from modeshift.tools.workspace.paths import list_above

MAX_MOUNTS = 500
REPOSITORY_MOUNTS = 7
ROOT = "."


class Protection(NamedTuple):
    """Paths relative to ``root``, the workspace."""

    root: Path
    hidden: set[str]
    read_only: set[str]
    repositories: set[str]
    linked: set[str]
    hidden_folders: set[str]
    """Those of ``hidden`` that are hidden as a whole; ``ROOT`` where nothing less is enough."""
    read_only_folders: set[str]
    plain: set[str]
    """The names in the workspace itself that neither are nor hold anything to protect."""
    patterns: tuple[str, ...]
    """As those of ``Scan``."""


def choose_protection(found: Scan) -> Protection:
    """What to hide and make read-only; whole folders where there would be too many mounts."""
    hidden_folders = choose_folders(dict.fromkeys(found.secrets, 1), found.sizes)
    hidden = hidden_folders | leave_out(found.secrets, hidden_folders)
    steering = leave_out(found.steering, hidden_folders)
    repositories = leave_out(found.repositories, hidden_folders)
    mounts = dict.fromkeys(steering - hidden, 1)
    mounts |= dict.fromkeys(repositories, REPOSITORY_MOUNTS)
    read_only_folders = choose_folders(mounts, found.sizes)
    protected = found.secrets | found.steering | found.repositories
    return Protection(
        found.root,
        hidden,
        read_only_folders | leave_out(steering, read_only_folders),
        leave_out(repositories, read_only_folders),
        leave_out(found.linked, hidden_folders | read_only_folders),
        hidden_folders,
        read_only_folders,
        found.top - {path.partition("/")[0] for path in protected},
        found.patterns,
    )


def leave_out(paths: Iterable[str], folders: set[str]) -> set[str]:
    """The paths without the folders and what lies in them."""
    if ROOT in folders:
        return set()
    return {path for path in paths if path not in folders and folders.isdisjoint(list_above(path))}


def choose_folders(mounts: Mapping[str, int], sizes: Mapping[str, int]) -> set[str]:
    """The folders to close as a whole: none, unless there would be too many mounts.

    ``mounts`` says how many each path takes; each folder above one takes another. ``sizes`` says
    how many entries each folder has: those are closed first that save the most mounts for
    the fewest entries.
    """
    above = {folder for path in mounts for folder in list_above(path)}
    count = sum(mounts.values()) + len(above)
    if count <= MAX_MOUNTS:
        return set()
    saved = _sum_below(above, [*mounts.items(), *((folder, 1) for folder in above)])
    entries = _sum_below(above, [(f"{folder}/", size) for folder, size in sizes.items()])
    closed: set[str] = set()
    for folder in sorted(above, key=lambda folder: (entries[folder] / saved[folder], folder)):
        if count <= MAX_MOUNTS:
            break
        more = saved[folder]
        if more and closed.isdisjoint(list_above(folder)):
            closed.add(folder)
            count -= more
            for other in list_above(folder):  # closing it as well would save that much less
                saved[other] -= more
    if count > MAX_MOUNTS:
        return {ROOT}
    return {folder for folder in closed if closed.isdisjoint(list_above(folder))}


def _sum_below(folders: set[str], counts: Iterable[tuple[str, int]]) -> Counter[str]:
    sums = Counter[str]()
    for path, count in counts:
        for folder in folders.intersection(list_above(path)):
            sums[folder] += count
    return sums
