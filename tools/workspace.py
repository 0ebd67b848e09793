"""``Workspace``: the folder the agent works in, and the only class that opens files.

Every path from outside goes through ``resolve``, which says what file is meant, links
included. Files are then opened name by name below the root, and no link is followed:
what has been judged is what is opened, whatever happens to the folders in between.
(``openat2`` would do the same in one call, on Linux alone.)
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
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

    def read(self, path: str, max_bytes: int = MAX_FILE_BYTES, *, is_real: bool = False) -> str:
        """The text of a regular file, UTF-8; raises ``ToolFailedError`` otherwise.

        A path that ``is_real`` has been resolved, and judged: a link in it is refused.
        """
        folders, name = self._file(path, is_real)
        with self._failing(path, "read"), self._folder(folders) as folder:
            # O_NONBLOCK: opening a FIFO would wait for its writer.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with _opened(name, flags, folder) as descriptor:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise ToolFailedError(f"{path!r} is not a regular file")
                with open(descriptor, "rb", closefd=False) as file:
                    data = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise ToolFailedError(f"{path!r} is larger than {max_bytes} bytes")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise ToolFailedError(f"{path!r} is not UTF-8 text") from None

    def write(self, path: str, text: str, *, is_real: bool = False) -> bool:
        """Replace the file in one step; says whether it is new. Makes missing folders."""
        folders, name = self._file(path, is_real)
        with self._failing(path, "written"), self._folder(folders, make=True) as folder:
            mode = _mode(name, folder)
            if mode is not None and not stat.S_ISREG(mode):
                raise ToolFailedError(f"{path!r} is not a regular file")
            _replace(name, folder, text.encode("utf-8"), mode)
        return mode is None

    def entries(self, path: str, recursive: bool) -> Iterator[str]:
        """Names below a folder, sorted, relative to the workspace; folders end in ``/``.

        Links are named, not followed; ``.git`` is left out.
        """
        names = self._names(path)
        with (
            self._failing(path, "listed"),
            self._folder(names) as folder,
            os.scandir(folder) as scan,
        ):
            found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in scan)
        for entry, is_folder in found:
            name = "/".join([*names, entry])
            if not is_folder:
                yield name
            elif entry != ".git":
                yield f"{name}/"
                if recursive:
                    yield from self.entries(name, recursive)

    def _file(self, path: str, is_real: bool) -> tuple[list[str], str]:
        names = path.split("/") if is_real else self._names(path)
        if not names or {"", ".", ".."} & set(names):
            raise ToolFailedError(f"{path!r} is not a regular file")
        return names[:-1], names[-1]

    def _names(self, path: str) -> list[str]:
        """The names on the way to a resolved path; none for the workspace itself."""
        resolved = self.resolve(path)
        return [] if resolved == "." else resolved.split("/")

    @contextmanager
    def _folder(self, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """A folder, opened name by name: what became a link since it was resolved is refused."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        descriptor = os.open(self.root, flags)
        try:
            for name in names:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=descriptor)
                parent, descriptor = descriptor, os.open(name, flags, dir_fd=descriptor)
                os.close(parent)
            yield descriptor
        finally:
            os.close(descriptor)

    @staticmethod
    @contextmanager
    def _failing(path: str, done: str) -> Iterator[None]:
        try:
            yield
        except UnicodeEncodeError as error:
            raise ToolFailedError(f"{path!r} cannot be {done}: {error}") from error
        except OSError as error:
            raise ToolFailedError(f"{path!r} cannot be {done}: {error.strerror}") from error

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


@contextmanager
def _opened(name: str, flags: int, folder: int) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _mode(name: str, folder: int) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _replace(name: str, folder: int, data: bytes, mode: int | None) -> None:
    temporary = f".modeshift-{token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
        try:
            file.write(data)
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            file.flush()
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(temporary, dir_fd=folder)
            raise
