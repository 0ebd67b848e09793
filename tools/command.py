"""The ``command`` group: run a program in the workspace."""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, STDOUT, Process
from contextlib import suppress

from modes.errors import ToolFailedError
from modes.mode import ToolGroup
from modes.toolspec import Effect
from tools.tool import Tool
from tools.workspace import Workspace

DEFAULT_SECONDS = 120
MAX_SECONDS = 600
HEAD_BYTES = TAIL_BYTES = 10_000
# What a program needs to find its way. Nothing else of the agent's environment, which
# holds the providers' keys.
ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "TZ", "TMPDIR")


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
        try:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", command,
                stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=STDOUT,
                cwd=folder, env=_environment(), start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise ToolFailedError(f"{command!r} cannot be started: {error}") from error
        return await _finish(process, seconds)

    return [Tool.of(execute_command, Effect.COMMAND, ToolGroup.COMMAND)]


async def _finish(process: Process, seconds: int) -> str:
    """Wait for the end, or bring it about; the whole process group goes with it."""
    output = _Output()
    reader = asyncio.create_task(output.read(process))
    try:
        await asyncio.wait_for(process.wait(), seconds)
        ended = f"[exit code {process.returncode}]"
    except TimeoutError:
        ended = f"[ended after {seconds} s; give a longer timeout, or a command that ends]"
    finally:
        # Also when the run is cancelled. What the command left in the background holds the
        # pipe open, and goes too.
        _end_group(process.pid)
        await process.wait()
        await asyncio.wait({reader}, timeout=1)
        reader.cancel()
    text = output.text()
    return f"{text}\n{ended}" if text else ended


def _end_group(pid: int) -> None:
    with suppress(ProcessLookupError):  # the group is already empty
        os.killpg(pid, signal.SIGKILL)


class _Output:
    """The first and the last bytes of an output of any length."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._left_out = 0

    async def read(self, process: Process) -> None:
        assert process.stdout is not None
        while block := await process.stdout.read(65536):
            room = HEAD_BYTES - len(self._head)
            self._head += block[:room]
            tail = self._tail + block[room:]
            self._left_out += max(len(tail) - TAIL_BYTES, 0)
            self._tail = tail[-TAIL_BYTES:]

    def text(self) -> str:
        gap = f"\n[{self._left_out} bytes left out]\n".encode() if self._left_out else b""
        return (self._head + gap + self._tail).decode("utf-8", "replace").rstrip("\n")


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
