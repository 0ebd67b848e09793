"""``Folder``: the workspace by the name that an editor has for it."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Folder:
    """Two names of one folder: an editor may have it open by a link."""

    root: Path
    """As the workspace has it, links resolved."""
    named: Path

    def file(self, name: str | Path) -> Path:
        """A file, by its real path in the workspace, as the editor knows it.

        Under another name it would not have it open. Where the link leads elsewhere by
        now, the real path.
        """
        path, real = self.named / name, self.root / name
        return path if os.path.realpath(path) == str(real) else real

    def relative(self, path: Path) -> Path:
        """A path of the editor's as the agent knows it: in the workspace relative to it."""
        for folder in (self.named, self.root):
            if path.is_relative_to(folder):
                return path.relative_to(folder)
        return path
