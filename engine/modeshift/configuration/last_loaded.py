"""``LastLoaded``: keeps what files contained, for when one of them no longer loads."""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from modeshift.modes.edges.edges import ANY
from modeshift.modes.errors import ModeFileError

MAX_BYTES = 2_000_000
# A file that changes in the same tick of the clock in which it was read looks unchanged.
TICK_NS = 50_000_000
T = TypeVar("T")


class LastLoaded:
    """What files contained when they were last read; each may later change or be broken.

    Make it before the files are read, from the object of the last time.
    """

    def __init__(self, before: "LastLoaded | None" = None) -> None:
        self.notices: list[str] = []
        self.lost: list[str] = []
        """The slugs of the user's modes that are not used, and the texts of unused files."""
        self._started = time.time_ns()
        self._stamps: dict[Path, object] = {}
        self._before: dict[str, Any] = {} if before is None else before._loaded
        self._loaded: dict[str, object] = {}

    def load(self, name: str, load: Callable[[], T | None], *, is_needed: bool = False) -> T | None:
        """The result of ``load``, or its last one where it raises ``ModeFileError`` now.

        Then a notice says so; if there is no last result, and one ``is_needed``, it is raised.
        """
        try:
            loaded = load()
        except ModeFileError as error:
            loaded = self._before.get(name)
            if loaded is None and is_needed:
                raise
            how = "is not used until you mend it" if loaded is None else "stays as it was"
            self.notices.append(f"{error}; it {how}")
        if loaded is not None:
            self._loaded[name] = loaded
        return loaded

    def has_lost(self, slug: str) -> bool:
        """Whether a mode of the user's that is not used has this slug, or may have it."""
        name = re.compile(rf"(?<![\w-]){re.escape(slug)}(?![\w-])")
        return ANY in self.lost or any(map(name.search, self.lost))

    def watch(self, *paths: Path) -> None:
        """Remember how the files are now; one that changed just before counts as changed again."""
        for path in paths:
            stamp = _stamp(path)
            is_fresh = stamp is not None and stamp[-1] > self._started - TICK_NS
            self._stamps[path] = object() if is_fresh else stamp

    def has_changed(self) -> bool:
        """Whether a file may have changed; asks the file system once for each."""
        return any(_stamp(path) != stamp for path, stamp in self._stamps.items())


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        details = os.stat(path)
    except OSError:
        return None
    return (details.st_ino, details.st_size, details.st_mtime_ns, details.st_ctime_ns)


def read_user_file(file: Path) -> str | None:
    """The text of the file; None where there is none. Raises ``ModeFileError``."""
    try:
        os.lstat(file)  # raises for a missing file, and not for a dangling link
        if not file.is_file():
            raise ModeFileError(f"{file}: is not a file")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ModeFileError(f"{file}: is larger than {MAX_BYTES} bytes")
        return data.decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ModeFileError(f"{file}: cannot be read: {error}") from error
