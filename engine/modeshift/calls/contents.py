"""``digest_contents``: the files of a call as they are, were approved, and will be."""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256

from modeshift.modes.errors import ToolFailedError
from modeshift.modes.plain_data import JsonObject
from modeshift.threads.deps import AgentDeps
from modeshift.threads.journal import UNREADABLE, BegunCall, FileDigests
from modeshift.threads.state import Planned
from modeshift.tools.tool import Tool
from modeshift.tools.workspace.text import (
    TextFormat,
    find_places,
    read_replacements,
    replace_pieces,
)
from modeshift.tools.workspace.workspace import MAX_FILE_BYTES, Workspace


async def digest_contents(deps: AgentDeps, paths: Iterable[str]) -> dict[str, str]:
    """A digest of each file, as an editor has it where one is connected."""
    unique = list(dict.fromkeys(paths))
    if not unique:
        return {}
    workspace = deps.toolbox.workspace
    # Side by side: an editor may take its time for each.
    digests = await asyncio.gather(
        *(workspace.use(path, partial(_digest_file, workspace, path)) for path in unique)
    )
    return dict(zip(unique, digests, strict=True))


def _digest_file(workspace: Workspace, path: str) -> str:
    try:
        with workspace.open_file(path) as file:
            return sha256(file.read(MAX_FILE_BYTES + 1)).hexdigest()
    except ToolFailedError:  # it is not there, or no tool could change it
        return UNREADABLE if os.path.lexists(workspace.root / path) else "none"


async def foresee(deps: AgentDeps, paths: Sequence[str], args: JsonObject) -> FileDigests:
    """Digests of the files as an edit is to leave them; none where that is not known.

    For tools that are given a file's whole text, or pieces of it and their replacements.
    """
    if len(paths) != 1:
        return {}
    workspace = deps.toolbox.workspace
    text = await workspace.use(paths[0], partial(foresee_text, workspace, paths[0], args))
    return {} if text is None else {paths[0]: sha256(text).hexdigest()}


def foresee_text(workspace: Workspace, path: str, args: JsonObject) -> bytes | None:
    """The file as an edit is to leave it; None where that is not known. Blocks."""
    try:
        before = b""
        if os.path.lexists(workspace.root / path):
            with workspace.open_file(path) as file:
                before = file.read(MAX_FILE_BYTES)
        kind = TextFormat.of(before)
        if isinstance(args.get("content"), str):
            return kind.encode(args["content"])
        text = kind.decode(before)
        edits = read_replacements(args)
        return kind.encode(replace_pieces(text, find_places(path, text, edits))) if edits else None
    except ToolFailedError:  # the tool will say so
        return None


def apply_edit(
    workspace: Workspace, tool: Tool, args: JsonObject
) -> tuple[str, str | None, str] | None:
    """The path of a file, its text before a call, None for a new one, and after it.

    For tools that take its whole text or exact replacements; None for others. Raises
    ``ToolFailedError`` as such a tool does. Blocks.
    """
    path, content = args[tool.spec.paths[0]], args.get("content")
    if isinstance(content, str):
        exists = os.path.lexists(workspace.root / path)
        return path, workspace.read(path) if exists else None, content
    if not (edits := read_replacements(args)):
        return None
    before = workspace.read(path)
    return path, before, replace_pieces(before, find_places(path, before, edits))


def get_key(planned: Planned, thread: str) -> str | None:
    """The key of a call in the journal; None for a call that changes nothing.

    It is of the call as it was approved or planned, not of what the call would do now: with other
    arguments it is another call.
    """
    if planned["approved"] is not None:
        return planned["approved"]["digest"]
    key = planned.get("key")
    return key and sha256(f"{thread} {key}".encode()).hexdigest()


async def find_begun(deps: AgentDeps, planned: Planned, thread: str, mode: str) -> BegunCall | None:
    """What the journal knows of a call that is planned; None if it certainly did nothing."""
    journal = deps.started_calls.journal
    if planned.get("journal") != journal.mark(thread):
        return BegunCall.unseen(mode)
    key = get_key(planned, thread)
    return None if key is None else await journal.find(key, partial(digest_contents, deps))


def renew_approvals(
    due: list[list[Planned]], before: Mapping[str, str], after: Mapping[str, str]
) -> list[list[Planned]]:
    """The due calls after an edit: approvals of the old contents are now of the new ones.

    A person who approves two edits of one file has seen both.
    """

    def renew(planned: Planned) -> Planned:
        approved = planned["approved"]
        if approved is None:
            return planned
        contents = {
            path: after[path] if digest == before.get(path) else digest
            for path, digest in approved.get("contents", {}).items()
        }
        return {**planned, "approved": {**approved, "contents": contents}}

    return [[renew(planned) for planned in batch] for batch in due]
