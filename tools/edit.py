"""The ``edit`` group: change files in the workspace."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from modeshift.modes.rules.files import is_secret
from modeshift.tools.tool import Tool, ToolDeps
from modeshift.tools.workspace.text import Replacement, find_places, is_utf8, replace
from modeshift.tools.workspace.workspace import Written

MAX_KEPT = 200_000
"""Characters of replaced text: they stay in the thread for good."""


class Edited(TypedDict, total=False):
    """The ``artifact`` of a result: for clients, not for the model."""

    replaced: str | None
    """The text that was replaced as a whole; None for a new file. Missing if it was long, not
    UTF-8, or looked as if it held a secret."""
    line: int
    """The first line that was changed, counted from 1."""


class Edit(BaseModel):
    """One piece of text, and what is put in its place."""

    model_config = ConfigDict(extra="forbid")
    old: str = Field(description="The text to replace, letter for letter, without line numbers.")
    new: str
    replace_all: bool = Field(
        default=False, description="Whether to replace it wherever it stands."
    )


Edits = Annotated[list[Edit], Field(min_length=1, max_length=100)]


def edit_tools(deps: ToolDeps) -> list[Tool]:
    """The tools of the group."""
    workspace = deps.workspace

    def write_file(path: str, content: str) -> tuple[str, Edited]:
        """Create a file, or replace the whole of one; folders are made as needed.

        Args:
            path: The file, relative to the workspace.
            content: Everything the file is to hold.
        """
        done = workspace.write(path, content)
        told = f"{'Created' if done.is_new else 'Replaced'} {path} ({len(content)} characters)."
        return told, _kept(path, done)

    def edit_file(path: str, edits: Edits) -> tuple[str, Edited]:
        """Replace pieces of text in a file: all of the edits are made, or none.

        Args:
            path: The file, relative to the workspace.
            edits: The edits; each is looked for in the file as it is before any of them.
        """
        text = workspace.read(path)
        given = [Replacement(edit.old, edit.new, edit.replace_all) for edit in edits]
        places = find_places(path, text, given)
        workspace.write(path, replace(text, places), instead_of=text)
        line = text.count("\n", 0, places[0].start) + 1
        many = "s" if len(places) > 1 else ""
        return f"Edited {path}: {len(places)} place{many}.", Edited(line=line)

    return [
        Tool.of(write_file, "edit", has_artifact=True, paths=("path",)),
        Tool.of(edit_file, "edit", has_artifact=True, paths=("path",)),
    ]


def _kept(path: str, done: Written) -> Edited:
    text = done.replaced
    if done.is_new:
        return Edited(replaced=None)
    if text is None or len(text) > MAX_KEPT or not is_utf8(text) or is_secret(path):
        return Edited()
    return Edited(replaced=text)
