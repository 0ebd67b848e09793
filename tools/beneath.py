"""Opening what lies below a folder, with no link on the way followed.

By the kernel where it can (Linux 5.6, ``openat2``), else name by name; either way what
is opened is what the names say, whatever happens to the folders in between.
"""

import ctypes
import fcntl
import os
import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# One number for all architectures but a few old ones.
_OPENAT2 = 437
_ARCHITECTURES = frozenset({"x86_64", "aarch64", "riscv64", "ppc64le", "s390x"})
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08


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


def open_folder(root: Path, names: Sequence[str], *, make: bool = False) -> int:
    """The descriptor of the folder, which may be made; raises ``OSError``.

    ``root`` is a real path, and ``names`` hold neither ``..`` nor a slash.
    """
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


def _openat2(folder: int, path: str, flags: int) -> int:
    how = _How(flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    call = ctypes.CDLL(None, use_errno=True).syscall
    given = os.fsencode(path)
    descriptor = call(_OPENAT2, folder, given, ctypes.byref(how), ctypes.sizeof(how))
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), path)
    return int(descriptor)


def path_of(folder: int) -> str:
    """A path that leads a child process to the open folder, wherever it has been moved to."""
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(folder, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return f"/proc/self/fd/{folder}"
