"""Which files ``.gitignore`` leaves out of a listing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import re2  # type: ignore[import-untyped]  # it has no types
from pathspec import GitIgnoreSpec

MAX_LINES = 1000
MAX_CHARACTERS = 300
AT_ONCE = 50


@dataclass(frozen=True)
class Ignored:
    """The ``.gitignore`` files from the workspace down to a folder; the deepest wins."""

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()
    """Each with the path of its folder, which ends in ``/`` unless it is empty."""

    def within(self, folder: str, gitignore: str) -> Self:
        """With the file of one more folder; it may be empty."""
        lines = [line for line in gitignore.splitlines()[:MAX_LINES] if _is_pattern(line)]
        # Some at a time: RE2 bounds the memory that a set of patterns may take.
        specs = (_spec(lines[start : start + AT_ONCE]) for start in range(0, len(lines), AT_ONCE))
        return type(self)((*self.specs, *((folder, spec) for spec in specs if spec is not None)))

    def has(self, path: str) -> bool:
        """Whether the path is ignored; that of a folder ends in ``/``."""
        for folder, spec in reversed(self.specs):
            found = spec.check_file(path.removeprefix(folder)).include
            if found is not None:
                return found
        return False


def _spec(lines: Sequence[str]) -> GitIgnoreSpec | None:
    """None for what git passes over too, and for patterns that would take too much memory."""
    try:
        # RE2 takes linear time: the file may be written by somebody who wants to stop us.
        return GitIgnoreSpec.from_lines(lines, backend="re2")
    except (ValueError, re2.error):
        return None


def _is_pattern(line: str) -> bool:
    if not line.strip() or line.startswith("#") or len(line) > MAX_CHARACTERS:
        return False
    return _spec([line]) is not None
