"""What an edit does to a file, as an editor shows it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from acp import tool_diff_content
from acp.schema import ContentToolCallContent, FileEditToolCallContent

from modeshift.editor.display.content import as_output, as_text
from modeshift.modes.plain_text import make_readable
from modeshift.tools.workspace.replacement import read_replacements

MAX_DIFF = 1_000_000
ShownContent = ContentToolCallContent | FileEditToolCallContent


def show_edit(args: Mapping[str, Any], file: Path) -> Iterator[ShownContent]:
    """What a call with these arguments writes, without a look at what is in the file.

    For tools that are given a file's whole text, or pieces of it and replacements.
    """
    if isinstance(text := args.get("content"), str):
        yield as_output(text)
    for edit in read_replacements(args) or ():
        yield from show_diff(file, edit.old, edit.new)
        if edit.replace_all:
            yield as_text("In all places where the old text stands.")


def show_diff(file: Path, old: str | None, new: str) -> Iterator[ShownContent]:
    """A diff, or only the new text if they are long."""
    if len(new) + len(old or "") > MAX_DIFF:
        yield as_text(f"{len(new)} characters, too many for a diff:")
        yield as_output(new)
        return
    texts = make_readable(new), None if old is None else make_readable(old)
    yield tool_diff_content(str(file), *texts)
    if texts != (new, old):
        yield as_text("Invisible characters are written out here; the file has them as is.")
