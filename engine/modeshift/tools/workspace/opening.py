"""Opening and replacing files below a folder, no link followed."""

import ctypes
import fcntl
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from modeshift.modes.errors import ToolFailedError

MAX_SCANNED = 200_000


def list_above(path: str) -> Iterator[str]:
    """The folders above a path, without the workspace itself."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def is_named(names: Iterable[str], path: str) -> bool:
    """Whether a path is a file or folder named, or in such a folder, whose name ends in ``/``."""
    return any(
        f"{path}/".startswith(name) if name.endswith("/") else path == name for name in names
    )


def list_names(folder: int) -> Iterator[tuple[str, bool]]:
    """Names, with a slash for folders, and whether each is a regular file or a folder."""
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count == MAX_SCANNED:
                raise ToolFailedError(f"the folder has more than {MAX_SCANNED} entries; search it")
            if not entry.is_dir(follow_symlinks=False):
                yield entry.name, entry.is_file(follow_symlinks=False)
            elif entry.name != ".git":
                yield f"{entry.name}/", True


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened_folder(root: Path, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The descriptor of a folder, which may be made; raises ``OSError``.

    ``root`` is a real path, and ``names`` hold neither ``..`` nor a slash.
    """
    descriptor = os.open(root, _FOLDER)
    try:
        for name in names:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
            parent, descriptor = descriptor, os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(parent)
        yield descriptor
    finally:
        os.close(descriptor)


def find_path(folder: int) -> str:
    """A path that leads a child process to the open folder, wherever it has been moved to."""
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(folder, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return f"/proc/self/fd/{folder}"


@cache
def libc() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL(None, use_errno=True)
