"""``apply_edit``: what a call makes of a file's text; edits that cannot be made are denied."""

import asyncio
import os
from collections.abc import Mapping, Sequence

from modeshift.calls.judging import CallContext, Judged
from modeshift.modes.errors import ToolFailedError
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.policy import Verdict, verdict
from modeshift.threads.deps import AgentDeps
from modeshift.tools.tool import Tool
from modeshift.tools.workspace.text import find_places, read_replacements, replace_pieces
from modeshift.tools.workspace.workspace import Workspace


def apply_edit(
    workspace: Workspace, tool: Tool, args: JsonObject
) -> tuple[str, str | None, str] | None:
    """The path of a file, its text before a call, None for a new one, and after it.

    For tools that take its whole text or exact replacements; None for others. Raises
    ``ToolFailedError`` as such a tool does. Blocks.
    """
    path, before = args[tool.spec.paths[0]], None
    content, edits = args.get("content"), read_replacements(args)
    if not isinstance(content, str) and not edits:
        return None
    if os.path.lexists(workspace.root / path):
        before = workspace.read(path)
    if isinstance(content, str):
        return path, before, content
    assert edits is not None
    places = find_places(path, workspace.read(path) if before is None else before, edits)
    return path, before, replace_pieces(before or "", places)


def deny_failing(judged: Sequence[Judged], failing: Mapping[str, str]) -> list[Judged]:
    """Deny those calls that would fail; ``failing`` has the reasons by id."""
    denied = {id: Verdict("deny", why, ToolFailedError) for id, why in failing.items()}
    return [Judged(each.call, denied[each.id]) if each.id in denied else each for each in judged]


def find_failing(judged: Sequence[Judged]) -> dict[str, str]:
    """The reasons of calls that were denied as failing, by id, for ``deny_failing``."""
    return {
        each.id: each.verdict.reason for each in judged if each.verdict.error is ToolFailedError
    }


async def deny_failing_edits(
    deps: AgentDeps, context: CallContext, judged: Sequence[Judged]
) -> list[Judged]:
    """Deny the edits that cannot be made as the files are now, so that nobody is asked in vain.

    An edit behind a call that changes something may still fit when its turn comes.
    """
    failing = dict[str, str]()
    for each in judged:
        if each.needs_person and (problem := await _find_problem(deps, context, each)) is not None:
            failing[each.id] = problem
        elif each.effect.changes_the_world and not each.verdict.changes_nothing:
            break
    return deny_failing(judged, failing)


async def _find_problem(deps: AgentDeps, context: CallContext, judged: Judged) -> str | None:
    """Why the edit cannot be made; as it quotes the file, only where the model may read that."""
    tool, args = judged.tool, judged.args
    if tool is None or args is None or not judged.edited_paths or not read_replacements(args):
        return None
    if not all(_may_read(deps, context, path) for path in judged.edited_paths):
        return None
    try:
        await asyncio.to_thread(apply_edit, deps.toolbox.workspace, tool, args)
    except ToolFailedError as error:
        return str(error)
    return None


def _may_read(deps: AgentDeps, context: CallContext, path: str) -> bool:
    """Whether each reading tool of the mode, and of the limit, shows the file unasked."""
    seat = context.seat
    specs = [deps.toolbox[name].spec for name in seat.tools]
    readers = [spec for spec in specs if spec.effect.reads_files and spec.paths]
    modes = [mode for mode in (seat.mode, seat.limit) if mode is not None]
    verdicts = [
        verdict(mode, spec, dict.fromkeys(spec.paths, path), context.approvals).kind
        for mode in modes
        for spec in readers
    ]
    return bool(verdicts) and {*verdicts} == {"allow"}
