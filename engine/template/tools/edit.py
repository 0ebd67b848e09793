"""The ``edit`` group: change files in the workspace."""

from typing import Annotated

from modeshift.tools import Edited, Replacement, Tool, ToolDeps, replace_text, write_text
from pydantic import BaseModel, ConfigDict, Field


class _Edit(BaseModel):
    model_config = ConfigDict(extra="forbid")
    old: str = Field(description="Exactly, without line numbers.")
    new: str
    replace_all: bool = False


Edits = Annotated[list[_Edit], Field(min_length=1, max_length=100)]


def edit_tools(deps: ToolDeps) -> list[Tool]:
    """The tools of the group."""
    workspace = deps.workspace

    def write_file(path: str, content: str) -> tuple[str, Edited]:
        """Create a file with its folders, or replace the whole of one."""
        return write_text(workspace, path, content)

    def edit_file(path: str, edits: Edits) -> tuple[str, Edited]:
        """Replace text in a file, as it is before: all of the edits are made, or none."""
        replacements = [Replacement(edit.old, edit.new, edit.replace_all) for edit in edits]
        return replace_text(workspace, path, replacements)

    return [
        Tool.of(write_file, "edit", has_artifact=True, paths=("path",)),
        Tool.of(edit_file, "edit", has_artifact=True, paths=("path",)),
    ]
