"""``Look``: at all names in a workspace, of which only what has changed is taken again.

Each folder is asked for its stamp, each time: what has come before a look is taken is seen by it.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from modeshift.sandbox.scan import Listed, Lister, Scan, collect, look_into_repositories
from modeshift.sandbox.stamps import take_stamp
from modeshift.tools.workspace.workspace import Workspace

MAX_LOOKS = 8


class _Kept(NamedTuple):
    rules: object
    """Of ignore files, by which the folders were judged."""
    folders: Mapping[str, Listed]
    findings: Scan


class Look:
    """At one workspace; several threads may take it at once."""

    def __init__(self, root: Path, *, finds_secrets: bool) -> None:
        """Looks at nothing yet."""
        self._root = root
        self._finds_secrets = finds_secrets
        self._kept: _Kept | None = None

    def take(self, workspace: Workspace) -> Scan:
        """What is there now; raises ``ToolFailedError``. Blocks."""
        rules = workspace.ignored.rules
        kept = self._kept
        if kept is None or kept.rules != rules:
            kept = self._take_again(workspace, rules, {})
        elif changed := _find_changed(self._root, kept.folders):
            unchanged = {name: kept.folders[name] for name in kept.folders.keys() - changed}
            kept = self._take_again(workspace, rules, unchanged)
        findings = look_into_repositories(kept.findings)
        return replace(findings, patterns=workspace.ignored.patterns)

    def _take_again(
        self, workspace: Workspace, rules: object, unchanged: Mapping[str, Listed]
    ) -> _Kept:
        ignores = workspace.ignores if workspace.ignored else None
        lister = Lister(self._root, self._finds_secrets, ignores)
        folders: dict[str, Listed] = {}

        def list_folder(folder: str, deep: str, steers: bool) -> Listed:
            listed = unchanged.get(folder) or lister.look_into(folder, deep, steers)
            folders[folder] = listed
            return listed

        kept = _Kept(rules, folders, collect(self._root, list_folder))
        self._kept = kept if workspace.ignored.rules == rules else None
        return kept


find_look = lru_cache(maxsize=MAX_LOOKS)(Look)
"""The same one for the same arguments, as long as there are not too many."""


def _find_changed(root: Path, folders: Mapping[str, Listed]) -> set[str]:
    changed = set()
    for name, listed in folders.items():
        try:
            if take_stamp(os.stat(f"{root}/{name}")) != listed.stamp:  # no Path: there are many
                changed.add(name)
        except OSError:
            changed.add(name)
    return changed
