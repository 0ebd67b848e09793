"""What an edit does to a file, as an editor shows it."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from acp.schema import ContentToolCallContent, FileEditToolCallContent

from doors.editor.content import as_output, as_text
from modes.errors import ToolFailedError
from modes.plain_text import plain, readable
from tools.workspace.workspace import Workspace

MAX_DIFF = 1_000_000
Content = ContentToolCallContent | FileEditToolCallContent


def preview_of(
    args: Mapping[str, Any], file: Path, old: Callable[[], str | None] | None
) -> tuple[tuple[Content, ...], int | None]:
    """What a call with these arguments will do, and the line in which it does.

    Of the tools that give the whole text of a file, or a piece of it and another for it.
    ``old`` reads the file; without it the call has run, and the old text is gone.
    """
    match args:
        case {"content": str(new)}:
            if old is None:
                return (as_output(new),), None  # whether it was new is not known any more, or yet
            try:
                return diff(file, old(), new), None
            except ToolFailedError as error:
                told = f"The file is there, and what is in it cannot be shown: {plain(str(error))}"
                return (as_output(new), as_text(told)), None
        case {"old": str(piece), "new": str(new)}:
            shown, line = diff(file, piece, new), None
            if old is not None:
                line, count = _places(old, piece)
                if count > 1 and args.get("replace_all"):
                    shown += (as_text(f"In all {count} places in which the old text stands."),)
            return shown, line
    return (), None


def diff(file: Path, old: str | None, new: str) -> tuple[Content, ...]:
    """From one text to the other, unless they are long."""
    if len(new) + len(old or "") > MAX_DIFF:
        return (as_text(f"{len(new)} characters, too many for a diff:"), as_output(new))
    texts = {"old_text": None if old is None else readable(old), "new_text": readable(new)}
    shown = FileEditToolCallContent(type="diff", path=str(file), **texts)
    if texts == {"old_text": old, "new_text": new}:
        return (shown,)
    return (shown, as_text("Characters that do not show are written out; the file has them."))


def _places(read: Callable[[], str | None], piece: str) -> tuple[int | None, int]:
    """The first line in which the piece stands in the file, and how often it does."""
    try:
        whole = read() or ""
        before, found, _ = whole.partition(piece)
    except (ToolFailedError, ValueError):  # it is not to be read, or the piece is empty
        return None, 0
    return before.count("\n") + 1 if found else None, whole.count(piece)


def text_of(workspace: Workspace, name: str) -> str | None:
    """The text of a file; None where there is none. Raises ``ToolFailedError``."""
    if not os.path.lexists(workspace.root / name):
        return None
    return workspace.read(name, is_real=True)
