"""What is in the files that calls would change: an approval is for a change of that text."""

import asyncio
from collections.abc import Iterable, Sequence
from hashlib import sha256

from graph.approvals.judging import Judged
from graph.deps import AgentDeps
from graph.messages.repair import call_id
from modes.errors import ToolFailedError
from tools.workspace.workspace import MAX_FILE_BYTES, Workspace


async def digest_contents(deps: AgentDeps, judged: Sequence[Judged]) -> dict[str, str]:
    """A digest for each call that edits files and needs a person, by its id."""
    edits = [one for one in judged if one.verdict.kind == "ask" and one.effect.changes_files]
    paths = list(dict.fromkeys(path for one in edits for path in edited_files(one)))
    # Side by side: an editor may take its time for each.
    found = await asyncio.gather(*(digest_files(deps, [path]) for path in paths))
    by_path = dict(zip(paths, found, strict=True))
    return {
        call_id(one.call): _joined(map(by_path.__getitem__, edited_files(one))) for one in edits
    }


def edited_files(one: Judged) -> list[str]:
    """The real paths that a call would change; none for a call that changes no file."""
    if one.tool is None or one.args is None or not one.effect.changes_files:
        return []
    return [path for name in one.tool.spec.paths if (path := one.args[name]) is not None]


async def digest_files(deps: AgentDeps, paths: Sequence[str]) -> str:
    """A digest of what is in the files, as an editor has them where one reads."""
    workspace = deps.toolbox.workspace
    found = await asyncio.gather(*(asyncio.to_thread(_digest, workspace, path) for path in paths))
    return _joined(found)


def _joined(digests: Iterable[str]) -> str:
    return " ".join(digests)


def _digest(workspace: Workspace, path: str) -> str:
    try:
        with workspace.opened(path, is_real=True) as file:
            return sha256(file.read(MAX_FILE_BYTES + 1)).hexdigest()
    except ToolFailedError:  # it is not there, or is none that a tool could change
        return "none"
