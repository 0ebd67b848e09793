"""The ``read`` group: read, list and search files in the workspace."""

from typing import Annotated

from pydantic import Field

from modeshift.tools import Tool, ToolDeps, list_folder, read_lines, search

Depth = Annotated[int, Field(ge=1)]
Context = Annotated[int, Field(ge=0, le=20)]


def read_tools(deps: ToolDeps) -> list[Tool]:
    """The tools of the group; their paths arrive resolved and judged."""
    workspace = deps.workspace

    def read_file(path: str, offset: int | None = None, limit: int | None = None) -> str:
        """Read a text file. Each line comes with its number, counted from 1, and a tab.

        Read or search several files in one message where no result depends on another.

        Args:
            path: The file, relative to the workspace.
            offset: The first line to show; 1 by default.
            limit: How many lines to show at most.
        """
        return read_lines(workspace, path, offset, limit)

    def list_files(
        path: str = ".",
        depth: Depth | None = None,
        glob: str | None = None,
    ) -> str:
        """List a folder; the names of folders end in "/". What .gitignore names is left out.

        Args:
            path: The folder, relative to the workspace.
            depth: How many levels of folders to list; 1 by default, with a glob all.
            glob: Only what matches, such as "*.py" or, in path, "src/**/*.{ts,tsx}".
        """
        return list_folder(workspace, path, depth, glob)

    def search_files(
        regex: str,
        path: str = ".",
        glob: str | None = None,
        context: Context = 0,
    ) -> str:
        """Search files for a regular expression (Rust syntax). What .gitignore names is left out.

        Files that look as if they held a secret are left out too, unless path names one.

        Args:
            regex: What to look for, line by line.
            path: The folder or file to search, relative to the workspace.
            glob: Only files that match, such as "*.py" or, in path, "src/**/*.{ts,tsx}".
            context: How many lines to show before and after each match.
        """
        return search(workspace, regex, path, glob, context)

    return [
        Tool.of(read_file, "read", paths=("path",)),
        Tool.of(list_files, "read", paths=("path",), reads_below=True),
        Tool.of(search_files, "read", paths=("path",), reads_below=True),
    ]
