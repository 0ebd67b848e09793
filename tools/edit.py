"""The ``edit`` group: change files in the workspace."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from modeshift.tools import Edited, Replacement, Tool, ToolDeps, replace_text, write_text


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
        return write_text(workspace, path, content)

    def edit_file(path: str, edits: Edits) -> tuple[str, Edited]:
        """Replace pieces of text in a file: all of the edits are made, or none.

        Args:
            path: The file, relative to the workspace.
            edits: The edits; each is looked for in the file as it is before any of them.
        """
        replacements = [Replacement(edit.old, edit.new, edit.replace_all) for edit in edits]
        return replace_text(workspace, path, replacements)

    return [
        Tool.of(write_file, "edit", has_artifact=True, paths=("path",)),
        Tool.of(edit_file, "edit", has_artifact=True, paths=("path",)),
    ]
