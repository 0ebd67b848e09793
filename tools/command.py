"""The ``command`` group: run a program in the workspace."""

import asyncio
import os
from asyncio.subprocess import DEVNULL, Process
from dataclasses import dataclass

from modes.errors import ToolFailedError
from modes.toolspec import Effect, ToolGroup
from tools.calling import calling
from tools.commands import Commands, Limits
from tools.limits import end_all, exceeded
from tools.output import Output
from tools.sandbox import CACHES, steering_files
from tools.tool import Tool
from tools.workspace import Workspace

DEFAULT_SECONDS = 120
MAX_SECONDS = 600
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


def command_tools(workspace: Workspace, commands: Commands) -> list[Tool]:
    """The tools of the group, on this workspace."""
    sandbox = commands.sandbox

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
        if sandbox is None:
            shell = ["/bin/sh", "-c", command]
            return await _run(_Run(shell, str(folder), _environment(), seconds, commands.limits))
        writable = calling.get().edits_freely

        def prepare() -> tuple[list[str], set[str]]:
            line = sandbox.command(workspace.root, folder, command, writable=writable)
            return line, steering_files(workspace.root)

        line, before = await asyncio.to_thread(prepare)
        environment = {**_environment(), **CACHES}
        told = await _run(_Run(line, "/", environment, seconds, commands.limits))
        after = await asyncio.to_thread(steering_files, workspace.root)
        return "\n".join([told, *_notices(after - before, writable=writable)])

    return [
        Tool.of(
            execute_command,
            Effect.COMMAND,
            ToolGroup.COMMAND,
            command="command",
            sandboxed=sandbox is not None,
        )
    ]


def _notices(new: set[str], *, writable: bool) -> list[str]:
    if not writable:
        return ["[commands cannot change the workspace in this mode]"]
    if new:
        made = ", ".join(sorted(new))
        return [f"[made {made}: such files steer people and tools; the user should look at them]"]
    return []


@dataclass(frozen=True)
class _Run:
    """A program to start, and how long and how much of the machine it may take."""

    command: list[str]
    folder: str
    environment: dict[str, str]
    seconds: int
    limits: Limits


async def _run(given: _Run) -> str:
    # A pipe of our own: asyncio's process.wait() waits for the pipes it made, which whatever
    # the command left in the background holds open.
    reading, writing = os.pipe()
    async with Output.of(reading, calling.get().emit) as output:
        try:
            process = await asyncio.create_subprocess_exec(
                *given.command,
                stdin=DEVNULL, stdout=writing, stderr=writing,
                cwd=given.folder, env=given.environment, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise ToolFailedError(f"{given.command[-1]!r} cannot be started: {error}") from error
        finally:
            os.close(writing)
        ended = await _wait(process, given.seconds, given.limits)
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
        await asyncio.to_thread(end_all, process.pid)
        await ending


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return {**kept, **GIT}
