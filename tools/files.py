"""The ``read`` group: read, list and search files in the workspace."""

import subprocess
import sysconfig
from itertools import islice
from pathlib import Path

from modes.errors import ToolFailedError
from modes.toolspec import Effect, ToolGroup
from tools.tool import Tool
from tools.workspace import Workspace

MAX_LINES = 2000
MAX_ENTRIES = 1000
MAX_MATCHES = 200
MAX_LINE_CHARACTERS = 2000
SEARCH_SECONDS = 20


def read_tools(workspace: Workspace) -> list[Tool]:
    """The tools of the group, on this workspace."""

    def read_file(path: str, offset: int | None = None, limit: int | None = None) -> str:
        """Read a text file; lines come numbered from 1.

        Args:
            path: The file, relative to the workspace.
            offset: The first line to show; 1 by default.
            limit: How many lines to show at most.
        """
        # Not splitlines(): it also breaks at form feeds and the like, and rg does not.
        lines = workspace.read(path).removesuffix("\n").split("\n")
        start = max(offset or 1, 1)
        shown = lines[start - 1 : start - 1 + min(max(limit or MAX_LINES, 1), MAX_LINES)]
        if not shown:
            return f"{path} has {len(lines)} lines; nothing from line {start}."
        text = "\n".join(f"{number:>5} {_short(line)}" for number, line in enumerate(shown, start))
        end = start + len(shown) - 1
        return text if end == len(lines) else f"{text}\n[{path} goes on to line {len(lines)}]"

    def list_files(path: str = ".", recursive: bool = False) -> str:
        """List a folder; the names of folders end in "/".

        Args:
            path: The folder, relative to the workspace.
            recursive: Whether to list the folders below it too.
        """
        names = list(islice(workspace.entries(path, recursive), MAX_ENTRIES + 1))
        if len(names) > MAX_ENTRIES:
            names[-1] = f"[more than {MAX_ENTRIES} entries: list a folder below]"
        return "\n".join(names) or f"{path} is empty."

    def search_files(regex: str, path: str = ".", file_pattern: str | None = None) -> str:
        """Search files for a regular expression (Rust syntax); .gitignore is respected.

        Args:
            regex: What to look for, line by line.
            path: The folder or file to search, relative to the workspace.
            file_pattern: Only files whose name matches this glob, such as "*.py".
        """
        target = workspace.searchable(path)
        # With "=" and "--" nothing that the model writes can become an option.
        asked = [f"--regexp={regex}", *([f"--glob={file_pattern}"] if file_pattern else [])]
        command = [
            str(_ripgrep()),
            *_RIPGREP_OPTIONS,
            *asked,
            "--",
            "./" if target == "." else f"./{target}",
        ]
        try:
            found = subprocess.run(  # noqa: S603  # no shell, and no option of the model's
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                cwd=workspace.root,
                capture_output=True,
                timeout=SEARCH_SECONDS,
                env={},
            )
        except subprocess.TimeoutExpired:
            raise ToolFailedError(
                f"the search took more than {SEARCH_SECONDS} s; search a smaller folder"
            ) from None
        except ValueError as error:
            raise ToolFailedError(f"cannot search for {regex!r}: {error}") from error
        if found.returncode not in (0, 1) and not found.stdout:
            raise ToolFailedError(found.stderr.decode("utf-8", "replace").strip()[:2000])
        lines = found.stdout.decode("utf-8", "replace").splitlines()
        matches = [line.removeprefix("./") for line in lines]
        if len(matches) > MAX_MATCHES:
            matches[MAX_MATCHES:] = [f"[more than {MAX_MATCHES} matches: search more narrowly]"]
        return "\n".join(matches) or f"No match for {regex!r} in {path}."

    group = ToolGroup.READ
    return [
        Tool.of(read_file, Effect.READ, group, paths=("path",)),
        Tool.of(list_files, Effect.READ, group, paths=("path",), reads_below=True),
        Tool.of(search_files, Effect.READ, group, paths=("path",), reads_below=True),
    ]


_RIPGREP_OPTIONS = (
    "--no-config",
    "--line-number",
    "--with-filename",
    "--no-heading",
    "--color=never",
    "--sort=path",
    f"--max-columns={MAX_LINE_CHARACTERS}",
    "--max-columns-preview",
    f"--max-count={MAX_MATCHES + 1}",
    "--max-filesize=10M",
    "--hidden",
    "--glob=!.git",
    "--no-require-git",
)


def _short(line: str) -> str:
    line = line.removesuffix("\r")
    left_out = len(line) - MAX_LINE_CHARACTERS
    if left_out <= 0:
        return line
    return f"{line[:MAX_LINE_CHARACTERS]}[{left_out} more characters]"


def _ripgrep() -> Path:
    return Path(sysconfig.get_path("scripts"), "rg")
