"""``workspace_lock``: one command at a time in a workspace, of whichever process."""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from modeshift.modes.errors import ToolFailedError

SECONDS_BETWEEN_TRIES = 0.02
TOLD_AFTER_SECONDS = 1


@asynccontextmanager
async def workspace_lock(workspace: Path, emit: Callable[[str], None]) -> AsyncIterator[None]:
    """Wait until no other command runs in the workspace, of this process or another.

    Raises ``ToolFailedError`` on a file system that has no locks.
    """
    descriptor = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        tell_at = time.monotonic() + TOLD_AFTER_SECONDS
        while not _try_lock(descriptor):
            if time.monotonic() > tell_at:
                emit("[waits for another command in this workspace]\n")
                tell_at = float("inf")
            await asyncio.sleep(SECONDS_BETWEEN_TRIES)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise ToolFailedError(
            f"the workspace's file system has no locks ({error.strerror}), so commands cannot be "
            "kept apart there, and none runs in the sandbox"
        ) from error
    return True
