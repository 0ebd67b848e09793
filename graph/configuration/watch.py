"""``Watch``: whether files may have changed since they were read."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

# A file that changes in the same tick of the clock in which it was read looks unchanged.
TICK_NS = 50_000_000


class Watch:
    """Make it before reading the files, and ``keep`` them after."""

    def __init__(self) -> None:
        self._started = time.time_ns()
        self._stamps: dict[Path, object] = {}

    def keep(self, paths: Iterable[Path]) -> None:
        """Remember how the files are now; one that changed just before counts as changed again."""
        for path in paths:
            stamp = _stamp(path)
            is_fresh = stamp is not None and stamp[-1] > self._started - TICK_NS
            self._stamps[path] = object() if is_fresh else stamp

    def has_changed(self) -> bool:
        """Whether one of them may have changed; asks the file system once for each."""
        return any(_stamp(path) != stamp for path, stamp in self._stamps.items())


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
