"""Opening what lies below a folder, with no link on the way followed.

By the kernel where it can (Linux 5.6, ``openat2``), else name by name. Either way, what is opened
is what the names say, whatever happens to the folders in between.
"""

import ctypes
import fcntl
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# One number for all architectures but a few old ones.
_OPENAT2 = 437
_ARCHITECTURES = frozenset({"x86_64", "aarch64", "riscv64", "ppc64le", "s390x"})
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_PATH_MAX = 4096


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


@cache
def kernel_opens() -> bool:
    """Whether this machine has ``openat2``: not every kernel, and not every container."""
    if platform.system() != "Linux" or platform.machine() not in _ARCHITECTURES:
        return False
    root = os.open("/", _FOLDER)
    try:
        os.close(_openat2(root, ".", _FOLDER))
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(root)


@contextmanager
def opened_folder(root: Path, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The descriptor of a folder, which may be made; raises ``OSError``.

    ``root`` is a real path, and ``names`` hold neither ``..`` nor a slash.
    """
    descriptor = _open_folder(root, names, make=make)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_folder(root: Path, names: Sequence[str], *, make: bool) -> int:
    descriptor = os.open(root, _FOLDER)
    try:
        if kernel_opens() and not make:
            parent, descriptor = descriptor, _openat2(descriptor, "/".join(names) or ".", _FOLDER)
            os.close(parent)
            return descriptor
        for name in names:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
            parent, descriptor = descriptor, os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(parent)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def find_real_path(root: Path, path: str) -> str | None:
    """Where ``path`` leads by links below the root; None where the kernel cannot tell.

    By two system calls and no more, and without ``Path``, which would take as long as they do:
    quick enough for an event loop, twice for each call of a tool.
    """
    if not kernel_opens():
        return None
    folder = os.open(root, os.O_PATH | os.O_CLOEXEC)
    try:
        found = _openat2(folder, path, os.O_PATH | os.O_CLOEXEC, _BENEATH | _NO_MAGICLINKS)
    except OSError:
        return None
    finally:
        os.close(folder)
    try:
        buffer = ctypes.create_string_buffer(_PATH_MAX)
        # Not os.readlink: what looks for blocking calls does not know /proc from a disk.
        length = libc().readlink(f"/proc/self/fd/{found}".encode(), buffer, _PATH_MAX)
    finally:
        os.close(found)
    return os.fsdecode(buffer.raw[:length]) if 0 < length < _PATH_MAX else None


def find_path(folder: int) -> str:
    """A path that leads a child process to the open folder, wherever it has been moved to."""
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(folder, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return f"/proc/self/fd/{folder}"


def call_kernel(*arguments: object) -> int:
    """Make a system call, by its number; raises ``OSError``."""
    result = libc().syscall(*arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(result)


@cache
def libc() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL(None, use_errno=True)


def _openat2(
    folder: int, path: str, flags: int, resolve: int = _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS
) -> int:
    how = _How(flags, 0, resolve)
    given = os.fsencode(path)
    return call_kernel(_OPENAT2, folder, given, ctypes.byref(how), ctypes.sizeof(how))
