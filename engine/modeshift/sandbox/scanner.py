"""``Scanner``: scans all names in a workspace, and from then on only folders that have changed.

What is there when a scan begins is found by it: the kernel says which folders have changed, and a
folder that it does not watch is read in every scan.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from modeshift.sandbox.folder_watcher import FolderWatcher
from modeshift.sandbox.scan import FolderLister, FolderScan, Scan, collect, look_into_repositories
from modeshift.tools.workspace.workspace import Workspace

MAX_SCANNERS = 8


class _LastScan(NamedTuple):
    rules: object
    """The ignore files' rules, by which the folders were judged."""
    watcher: FolderWatcher
    folders: Mapping[str, FolderScan] = {}
    findings: Scan = Scan(Path())
    unwatched: frozenset[str] = frozenset()


class Scanner:
    """Scans one workspace; threads take turns."""

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
            findings = look_into_repositories(last.findings)
            return replace(findings, patterns=workspace.ignored.patterns)

    def count_unwatched(self) -> tuple[int, int]:
        """How many folders are not watched, and how many there are, as of the last scan."""
        return (len(self._last.unwatched), len(self._last.folders)) if self._last else (0, 0)

    def _scan_again(self, workspace: Workspace, last: _LastScan, suspects: set[str]) -> _LastScan:
        """Read folders that ``last`` lacks, and ``suspects`` that are other folders by now."""
        ignores = workspace.ignores if workspace.ignored else None
        lister = FolderLister(self._root, self._finds_secrets, ignores, last.watcher.watch)
        folders: dict[str, FolderScan] = {}

        def list_folder(folder: str, deep: str, steers: bool) -> FolderScan:
            listed = last.folders.get(folder)
            if listed is None or (folder in suspects and not self._is_same(folder, listed)):
                listed = lister.look_into(folder, deep, steers)
                # Others may be in their places, and only the folder above was watched for that.
                suspects.update(below for below, _, _ in listed.below)
            folders[folder] = listed
            return listed

        findings = collect(self._root, list_folder)
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


get_scanner = lru_cache(maxsize=MAX_SCANNERS)(Scanner)
"""The scanner of a workspace, kept while it is among the last eight that were used."""
