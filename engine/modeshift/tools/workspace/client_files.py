"""Text files as an editor has them open, with changes that are not saved yet."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from modeshift.modes.errors import ToolFailedError
from modeshift.tools.workspace.text import is_plain_utf8


class Buffers(Protocol):
    """The files that an editor has open. Both methods block, and raise ``ToolFailedError``."""

    @property
    def reads(self) -> bool:
        """Whether files are read through the editor."""

    @property
    def writes(self) -> bool:
        """Whether files are written through the editor."""

    def read(self, file: Path) -> str:
        """The whole text of the file, by its absolute path."""

    def write(self, file: Path, text: str) -> None:
        """Replace the file's text, and save it."""


buffers: ContextVar[Buffers | None] = ContextVar("buffers", default=None)
"""The editor's files in the current run; without any, files are what is on disk."""


def read_in_editor(path: str, real: Path, data: bytes) -> str | None:
    """The text that the editor has of a file, in which ``data`` is on disk.

    None where no editor reads, and where ``data`` is not plain UTF-8: an editor gives text, and
    does not say which bytes it was. Raises ``ToolFailedError``, as ``write_in_editor`` does.
    """
    editor = buffers.get()
    if editor is None or not editor.reads or not is_plain_utf8(data):
        return None
    with _in_its_place(path, real):
        return editor.read(real)


def write_in_editor(path: str, real: Path, before: bytes, data: bytes) -> bool:
    """Have the editor write ``data`` to a file in which ``before`` is on disk.

    Returns whether it was done: False if no editor writes, or the text is not plain UTF-8.
    """
    editor = buffers.get()
    if editor is None or not editor.writes or not is_plain_utf8(before + data):
        return False
    with _in_its_place(path, real):
        editor.write(real, data.decode())
    return True


@contextmanager
def _in_its_place(path: str, real: Path) -> Iterator[None]:
    """Refuse a path on which there is a link, before or afterwards.

    An editor gets a path, and opens it when it likes: the folders may be moved meanwhile.
    """
    if os.path.realpath(real) != str(real):
        raise ToolFailedError(f"{path!r} is not where it was")
    yield
    if os.path.realpath(real) != str(real):
        raise ToolFailedError(f"{path!r} was moved while the editor had it; check what it did")
