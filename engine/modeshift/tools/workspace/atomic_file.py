"""``replace_file``: a regular file, by its name in an open folder, replaced in one step."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EINVAL
from secrets import token_hex
from typing import BinaryIO


@contextmanager
def open_file(name: str, folder: int) -> Iterator[BinaryIO]:
    """The file, to read its bytes; raises ``OSError``, also for a link and anything but a file."""
    # O_NONBLOCK: opening a FIFO would wait for its writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(EINVAL, "it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def find_details(name: str, folder: int) -> os.stat_result | None:
    """The details of what has the name; None where nothing has."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def read_writable(name: str, folder: int, size: int) -> bytes:
    """The first bytes of a file that is to be replaced; raises ``OSError``."""
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise PermissionError(EACCES, "it is read-only")
    with open_file(name, folder) as file:
        return file.read(size)


def replace_file(
    name: str, folder: int, data: bytes, old: os.stat_result | None, mode: int | None = None
) -> None:
    """Write ``data``: a crash leaves the old file or the new one, with the permissions of old.

    A new file has the usual permissions, unless ``mode`` says which. Raises ``OSError``.
    """
    temporary = f".modeshift-{token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    # Readable by the owner only until the original permissions are restored.
    mode = old.st_mode if mode is None and old is not None else mode
    permissions = 0o666 if mode is None else 0o600
    with open(os.open(temporary, flags, permissions, dir_fd=folder), "wb") as file:
        try:
            file.write(data)
            file.flush()
            if old is not None:
                with suppress(PermissionError):  # only root may give a file away
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
            if mode is not None:
                os.fchmod(file.fileno(), mode & 0o1777)  # no setuid for other content
            # Or after a power failure the new name may stand for an empty file.
            os.fsync(file.fileno())
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(temporary, dir_fd=folder)
            raise
