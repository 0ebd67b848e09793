"""Running a program until it ends, or until it exceeds its time, memory or processes."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import psutil

from modeshift.modes.errors import ToolFailedError
from modeshift.tools.processes.output import Output

SECONDS_BETWEEN_COUNTS = 0.2
MAX_SECONDS = 600
"""What a command may take at most."""


@dataclass(frozen=True)
class Limits:
    """What one command may use, with all the processes that it starts."""

    memory: int = 4096
    """MiB."""
    processes: int = 512


@dataclass(frozen=True)
class Program:
    """What it takes to start a program once; ``run`` closes the descriptors."""

    command: list[str]
    environment: dict[str, str]
    folder: str = "/"
    descriptors: tuple[int, ...] = ()
    """Open ones that the program gets, under the same numbers."""
    lacks: str = ""
    """What it would need, and the sandbox hides: a reason why it may fail."""

    def close(self) -> None:
        """Close the descriptors on this side."""
        for descriptor in self.descriptors:
            os.close(descriptor)


async def run(program: Program, seconds: int, limits: Limits, emit: Callable[[str], None]) -> str:
    """Run the program; return its output and how it ended, and kill what it leaves running.

    Without a sandbox, a process that has left the program's process group may go on. Raises
    ``ToolFailedError`` if the program cannot be started.
    """
    with ExitStack() as ours:  # a run may be cancelled at each await
        ours.callback(program.close)
        # A pipe of our own: asyncio's process.wait() waits for the pipes it made, which
        # whatever the program left in the background holds open.
        reading, writing = os.pipe()
        ours.callback(os.close, writing)
        async with Output.of(reading, emit) as output:
            try:
                process = await start(program, stdin=DEVNULL, stdout=writing, stderr=writing)
            except (OSError, ValueError) as error:
                told = f"{program.command[-1]!r} cannot be started: {error}"
                raise ToolFailedError(told) from error
            finally:
                ours.close()
            ended = await _wait(process, seconds, limits)
    text = output.text()
    return f"{text}\n{ended}" if text else ended


async def start(program: Program, **streams: Any) -> Process:
    """Start it in a process group of its own; nothing stays of a start that is cancelled.

    asyncio's own kills the process alone: bubblewrap's child would go on. Raises ``OSError``, and
    ``ValueError``.
    """
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *program.command, pass_fds=program.descriptors, cwd=program.folder,
            env=program.environment, start_new_session=True, **streams,
        )
    )  # fmt: skip
    is_cancelled = False
    while not starting.done():
        try:
            await asyncio.wait({starting})
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        await _kill(starting.result())
        raise asyncio.CancelledError
    return starting.result()


async def _wait(process: Process, seconds: int, limits: Limits) -> str:
    """Wait until it ends; kill it at a limit or if the run is cancelled. Say how it ended."""
    ending = asyncio.create_task(process.wait())
    limit = asyncio.create_task(_exceeded_limit(process.pid, limits))
    try:
        done, _ = await asyncio.wait(
            {ending, limit}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if ending in done:
            return f"[exit code {process.returncode}]"
        if limit in done:
            return f"[ended: {limit.result()}]"
        return f"[ended after {seconds} s; give a longer timeout, or a command that ends]"
    finally:
        limit.cancel()
        await _kill(process)


async def _kill(process: Process) -> None:
    """End its process group, and what has left that while the process runs."""
    left: list[psutil.Process] = []
    try:
        if process.returncode is None:
            _signal_group(process, signal.SIGSTOP)  # so that no more leave it meanwhile
            left = await asyncio.to_thread(_find_descendants, process.pid)
    finally:
        _signal_group(process, signal.SIGKILL)
        for other in left:
            with suppress(psutil.Error):
                other.kill()
    await process.wait()  # not a task that waits: a loop that closes has cancelled that


def _signal_group(process: Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it is empty, or root's
        os.killpg(process.pid, number)


async def _exceeded_limit(pid: int, limits: Limits) -> str:
    """Wait until the process and its descendants exceed a limit, and say which.

    Counted from outside: a limit of the kernel's (``ulimit``) is for one process, or for all
    of a user's, and for root there is none.
    """
    while True:
        await asyncio.sleep(SECONDS_BETWEEN_COUNTS)
        processes, used = await asyncio.to_thread(_measure_use, pid)
        if processes > limits.processes:
            return f"it had more than {limits.processes} processes"
        if used > limits.memory << 20:
            return f"it used more than {limits.memory} MiB of memory"


def _measure_use(pid: int) -> tuple[int, int]:
    """The number of processes, and the bytes of memory that they hold."""
    descendants = _find_descendants(pid)
    return len(descendants), sum(map(_measure_memory, descendants))


def _find_descendants(pid: int) -> list[psutil.Process]:
    """Reads /proc, so it blocks."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _measure_memory(process: psutil.Process) -> int:
    """In bytes; pages that several processes share are divided among them."""
    try:
        return int(getattr(process.memory_full_info(), "pss", 0) or process.memory_info().rss)
    except psutil.Error:  # it has ended, or is somebody else's by now
        return 0
