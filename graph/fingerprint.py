"""Digests that bind a person's decision to what was asked, and an approval to what runs."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from hashlib import sha256

from graph.harness import Harness
from graph.history import call_id
from graph.judge import Judged, Moment
from graph.suggestions import switch_targets
from modes.errors import ToolFailedError
from modes.toolspec import Effect
from tools.workspace import Workspace


async def fingerprint(harness: Harness, moment: Moment, judged: Sequence[Judged]) -> str:
    """Differs where anything does that a person would have to know before deciding.

    The mode with its rules, the workspace and the sandbox, what is judged to need a
    person, the arguments with their paths resolved, the modes that a decision may switch
    to, and what is in the files that a call would change.
    """
    digest = sha256(harness.place_digest(moment.mode.slug).encode())
    for one in judged:
        targets = switch_targets(one.effect, one.args or {})
        parts = [call_id(one.call), one.verdict.kind, one.args, one.call["args"]]
        parts += [harness.catalog[slug].digest for slug in targets]
        digest.update(json.dumps(parts, sort_keys=True, default=repr).encode())
    if edits := [one for one in judged if one.verdict.kind == "ask" and one.effect is Effect.EDIT]:
        paths = dict.fromkeys(path for one in edits for path in one.real_paths.values() if path)
        digest.update(await asyncio.to_thread(_content_digest, harness.toolbox.workspace, paths))
    return digest.hexdigest()


def _content_digest(workspace: Workspace, paths: Iterable[str]) -> bytes:
    digest = sha256()
    for path in paths:
        try:
            text = workspace.read(path, is_real=True)
        except ToolFailedError as error:  # it is not there, say
            text = str(error)
        digest.update(sha256(text.encode("utf-8", "surrogateescape")).digest())
    return digest.digest()


def call_digest(harness: Harness, moment: Moment, one: Judged) -> str:
    """Differs where another tool would run, on other arguments or files, in another mode."""
    parts = [harness.place_digest(moment.mode.slug), one.call["name"], one.call["args"], one.args]
    return sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()
