"""The ``edit`` group: change files in the workspace."""

from modes.errors import ToolFailedError
from modes.toolspec import Effect, ToolGroup
from tools.text import is_utf8
from tools.tool import Tool
from tools.workspace import MAX_FILE_BYTES, Workspace


def edit_tools(workspace: Workspace) -> list[Tool]:
    """The tools of the group, on this workspace."""

    def write_file(path: str, content: str) -> str:
        """Create a file, or replace the whole of one; folders are made as needed.

        Args:
            path: The file, relative to the workspace.
            content: Everything the file is to hold.
        """
        is_new = workspace.write(path, content, is_real=True)
        return f"{'Created' if is_new else 'Replaced'} {path} ({len(content)} characters)."

    def edit_file(path: str, old: str, new: str, replace_all: bool = False) -> str:
        """Replace one exact piece of text in a file.

        Args:
            path: The file, relative to the workspace.
            old: The text to replace, letter for letter, without line numbers.
            new: The text to put in its place.
            replace_all: Whether to replace every place where it stands.
        """
        if not old:
            raise ToolFailedError("old is empty; give the text to replace, or use write_file")
        text = workspace.read(path, is_real=True)
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
        workspace.write(path, text.replace(old, new), is_real=True, instead_of=text)
        return f"Edited {path}: {count} place{'s' if count > 1 else ''}."

    group = ToolGroup.EDIT
    return [
        Tool.of(write_file, Effect.EDIT, group, paths=("path",)),
        Tool.of(edit_file, Effect.EDIT, group, paths=("path",)),
    ]
