"""``Buffers``: text files as an editor has them open, with what is not saved yet."""

from contextvars import ContextVar
from pathlib import Path
from typing import Protocol


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
