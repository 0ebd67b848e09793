"""What is in the files that calls would change: an approval is for a change of that text."""

import asyncio
from collections.abc import Iterable, Sequence
from hashlib import sha256

from graph.harness import Harness
from graph.history import call_id
from graph.judge import Judged
from modes.errors import ToolFailedError
from modes.toolspec import Effect
from tools.workspace import MAX_FILE_BYTES, Workspace


async def contents(harness: Harness, judged: Sequence[Judged]) -> dict[str, str]:
    """A digest for each call that edits files and needs a person, by its id."""
    edits = [one for one in judged if one.verdict.kind == "ask" and one.effect is Effect.EDIT]
    return {call_id(one.call): await content_of(harness, files_of(one)) for one in edits}


def files_of(one: Judged) -> list[str]:
    """The real paths that a call would change."""
    return [path for path in one.real_paths.values() if path is not None]


async def content_of(harness: Harness, paths: Iterable[str]) -> str:
    """A digest of what is in the files, as an editor has them where one reads."""
    return await asyncio.to_thread(_digest, harness.toolbox.workspace, paths)


def _digest(workspace: Workspace, paths: Iterable[str]) -> str:
    digest = sha256()
    for path in paths:
        try:
            with workspace.opened(path, is_real=True) as file:
                data = b"is " + file.read(MAX_FILE_BYTES + 1)
        except ToolFailedError:  # it is not there, or is none that a tool could change
            data = b"is not"
        digest.update(sha256(data).digest())
    return digest.hexdigest()
