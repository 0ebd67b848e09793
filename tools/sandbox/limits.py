"""How much memory and how many processes a command may use, all that it started together.

Counted from outside, a few times a second: a limit of the kernel's own (``ulimit``) is for
one process, or for all of a user's, and for root there is none.
"""

import asyncio
from dataclasses import dataclass

import psutil

SECONDS_BETWEEN = 0.2


@dataclass(frozen=True)
class Limits:
    """What one command may use, with all the processes that it starts."""

    memory: int = 4096
    """MiB."""
    processes: int = 512


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


def _usage(pid: int) -> tuple[int, int]:
    """The number of processes, and the bytes of memory that they hold."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return 0, 0
    return len(children), sum(map(_memory, children))


def _memory(process: psutil.Process) -> int:
    """Of pages that several processes share, each has its part."""
    try:
        return int(getattr(process.memory_full_info(), "pss", 0) or process.memory_info().rss)
    except psutil.Error:  # it has ended, or is somebody else's by now
        return 0
