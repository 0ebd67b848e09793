"""The ``edit`` group: change files in the workspace."""

from typing_extensions import TypedDict

from modes.errors import ToolFailedError
from modes.rules.protected_paths import is_secret
from tools.deps import ToolDeps
from tools.tool import Tool
from tools.workspace.encoding import is_utf8
from tools.workspace.workspace import MAX_FILE_BYTES, Written

MAX_KEPT = 200_000
"""Characters of replaced text: they stay in the thread for good."""


class Edited(TypedDict, total=False):
    """The ``artifact`` of a result: for clients, not for the model."""

    replaced: str | None
    """The text that was replaced as a whole; None for a new file. Missing if it was long, not
    UTF-8, or looked as if it held a secret."""
    line: int
    """The first line that was changed, counted from 1."""


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

    def edit_file(path: str, old: str, new: str, replace_all: bool = False) -> tuple[str, Edited]:
        """Replace one exact piece of text in a file.

        Args:
            path: The file, relative to the workspace.
            old: The text to replace, letter for letter, without line numbers.
            new: The text to put in its place.
            replace_all: Whether to replace every place where it stands.
        """
        if not old:
            raise ToolFailedError("old is empty; give the text to replace, or use write_file")
        text = workspace.read(path)
        if "\r\n" in text and "\r" not in old:  # read_file shows no carriage returns
            old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
        if not new.isascii() and not is_utf8(text):
            raise ToolFailedError(f"{path} is not UTF-8; only ASCII can be put into it")
        count = text.count(old)
        if count == 0:
            raise ToolFailedError(
                f"{old!r} is not in {path}; read the file again and copy the text exactly, "
                "blanks and line breaks included"
            )
        if count > 1 and not replace_all:
            raise ToolFailedError(
                f"{old!r} is in {path} {count} times; add lines around it until it is "
                "unique, or set replace_all"
            )
        if len(text) + count * (len(new) - len(old)) > MAX_FILE_BYTES:
            raise ToolFailedError(f"{path} would get larger than {MAX_FILE_BYTES} bytes")
        workspace.write(path, text.replace(old, new), instead_of=text)
        line = text[: text.index(old)].count("\n") + 1
        return f"Edited {path}: {count} place{'s' if count > 1 else ''}.", Edited(line=line)

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
