"""What an edit does to a file, as an editor shows it."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from acp import tool_diff_content
from acp.schema import ContentToolCallContent, FileEditToolCallContent

from doors.editor.content import as_output, as_text
from modes.errors import ToolFailedError
from modes.plain_text import make_readable, to_one_line
from tools.workspace.workspace import Workspace

MAX_DIFF = 1_000_000
ShownContent = ContentToolCallContent | FileEditToolCallContent


def preview_edit(
    args: Mapping[str, Any], file: Path, old: Callable[[], str | None] | None
) -> tuple[tuple[ShownContent, ...], int | None]:
    """What a call with these arguments will do, and in which line.

    For tools that are given a file's whole text, or a piece of it and a replacement. ``old``
    reads the file; without it the call may have run already, and the old text be gone.
    """
    match args:
        case {"content": str(new)}:
            if old is None:
                return (as_output(new),), None  # whether the file is new is not known
            try:
                return show_diff(file, old(), new), None
            except ToolFailedError as error:
                problem = (
                    f"The file exists, but its text cannot be shown: {to_one_line(str(error))}"
                )
                return (as_output(new), as_text(problem)), None
        case {"old": str(piece), "new": str(new)}:
            shown, line = show_diff(file, piece, new), None
            if old is not None:
                line, count = _find(piece, old)
                if count > 1 and args.get("replace_all"):
                    shown += (as_text(f"In all {count} places where the old text stands."),)
            return shown, line
    return (), None


def show_diff(file: Path, old: str | None, new: str) -> tuple[ShownContent, ...]:
    """A diff, or only the new text if they are long."""
    if len(new) + len(old or "") > MAX_DIFF:
        return (as_text(f"{len(new)} characters, too many for a diff:"), as_output(new))
    texts = make_readable(new), None if old is None else make_readable(old)
    shown = tool_diff_content(str(file), *texts)
    if texts == (new, old):
        return (shown,)
    return (shown, as_text("Invisible characters are written out here; the file has them as is."))


def read_text(workspace: Workspace, name: str) -> str | None:
    """The text of a file; None if it does not exist. Raises ``ToolFailedError``."""
    if not os.path.lexists(workspace.root / name):
        return None
    return workspace.read(name)


def _find(piece: str, read: Callable[[], str | None]) -> tuple[int | None, int]:
    """The first line in which the piece stands in the file, and how often it does."""
    try:
        whole = read() or ""
        before, found, _ = whole.partition(piece)
    except (ToolFailedError, ValueError):  # the file cannot be read, or the piece is empty
        return None, 0
    return before.count("\n") + 1 if found else None, whole.count(piece)
