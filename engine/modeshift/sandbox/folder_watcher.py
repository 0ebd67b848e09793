"""``FolderWatcher``: asks the kernel (inotify) which folders, and whether mounts, have changed."""

import ctypes
import fcntl
import os
import select
import struct
import sys
import termios
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")
SHARE = 4
"""At most one in four of the user's watches is taken: editors need some, too."""
WATCHABLE = frozenset(
    {0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x01021994, 0x794C7630}
    # ext2-4, xfs, btrfs, f2fs, tmpfs, overlay
)
"""File systems that only this kernel changes, so that it sees each change."""
_MASK = 0x100 | 0x200 | 0x40 | 0x80 | 0x01000000  # made, deleted, moved away or here; folders only
_OVERFLOW = -1  # in place of a watch: the queue was full
_EVENT = struct.Struct("iIII")
"""A watch, what happened, a cookie, the length of the name that follows."""
_GET_FLAGS, _ENCRYPTED = 0x80086601, 0x800
_LIBC = ctypes.CDLL(None)


class FolderWatcher:
    """Watches folders for one process, and for one thread at a time.

    A change can be read as soon as the system call that makes it has returned, in the sandbox too.
    """

    def __init__(self) -> None:
        """Where the kernel gives no queue, nothing is watched."""
        self._watches: set[int] = set()
        self._process = os.getpid()
        self._limit = 0
        self._mounts = -1
        self._queue: int = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        with suppress(OSError, ValueError):
            self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
            self._limit = int(LIMIT.read_text()) // SHARE
        _all.add(self)

    def __del__(self) -> None:
        """Give the watches back."""
        for descriptor in {self._queue, self._mounts} - {-1}:
            os.close(descriptor)

    def watch(self, folder: int) -> int | None:
        """Watch the folder of a descriptor; gives the watch's number, None where there is none."""
        is_room = sum(len(other._watches) for other in list(_all)) < self._limit
        if not is_room or not _sees_all_changes(folder):
            return None
        path = f"/proc/self/fd/{folder}".encode()
        watch: int = _LIBC.inotify_add_watch(self._queue, path, _MASK)
        if watch == -1:
            return None
        self._watches.add(watch)
        return watch

    def keep(self, watches: set[int | None]) -> None:
        """End all other watches."""
        for watch in self._watches - watches:
            _LIBC.inotify_rm_watch(self._queue, watch)  # it may have gone with its folder
        self._watches.intersection_update(watches)

    def read_changed(self) -> set[int] | None:
        """Watches whose folder has changed, or that have ended; None where an event may be lost."""
        if self._process != os.getpid():  # what is read here is missed there
            return None
        if self._queue == -1:
            return set()
        size = struct.unpack("i", fcntl.ioctl(self._queue, termios.FIONREAD, bytes(4)))[0]
        events = os.read(self._queue, size) if size else b""
        changed = set()
        offset = 0
        while offset < len(events):
            watch, _, _, length = _EVENT.unpack_from(events, offset)
            changed.add(watch)
            offset += _EVENT.size + length
        return None if _OVERFLOW in changed else changed & self._watches

    def has_new_mounts(self) -> bool:
        """Whether anything has been mounted or unmounted since the last call."""
        poll = select.poll()
        poll.register(self._mounts, select.POLLPRI)
        return self._mounts == -1 or bool(poll.poll(0))


_all = WeakSet[FolderWatcher]()


def _sees_all_changes(folder: int) -> bool:
    """Not where a server's other clients change files, or an added key decrypts names."""
    details = (ctypes.c_long * 64)()
    if _LIBC.fstatfs(folder, details) or details[0] not in WATCHABLE:
        return False
    try:
        flags = fcntl.ioctl(folder, _GET_FLAGS, bytes(8))
    except OSError:  # it has none
        return True
    return not int.from_bytes(flags[:4], sys.byteorder) & _ENCRYPTED
