"""``folders_to_close``: which folders to protect as a whole, where there is too much to protect.

Each mount costs bubblewrap more than the one before: 500 take half a second, 3000 do not work.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

MAX_MOUNTS = 500
ROOT = "."


def above(path: str) -> Iterator[str]:
    """The folders above a path, without the workspace itself."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def outside(paths: Iterable[str], folders: set[str]) -> set[str]:
    """The paths that are no such folder, and in none."""
    if not folders or ROOT in folders:
        return set() if folders else set(paths)
    return {path for path in paths if path not in folders and folders.isdisjoint(above(path))}


def folders_to_close(mounts: Mapping[str, int], sizes: Mapping[str, int]) -> set[str]:
    """None where it is not too much; ``ROOT`` where nothing less is enough.

    ``mounts`` are those that each path takes; each folder above takes one, too. ``sizes`` are
    the entries of each folder: as few as possible are closed for as many mounts as possible.
    """
    kept = {folder for path in mounts for folder in above(path)}
    cost = sum(mounts.values()) + len(kept)
    if cost <= MAX_MOUNTS:
        return set()
    saved = _sums(kept, [*mounts.items(), *((folder, 1) for folder in kept)])
    held = _sums(kept, [*((f"{folder}/", size) for folder, size in sizes.items())])
    closed: set[str] = set()
    for folder in sorted(kept, key=lambda folder: (held[folder] / saved[folder], folder)):
        if cost <= MAX_MOUNTS:
            break
        more = saved[folder]
        if more and closed.isdisjoint(above(folder)):
            closed.add(folder)
            cost -= more
            for other in above(folder):  # it would save that much less
                saved[other] -= more
    return {ROOT} if cost > MAX_MOUNTS else {one for one in closed if closed.isdisjoint(above(one))}


def _sums(folders: set[str], counts: Iterable[tuple[str, int]]) -> Counter[str]:
    """The sum of what is below each folder."""
    sums = Counter[str]()
    for path, count in counts:
        for folder in folders.intersection(above(path)):
            sums[folder] += count
    return sums
