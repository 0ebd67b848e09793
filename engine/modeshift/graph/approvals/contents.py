"""Remembered approvals: a person's "always allow this", for one tool and a pattern or one call.

Each applies in the thread, mode and workspace in which it was given, until the mode's
definition or the user's rules change.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256

from modeshift.graph.deps import AgentDeps
from modeshift.graph.state import Planned, Remembered
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


ALL = "all"


def remember(
    deps: AgentDeps, mode_slug: str, tool: str, pattern: str, *, exact: bool
) -> Remembered:
    """A record of an approval that is given now."""
    digest = deps.seat(mode_slug).environment
    return Remembered(
        id=sha256(f"{digest}\0{tool}\0{exact}\0{pattern}".encode()).hexdigest()[:12],
        mode=mode_slug,
        tool=tool,
        pattern=pattern,
        exact=exact,
        digest=digest,
        when=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def forget(
    deps: AgentDeps, remembered: Sequence[Remembered], ids: Sequence[str]
) -> tuple[list[Remembered], list[str]]:
    """The approvals that remain: without ``ids``, and without invalid ones; and the notices."""
    known = {one["id"] for one in remembered}
    notices = [
        f"no approval {id!r} is remembered in this thread, so none was revoked"
        for id in ids
        if id != ALL and id not in known
    ]
    kept = []
    for one in remembered:
        if ALL in ids or one["id"] in ids:
            continue
        if one["mode"] in deps.catalog and one["digest"] == deps.seat(one["mode"]).environment:
            kept.append(one)
        else:
            notices.append(
                f"the approval for {one['tool']} {one['pattern']!r} in mode {one['mode']!r} is "
                "revoked: the mode, your rules or the workspace have changed"
            )
    return kept, notices
