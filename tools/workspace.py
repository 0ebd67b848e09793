"""``Workspace``: the folder the agent works in, and the only class that opens files.

Every path from outside goes through ``resolve``, links included. A later change
can swap how files are opened without touching a tool.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

from modes.errors import ConfigurationError, InvalidCallError, ToolFailedError

MAX_FILE_BYTES = 10_000_000


class Workspace:
    """A folder, by its real path."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise ConfigurationError(
                f"WORKSPACE {str(root)!r} is not a folder; create it, or name one that exists"
            )
        self.root = root.resolve()

    def resolve(self, path: str) -> str:
        """``path`` relative to the workspace, ``..`` and links resolved.

        Raises ``InvalidCallError`` for a path that leads outside, and for one with
        a control character. ``~`` and ``$VAR`` are names like any other.
        """
        if any(ord(character) < 32 for character in path):
            raise InvalidCallError(f"path {path!r} holds a control character; give a plain path")
        try:
            real = Path(os.path.realpath(self.root / path))
            is_loop = real.is_symlink()  # what realpath leaves of one
        except (OSError, ValueError) as error:
            raise InvalidCallError(f"path {path!r} cannot be resolved: {error}") from error
        if not real.is_relative_to(self.root):
            raise InvalidCallError(
                f"path {path!r} leads outside the workspace; give a path inside it, relative to it"
            )
        if is_loop:
            raise InvalidCallError(f"path {path!r} is a link that leads nowhere")
        return real.relative_to(self.root).as_posix()

    def read(self, path: str, max_bytes: int = MAX_FILE_BYTES) -> str:
        """The text of a regular file, UTF-8; raises ``ToolFailedError`` otherwise."""
        target = self._target(path)
        try:
            # O_NONBLOCK: opening a FIFO would wait for its writer.
            descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise ToolFailedError(f"{path!r} cannot be read: {error.strerror}") from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ToolFailedError(f"{path!r} is not a regular file")
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(max_bytes + 1)
        except OSError as error:
            raise ToolFailedError(f"{path!r} cannot be read: {error.strerror}") from error
        finally:
            os.close(descriptor)
        if len(data) > max_bytes:
            raise ToolFailedError(f"{path!r} is larger than {max_bytes} bytes")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise ToolFailedError(f"{path!r} is not UTF-8 text") from None

    def write(self, path: str, text: str) -> bool:
        """Replace the file in one step; says whether it is new. Makes missing folders."""
        target = self._target(path)
        try:
            mode = target.stat().st_mode if target.exists() else None
            if mode is not None and not stat.S_ISREG(mode):
                raise ToolFailedError(f"{path!r} is not a regular file")
            target.parent.mkdir(parents=True, exist_ok=True)
            self._replace(target, text.encode("utf-8"), mode)
        except (OSError, UnicodeEncodeError) as error:
            raise ToolFailedError(f"{path!r} cannot be written: {error}") from error
        return mode is None

    @staticmethod
    def _replace(target: Path, data: bytes, mode: int | None) -> None:
        temporary = target.with_name(f".modeshift-{token_hex(8)}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(temporary, flags, 0o666), "wb") as file:
            try:
                file.write(data)
                if mode is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(mode))
                file.flush()
                os.replace(temporary, target)
            except OSError:
                os.unlink(temporary)
                raise

    def entries(self, path: str, recursive: bool) -> Iterator[str]:
        """Names below a folder, sorted, relative to the workspace; folders end in ``/``.

        Links are named, not followed; ``.git`` is left out.
        """
        folder = self._target(path)
        try:
            with os.scandir(folder) as scan:
                found = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            raise ToolFailedError(f"{path!r} cannot be listed: {error.strerror}") from error
        for entry in found:
            name = Path(entry.path).relative_to(self.root).as_posix()
            if not entry.is_dir(follow_symlinks=False):
                yield name
            elif entry.name != ".git":
                yield f"{name}/"
                if recursive:
                    yield from self.entries(name, recursive)

    def searchable(self, path: str) -> str:
        """The resolved path of a folder or a regular file: a FIFO, say, would never end."""
        target = self._target(path)
        if not target.is_dir() and not target.is_file():
            raise ToolFailedError(f"{path!r} is no file or folder in the workspace")
        return self.resolve(path)

    def folder(self, path: str) -> Path:
        """The real folder at ``path``, to start a program in."""
        target = self._target(path)
        if not target.is_dir():
            raise ToolFailedError(f"{path!r} is not a folder in the workspace")
        return target

    def _target(self, path: str) -> Path:
        return self.root / self.resolve(path)
