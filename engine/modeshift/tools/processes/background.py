"""``TurnCommands``: commands that go on behind a turn's calls; ``Calling``: where a tool runs."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from weakref import WeakSet

from modeshift.modes.errors import ToolFailedError
from modeshift.tools.workspace.text import LineRange

MAX_RUNNING = 5
MAX_KEPT = 20
"""How many commands of a turn can be read; the oldest that have ended go first."""
SHOWN_CHARACTERS = 20_000
SECONDS_BETWEEN = 0.05
Emit = Callable[[str], None]


@dataclass
class _Kept:
    line: str
    printed: list[str] = field(default_factory=list)
    task: "asyncio.Task[str] | None" = None

    @property
    def is_running(self) -> bool:
        return self.task is not None and not self.task.done()


class TurnCommands:
    """The commands of one turn, by id; ``environment`` is what they were started under."""

    def __init__(self, environment: str = "") -> None:
        self.environment = environment
        self._kept: dict[str, _Kept] = {}

    @property
    def is_used(self) -> bool:
        """Whether any command has been started."""
        return bool(self._kept)

    def start(
        self, line: str, call_id: str, run: Callable[[Emit], Coroutine[None, None, str]]
    ) -> str:
        """Start the coroutine that runs a command; it is ended with the turn. Returns the id."""
        running = [id for id, command in self._kept.items() if command.is_running]
        if len(running) >= MAX_RUNNING:
            raise ToolFailedError(
                f"{MAX_RUNNING} commands run in the background already ({', '.join(running)}); "
                "wait for one of them with read_output"
            )
        started = _Kept(line)
        started.task = asyncio.create_task(run(started.printed.append))
        started.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._keep(call_id, started)

    def shorten(self, line: str, call_id: str, text: str) -> str:
        """A result without its middle where it is long, saying how the rest can be read."""
        is_long = len(text) > SHOWN_CHARACTERS
        return shorten(text, self._keep(call_id, _Kept(line, [text])) if is_long else None)

    def name_running(self) -> str:
        """The commands that have not ended, in words; empty for none."""
        return ", ".join(f"{id} ({job.line!r})" for id, job in self._kept.items() if job.is_running)

    async def read(self, id: str, start: int, count: int, seconds: float) -> str:
        """Lines that a command has printed, after waiting at most so long for its end."""
        if id not in self._kept:
            known = ", ".join(self._kept) or "none"
            raise ToolFailedError(
                f"this turn has no command {id!r} to read; it has: {known}. A command ends with "
                "its turn, and with a switch of the mode"
            )
        command, clock = self._kept[id], asyncio.get_running_loop().time
        until = clock() + seconds
        # No event to wait for: it may be of another event loop.
        while command.is_running and clock() < until:  # noqa: ASYNC110
            await asyncio.sleep(SECONDS_BETWEEN)
        is_running, text = command.is_running, "".join(command.printed)
        if command.task is not None and not is_running:
            if command.task.cancelled():
                raise ToolFailedError(f"{id} was ended before its own end; start it again")
            text = command.task.result()  # raises why it could not start
        lines = LineRange.of(BytesIO(text.encode("utf-8", "replace")), start, count)
        shown = lines.show(f"the output of {id}")
        return f"{shown}\n[{id} is still running]" if is_running else shown

    async def end(self) -> None:
        """End the commands that run, and forget all of them."""
        tasks = [command.task for command in self._kept.values() if command.task is not None]
        self._kept.clear()
        ours = {task for task in tasks if task.get_loop() is asyncio.get_running_loop()}
        for task in tasks:
            with suppress(RuntimeError):  # its event loop is closed, which has ended it
                task.get_loop().call_soon_threadsafe(task.cancel)
        if ours:
            await asyncio.wait(ours)

    def _keep(self, call_id: str, command: _Kept) -> str:
        # From the call, not from a clock or a counter: a replay has the same.
        id = sha256(call_id.encode()).hexdigest()[:6]
        self._kept[id] = command
        ended = [id for id, other in self._kept.items() if not other.is_running]
        for old in ended[: max(len(self._kept) - MAX_KEPT, 0)]:
            del self._kept[old]
        return id


class BackgroundCommands:
    """The commands of all threads' turns; one object for each process."""

    def __init__(self) -> None:
        self._turns: dict[str, TurnCommands] = {}
        _EVERY.add(self)

    def of(self, thread: str, environment: str) -> TurnCommands | None:
        """The commands of a thread's turn; None without a thread, whose turn ends unseen."""
        if not thread:
            return None
        return self._turns.setdefault(thread, TurnCommands(environment))

    def has(self, thread: str) -> bool:
        """Whether the thread's turn has commands that run, or can be read."""
        return thread in self._turns and self._turns[thread].is_used

    async def end(self, thread: str, unless: str | None = None) -> None:
        """End a thread's commands, unless they were started under this environment."""
        turn = self._turns.get(thread)
        if turn is not None and turn.environment != unless:
            del self._turns[thread]
            await turn.end()

    async def end_all(self) -> None:
        """End the commands of all threads."""
        for thread in list(self._turns):
            await self.end(thread)


_EVERY = WeakSet[BackgroundCommands]()


async def end_every_command() -> None:
    """End all commands when the process stops; a signal would leave them running."""
    for commands in list(_EVERY):
        await commands.end_all()


def shorten(text: str, id: str | None = None) -> str:
    """``text`` without its middle where it is long; the rest can be read by ``id``."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    half = SHOWN_CHARACTERS // 2
    head = text[:half].rpartition("\n")[0] or text[:half]
    tail = text[-half:].partition("\n")[2] or text[-half:]
    first, last = head.count("\n") + 2, text.count("\n") - tail.count("\n")
    where = f"lines {first} to {last}" if last >= first else "the middle of a long line"
    how = f"read_output with id={id!r} and offset={first} shows them" if id else "narrow it down"
    return f"{head}\n[{where} left out; {how}]\n{tail}"


@dataclass(frozen=True)
class Ran:
    """A command line that has run, or goes on in the background."""

    line: str
    folder: str
    exit_code: int | None
    """The process's exit code; None where it was ended, or still runs."""
    goes_on: bool = False


@dataclass(frozen=True)
class Calling:
    """The conditions under which a tool runs; the defaults are the strictest."""

    edits_freely: bool = False
    """Whether the mode may change every file."""
    is_read_only: bool = False
    """Whether the command runs unasked as read-only: it can change nothing and see no secret."""
    emit: Emit = field(default=lambda _: None)
    """Shows a client text while the tool runs."""
    call_id: str = ""
    commands: TurnCommands | None = None
    """The commands of the turn; None where it is not known when a turn ends."""
    ran: list[Ran] = field(default_factory=list)
    """What the call has run so far."""
    lock: asyncio.Lock | None = None
    """Taken by the call's commands in turn, where the call has the workspace's lock already."""
    writable: tuple[str, ...] | None = None
    """Where a plan limits it, the files and folders that it may change; None for no such limit."""
    is_closed_off: bool = False
    """Whether it runs in the read-only sandbox: it sees of the machine only programs, has no
    network, and no setting opens that. It may start other programs."""


current_calling: ContextVar[Calling] = ContextVar("calling", default=Calling())  # noqa: B039  # it is frozen
