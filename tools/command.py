"""The ``command`` group: run a program in the workspace."""

from typing import Annotated

from pydantic import Field

from modeshift.tools import (
    MAX_SECONDS,
    Tool,
    ToolDeps,
    describe_sandbox,
    read_command,
    run_command,
)

DEFAULT_SECONDS = 120

Wait = Annotated[int, Field(ge=0, le=MAX_SECONDS)]


def command_tools(deps: ToolDeps) -> list[Tool]:
    """The tools of the group."""
    sandbox = deps.commands.sandbox

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
        default = MAX_SECONDS if background else DEFAULT_SECONDS
        return await run_command(
            deps.workspace,
            deps.commands,
            command,
            folder=cwd or ".",
            seconds=timeout or default,
            in_background=bool(background),
        )

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
        return await read_command(id, offset, wait)

    return [
        Tool.of(
            execute_command,
            "command",
            addendum=describe_sandbox(sandbox),
            command="command",
            paths=("cwd",),
            sandboxed=sandbox is not None,
        ),
        Tool.of(read_output, "read"),
    ]
