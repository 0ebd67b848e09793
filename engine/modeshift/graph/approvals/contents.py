"""Digests of the files that calls would edit: an approval is for editing that very text."""

import asyncio
from collections.abc import Iterable, Mapping
from hashlib import sha256

from modeshift.graph.deps import AgentDeps
from modeshift.graph.records.approvals import Planned
from modeshift.modes.errors import ToolFailedError
from modeshift.tools.workspace.workspace import MAX_FILE_BYTES, Workspace


async def digest_contents(deps: AgentDeps, paths: Iterable[str]) -> dict[str, str]:
    """A digest of each file, as an editor has it where one is connected."""
    unique = list(dict.fromkeys(paths))
    if not unique:
        return {}
    workspace = deps.toolbox.workspace
    # Side by side: an editor may take its time for each.
    found = await asyncio.gather(
        *(asyncio.to_thread(_digest_file, workspace, path) for path in unique)
    )
    return dict(zip(unique, found, strict=True))


def _digest_file(workspace: Workspace, path: str) -> str:
    try:
        with workspace.open_file(path) as file:
            return sha256(file.read(MAX_FILE_BYTES + 1)).hexdigest()
    except ToolFailedError:  # it is not there, or no tool could change it
        return "none"


def list_approved_files(plan: Iterable[Iterable[Planned]]) -> set[str]:
    """The files that approved calls of the plan would edit."""
    return {path for batch in plan for one in batch for path in _approved_contents(one)}


def renew_approvals(
    plan: list[list[Planned]], before: Mapping[str, str], after: Mapping[str, str]
) -> list[list[Planned]]:
    """The plan after an edit: approvals that expected the old contents now expect the new ones.

    A person who approves two edits of one file has seen both.
    """

    def renew(planned: Planned) -> Planned:
        approved = planned["approved"]
        if approved is None:
            return planned
        contents = {
            path: after[path] if digest == before.get(path) else digest
            for path, digest in _approved_contents(planned).items()
        }
        return {**planned, "approved": {**approved, "contents": contents}}

    return [[renew(one) for one in batch] for batch in plan]


def _approved_contents(planned: Planned) -> Mapping[str, str]:
    approved = planned["approved"]
    return approved.get("contents", {}) if approved is not None else {}
