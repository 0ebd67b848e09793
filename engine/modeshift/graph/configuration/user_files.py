"""Files of the user's own: configuration, which may be a link or anything else, and databases."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from modeshift.modes.errors import ConfigurationError, ModeFileError

MAX_BYTES = 2_000_000
# A file that changes in the same tick of the clock in which it was read looks unchanged.
TICK_NS = 50_000_000
T = TypeVar("T")


class LastLoaded:
    """What was loaded at one time from files of which each may change, or not load any more.

    Make it before reading the files, from the one before.
    """

    def __init__(self, before: "LastLoaded | None" = None) -> None:
        self.notices: list[str] = []
        self._started = time.time_ns()
        self._stamps: dict[Path, object] = {}
        self._before: dict[str, Any] = {} if before is None else before._loaded
        self._loaded: dict[str, Any] = {}

    def load(self, name: str, load: Callable[[], T | None], *, is_needed: bool = False) -> T | None:
        """What ``load`` gives, or where that raises ``ModeFileError``, what it gave before.

        Then a notice says so; if it gave nothing before, and that ``is_needed``, it is raised.
        """
        try:
            found = load()
        except ModeFileError as error:
            found = self._before.get(name)
            if found is None and is_needed:
                raise
            lost = "is left out, and so is whatever it denies"
            self.notices.append(f"{error}; it {lost if found is None else 'stays as it was'}")
        if found is not None:
            self._loaded[name] = found
        return found

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
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


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


def make_private(file: Path) -> None:
    """Make the file, with its folders, if it is not there; only its owner may read it.

    The files that SQLite makes beside it get the same permissions. Raises ``ConfigurationError``.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        problem = None if os.access(file.parent, os.W_OK) else "its folder is read-only"
    except OSError as error:
        problem = error.strerror
    if problem:
        raise ConfigurationError(f"{str(file)!r} cannot be written: {problem}; see make doctor")
