"""Running a program to its end, or to the end of what it may take."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable
from contextlib import ExitStack, suppress

import psutil

from modes.errors import ToolFailedError
from tools.sandbox.limits import Limits, exceeded
from tools.sandbox.output import Output
from tools.sandbox.start import Start


async def run(start: Start, seconds: int, limits: Limits, emit: Callable[[str], None]) -> str:
    """What it prints, and how it ended. What it leaves running is ended.

    Without a sandbox that is what has not left its group. Raises ``ToolFailedError``
    where it cannot be started.
    """
    with ExitStack() as ours:  # a run may be cancelled at each await
        ours.callback(start.close)
        # A pipe of our own: asyncio's process.wait() waits for the pipes it made, which
        # whatever the program left in the background holds open.
        reading, writing = os.pipe()
        ours.callback(os.close, writing)
        async with Output.of(reading, emit) as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *start.command,
                    stdin=DEVNULL, stdout=writing, stderr=writing, pass_fds=start.descriptors,
                    cwd=start.folder, env=start.environment, start_new_session=True,
                )  # fmt: skip
            except (OSError, ValueError) as error:
                told = f"{start.command[-1]!r} cannot be started: {error}"
                raise ToolFailedError(told) from error
            finally:
                ours.close()
            ended = await _wait(process, seconds, limits)
    text = output.text()
    return f"{text}\n{ended}" if text else ended


async def _wait(process: Process, seconds: int, limits: Limits) -> str:
    """Wait for the end, or bring it about, also of a cancelled run; say how it ended."""
    ending = asyncio.create_task(process.wait())
    limit = asyncio.create_task(exceeded(process.pid, limits))
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
        left: list[psutil.Process] = []
        try:
            if not ending.done():  # those too that have left the group; to a thread: /proc
                left = await asyncio.to_thread(_descendants, process.pid)
        finally:
            with suppress(ProcessLookupError, PermissionError):  # it is empty, or root's
                os.killpg(process.pid, signal.SIGKILL)
            for other in left:
                with suppress(psutil.Error):
                    other.kill()
        await ending


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
