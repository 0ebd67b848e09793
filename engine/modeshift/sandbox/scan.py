"""Looking for what a command must not read, or must not change, in the workspace."""

import os
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from modeshift.modes.errors import ToolFailedError
from modeshift.modes.rules.files import DEPENDENCIES, is_protected, is_secret
from modeshift.sandbox.folder_watcher import FolderWatcher
from modeshift.tools.workspace.workspace import Workspace

MAX_SCANNED = 1_000_000
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
    """Files with another name outside of the workspace; a ``Scanner`` does not look for them."""
    sizes: dict[str, int] = field(default_factory=dict)
    """How many entries each folder has; one that is too deep, with those below it."""
    patterns: tuple[str, ...] = ()
    """What ignore files name, there or not."""
    top: set[str] = field(default_factory=set)
    """The names in the workspace itself, without links."""

    @property
    def deciding(self) -> set[str]:
        """All that decides what people and tools do next."""
        return self.steering | self.repositories | self.links


class FolderScan(NamedTuple):
    """What was found in one folder, without what is in the folders below it."""

    found: Sequence[tuple[str, str]] = ()
    """Names of fields of ``Scan``, and what belongs there."""
    below: Sequence[tuple[str, str, bool]] = ()
    """Folders to look into: with a slash; which of them is too deep; whether they steer."""
    size: int = 0
    inode: tuple[int, int] = (0, 0)
    """The device and the inode."""
    watch: int | None = None
    """The number of the watch: the folder holds the same until ``FolderWatcher`` names it."""


@dataclass(frozen=True)
class FolderLister:
    """Reads the folders of a workspace, one by one."""

    root: Path
    finds_secrets: bool = True
    ignores: Ignores | None = None
    """Tells whether an ignore file names a path, which ends in a slash for a folder."""
    watch: Callable[[int], int | None] = lambda _: None
    """As ``FolderWatcher.watch``."""

    def look_into(self, folder: str, deep: str, steers: bool) -> FolderScan:
        """Look at the names in a folder; raises ``ToolFailedError``. Blocks."""
        if len(os.fsencode(f"{self.root}/{folder}")) > MAX_SCANNED_PATH:
            is_hidden = self.finds_secrets or self.ignores  # nobody knows what is in it
            return FolderScan([("steering", deep), *([("secrets", deep)] if is_hidden else [])])
        found: list[tuple[str, str]] = []
        below: list[tuple[str, str, bool]] = []
        with ExitStack() as stack:
            descriptor, entries, listed = self._open(folder, stack)
            for entry in entries:
                path = f"{folder}{entry.name}"
                hides = self._hides(path, entry)
                if hides:
                    found.append(("secrets", deep or path))
                kind = "" if steers else _judge(folder, entry, deep)
                if kind == "links":
                    found.append((kind, f"{path} -> {os.readlink(entry.name, dir_fd=descriptor)}"))
                elif kind:
                    found.append((kind, deep or path))
                if not folder and not entry.is_symlink():
                    found.append(("top", path))
                # What steers is protected as a whole, but only what is named in it is hidden.
                is_plain = not steers and not kind and entry.name not in DEPENDENCIES
                if (
                    not hides
                    and entry.is_dir(follow_symlinks=False)
                    and (is_plain or (self.ignores and entry.name not in SHOWN))
                ):
                    path += "/"
                    below.append((path, deep or _find_too_deep(path), not is_plain))
        return listed._replace(found=found, below=below)

    def _hides(self, path: str, entry: os.DirEntry[str]) -> bool:
        if self.finds_secrets and is_secret(entry.name):
            return True
        if self.ignores is None or entry.name in SHOWN or entry.is_symlink():
            return False
        return self.ignores(f"{path}/" if entry.is_dir() else path)

    def _open(
        self, folder: str, stack: ExitStack
    ) -> tuple[int, list[os.DirEntry[str]], FolderScan]:
        """A folder's descriptor and entries; none where it has gone meanwhile."""
        path = f"{self.root}/{folder}"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            # Before it is listed, and of this very folder: soon another may be in its place.
            watch = self.watch(descriptor)
            details = os.fstat(descriptor)
            with os.scandir(descriptor) as names:
                entries = list(names)
            inode = (details.st_dev, details.st_ino)
            return descriptor, entries, FolderScan((), (), len(entries), inode, watch)
        except (FileNotFoundError, NotADirectoryError):
            return -1, [], FolderScan()
        except OSError as error:
            # What is not ours, and not to be entered, no command can enter either.
            if isinstance(error, PermissionError) and _is_closed(path):
                return -1, [], FolderScan()
            raise ToolFailedError(
                f"the folder {folder!r} cannot be looked into ({error.strerror}), so the sandbox "
                "cannot protect what is in it; make it readable, or move it away"
            ) from error


def _find_too_deep(folder: str) -> str:
    """The folder without its last slash if it is too deep, else nothing."""
    is_deep = folder.count("/") >= MAX_DEPTH or len(os.fsencode(folder)) > MAX_PATH
    return folder[:-1] if is_deep else ""


def _judge(folder: str, entry: os.DirEntry[str], deep: str) -> str:
    """The field of ``Scan`` that the entry belongs to; empty for none."""
    if entry.name == ".git" and not deep and entry.is_dir(follow_symlinks=False):
        return "repositories"
    if not is_protected(folder, entry.name):
        return ""
    return "links" if entry.is_symlink() and not deep else "steering"


def _is_closed(folder: str) -> bool:
    return os.stat(folder).st_uid != os.geteuid() and not os.access(folder, os.X_OK)


MAX_FILES = 5_000  # each of them takes 4 µs, for each command
MAX_LINKED = 50  # each takes a mount, and cannot be replaced


def find_few_linked_outside(findings: Scan, named: Collection[str] = ()) -> set[str]:
    """Files linked outside, but for dependencies'; none if many, or much to look at. Blocks.

    And of the files that a plan names, or in its folders, all that have another name elsewhere.
    """
    root, folders = findings.root, [name for name in named if name.endswith("/")]
    files = (name for name in named if name not in folders and (root / name).is_file())
    beyond = {name for name in files if (root / name).stat().st_nlink > 1}
    beyond |= {f"{name}{path}" for name in folders for path in find_linked_outside(root / name)}
    if sum(findings.sizes.values()) > MAX_FILES:
        return beyond
    linked = find_linked_outside(root, DEPENDENCIES | {".git"}, MAX_FILES)
    mountable = {path for path in linked if len(os.fsencode(path)) < MAX_PATH}
    return beyond | mountable if len(mountable) <= MAX_LINKED else beyond


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


class _LastScan(NamedTuple):
    rules: object
    """The ignore files' rules, by which the folders were judged."""
    watcher: FolderWatcher
    folders: Mapping[str, FolderScan] = {}
    findings: Scan = Scan(Path())
    unwatched: frozenset[str] = frozenset()


class Scanner:
    """Scans one workspace, from its second scan on only folders that have changed.

    What is there when a scan begins is found by it: the kernel says which folders have changed, and
    a folder that it does not watch is read in every scan. Threads take turns.
    """

    def __init__(self, root: Path, *, finds_secrets: bool) -> None:
        """Nothing is read yet."""
        self._root = root
        self._finds_secrets = finds_secrets
        self._last: _LastScan | None = None
        self._lock = Lock()

    def scan(self, workspace: Workspace) -> Scan:
        """What is there now; raises ``ToolFailedError``. Blocks."""
        with self._lock:
            rules = workspace.ignored.rules
            last, self._last = self._last, None  # a scan that fails has read the events
            changed = last.watcher.read_changed() if last and last.rules == rules else None
            if last is None or changed is None:
                last, changed = _LastScan(rules, FolderWatcher()), set()
            suspects = {"", *(last.folders if last.watcher.has_new_mounts() else last.unwatched)}
            if changed or not all(self._is_same(name, last.folders.get(name)) for name in suspects):
                known = {k: v for k, v in last.folders.items() if v.watch not in changed}
                last = self._scan_again(workspace, last._replace(folders=known), suspects)
            self._last = last if workspace.ignored.rules == rules else None
            links = last.findings.links | _find_leading(last.findings)
            return replace(last.findings, links=links, patterns=workspace.ignored.patterns)

    def count_unwatched(self) -> tuple[int, int]:
        """How many folders are not watched, and how many there are, as of the last scan."""
        return (len(self._last.unwatched), len(self._last.folders)) if self._last else (0, 0)

    def _scan_again(self, workspace: Workspace, last: _LastScan, suspects: set[str]) -> _LastScan:
        """Read folders that ``last`` lacks, and ``suspects`` that are other folders by now."""
        ignores = workspace.ignores if workspace.ignored else None
        lister = FolderLister(self._root, self._finds_secrets, ignores, last.watcher.watch)
        findings, scanned = Scan(self._root), 0
        folders: dict[str, FolderScan] = {}
        waiting = [("", "", False)]
        while waiting:
            folder, deep, steers = waiting.pop()
            listed = last.folders.get(folder)
            if listed is None or (folder in suspects and not self._is_same(folder, listed)):
                listed = lister.look_into(folder, deep, steers)
                # Others may be in their places, and only the folder above was watched for that.
                suspects.update(below for below, _, _ in listed.below)
            folders[folder] = listed
            waiting += listed.below
            for kind, path in listed.found:
                getattr(findings, kind).add(path)
            name = deep or folder[:-1]
            findings.sizes[name] = findings.sizes.get(name, 0) + listed.size
            scanned += listed.size
            if scanned > MAX_SCANNED:
                raise ToolFailedError(
                    "the workspace has too many files for the sandbox to protect those that "
                    f"steer people and tools: more than {MAX_SCANNED}; work in a folder below"
                )
        last.watcher.keep({listed.watch for listed in folders.values()})
        unwatched = frozenset(name for name, listed in folders.items() if listed.watch is None)
        return _LastScan(last.rules, last.watcher, folders, findings, unwatched)

    def _is_same(self, folder: str, listed: FolderScan | None) -> bool:
        """Whether the folder is the one that is watched, and no other in its place."""
        if listed is None or listed.watch is None:
            return False
        try:
            details = os.stat(f"{self._root}/{folder}")
        except OSError:
            return False
        return (details.st_dev, details.st_ino) == listed.inode


def _find_leading(findings: Scan) -> set[str]:
    """The files in ``.git`` folders that lead elsewhere."""
    names = ("commondir", "config", "config.worktree")
    files = (f"{repository}/{name}" for repository in findings.repositories for name in names)
    return {file for file in files if os.path.lexists(f"{findings.root}/{file}")}


get_scanner = lru_cache(maxsize=8)(Scanner)
"""The scanner of a workspace, kept while it is among the last eight that were used."""
