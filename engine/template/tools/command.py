"""The ``command`` group: run a program in the workspace."""

from typing import Annotated

from modeshift.tools import (
    MAX_SECONDS,
    Tool,
    ToolDeps,
    describe_sandbox,
    read_command,
    run_command,
)
from pydantic import Field

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
        """Run a shell command; other tools read and edit files.

        Args:
            timeout: Seconds; 120 by default, 600 at most.
            background: Go on at once; read_output has its output. It ends with your turn or mode.
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
        """Read what a background command has printed.

        Args:
            id: From execute_command.
            wait: Seconds to wait for its end.
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
