"""``IgnoreFiles``: the files of a workspace that put others out of the agent's reach."""

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from modeshift.modes.errors import ModelError
from modeshift.modes.plain_text import to_one_line
from modeshift.modes.rules.ignore_rules import IgnoreRules

IGNORE_FILES = (".rooignore", ".kilocodeignore")
"""At the top of the workspace, and nowhere else."""
MAX_BYTES = 100_000


class IgnoreFiles:
    """The ignore files as of the last ``refresh``; safe to use from several threads."""

    def __init__(
        self,
        root: Path,
        names: Iterable[str],
        opened: Callable[[str], AbstractContextManager[BinaryIO]],
    ) -> None:
        """``opened`` opens a file by its name, or raises ``ModelError``. Blocks."""
        self._files = {name: root / name for name in names}
        self._opened = opened
        self._found: dict[str, tuple[object, IgnoreRules | str]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read again what has changed. Blocks, as little as two ``stat`` do."""
        self._found = {
            name: self._found[name] if stamp == self._get_stamp(name) else (stamp, self._load(name))
            for name, file in self._files.items()
            if (stamp := _stamp(file)) is not None
        }

    def have_changed(self) -> bool:
        """Whether ``refresh`` would read one again."""
        return any(_stamp(file) != self._get_stamp(name) for name, file in self._files.items())

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._found)

    @property
    def rules(self) -> tuple[IgnoreRules | str, ...]:
        """What the files say, or why they cannot be read: other objects once one has changed."""
        return tuple(rules for _, rules in self._found.values())

    @property
    def patterns(self) -> tuple[str, ...]:
        """The ``IgnoreRules.patterns`` of all of them."""
        all_rules = (rules for rules in self.rules if isinstance(rules, IgnoreRules))
        return tuple(pattern for rules in all_rules for pattern in rules.patterns)

    @property
    def problems(self) -> list[str]:
        """Why files cannot be read, in words."""
        return [
            f"{name} cannot be used, so nothing in the workspace is opened: {rules}; "
            "fix the file or remove it"
            for name, (_, rules) in self._found.items()
            if isinstance(rules, str)
        ]

    def find_problem(self, path: str, *, is_folder: bool | None = None) -> str:
        """Why a resolved path is out of reach; empty if it is not."""
        for name, (_, rules) in self._found.items():
            if isinstance(rules, str):
                return self.problems[0]
            if path != "." and rules.name(path, is_folder=is_folder):
                return f"{path!r} is out of reach: {name} names it; go on without it"
        return ""

    def check(self, path: str, error: type[ModelError], *, is_folder: bool | None = None) -> str:
        """Return a resolved path; raise the error if it is out of reach."""
        if problem := self.find_problem(path, is_folder=is_folder):
            raise error(problem)
        return path

    def check_at_once(self, path: str, error: type[ModelError]) -> str | None:
        """As ``check``; None where a file has changed, and has to be read again first."""
        return None if self.have_changed() else self.check(path, error)

    def _get_stamp(self, name: str) -> object:
        return self._found[name][0] if name in self._found else None

    def _load(self, name: str) -> IgnoreRules | str:
        try:
            with self._opened(name) as file:
                data = file.read(MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                return f"it is larger than {MAX_BYTES} bytes"
            return IgnoreRules(data.decode())
        except (ModelError, ValueError) as error:
            return to_one_line(str(error))


def _stamp(file: Path) -> object:
    """Changes with the file, and with where a link leads; None where there is none."""
    try:
        link, details = os.lstat(file), os.stat(file)
    except FileNotFoundError:
        return "a link that leads nowhere" if file.is_symlink() else None
    except OSError as error:
        return str(error)
    return (link.st_ino, details.st_ino, details.st_size, details.st_mtime_ns, details.st_ctime_ns)
