"""Paths in the workspace: what one may look like, and the names in a folder."""

import os
import re
from collections.abc import Iterator

from modeshift.modes.errors import InvalidCallError, ToolFailedError

MAX_PATH = 4096
MAX_SCANNED = 200_000
_CONTROL = re.compile(r"[\x00-\x1f]")


def check_path(path: str, found: str) -> str:
    """Return ``found``, what ``path`` leads to; refuse one that could not be shown as it is."""
    if len(found) > MAX_PATH or _CONTROL.search(found) is not None:
        problem = f"is longer than {MAX_PATH} characters, or holds a control character"
        raise InvalidCallError(f"path {path[:300]!r} {problem}; give a plain path")
    return found


def split_path(path: str) -> list[str]:
    """The names on the way to a resolved path; none for the workspace itself."""
    names = [] if path == "." else path.split("/")
    if {"", ".", ".."} & set(names):
        raise ToolFailedError(f"{path!r} is not a plain path in the workspace")
    return names


def list_above(path: str) -> Iterator[str]:
    """The folders above a path, without the workspace itself."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


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
