"""Looking for what a command must not read, or must not change, in the workspace."""

import os
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from modeshift.modes.errors import ToolFailedError
from modeshift.modes.rules.files import DEPENDENCIES, is_protected, is_secret

MAX_SCANNED = 500_000
MAX_DEPTH = 50  # each folder above what is protected takes a mount
MAX_PATH, MAX_SCANNED_PATH = 2000, 3000  # bytes; the kernel takes 4095
SHOWN = DEPENDENCIES | {".git"}
"""Folders without which hardly a command works: an ignore file does not hide them."""

Ignores = Callable[[str], bool]


@dataclass
class Scan:
    """What was found, as paths relative to ``root``, the workspace.

    Nothing is named that lies in a folder which is named itself. A folder that is too deep
    stands for what was found below it.
    """

    root: Path
    secrets: set[str] = field(default_factory=set)
    """What looks like a secret, and what an ignore file names."""
    steering: set[str] = field(default_factory=set)
    """What steers people or tools."""
    repositories: set[str] = field(default_factory=set)
    """Folders that are called ``.git``."""
    links: set[str] = field(default_factory=set)
    """Links that steer, with where they lead; and files in ``.git`` that lead elsewhere."""
    linked: set[str] = field(default_factory=set)
    """Files with another name outside of the workspace; ``scan`` does not look for them."""
    sizes: dict[str, int] = field(default_factory=dict)
    """How many entries each folder has; one that is too deep, with those below it."""
    patterns: tuple[str, ...] = ()
    """What ignore files name, there or not; ``scan`` does not look for it."""
    top: set[str] = field(default_factory=set)
    """The names in the workspace itself, without links."""

    @property
    def deciding(self) -> set[str]:
        """All that decides what people and tools do next."""
        return self.steering | self.repositories | self.links


def scan(root: Path, *, finds_secrets: bool = True, ignores: Ignores | None = None) -> Scan:
    """Look at all names; raises ``ToolFailedError`` where there are too many. Blocks.

    ``ignores`` tells whether an ignore file names a path, which ends in a slash for a folder.
    """
    findings = Scan(root)
    waiting = [("", "", False)]
    scanned = 0
    while waiting:
        folder, deep, steers = waiting.pop()
        if len(os.fsencode(f"{root}/{folder}")) > MAX_SCANNED_PATH:
            findings.steering.add(deep)  # nobody knows what is in it
            findings.secrets |= {deep} if finds_secrets or ignores else set()
            continue
        entries = _list(root, folder)
        for entry in entries:
            hides = _is_hidden(folder, entry, ignores, finds_secrets=finds_secrets)
            if hides:
                findings.secrets.add(deep or f"{folder}{entry.name}")
            is_plain = not steers and _note(findings, folder, entry, deep)
            # What steers is protected as a whole, but only what is named in it is hidden.
            if not hides and (is_plain or (ignores and _may_hold_ignored(entry))):
                below = f"{folder}{entry.name}/"
                waiting.append((below, deep or _find_too_deep(below), not is_plain))
        if not folder:
            findings.top = {entry.name for entry in entries if not entry.is_symlink()}
        name = deep or folder[:-1]
        findings.sizes[name] = findings.sizes.get(name, 0) + len(entries)
        scanned += len(entries)
        if scanned > MAX_SCANNED:
            raise ToolFailedError(
                "the workspace has too many files for the sandbox to protect those that "
                f"steer people and tools: more than {MAX_SCANNED}; work in a folder below"
            )
    return findings


def _find_too_deep(folder: str) -> str:
    """The folder without its last slash if it is too deep, else nothing."""
    is_deep = folder.count("/") >= MAX_DEPTH or len(os.fsencode(folder)) > MAX_PATH
    return folder[:-1] if is_deep else ""


def _is_hidden(
    folder: str, entry: os.DirEntry[str], ignores: Ignores | None, *, finds_secrets: bool
) -> bool:
    if finds_secrets and is_secret(entry.name):
        return True
    if ignores is None or entry.name in SHOWN or entry.is_symlink():
        return False
    return ignores(f"{folder}{entry.name}{'/' if entry.is_dir() else ''}")


def _may_hold_ignored(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) and entry.name not in SHOWN


def _note(findings: Scan, folder: str, entry: os.DirEntry[str], deep: str) -> bool:
    """Add the entry to the sets it belongs to; return whether it is a folder to look into."""
    name, path = entry.name, deep or f"{folder}{entry.name}"
    is_folder = entry.is_dir(follow_symlinks=False)
    if name == ".git" and is_folder and not deep:
        findings.repositories.add(path)
        leading = (f"{path}/{name}" for name in ("commondir", "config", "config.worktree"))
        findings.links |= {file for file in leading if os.path.lexists(findings.root / file)}
    elif is_protected(folder, name):
        if entry.is_symlink() and not deep:
            findings.links.add(f"{path} -> {Path(entry.path).readlink()}")
        else:
            findings.steering.add(path)
    else:
        return is_folder and name not in DEPENDENCIES
    return False


def _list(root: Path, folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(f"{root}/{folder}") as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):  # it has gone meanwhile
        return []
    except OSError as error:
        # What is not ours, and not to be entered, no command can enter either.
        if isinstance(error, PermissionError) and _is_closed(f"{root}/{folder}"):
            return []
        raise ToolFailedError(
            f"the folder {folder!r} cannot be looked into ({error.strerror}), so the sandbox "
            "cannot protect what is in it; make it readable, or move it away"
        ) from error


def _is_closed(folder: str) -> bool:
    return os.stat(folder).st_uid != os.geteuid() and not os.access(folder, os.X_OK)


MAX_FILES = 5_000  # each of them takes 4 µs, for each command
MAX_LINKED = 50  # each takes a mount, and cannot be replaced


def find_few_linked_outside(findings: Scan) -> set[str]:
    """Files linked outside, but for dependencies'; none if many, or much to look at. Blocks."""
    if sum(findings.sizes.values()) > MAX_FILES:
        return set()
    linked = find_linked_outside(findings.root, DEPENDENCIES | {".git"}, MAX_FILES)
    mountable = {path for path in linked if len(os.fsencode(path)) < MAX_PATH}
    return mountable if len(mountable) <= MAX_LINKED else set()


def find_linked_outside(
    root: Path, left_out: Collection[str] = (), limit: int | None = None
) -> set[str]:
    """Paths in the workspace, except in folders whose names are in ``left_out``. Blocks.

    With a ``limit`` only so many entries of these are looked at: files with another name there
    may then count as linked outside.
    """
    inside = defaultdict[int, list[str]](list)
    links: dict[int, int] = {}
    folders: list[str] = []
    for path, entry in _walk(root, left_out):
        if entry.is_dir(follow_symlinks=False):
            folders.append(path)  # one that is left out
            continue
        with suppress(OSError):  # it has gone meanwhile
            details = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(details.st_mode) and details.st_nlink > 1:
                inside[details.st_ino].append(path)
                links[details.st_ino] = details.st_nlink
    known = Counter({inode: len(paths) for inode, paths in inside.items()})
    if any(known[inode] < links[inode] for inode in inside):
        others = (entry for folder in folders for _, entry in _walk(root / folder))
        known.update(entry.inode() for entry in islice(others, limit))
    return {
        path for inode, paths in inside.items() if known[inode] < links[inode] for path in paths
    }


def _walk(root: Path, left_out: Collection[str] = ()) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All entries, except the folders that it descends into."""
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        with suppress(OSError), os.scandir(root / prefix) as entries:
            for entry in entries:
                path = f"{prefix}{entry.name}"
                if entry.name in left_out or not entry.is_dir(follow_symlinks=False):
                    yield path, entry
                else:
                    waiting.append(f"{path}/")
