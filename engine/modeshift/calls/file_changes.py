"""``list_changes``: what a thread has changed in files, as far as that is kept for undo."""

import os

from modeshift.calls.previews import FileChange, compare_texts, say_of_file
from modeshift.modes.errors import ToolFailedError
from modeshift.modes.plain_text import to_one_line
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import StateValues
from modeshift.tools.workspace.text import TextFormat
from modeshift.tools.workspace.undo_log import Held

MAX_FILES = 200
UNKNOWN = "what it was before is not known"


def list_changes(deps: AgentDeps, thread: str, values: StateValues) -> list[FileChange]:
    """The files that a thread has changed, by its state, of this process or a server. Blocks."""
    changes = [*values.get("mode_changes", ()), values]
    before: dict[str, Held | None] = {
        path: None for each in changes for path in each.get("written", ())
    }
    for call in deps.undo_log.list_calls(thread) if deps.undo_log else ():
        for path, file in call.files.items():
            before[path] = before.get(path) or file.before
    listed = (_compare(deps, thread, path, held) for path, held in before.items())
    return [change for change in listed if change is not None][:MAX_FILES]


def _compare(deps: AgentDeps, thread: str, path: str, held: Held | None) -> FileChange | None:
    """The change of a file; None for one that is as it was."""
    workspace, log, before = deps.toolbox.workspace, deps.undo_log, None
    if held is not None and workspace.find_held(path)[0] == held[0]:
        return None
    try:
        exists = os.path.lexists(workspace.root / path)
        now = workspace.read(path) if exists else ""
        data = log.find(thread, held[0]) if log and held else None
        before = None if data is None else TextFormat.of(data).decode(data)
    except ToolFailedError as error:
        return say_of_file(path, to_one_line(str(error)))
    if before is None and (held is None or held[0] is not None):
        return say_of_file(path, UNKNOWN) | {"after": now[:100_000]}
    change = compare_texts(path, before, now)
    return change if exists else change | {"problem": "the file is gone"}
