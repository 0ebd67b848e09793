"""``scan``: what lies in the workspace that a command must not read, or must not change."""

import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from modes.errors import ToolFailedError
from modes.rules.protected_paths import is_secret, steers
from tools.sandbox.closed_folders import folders_to_close, outside

MAX_SCANNED = 500_000
MAX_DEPTH = 50  # each folder above what is protected takes a mount
MAX_PATH, MAX_OPENED_PATH = 2000, 3000  # bytes; the kernel takes 4095
MAX_OPEN = 100
OF_A_REPOSITORY = 7  # mounts
DEPENDENCIES = frozenset({"node_modules", "site-packages", ".venv", "venv", ".tox", ".nox"})
"""Folders with what others have written, certificates among it: nothing is looked for in them."""


@dataclass
class Scan:
    """Paths relative to the workspace; what is in a folder that is named is not named.

    A folder that is too deep stands for what was found below it.
    """

    secrets: set[str] = field(default_factory=set)
    """What looks as if it held a secret."""
    steering: set[str] = field(default_factory=set)
    """What steers people or tools."""
    repositories: set[str] = field(default_factory=set)
    """``.git``, as a folder."""
    links: set[str] = field(default_factory=set)
    """Links that steer, with where they lead; and files in ``.git`` that lead elsewhere."""
    linked: set[str] = field(default_factory=set)
    """Files with another name outside; not looked for here."""
    sizes: dict[str, int] = field(default_factory=dict)
    """How many entries each folder has; of a deep one with those below it."""
    top: set[str] = field(default_factory=set)
    """The names in the workspace itself, but for links."""

    @property
    def makers(self) -> set[str]:
        """All that decides what runs next."""
        return self.steering | self.repositories | self.links

    @cached_property
    def closed(self) -> "Closed":
        """The same, with whole folders where it is too much to protect one by one."""
        hidden = folders_to_close(dict.fromkeys(self.secrets, 1), self.sizes)
        secrets = hidden | outside(self.secrets, hidden)
        steering = outside(self.steering, hidden)
        repositories = outside(self.repositories, hidden)
        mounts = dict.fromkeys(steering - secrets, 1)
        mounts |= dict.fromkeys(repositories, OF_A_REPOSITORY)
        read_only = folders_to_close(mounts, self.sizes)
        steering = read_only | outside(steering, read_only)
        repositories = outside(repositories, read_only)
        found = replace(
            self,
            secrets=secrets,
            steering=steering,
            repositories=repositories,
            linked=outside(self.linked, hidden | read_only),
        )
        protected = self.secrets | self.steering | self.repositories
        plain = self.top - {path.partition("/")[0] for path in protected}
        return Closed(found, hidden, read_only, plain)


class Closed(NamedTuple):
    """What is to be mounted; and the folders among it that are closed as a whole."""

    found: Scan
    hidden: set[str]
    read_only: set[str]
    plain: set[str]
    """The names in the workspace itself that neither are nor hold anything to protect."""


class _Folder(NamedTuple):
    path: str
    """To open it by, with a slash at its end."""
    prefix: str
    """In the workspace, empty or with a slash at its end."""
    place: str = ""
    """Of one that is too deep: the folder above that stands for it."""

    def below(self, name: str) -> "_Folder":
        if self.place:
            return _Folder(f"{self.path}{name}/", "", self.place)
        prefix = f"{self.prefix}{name}/"
        is_deep = prefix.count("/") >= MAX_DEPTH or len(os.fsencode(prefix)) > MAX_PATH
        return _Folder(f"{self.path}{name}/", prefix, prefix[:-1] if is_deep else "")


def scan(root: Path) -> Scan:
    """Look at all names; raises ``ToolFailedError`` where there are too many. Blocks."""
    found = Scan()
    waiting = [_Folder(f"{root}/", "")]
    scanned = 0
    with ExitStack() as stack:
        opened: list[int] = []
        while waiting:
            folder = waiting.pop()
            if len(os.fsencode(folder.path)) > MAX_OPENED_PATH:
                if len(opened) == MAX_OPEN:
                    found.secrets.add(folder.place)  # nobody knows what is in it
                    continue
                folder = _shorter(folder, opened, stack)
            entries = _entries(folder)
            waiting += [
                folder.below(entry.name) for entry in entries if _note(found, folder, entry)
            ]
            if not scanned:
                found.top = {entry.name for entry in entries if not entry.is_symlink()}
            name = folder.prefix[:-1] or folder.place
            found.sizes[name] = found.sizes.get(name, 0) + len(entries)
            scanned += len(entries)
            if scanned > MAX_SCANNED:
                raise ToolFailedError(
                    "the workspace has too many files for the sandbox to protect those that "
                    f"steer people and tools: more than {MAX_SCANNED}; work in a folder below"
                )
    return found


def _note(found: Scan, folder: _Folder, entry: os.DirEntry[str]) -> bool:
    """Add what an entry is; whether it is a folder to look into."""
    name, path = entry.name, folder.place or f"{folder.prefix}{entry.name}"
    is_folder = entry.is_dir(follow_symlinks=False)
    if secret := is_secret(name):
        found.secrets.add(path)
    if name == ".git" and is_folder and not folder.place:
        found.repositories.add(path)
        found.links |= _leading(folder.path, path)
    elif steers(folder.path if folder.place else folder.prefix, name):
        if entry.is_symlink() and not folder.place:
            found.links.add(f"{path} -> {Path(entry.path).readlink()}")
        else:
            found.steering.add(path)
    else:
        return is_folder and not secret and name not in DEPENDENCIES
    return False


def _shorter(folder: _Folder, opened: list[int], stack: ExitStack) -> _Folder:
    """The same by a path that the kernel takes."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        opened.append(os.open(folder.path.rstrip("/"), flags))
    except OSError:  # it has gone meanwhile; whatever it is, the next to look at it says so
        return folder
    stack.callback(os.close, opened[-1])
    return folder._replace(path=f"/proc/self/fd/{opened[-1]}/")


def _entries(folder: _Folder) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder.path) as scan:
            return list(scan)
    except (FileNotFoundError, NotADirectoryError):  # it has gone meanwhile
        return []
    except OSError as error:
        # What is not ours, and not to be entered, no command can enter either.
        if isinstance(error, PermissionError) and _is_closed(folder.path):
            return []
        name = folder.prefix or folder.place
        raise ToolFailedError(
            f"the folder {name!r} cannot be looked into ({error.strerror}), so the sandbox "
            "cannot protect what is in it; make it readable, or move it away"
        ) from error


def _is_closed(folder: str) -> bool:
    return os.stat(folder).st_uid != os.geteuid() and not os.access(folder, os.X_OK)


def _leading(folder: str, repository: str) -> set[str]:
    names = ("commondir", "config", "config.worktree")
    return {f"{repository}/{name}" for name in names if os.path.lexists(f"{folder}.git/{name}")}
