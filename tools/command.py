"""The ``command`` group: run a program in the workspace."""

import asyncio
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from modeshift.modes.errors import ToolFailedError
from modeshift.tools.processes.background import Calling, TurnCommands, calling, shorten
from modeshift.tools.processes.environment import build_environment
from modeshift.tools.processes.process import MAX_SECONDS, Program, run
from modeshift.tools.processes.sandboxes import Command, Sandbox
from modeshift.tools.tool import Tool, ToolDeps

DEFAULT_SECONDS = 120
MAX_LINES = 2000

Wait = Annotated[int, Field(ge=0, le=MAX_SECONDS)]


def command_tools(deps: ToolDeps) -> list[Tool]:
    """The tools of the group."""
    workspace, sandbox, limits = deps.workspace, deps.commands.sandbox, deps.commands.limits

    async def execute_command(
        command: str,
        timeout: int | None = None,  # noqa: ASYNC109  # the model gives it
        cwd: str | None = None,
        background: bool | None = None,
    ) -> str:
        """Run a shell command; output comes with the exit code. Other tools read and edit files.

        Args:
            command: The command line, for /bin/sh.
            timeout: Seconds after which it is ended; 120 by default, 600 at most and by default in
                the background.
            cwd: The folder to run it in, relative to the workspace.
            background: Whether to go on at once, and read its output later with read_output. It
                ends with your turn, and with a switch of the mode.
        """
        here, most = calling.get(), MAX_SECONDS if background else DEFAULT_SECONDS
        seconds = min(max(timeout or most, 1), MAX_SECONDS)
        commands = here.commands
        if sandbox and commands and (running := commands.name_running()):
            raise ToolFailedError(
                f"one command runs at a time in the sandbox, and {running} is still running; "
                "wait for it with read_output"
            )

        async def run_command(calling: Calling) -> str:
            if sandbox is not None:
                given = Command(command, cwd or ".", seconds)
                return await sandbox.run(workspace, given, limits, calling)
            folder = await asyncio.to_thread(workspace.resolve_folder, cwd or ".")
            program = Program(["/bin/sh", "-c", command], build_environment(), str(folder))
            return await run(program, seconds, limits, calling.emit)

        if background:
            if commands is None or here.is_read_only:
                why = "it runs unasked" if commands else "this conversation has no thread"
                raise ToolFailedError(f"{command!r} cannot run in the background, as {why}")
            id = commands.start(
                command, here.call_id, lambda emit: run_command(replace(here, emit=emit))
            )
            return f"Started in the background; read its output with read_output, id={id!r}."
        text = await run_command(here)
        if commands is None or here.is_read_only:
            return shorten(text)
        return commands.shorten(command, here.call_id, text)

    async def read_output(
        id: str,
        offset: int | None = None,
        wait: Wait = 0,
    ) -> str:
        """Read what a command of this turn has printed; lines are numbered as by read_file.

        Args:
            id: What the result of execute_command calls it.
            offset: The first line to show; 1 by default.
            wait: Seconds to wait for the command's end at most, before reading.
        """
        commands = calling.get().commands or TurnCommands()
        return await commands.read(id, max(offset or 1, 1), MAX_LINES, wait)

    return [
        Tool.of(
            execute_command,
            "command",
            addendum=_describe_sandbox(sandbox),
            command="command",
            paths=("cwd",),
            sandboxed=sandbox is not None,
        ),
        Tool.of(read_output, "read"),
    ]


def _describe_sandbox(sandbox: Sandbox | None) -> str:
    """What the model should know of where its commands run."""
    if sandbox is None:
        return ""
    network = "" if sandbox.has_network else ", without network"
    return (
        f" It runs in a sandbox{network}: the machine is read-only but for the workspace and /tmp, "
        "which is new each time; what is left running ends with the call, one runs at a time."
    )
