"""``Look``: at all names in a workspace, of which only what has changed is taken again.

What has come before a look is taken is seen by it: the kernel's news say which folders have
changed, and a folder of which there are none is looked into each time.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from modeshift.sandbox.news import News
from modeshift.sandbox.scan import FolderScan, Lister, Scan, collect, look_into_repositories
from modeshift.tools.workspace.workspace import Workspace

MAX_LOOKS = 8


class _Kept(NamedTuple):
    rules: object
    """Of the ignore files; the folders were judged by them."""
    news: News
    folders: Mapping[str, FolderScan] = {}
    findings: Scan = Scan(Path())
    unwatched: frozenset[str] = frozenset()


class Look:
    """At one workspace, by one thread at a time."""

    def __init__(self, root: Path, *, finds_secrets: bool) -> None:
        """Looks at nothing yet."""
        self._root = root
        self._finds_secrets = finds_secrets
        self._kept: _Kept | None = None
        self._lock = Lock()

    def take(self, workspace: Workspace) -> Scan:
        """What is there now; raises ``ToolFailedError``. Blocks."""
        with self._lock:
            rules = workspace.ignored.rules
            kept, self._kept = self._kept, None  # none of a look that fails: it has read the news
            changed = kept.news.read() if kept and kept.rules == rules else None
            if kept is None or changed is None:
                kept, changed = _Kept(rules, News()), set()
            suspects = {"", *(kept.folders if kept.news.has_new_mounts() else kept.unwatched)}
            if changed or not all(self._is_same(name, kept.folders.get(name)) for name in suspects):
                known = {k: v for k, v in kept.folders.items() if v.watch not in changed}
                kept = self._take_again(workspace, kept._replace(folders=known), suspects)
            self._kept = kept if workspace.ignored.rules == rules else None
            findings = look_into_repositories(kept.findings)
            return replace(findings, patterns=workspace.ignored.patterns)

    def count_unwatched(self) -> tuple[int, int]:
        """Of how many folders there are no news, and of how many in all, at the last look."""
        return (len(self._kept.unwatched), len(self._kept.folders)) if self._kept else (0, 0)

    def _take_again(self, workspace: Workspace, kept: _Kept, suspects: set[str]) -> _Kept:
        """Look into folders that are not kept, and into ``suspects`` that are others by now."""
        ignores = workspace.ignores if workspace.ignored else None
        lister = Lister(self._root, self._finds_secrets, ignores, kept.news.watch)
        folders: dict[str, FolderScan] = {}

        def list_folder(folder: str, deep: str, steers: bool) -> FolderScan:
            listed = kept.folders.get(folder)
            if listed is None or (folder in suspects and not self._is_same(folder, listed)):
                listed = lister.look_into(folder, deep, steers)
                # Others may be in their places: that, only the folder above has news of.
                suspects.update(below for below, _, _ in listed.below)
            folders[folder] = listed
            return listed

        findings = collect(self._root, list_folder)
        kept.news.keep({listed.watch for listed in folders.values()})
        unwatched = frozenset(name for name, listed in folders.items() if listed.watch is None)
        return _Kept(kept.rules, kept.news, folders, findings, unwatched)

    def _is_same(self, folder: str, listed: FolderScan | None) -> bool:
        """Whether the folder is the very one that is watched."""
        if listed is None or listed.watch is None:
            return False
        try:
            details = os.stat(f"{self._root}/{folder}")
        except OSError:
            return False
        return (details.st_dev, details.st_ino) == listed.inode


find_look = lru_cache(maxsize=MAX_LOOKS)(Look)
"""The same one for the same arguments, as long as there are not too many."""
