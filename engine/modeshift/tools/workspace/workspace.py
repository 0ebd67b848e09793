"""``Workspace``: the folder the agent works in, and the only class that opens files.

``resolve`` says which file a path from outside means, links included, and that is what is judged.
All other methods take a path as ``resolve`` gives it, and follow no link below the root: what has
been judged is what is opened, whatever happens to the folders in between.
"""

import asyncio
import ctypes
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import file_digest, sha256
from io import BytesIO
from itertools import filterfalse
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from modeshift.modes.errors import ConfigurationError, InvalidCallError, ToolFailedError
from modeshift.tools.workspace import atomic_file
from modeshift.tools.workspace.client_files import buffers, read_in_editor, write_in_editor
from modeshift.tools.workspace.ignore_files import IGNORE_FILES, IgnoreFiles
from modeshift.tools.workspace.opening import libc, list_names, opened_folder
from modeshift.tools.workspace.text import TextFormat
from modeshift.tools.workspace.undo_log import OTHER, PERMISSIONS, Held, current_record

T = TypeVar("T")
MAX_PATH = 4096
MAX_FILE_BYTES = 10_000_000
_SMALL = 32_768
_CONTROL = re.compile(r"[\x00-\x1f]")


class Workspace:
    """A folder, by its real path."""

    def __init__(
        self,
        root: Path,
        locked: Iterable[Path] = (),
        *,
        heeds_ignore_files: bool = False,
        must_exist: bool = True,
    ) -> None:
        """What ignore files name can be out of reach. None of the ``locked`` files is opened.

        This process holds locks on them, and POSIX releases those as soon as any descriptor of such
        a file is closed.
        """
        self._locked = tuple(locked)
        if must_exist and not root.is_dir():
            raise ConfigurationError(
                f"WORKSPACE {str(root)!r} is not a folder; create it, or name one that exists"
            )
        self.root = root.resolve()
        if self.root.parent == self.root:
            raise ConfigurationError(f"WORKSPACE {str(root)!r} is the whole machine; name a folder")
        names = IGNORE_FILES if heeds_ignore_files else ()
        self.ignored = IgnoreFiles(self.root, names, self._opened_unheeded)

    def resolve(self, path: str) -> str:
        """``path`` relative to the workspace, with ``..`` and links resolved.

        Raises ``InvalidCallError`` for a path that leads outside, and for one with
        a control character. ``~`` and ``$VAR`` are names like any other.
        """
        _check_path(path, path)
        try:
            real = Path(os.path.realpath(self.root / path))
            is_loop = real.is_symlink()  # what realpath leaves of one
            above = next((folder for folder in real.parents if folder.exists()), real)
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidCallError(f"path {path[:300]!r} cannot be resolved: {error}") from error
        if not real.is_relative_to(self.root):
            raise InvalidCallError(
                f"path {path!r} leads outside the workspace; give a path inside it, relative to it"
            )
        if is_loop:
            raise InvalidCallError(f"path {path!r} is a link that leads nowhere")
        if above.is_relative_to(self.root) and not above.is_dir():
            name = above.relative_to(self.root).as_posix()
            raise InvalidCallError(f"path {path!r}: {name!r} is a file; give another path")
        self.ignored.refresh()
        return self.ignored.check(
            _check_path(path, real.relative_to(self.root).as_posix()), InvalidCallError
        )

    def resolve_at_once(self, path: str) -> str | None:
        """As ``resolve``, quick enough for an event loop; None where it takes a closer look."""
        _check_path(path, path)
        root = f"{self.root}/"
        full = path if path.startswith("/") else f"{root}{path}"
        real = _find_real_path(full) or _find_new_file(full)
        if real is None or not f"{real}/".startswith(root):
            return None
        shown = _check_path(path, real[len(root) :] or ".")
        return self.ignored.check_at_once(shown, InvalidCallError)

    async def use(self, path: str, work: Callable[[], T]) -> T:
        """The result of ``work``, which reads the file: at once if it is small, else in a thread.

        A small file is read in less time than it takes to hand it to a thread.
        """
        try:
            details = os.lstat(self.root / path)
            is_quick = stat.S_ISREG(details.st_mode) and details.st_size <= _SMALL
        except FileNotFoundError:
            is_quick = True
        except OSError:
            is_quick = False
        at_once = is_quick and buffers.get() is None and not self.ignored.have_changed()
        return work() if at_once else await asyncio.to_thread(work)

    def read(self, path: str, max_bytes: int = MAX_FILE_BYTES) -> str:
        """The whole text of a regular file; raises ``ToolFailedError``."""
        with self.open_file(path) as file:
            data = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise ToolFailedError(f"{path!r} is larger than {max_bytes} bytes")
        try:
            return TextFormat.of(data).decode(data)
        except ToolFailedError as error:
            raise ToolFailedError(f"{path!r} {error}") from None

    @contextmanager
    def open_file(self, path: str) -> Iterator[BinaryIO]:
        """A regular file, to read its bytes: the editor's, if one has its text open.

        It is opened on disk first, so that it is in the workspace. Raises ``ToolFailedError``.
        """
        self.ignored.refresh()
        with self.opened_on_disk(path) as file:
            text = None
            if buffers.get() is not None:
                data = file.read(MAX_FILE_BYTES + 1)
                file.seek(0)
                is_large = len(data) > MAX_FILE_BYTES
                text = None if is_large else read_in_editor(path, self.root / path, data)
            yield file if text is None else BytesIO(text.encode("utf-8", "replace"))

    @contextmanager
    def opened_on_disk(self, path: str) -> Iterator[BinaryIO]:
        """As ``open_file``, whatever an editor has open."""
        *folders, name = self._split(path, is_folder=False) or ["."]
        with _failing(path, "read"), opened_folder(self.root, folders) as folder:
            self._refuse_locked(path, name, folder)
            with atomic_file.open_file(name, folder) as file:
                yield file

    def write(
        self, path: str, text: str, *, instead_of: str | None = None
    ) -> tuple[bool, str | None]:
        """Replace the file in one step, with its permissions, encoding and line ends.

        Makes missing folders. A file whose text is not ``instead_of`` by now is left as it is.
        Gives whether it is new, and the text that was there: None where it was not text.
        """
        self.ignored.refresh()
        *folders, name = self._split(path, is_folder=False) or ["."]
        with _failing(path, "written"), opened_folder(self.root, folders, make=True) as folder:
            self._refuse_locked(path, name, folder)
            old = atomic_file.find_details(name, folder)
            if old is not None and not stat.S_ISREG(old.st_mode):
                raise ToolFailedError(f"{path!r} is not a regular file")
            before = b"" if old is None else atomic_file.read_writable(name, folder, MAX_FILE_BYTES)
            text_format = TextFormat.of(before)
            real = self.root / path
            # Asked for even where the old text does not matter: an editor that refuses to show a
            # file does not get to replace it.
            shown = None if old is None else read_in_editor(path, real, before)
            now = shown
            if shown is None:
                with suppress(ToolFailedError):  # it is not text
                    now = text_format.decode(before)
            if instead_of is not None and now != instead_of:
                raise ToolFailedError(f"{path!r} has changed meanwhile; read it again")
            data = text_format.encode(text)
            if len(data) > MAX_FILE_BYTES:
                raise ToolFailedError(
                    f"{path!r} would have {len(data)} bytes; {MAX_FILE_BYTES} are the limit"
                )
            record, now_there = current_record.get(), None if old is None else before
            mode = None if old is None else old.st_mode & PERMISSIONS
            if record is not None:
                record.note_write(path, now_there, mode, sha256(data).hexdigest())
            if write_in_editor(path, real, before, data):
                if record is not None:  # an editor may do more than write
                    record.note_write(path, now_there, mode, str(_find_held(name, folder)[0]))
            else:
                if shown is not None and shown != text_format.decode(before):
                    unsaved = "has changes in the editor that are not saved"
                    raise ToolFailedError(f"{path!r} {unsaved}; ask the user to save it")
                atomic_file.replace_file(name, folder, data, old)
        return old is None, now

    def find_held(self, path: str) -> Held:
        """What is at the path now, on disk."""
        *folders, name = _split_path(path) or ["."]
        try:
            with opened_folder(self.root, folders) as folder:
                return _find_held(name, folder)
        except FileNotFoundError:
            return None, None
        except OSError:
            return OTHER, None

    def put_back(self, path: str, expected: Held, data: bytes | None, mode: int | None) -> None:
        """Replace a file that is as ``expected``, or remove it; raises ``ToolFailedError``."""
        self.ignored.refresh()
        *folders, name = self._split(path, is_folder=False) or ["."]
        made = data is not None
        with _failing(path, "put back"), opened_folder(self.root, folders, make=made) as folder:
            self._refuse_locked(path, name, folder)
            if _find_held(name, folder) != expected:
                raise ToolFailedError(f"{path!r} has changed meanwhile")
            if data is None:
                os.unlink(name, dir_fd=folder)
            else:
                old = atomic_file.find_details(name, folder)
                atomic_file.replace_file(name, folder, data, old, mode)

    def list_entries(
        self,
        path: str,
        depth: int,
        *,
        is_left_out: Callable[[str], bool] = lambda _: False,
        seconds: float = 60,
    ) -> Iterator[str]:
        """Names below a folder, sorted, relative to the workspace; folders end in ``/``.

        With a ``depth`` of 1 the names in the folder itself, with 2 also those in its folders.
        Links are named, not followed. Raises ``TimeoutError``, and ``ToolFailedError`` for a folder
        that cannot be read, but not for one below it.
        """
        deadline = time.monotonic() + seconds
        self.ignored.refresh()
        names = self._split(path, is_folder=True)
        waiting = self._list(names, is_left_out)
        while waiting:
            if time.monotonic() > deadline:
                raise TimeoutError
            name = waiting.pop()
            yield name
            if name.endswith("/") and name.count("/") - len(names) < depth:
                with suppress(ToolFailedError):  # it is named
                    waiting += self._list(name[:-1].split("/"), is_left_out)

    def shows_nothing(self, path: str) -> bool:
        """Whether a folder is empty or cannot be read."""
        try:
            with (
                opened_folder(self.root, _split_path(path)) as folder,
                os.scandir(folder) as entries,
            ):
                return next(entries, None) is None
        except OSError:
            return True

    @contextmanager
    def open_for_search(self, path: str) -> Iterator[tuple[int, bool]]:
        """The descriptor of a folder or a regular file to search, and whether it is a folder.

        Raises ``ToolFailedError`` for anything else: a FIFO, say, would never end.
        """
        self.ignored.refresh()
        names = self._split(path)
        with ExitStack() as stack:
            try:
                opened = stack.enter_context(opened_folder(self.root, names)), True
            except OSError:
                opened = stack.enter_context(self.opened_on_disk(path)).fileno(), False
            yield opened

    def resolve_folder(self, path: str) -> Path:
        """The real folder at any ``path``, to start a program in."""
        target = self.root / self.resolve(path)
        if not target.is_dir():
            raise ToolFailedError(f"{path!r} is not a folder in the workspace")
        return target

    def ignores(self, name: str) -> bool:
        """Whether an ignore file names what is in the workspace; a folder ends in a slash."""
        path = name.removesuffix("/")
        return bool(self.ignored.find_problem(path, is_folder=path != name))

    @contextmanager
    def _opened_unheeded(self, path: str) -> Iterator[BinaryIO]:
        plain = Workspace(self.root, self._locked)
        with plain.opened_on_disk(plain.resolve(path)) as file:
            yield file

    def _split(self, path: str, *, is_folder: bool | None = None) -> list[str]:
        return _split_path(self.ignored.check(path, ToolFailedError, is_folder=is_folder))

    def _refuse_locked(self, path: str, name: str, folder: int) -> None:
        """Refuse a locked file by whatever name: a hard link is the same file."""
        try:
            opened = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return
        for locked in self._locked:
            with suppress(OSError):  # one of them is not there
                if os.path.samestat(opened, os.stat(locked)):
                    raise ToolFailedError(f"{path!r} is the agent's own; it is not opened here")

    def _list(self, names: Sequence[str], is_left_out: Callable[[str], bool]) -> list[str]:
        """What is in the folder, the first one last."""
        prefix = "".join(f"{name}/" for name in names)
        path = prefix[:-1] or "."
        with _failing(path, "listed"), opened_folder(self.root, names) as folder:
            entries = [(f"{prefix}{name}", is_plain) for name, is_plain in list_names(folder)]
        left = (name for name, is_plain in entries if not (is_plain and is_left_out(name)))
        shown = filterfalse(self.ignores, left) if self.ignored else left
        return sorted(shown, reverse=True)


def _find_held(name: str, folder: int) -> Held:
    try:
        with atomic_file.open_file(name, folder) as file:
            mode = os.fstat(file.fileno()).st_mode & PERMISSIONS
            return file_digest(cast("Any", file), "sha256").hexdigest(), mode
    except FileNotFoundError:
        return None, None
    except OSError:  # a link, say, or what nobody may read
        return OTHER, None


def _find_real_path(path: str) -> str | None:
    """Where an absolute ``path`` leads by links; None where the kernel cannot tell.

    By three system calls and no more, and without ``Path``, which would take as long as they do:
    quick enough for an event loop, twice for each call of a tool.
    """
    if sys.platform != "linux":
        return None
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        buffer = ctypes.create_string_buffer(MAX_PATH)
        # Not os.readlink: what looks for blocking calls does not know /proc from a disk.
        length = libc().readlink(f"/proc/self/fd/{descriptor}".encode(), buffer, MAX_PATH)
    finally:
        os.close(descriptor)
    real = os.fsdecode(buffer.raw[: max(length, 0)])
    # The kernel's mark of what was removed meanwhile: it would be taken for a part of the name.
    return real if 0 < length < MAX_PATH and not real.endswith(" (deleted)") else None


def _find_new_file(path: str) -> str | None:
    """Where an absolute ``path`` of nothing leads, by its folder; None without one.

    None, too, for what begins with ``~``, of which ``Toolbox`` says that it means no other folder.
    """
    folder, _, name = path.rpartition("/")
    if name in {"", ".", ".."} or name.startswith("~"):
        return None
    try:
        os.lstat(path)
    except FileNotFoundError:
        real = _find_real_path(f"{folder}/.")
        return None if real is None else f"{real.rstrip('/')}/{name}"
    except (OSError, ValueError):  # a name that is too long, say, is no name for a new file
        pass
    return None


@contextmanager
def _failing(path: str, action: str) -> Iterator[None]:
    try:
        yield
    except (UnicodeEncodeError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ToolFailedError(f"{path!r} cannot be {action}: {why}") from error


def _check_path(path: str, where: str) -> str:
    """Return ``where``, what ``path`` leads to; refuse one that could not be shown as it is."""
    if len(where) > MAX_PATH or _CONTROL.search(where) is not None:
        problem = f"is longer than {MAX_PATH} characters, or holds a control character"
        raise InvalidCallError(f"path {path[:300]!r} {problem}; give a plain path")
    return where


def _split_path(path: str) -> list[str]:
    """The names on the way to a resolved path; none for the workspace itself."""
    names = [] if path == "." else path.split("/")
    if {"", ".", ".."} & set(names):
        raise ToolFailedError(f"{path!r} is not a plain path in the workspace")
    return names
