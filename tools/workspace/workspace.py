"""``Workspace``: the folder the agent works in, and the only class that opens files.

Every path from outside goes through ``resolve``, which says what file is meant, links
included. Files are then opened below the root, by the kernel or name by name, and no
link is followed: what has been judged is what is opened, whatever happens to the
folders in between.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from modes.errors import ConfigurationError, InvalidCallError, ToolFailedError
from tools.workspace import atomic_file as regular
from tools.workspace.client_files import (
    editor_reads,
    editor_writes,
    text_in_editor,
    write_in_editor,
)
from tools.workspace.encoding import Form, is_plain_utf8
from tools.workspace.openat import open_folder, real_path

MAX_FILE_BYTES = 10_000_000
MAX_SCANNED = 200_000
MAX_PATH = 4096
_CONTROL = re.compile(r"[\x00-\x1f]")


class Written(NamedTuple):
    """What became of a file."""

    is_new: bool
    replaced: str | None
    """The text that was there; empty for a new file, None where it was no text."""


class Workspace:
    """A folder, by its real path."""

    def __init__(self, root: Path, closed: Iterable[Path] = ()) -> None:
        """Of ``closed`` files in it none is opened: this process has locks on them.

        POSIX takes them off a file as soon as any descriptor of it is closed.
        """
        self._closed = tuple(closed)
        if not root.is_dir():
            raise ConfigurationError(
                f"WORKSPACE {str(root)!r} is not a folder; create it, or name one that exists"
            )
        self.root = root.resolve()
        if self.root.parent == self.root:
            raise ConfigurationError(
                f"WORKSPACE {str(root)!r} is the whole machine; name a folder in it"
            )

    def resolve(self, path: str) -> str:
        """``path`` relative to the workspace, ``..`` and links resolved.

        Raises ``InvalidCallError`` for a path that leads outside, and for one with
        a control character. ``~`` and ``$VAR`` are names like any other.
        """
        _check(path, path)
        try:
            real = Path(os.path.realpath(self.root / path))
            is_loop = real.is_symlink()  # what realpath leaves of one
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidCallError(f"path {path[:300]!r} cannot be resolved: {error}") from error
        if not real.is_relative_to(self.root):
            raise InvalidCallError(
                f"path {path!r} leads outside the workspace; give a path inside it, relative to it"
            )
        if is_loop:
            raise InvalidCallError(f"path {path!r} is a link that leads nowhere")
        resolved = real.relative_to(self.root).as_posix()
        _check(path, resolved)
        return resolved

    def resolve_at_once(self, path: str) -> str | None:
        """As ``resolve``, where the kernel can tell without a closer look; else None.

        Quick enough for an event loop, which ``resolve`` is not.
        """
        _check(path, path)
        found = real_path(self.root, path or ".")
        root = str(self.root)
        if found is None or not (found == root or found.startswith(f"{root}/")):
            return None  # it is not there, say, or a link leads on by an absolute path
        resolved = found[len(root) + 1 :] or "."
        _check(path, resolved)
        return resolved

    def read(self, path: str, max_bytes: int = MAX_FILE_BYTES, *, is_real: bool = False) -> str:
        """The whole text of a regular file; raises ``ToolFailedError`` otherwise.

        A path that ``is_real`` has been resolved, and judged: a link in it is refused.
        """
        with self.opened(path, is_real=is_real) as file:
            data = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise ToolFailedError(f"{path!r} is larger than {max_bytes} bytes")
        try:
            return Form.of(data).decode(data)
        except ToolFailedError as error:
            raise ToolFailedError(f"{path!r} {error}") from None

    @contextmanager
    def opened(self, path: str, *, is_real: bool = False) -> Iterator[BinaryIO]:
        """A regular file, to read its bytes; raises ``ToolFailedError``.

        Of text that an editor has open, the editor's bytes: the file is opened first all
        the same, so that it is one of the workspace's.
        """
        with self.on_disk(path, is_real=is_real) as file:
            data = file.read(MAX_FILE_BYTES + 1) if editor_reads() else b""
            file.seek(0)
            real = self.root.joinpath(*self._real_names(path, is_real))
            text = None if len(data) > MAX_FILE_BYTES else text_in_editor(path, real, data)
            yield file if text is None else BytesIO(text.encode("utf-8", "replace"))

    @contextmanager
    def on_disk(self, path: str, *, is_real: bool) -> Iterator[BinaryIO]:
        """As ``opened``, whatever an editor has open."""
        folders, name = self._file(path, is_real)
        with self._failing(path, "read"), self._folder(folders) as folder:
            self._leave_own(path, name, folder)
            with regular.opened(name, folder) as file:
                yield file

    def _leave_own(self, path: str, name: str, folder: int) -> None:
        """Refuse a file that is closed, by whatever name."""
        for own in self._closed:
            with suppress(OSError):  # one of them is not there
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if os.path.samestat(found, own.stat()):
                    raise ToolFailedError(f"{path!r} is the agent's own; it is not opened here")

    def write(
        self, path: str, text: str, *, is_real: bool = False, instead_of: str | None = None
    ) -> Written:
        """Replace the file in one step. Makes missing folders.

        It keeps its permissions, its encoding and how its lines end. One whose text is
        not ``instead_of`` by now is left as it is.
        """
        folders, name = self._file(path, is_real)
        with self._failing(path, "written"), self._folder(folders, make=True) as folder:
            self._leave_own(path, name, folder)
            old = regular.details(name, folder)
            if old is not None and not stat.S_ISREG(old.st_mode):
                raise ToolFailedError(f"{path!r} is not a regular file")
            before = b"" if old is None else regular.to_replace(name, folder, MAX_FILE_BYTES)
            form = Form.of(before)
            real = self.root.joinpath(*folders, name)
            # Of an editor's, also where the old text does not matter: what it refuses to show it
            # does not get to replace.
            shown = None if old is None else text_in_editor(path, real, before)
            now = form.decode(before) if shown is None and instead_of is not None else shown
            if instead_of is not None and now != instead_of:
                raise ToolFailedError(f"{path!r} has changed meanwhile; read it again")
            data = form.encode(text)
            if len(data) > MAX_FILE_BYTES:
                raise ToolFailedError(
                    f"{path!r} would have {len(data)} bytes; {MAX_FILE_BYTES} are the limit"
                )
            if editor_writes() and is_plain_utf8(before + data):
                write_in_editor(path, real, data.decode())
            elif shown is not None and shown != form.decode(before):
                unsaved = "has changes in the editor that are not saved; ask the user to save it"
                raise ToolFailedError(f"{path!r} {unsaved}")
            else:
                regular.replace(name, folder, data, old)
        return Written(old is None, form.decode_if_text(before) if now is None else now)

    def entries(
        self,
        path: str,
        recursive: bool,
        *,
        is_left_out: Callable[[str], bool] = lambda _: False,
        is_real: bool = False,
        seconds: float = 60,
    ) -> Iterator[str]:
        """Names below a folder, sorted, relative to the workspace; folders end in ``/``.

        Links are named, not followed; ``.git`` is left out, and what ``is_left_out``
        says of files and folders. Raises ``ToolFailedError`` for a folder that cannot
        be read, but for one below, and ``TimeoutError``.
        """
        deadline = time.monotonic() + seconds
        names = self._real_names(path, is_real)
        waiting = self._listed(names, is_left_out)
        while waiting:
            if time.monotonic() > deadline:
                raise TimeoutError
            name = waiting.pop()
            yield name
            if recursive and name.endswith("/"):
                with suppress(ToolFailedError):  # it is named
                    waiting += self._listed(name[:-1].split("/"), is_left_out)

    def _listed(self, names: Sequence[str], is_left_out: Callable[[str], bool]) -> list[str]:
        """What is in the folder, the first one last."""
        prefix = "".join(f"{name}/" for name in names)
        with self._failing("/".join(names) or ".", "listed"), self._folder(names) as folder:
            found = [(f"{prefix}{name}", is_plain) for name, is_plain in _scan(folder)]
        return sorted(
            (name for name, is_plain in found if not (is_plain and is_left_out(name))), reverse=True
        )

    def shows_nothing(self, path: str) -> bool:
        """Whether a folder, by its real path, is empty or cannot be read."""
        try:
            with self._folder(path.split("/")) as folder, os.scandir(folder) as scan:
                return next(scan, None) is None
        except OSError:
            return True

    @contextmanager
    def searched(self, path: str, *, is_real: bool = False) -> Iterator[tuple[int, bool]]:
        """The descriptor of a folder or a regular file to search, and whether it is a folder.

        Raises ``ToolFailedError``: a FIFO, say, would never end.
        """
        names = self._real_names(path, is_real)
        try:
            folder = open_folder(self.root, names)
        except OSError:
            with self.on_disk("/".join(names), is_real=True) as file:
                yield file.fileno(), False
        else:
            try:
                yield folder, True
            finally:
                os.close(folder)

    def folder(self, path: str) -> Path:
        """The real folder at ``path``, to start a program in."""
        target = self.root / self.resolve(path)
        if not target.is_dir():
            raise ToolFailedError(f"{path!r} is not a folder in the workspace")
        return target

    def _file(self, path: str, is_real: bool) -> tuple[list[str], str]:
        names = self._real_names(path, is_real)
        if not names:
            raise ToolFailedError(f"{path!r} is not a regular file")
        return names[:-1], names[-1]

    def _real_names(self, path: str, is_real: bool) -> list[str]:
        """The names on the way to a path; none for the workspace itself."""
        if not is_real:
            resolved = self.resolve(path)
            return [] if resolved == "." else resolved.split("/")
        names = [] if path == "." else path.split("/")
        if {"", ".", ".."} & set(names):
            raise ToolFailedError(f"{path!r} is not a regular file")
        return names

    @staticmethod
    @contextmanager
    def _failing(path: str, done: str) -> Iterator[None]:
        try:
            yield
        except UnicodeEncodeError as error:
            raise ToolFailedError(f"{path!r} cannot be {done}: {error}") from error
        except OSError as error:
            raise ToolFailedError(f"{path!r} cannot be {done}: {error.strerror}") from error

    @contextmanager
    def _folder(self, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
        descriptor = open_folder(self.root, names, make=make)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _check(path: str, found: str) -> None:
    """Refuse what a link may lead to as well: people and the model are shown the path."""
    if len(found) > MAX_PATH or _CONTROL.search(found) is not None:
        raise InvalidCallError(
            f"path {path[:300]!r} is longer than {MAX_PATH} characters, or holds a control "
            "character; give a plain path"
        )


def _scan(folder: int) -> Iterator[tuple[str, bool]]:
    """Names, those of folders with a slash, and whether it is a file or a folder and no link."""
    with os.scandir(folder) as scan:
        for count, entry in enumerate(scan):
            if count == MAX_SCANNED:
                raise ToolFailedError(f"the folder has more than {MAX_SCANNED} entries; search it")
            if not entry.is_dir(follow_symlinks=False):
                yield entry.name, entry.is_file(follow_symlinks=False)
            elif entry.name != ".git":
                yield f"{entry.name}/", True
