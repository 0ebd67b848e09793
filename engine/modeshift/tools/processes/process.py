"""Running a program within its limits, and what it prints."""

import asyncio
import codecs
import os
import re
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

import psutil

from modeshift.modes.errors import ToolFailedError
from modeshift.modes.plain_text import make_readable

HEAD_BYTES = TAIL_BYTES = 200_000
SHOWN_CHARACTERS = 200_000
"""How much of the output a client is shown while the program runs."""
SECONDS_BETWEEN = 0.1
# A process that left the command's group holds the output open for ever.
LAST_OUTPUT_SECONDS = 1
MAX_SEQUENCE = 2000
"""Characters of a terminal's sequence; a longer one is shown, so that it swallows nothing."""
_TEXT = rf"[^\x07\x1b\n]{{0,{MAX_SEQUENCE}}}"
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]{0,99}[ -/]{0,9}[@-~]"  # colours, the place of the cursor
    rf"|\x1b[]PX^_]{_TEXT}(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[ -/]{1,9}[0-~]|\x1b[0-OQ-WYZ`-~]"  # character sets, the terminal's modes
)
_BEGUN = re.compile(rf"\x1b(?:\[[0-?]{{0,99}}[ -/]{{0,9}}|[]PX^_]{_TEXT}\x1b?|[ -/]{{0,9}})?\Z")
KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "TZ", "TMPDIR")
"""The only variables that commands get of the agent's environment, which has providers' keys."""
NO_BYTE_CODE = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Given to commands, as files in ``__pycache__`` would count as a change of the tests."""
_GIT_SETTINGS = {
    # No program that a folder's settings name, and no bare repository among the files.
    "core.fsmonitor": "false",
    "safe.bareRepository": "explicit",
}


class PlainText:
    """Removes a terminal's sequences; each state of a progress bar gets a line of its own."""

    _held = ""

    def take(self, text: str, *, is_last: bool = False) -> str:
        """The plain text as far as it is known; a piece may end within a sequence."""
        text = self._held + text
        self._held = ""
        if text.endswith("\r") and not is_last:
            text, self._held = text[:-1], "\r"
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        begun = None if is_last else _BEGUN.search(text, max(len(text) - MAX_SEQUENCE - 3, 0))
        if begun is not None:
            text, self._held = text[: begun.start()], begun[0] + self._held
        return make_readable(_SEQUENCE.sub("", text))


class Output:
    """Keeps the first and the last bytes, and counts the rest."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._head = b""
        self._tail = b""
        self._left_out = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._plain_text = PlainText()
        self._unshown = ""
        self._room = SHOWN_CHARACTERS

    @classmethod
    @asynccontextmanager
    async def of(cls, descriptor: int, emit: Callable[[str], None]) -> AsyncIterator[Self]:
        """Read the descriptor until its end, or until shortly after the block's."""
        output = cls(emit)
        stream = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb")
        )
        reader = asyncio.create_task(output._read(stream))
        shower = asyncio.create_task(output._show())
        try:
            yield output
        finally:
            await asyncio.wait({reader}, timeout=LAST_OUTPUT_SECONDS)
            reader.cancel()
            shower.cancel()
            transport.close()
            output._keep(output._plain_text.take("", is_last=True))
            output._show_now()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while block := await stream.read(65536):
            room = HEAD_BYTES - len(self._head)
            self._head += block[:room]
            tail = self._tail + block[room:]
            self._left_out += max(len(tail) - TAIL_BYTES, 0)
            self._tail = tail[-TAIL_BYTES:]
            if self._room > len(self._unshown):
                self._keep(self._plain_text.take(self._decoder.decode(block)))

    def _keep(self, text: str) -> None:
        self._unshown += text[: self._room - len(self._unshown)]

    async def _show(self) -> None:
        """Show what comes within a moment as one piece: each is a message to the client."""
        while self._room:
            await asyncio.sleep(SECONDS_BETWEEN)
            self._show_now()

    def _show_now(self) -> None:
        text, self._unshown = self._unshown, ""
        if text:
            self._room -= len(text)
            self._emit(text if self._room else f"{text}\n[the rest is not shown as it comes]\n")

    def text(self) -> str:
        """The head and the tail, and between them how much was left out."""
        gap = f"\n[{self._left_out} bytes left out]\n".encode() if self._left_out else b""
        text = (self._head + gap + self._tail).decode("utf-8", "replace")
        # Of a progress bar the last state, as on a terminal.
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
        return PlainText().take(text, is_last=True).rstrip("\n")


SECONDS_BETWEEN_COUNTS = 0.2
MAX_SECONDS = 600
"""The longest time that a command may run."""


@dataclass(frozen=True)
class Limits:
    """What one command may use, together with all processes that it starts."""

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
    """Open descriptors that the program gets, under the same numbers."""
    lacks: str = ""
    """What the sandbox hides and the program needs: a reason why it may fail."""

    def close(self) -> None:
        """Close the descriptors on this side."""
        for descriptor in self.descriptors:
            os.close(descriptor)


@dataclass(frozen=True)
class Ended:
    """A program that has ended, or has been ended."""

    exit_code: int | None
    """None where it did not end by itself."""
    text: str
    """Its output, and how it ended."""


async def run_program(
    program: Program, seconds: int, limits: Limits, emit: Callable[[str], None]
) -> Ended:
    """Run the program, and kill what it leaves running.

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
                process = await start_program(
                    program, stdin=DEVNULL, stdout=writing, stderr=writing
                )
            except (OSError, ValueError) as error:
                problem = f"{program.command[-1]!r} cannot be started: {error}"
                raise ToolFailedError(problem) from error
            finally:
                ours.close()
            exit_code, how = await _wait(process, seconds, limits)
    text = output.text()
    return Ended(exit_code, f"{text}\n{how}" if text else how)


async def start_program(program: Program, **streams: Any) -> Process:
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
            await asyncio.wait({starting}, timeout=LAST_OUTPUT_SECONDS)
        except asyncio.CancelledError:
            is_cancelled = True
        # Where a loop that ends has cancelled all its tasks, asyncio's own may wait for ever: for
        # the one that was to connect the pipes. It has killed the process by then.
        if starting.cancelling():
            starting.cancel()
    if is_cancelled:
        await _kill(starting.result())
        raise asyncio.CancelledError
    return starting.result()


async def _wait(process: Process, seconds: int, limits: Limits) -> tuple[int | None, str]:
    """Its exit code, and how it ended; kills it at a limit or if the run is cancelled."""
    ending = asyncio.create_task(process.wait())
    limit = asyncio.create_task(_exceeded_limit(process.pid, limits))
    try:
        ended, _ = await asyncio.wait(
            {ending, limit}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if ending in ended:
            return process.returncode, f"[exit code {process.returncode}]"
        if limit in ended:
            return None, f"[ended: {limit.result()}]"
        return None, f"[ended after {seconds} s; give a longer timeout, or a command that ends]"
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


def build_environment(git_settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment; ``git_settings`` are more of git's, before the user's and the repository's.

    Git gets some in any case: it starts programs before it does what it is told.
    """
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    settings = {**_GIT_SETTINGS, **(git_settings or {})}
    environment["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (name, value) in enumerate(settings.items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return environment
