"""Which files ``.gitignore`` leaves out of a listing."""

from dataclasses import dataclass
from typing import Self

from pathspec import GitIgnoreSpec


@dataclass(frozen=True)
class Ignored:
    """The ``.gitignore`` files from the workspace down to a folder; the deepest wins."""

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()
    """Each with the path of its folder, which ends in ``/`` unless it is empty."""

    def within(self, folder: str, gitignore: str) -> Self:
        """With the file of one more folder; it may be empty."""
        if not gitignore.strip():
            return self
        spec = GitIgnoreSpec.from_lines(gitignore.splitlines())
        return type(self)((*self.specs, (folder, spec)))

    def has(self, path: str) -> bool:
        """Whether the path is ignored; that of a folder ends in ``/``."""
        for folder, spec in reversed(self.specs):
            found = spec.check_file(path.removeprefix(folder)).include
            if found is not None:
                return found
        return False
