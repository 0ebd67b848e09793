"""The ``read`` group: read, list and search files in the workspace."""

from typing import Annotated

from modeshift.tools import Tool, ToolDeps, list_folder, read_lines, search
from pydantic import Field

Depth = Annotated[int, Field(ge=1)]
Limit = Annotated[int, Field(ge=1)]
Context = Annotated[int, Field(ge=0, le=20)]


def read_tools(deps: ToolDeps) -> list[Tool]:
    """The tools of the group; their paths arrive resolved and judged."""
    workspace = deps.workspace

    def read_file(path: str, offset: int | None = None, limit: Limit | None = None) -> str:
        """Read a text file; before each line are its number, from 1, and a tab.

        Args:
            offset: The first line.
        """
        return read_lines(workspace, path, offset, limit)

    def list_files(
        path: str = ".",
        depth: Depth | None = None,
        glob: str | None = None,
    ) -> str:
        """List a folder, without what .gitignore names.

        Args:
            glob: Such as *.py, or in path src/**/*.{ts,tsx}.
        """
        return list_folder(workspace, path, depth, glob)

    def search_files(
        regex: str,
        path: str = ".",
        glob: str | None = None,
        context: Context = 0,
    ) -> str:
        """Search files by line.

        Without what .gitignore names or looks secret, unless path names it.

        Args:
            regex: In Rust's syntax.
        """
        return search(workspace, regex, path, glob, context)

    return [
        Tool.of(read_file, "read", paths=("path",)),
        Tool.of(list_files, "read", paths=("path",), reads_below=True),
        Tool.of(search_files, "read", paths=("path",), reads_below=True),
    ]
