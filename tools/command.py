"""The ``command`` group: run a program in the workspace."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

from modes.errors import ToolFailedError
from modes.toolspec import Effect, ToolGroup
from tools.tool import Tool
from tools.workspace import Workspace

DEFAULT_SECONDS = 120
MAX_SECONDS = 600
# A process that left the command's group holds the output open for ever.
LAST_OUTPUT_SECONDS = 1
HEAD_BYTES = TAIL_BYTES = 10_000
# What a program needs to find its way. Nothing else of the agent's environment, which
# holds the providers' keys.
ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "TZ", "TMPDIR")
# git looks around before it does what it is told: a program that the settings of a folder
# name as its file monitor, a bare repository among the files.
GIT = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "safe.bareRepository",
    "GIT_CONFIG_VALUE_1": "explicit",
}


def command_tools(workspace: Workspace) -> list[Tool]:
    """The tools of the group, on this workspace."""

    async def execute_command(
        command: str,
        timeout: int | None = None,  # noqa: ASYNC109  # the model gives it
        cwd: str | None = None,
    ) -> str:
        """Run a shell command and wait for it; output comes with the exit code.

        Args:
            command: The command line, for /bin/sh.
            timeout: Seconds after which it is ended; 120 by default, 600 at most.
            cwd: The folder to run it in, relative to the workspace.
        """
        seconds = min(max(timeout or DEFAULT_SECONDS, 1), MAX_SECONDS)
        folder = await asyncio.to_thread(workspace.folder, cwd or ".")
        return await _run(command, folder, seconds)

    return [Tool.of(execute_command, Effect.COMMAND, ToolGroup.COMMAND, command="command")]


async def _run(command: str, folder: Path, seconds: int) -> str:
    # A pipe of our own: asyncio's process.wait() waits for the pipes it made, which whatever
    # the command left in the background holds open.
    reading, writing = os.pipe()
    async with _Output.of(reading) as output:
        try:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", command,
                stdin=DEVNULL, stdout=writing, stderr=writing,
                cwd=folder, env=_environment(), start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise ToolFailedError(f"{command!r} cannot be started: {error}") from error
        finally:
            os.close(writing)
        ended = await _wait(process, seconds)
    text = output.text()
    return f"{text}\n{ended}" if text else ended


async def _wait(process: Process, seconds: int) -> str:
    """Wait for the end, or bring it about, also of a cancelled run; say how it ended."""
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        return f"[ended after {seconds} s; give a longer timeout, or a command that ends]"
    else:
        return f"[exit code {process.returncode}]"
    finally:
        _end_group(process.pid)
        await process.wait()


def _end_group(pid: int) -> None:
    with suppress(ProcessLookupError):  # the group is already empty
        os.killpg(pid, signal.SIGKILL)


class _Output:
    """The first and the last bytes of an output of any length."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._left_out = 0

    @classmethod
    @asynccontextmanager
    async def of(cls, descriptor: int) -> AsyncIterator[Self]:
        """Read the descriptor until its end, or until shortly after the block's."""
        output = cls()
        stream = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb")
        )
        reader = asyncio.create_task(output._read(stream))
        try:
            yield output
        finally:
            await asyncio.wait({reader}, timeout=LAST_OUTPUT_SECONDS)
            reader.cancel()
            transport.close()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while block := await stream.read(65536):
            room = HEAD_BYTES - len(self._head)
            self._head += block[:room]
            tail = self._tail + block[room:]
            self._left_out += max(len(tail) - TAIL_BYTES, 0)
            self._tail = tail[-TAIL_BYTES:]

    def text(self) -> str:
        gap = f"\n[{self._left_out} bytes left out]\n".encode() if self._left_out else b""
        return (self._head + gap + self._tail).decode("utf-8", "replace").rstrip("\n")


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return {**kept, **GIT}
