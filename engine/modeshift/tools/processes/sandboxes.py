"""What a sandbox for commands must offer, and which one is used on this machine."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from modeshift.modes.errors import ConfigurationError, ToolFailedError
from modeshift.parts import SANDBOXES, list_parts, load_part
from modeshift.tools.processes import process
from modeshift.tools.processes.background import (
    Calling,
    Ran,
    TurnCommands,
    current_calling,
    shorten,
)
from modeshift.tools.workspace.workspace import Workspace

MAX_LINES = 2000


class Command(NamedTuple):
    """A command line for /bin/sh."""

    line: str
    cwd: str
    """The folder to run it in, relative to the workspace."""
    seconds: int
    """The seconds after which it is killed."""


class SandboxService(NamedTuple):
    """A program that keeps running, such as a server."""

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    """The program's environment, which the sandbox itself does not get."""
    has_network: bool
    is_writable: bool


class SandboxOptions(NamedTuple):
    """What the settings say about commands in a sandbox."""

    has_network: bool = False
    hidden: tuple[Path, ...] = ()
    """Files and folders of the agent's own, such as the one with a provider's key."""
    shows_secrets: bool = False
    """Whether commands may read files in the workspace that look like secrets."""


class SandboxCheck(NamedTuple):
    """A row of ``make doctor``: whether something is enforced on this machine."""

    status: Literal["yes", "no", "partly"]
    text: str
    details: tuple[str, ...] = ()


class Sandbox(Protocol):
    """Runs commands so that they can change nothing but the workspace.

    Its ``repr`` must differ where what commands can reach differs: approvals depend on it.
    """

    @property
    def has_network(self) -> bool:
        """Whether commands can use the network."""

    async def run(
        self, workspace: Workspace, command: Command, limits: process.Limits, calling: Calling
    ) -> process.Ended:
        """Run it; its text says where the sandbox may be at fault. Raises ``ToolFailedError``."""

    def build_program(self, workspace: Workspace, service: SandboxService) -> process.Program:
        """What to start for it; what is hidden and protected is so as the workspace is now.

        It is shown what its command, folder and environment name, where that can be. Blocks.
        Raises ``OSError``.
        """

    def check(self, workspace: Path) -> Iterator[SandboxCheck]:
        """Try what the sandbox enforces. Blocks."""


@dataclass(frozen=True)
class NoSandbox:
    """Why commands run without a sandbox, and what the user can do about it."""

    problem: str = "no distribution that is installed offers one"
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Commands:
    """How commands run: in a sandbox, or with the rights of whoever runs this."""

    sandbox: Sandbox | None = None
    limits: process.Limits = field(default_factory=process.Limits)

    async def run(self, workspace: Workspace, command: Command, calling: Calling) -> process.Ended:
        """Run it. Raises ``ModelError`` where it cannot be run."""
        if self.sandbox is not None:
            return await self.sandbox.run(workspace, command, self.limits, calling)
        folder = await asyncio.to_thread(workspace.resolve_folder, command.cwd)
        environment = {**process.build_environment(), **process.NO_BYTE_CODE}
        program = process.Program(["/bin/sh", "-c", command.line], environment, str(folder))
        return await process.run_program(program, command.seconds, self.limits, calling.emit)


def find_sandbox(options: SandboxOptions | None = None) -> Sandbox | NoSandbox:
    """The sandbox to use on this machine: the first part that gives one. Blocks."""
    sandbox: Sandbox | NoSandbox = NoSandbox()
    for entry in list_parts(SANDBOXES):
        try:
            sandbox = load_part(entry)(options or SandboxOptions())
        except ConfigurationError as error:
            sandbox = NoSandbox(str(error))
        if not isinstance(sandbox, NoSandbox):
            break
    return sandbox


async def run_command(
    workspace: Workspace,
    commands: Commands,
    line: str,
    *,
    folder: str = ".",
    seconds: int,
    in_background: bool = False,
) -> str:
    """Run a command line with /bin/sh; what it printed, and how it ended.

    In the background: at once what to read its output with. Raises ``ToolFailedError`` where it
    cannot run so.
    """
    current = current_calling.get()
    command = Command(line, folder, min(max(seconds, 1), process.MAX_SECONDS))
    turn, looks = current.commands, current.is_read_only or current.is_closed_off
    if commands.sandbox and turn and (running := turn.name_running()):
        raise ToolFailedError(
            f"one command runs at a time in the sandbox, and {running} is still running; "
            "wait for it with read_output"
        )

    async def run(calling: Calling) -> str:
        ended = await commands.run(workspace, command, calling)
        current.ran.append(Ran(line, folder, None if in_background else ended.exit_code))
        return ended.text

    if in_background:
        if turn is None or looks:
            why = "it runs read-only" if turn else "this conversation has no thread"
            raise ToolFailedError(f"{line!r} cannot run in the background, as {why}")
        current.ran.append(Ran(line, folder, None, goes_on=True))
        id = turn.start(
            line, current.call_id, lambda emit: run(replace(current, emit=emit, lock=None))
        )
        return f"Started in the background; read its output with read_output, id={id!r}."
    text = await run(current)
    if turn is None or looks:
        return shorten(text)
    return turn.shorten(line, current.call_id, text)


async def read_command(id: str, start: int | None = None, wait: int = 0) -> str:
    """Lines that a command of this turn has printed, after waiting so many seconds for its end."""
    turn = current_calling.get().commands or TurnCommands()
    return await turn.read(id, max(start or 1, 1), MAX_LINES, wait)


def describe_sandbox(sandbox: Sandbox | None) -> str:
    """What the model should know about the place where its commands run."""
    if sandbox is None:
        return ""
    return (
        " In its sandbox only the workspace and /tmp (new each time) can be written; what is left "
        "running ends with the call."
    )
