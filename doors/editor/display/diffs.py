"""What an edit does to a file, as an editor shows it."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from acp import tool_diff_content
from acp.schema import ContentToolCallContent, FileEditToolCallContent

from doors.editor.display.content import as_output, as_text
from modes.errors import ToolFailedError
from modes.plain_text import make_readable, to_one_line
from tools.workspace.replacement import Place, Replacement, find_places
from tools.workspace.workspace import Workspace

MAX_DIFF = 1_000_000
ShownContent = ContentToolCallContent | FileEditToolCallContent


def preview_edit(
    args: Mapping[str, Any], file: Path, old: Callable[[], str | None] | None
) -> tuple[tuple[ShownContent, ...], int | None]:
    """What a call with these arguments will do, and in which line.

    For tools that are given a file's whole text, or pieces of it and replacements. ``old`` reads
    the file; without it the call may have run already, and the old text be gone.
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
        case {"edits": [_, *_] as edits} if all(map(_is_replacement, edits)):
            return _preview_replacements(edits, file, old)
        case {"old": _} if _is_replacement(args):
            return _preview_replacements([args], file, old)
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


def _is_replacement(value: Any) -> bool:
    match value:
        case {"old": str(), "new": str()}:
            return True
    return False


def _preview_replacements(
    edits: Sequence[Mapping[str, Any]], file: Path, read: Callable[[], str | None] | None
) -> tuple[tuple[ShownContent, ...], int | None]:
    """All of the edits, each with how often it is made."""
    text, places = "", list[Place]()
    if read is not None:
        with suppress(ToolFailedError):  # the file cannot be read, or the edits not be made
            text = read() or ""
            given = [Replacement(e["old"], e["new"], e.get("replace_all", False)) for e in edits]
            places = find_places(file.name, text, given)
    counts = Counter(place.number for place in places)
    shown = list[ShownContent]()
    for number, edit in enumerate(edits, 1):
        shown += show_diff(file, edit["old"], edit["new"])
        if counts[number] > 1:
            shown.append(as_text(f"In all {counts[number]} places where the old text stands."))
    return tuple(shown), text.count("\n", 0, places[0].start) + 1 if places else None
