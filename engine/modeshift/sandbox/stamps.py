"""``take_lasting_stamp``: what tells whether a folder still holds the same names.

The kernel's time of a folder's last change, which no program can set, as it can the time of the
last modification. Unlike the kernel's news (inotify) it cannot be lost, takes nothing that other
programs need, and tells of changes through another mount, too.
"""

import ctypes
import os
import time

Stamp = tuple[int, int, int]
"""Device, inode, and time of the last change in ns."""
LASTING = frozenset(
    {0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x01021994, 0x794C7630}
    # ext2-4, xfs, btrfs, f2fs, tmpfs, overlay
)
"""File systems that take the time from this kernel's clock at each change of a folder."""
_TICKS = 5  # CLOCK_REALTIME_COARSE, of which file systems take their times
_SECOND = 1_000_000_000
_MARGIN = _SECOND // 50


def take_stamp(details: os.stat_result) -> Stamp:
    """The stamp as it is now."""
    return details.st_dev, details.st_ino, details.st_ctime_ns


def take_lasting_stamp(folder: int) -> Stamp | None:
    """The stamp of a descriptor that is listed next; None where it may not tell of a change.

    A change within the same tick of the clock might leave it as it is, so it must be older.
    """
    now = time.clock_gettime_ns(_TICKS)
    stamp = take_stamp(os.fstat(folder))
    # Where it ends in zeros, the file system has no more than seconds.
    margin = _MARGIN if stamp[2] % _SECOND else 2 * _SECOND
    return stamp if stamp[2] + margin < now and is_lasting(folder) else None


def is_lasting(folder: int) -> bool:
    """Whether the file system of a descriptor is one whose stamps can be relied on."""
    details = (ctypes.c_long * 64)()
    return not _LIBC.fstatfs(folder, details) and details[0] in LASTING


_LIBC = ctypes.CDLL(None)
