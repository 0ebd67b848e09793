"""``Owner``: this process, as others see whether it lives: by a lock on a file, without a clock."""

import fcntl
import glob
import socket
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import BinaryIO
from uuid import uuid4
from weakref import finalize

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Owner:
    """A process with a file of its own, which is locked as long as it lives, however it ends."""

    def __init__(self, beside: Path | None) -> None:
        """``beside`` is a file in a folder that processes of this machine share; None: nobody."""
        self._beside = beside
        self._name = uuid4().hex
        self._guard = Lock()
        self.id = ""
        """Empty until it is prepared."""

    def prepare(self) -> None:
        """Make the file, and the id. Blocks; raises ``OSError`` where no file can be made."""
        with self._guard:
            if self.id:
                return
            if self._beside is not None:
                self._make_file(self._beside)
            self.id = f"{self._describe_machine()}.{self._name}"

    def _make_file(self, beside: Path) -> None:
        beside.parent.mkdir(parents=True, exist_ok=True)  # with Postgres nobody else does
        for path in beside.parent.glob(f"{glob.escape(beside.name)}.owner-*"):
            if _is_free(path):  # whose process is dead
                path.unlink(missing_ok=True)
        path, unlocked = self._find(self._name), Path(f"{beside}.new-{self._name}")
        lock = unlocked.open("xb")
        fcntl.flock(lock, fcntl.LOCK_EX)
        unlocked.rename(path)  # never there without its lock
        finalize(self, _leave, lock, path)

    def sees_dead(self, id: str) -> bool | None:
        """Whether another process has ended for certain; None for one of another machine. Blocks.

        One whose file is gone has ended: it is removed by none who does not hold its lock.
        """
        machine, _, name = id.partition(".")
        if machine != self._describe_machine():
            return None
        return self._beside is None or _is_free(self._find(name))

    def _find(self, name: str) -> Path:
        return Path(f"{self._beside}.owner-{name}")

    def _describe_machine(self) -> str:
        """The machine since it was started, and the folder: in a container both may be others."""
        boot = _BOOT.read_text() if _BOOT.exists() else ""
        folder = self._beside.parent.stat() if self._beside is not None else None
        place = None if folder is None else (folder.st_dev, folder.st_ino)
        return sha256(repr((boot, socket.gethostname(), place)).encode()).hexdigest()[:12]


def _leave(lock: BinaryIO, path: Path) -> None:
    path.unlink(missing_ok=True)
    lock.close()


def _is_free(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True
