"""``Buffers``: text files as an editor has them open, with what is not saved yet."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from modes.errors import ToolFailedError
from tools.workspace.encoding import is_plain_utf8


class Buffers(Protocol):
    """What a client lends. Both methods block, and raise ``ToolFailedError``."""

    @property
    def reads(self) -> bool:
        """Whether files are read through it."""
        ...

    @property
    def writes(self) -> bool:
        """Whether files are written through it."""
        ...

    def read(self, file: Path) -> str:
        """The whole text of the file, by its absolute path."""
        ...

    def write(self, file: Path, text: str) -> None:
        """Put ``text`` in the place of the file's, and save it."""
        ...


buffers: ContextVar[Buffers | None] = ContextVar("buffers", default=None)
"""Those of the run under way; without any, files are what is on disk."""


def editor_reads() -> bool:
    """Whether text is to be read through an editor."""
    editor = buffers.get()
    return editor is not None and editor.reads


def editor_writes() -> bool:
    """Whether text is to be written through an editor."""
    editor = buffers.get()
    return editor is not None and editor.writes


def text_in_editor(path: str, real: Path, data: bytes) -> str | None:
    """The text that the editor has of a file, in which ``data`` is on disk.

    None where no editor reads, and where that is not plain UTF-8: an editor gives text
    and no bytes, and what they were, or would be, it does not say. Raises
    ``ToolFailedError``, as ``write_in_editor`` does.
    """
    editor = buffers.get()
    if editor is None or not editor.reads or not is_plain_utf8(data):
        return None
    with _in_its_place(path, real):
        return editor.read(real)


def write_in_editor(path: str, real: Path, text: str) -> None:
    """Have the editor write the file; only where ``editor_writes``."""
    editor = buffers.get()
    assert editor is not None
    with _in_its_place(path, real):
        editor.write(real, text)


@contextmanager
def _in_its_place(path: str, real: Path) -> Iterator[None]:
    """Raises ``ToolFailedError`` where a link stands on the way, before or afterwards.

    An editor gets a path, and opens it in its own time: nothing here holds the folders
    in their place meanwhile.
    """
    if os.path.realpath(real) != str(real):
        raise ToolFailedError(f"{path!r} is not where it was")
    yield
    if os.path.realpath(real) != str(real):
        raise ToolFailedError(f"{path!r} was moved while the editor had it; look what it did")
