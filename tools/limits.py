"""How much memory and how many processes a command may use, all that it started together.

Counted from outside, a few times a second: a limit of the kernel's own (``ulimit``) is for
one process, or for all of a user's, and for root there is none.
"""

import asyncio
import os
import signal
from contextlib import suppress

import psutil

from tools.commands import Limits

SECONDS_BETWEEN = 0.2


async def exceeded(pid: int, limits: Limits) -> str:
    """Wait until the process and its descendants exceed a limit, and say which."""
    while True:
        await asyncio.sleep(SECONDS_BETWEEN)
        # To a thread: it reads /proc.
        processes, used = await asyncio.to_thread(_usage, pid)
        if processes > limits.processes:
            return f"it had more than {limits.processes} processes"
        if used > limits.memory << 20:
            return f"it used more than {limits.memory} MiB of memory"


def end_all(pid: int) -> None:
    """End a process that leads a group, with the group and its descendants. Blocks."""
    try:
        processes = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        processes = []
    with suppress(ProcessLookupError):  # the group is already empty
        os.killpg(pid, signal.SIGKILL)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _usage(pid: int) -> tuple[int, int]:
    """The number of processes, and the bytes of memory that they hold."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return 0, 0
    used = 0
    for child in children:
        try:
            used += child.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return len(children), used
