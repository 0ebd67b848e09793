"""``Session``: one thread in an editor, and the turns that are taken in it, one at a time."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from acp.interfaces import Client
from acp.schema import FileSystemCapabilities, StopReason

from doors.editor.agent_cache import Shops
from doors.editor.content import PromptBlock
from doors.editor.files import EditorFiles
from doors.editor.folder import Folder
from doors.editor.graph_run import Gone, Stopped, Turn
from doors.editor.message import Message
from doors.editor.options import Options
from doors.editor.prompt_turn import Exchange
from doors.editor.session_config import Choices
from doors.editor.store import Record, Sessions
from doors.editor.updates import Narrator

CLEANING_SECONDS = 2
"""How long a cancelled turn may take to end what it runs, before its end is told all the same."""

log = logging.getLogger("modeshift")


class Session:
    """What is open in this process; the thread and the record are kept."""

    def __init__(
        self,
        client: Client,
        record: Record,
        shops: Shops,
        sessions: Sessions,
        offered: FileSystemCapabilities,
    ) -> None:
        self.id = record.id
        self.cwd = Path(record.cwd)
        self._client = client
        self._sessions = sessions
        self._offered = offered
        self._narrator = Narrator(client, record.id, Folder(self.cwd, self.cwd))
        self._choices = Choices(record, shops, sessions, self._narrator)
        self._lock = asyncio.Lock()
        self._tasks: dict[asyncio.Task[StopReason], tuple[Exchange, asyncio.Event]] = {}
        """Those under way and waiting, each with whether its end may be told."""
        self._again: asyncio.Task[StopReason] | None = None
        """Of the question that was open when the session was left."""
        self._is_closed = False

    async def open(self, folder: Path) -> None:
        """Read what is kept, of the ``folder`` as the editor names it; raises ``UserError``."""
        self._narrator.folder = Folder(self.cwd, folder)
        await self._choices.read()

    async def keep(self) -> None:
        """Store that there is this session."""
        await self._choices.keep()

    def opened(self) -> Options:
        """The options for the answer to new, load and resume."""
        return self._choices.opened()

    async def begin(self) -> None:
        """What follows that answer: the commands, and a question that waits."""
        await self._choices.tell_commands()
        await self._ask_again()

    async def _ask_again(self) -> None:
        question = await self._choices.shop.question(self.id)
        is_asked = self._choices.record.mode is None and not self._tasks and not self._is_closed
        if question is not None and is_asked:
            self._again = self._started(None)
            self._again.add_done_callback(_told_in_the_log)

    async def replay(self) -> None:
        """Tell the whole history."""
        values = await self._choices.read()
        shop = self._choices.shop
        is_asked = self._choices.record.mode is None and await shop.question(self.id) is not None
        messages = values.get("messages", [])
        if not self._tasks:
            await self._narrator.reopen(shop.deps, messages, is_asked=is_asked)
        await self._narrator.replay(shop.deps, messages)
        if todos := values.get("todos"):
            await self._narrator.plan(todos)

    async def choose(self, option: str, value: object) -> Options:
        """Take it from the next step on; raises ``UserError`` for what there is not to choose."""
        choices = self._choices
        async with choices.choosing:
            if self._sessions.is_claimed_by(self.id, self):
                await choices.choose(option, value, in_turn=True)
            else:
                with self._sessions.claimed(self.id, self):
                    values = await choices.read()
                    await choices.choose(option, value)
                    if choices.mode_is_set.is_set() and not self._tasks:
                        await choices.take_back(values)
            return choices.options

    async def prompt(self, blocks: Sequence[PromptBlock]) -> StopReason:
        """A turn on what the user says, behind those that are under way.

        Raises ``UserError`` for a message that is none, or is not to be run now.
        """
        message = Message.of(blocks, self._choices.options, self._narrator.folder)
        supersedes = self._supersede()
        task = self._started(message)
        exchange, may_be_told = self._tasks[task]
        await may_be_told.wait()
        if supersedes and not exchange.has_run:
            await self._ask_again()
        # One that was cancelled before it began has had no say in it.
        return task.result() if task.done() and not task.cancelled() else "cancelled"

    def _supersede(self) -> bool:
        """End the question that was asked again, if nobody has answered: this is said instead."""
        if self._again not in self._tasks:
            return False
        exchange, _ = self._tasks[self._again]
        if exchange.turn.is_running:
            return False
        exchange.is_left = True
        return self._again.cancel()

    def cancel(self) -> None:
        """End the turn under way, and those behind it."""
        for task, (_, may_be_told) in self._tasks.items():
            task.cancel()
            asyncio.get_running_loop().call_later(CLEANING_SECONDS, may_be_told.set)

    async def close(self) -> None:
        """End them, and wait until they have."""
        self._is_closed = True
        tasks = list(self._tasks)
        self.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLEANING_SECONDS)

    async def leave(self) -> None:
        """End them because nobody is there any more: what waits for a person still waits."""
        for exchange, _ in self._tasks.values():
            exchange.is_left = True
        await self.close()

    def _started(self, message: Message | None) -> asyncio.Task[StopReason]:
        exchange = Exchange(
            message,
            self._choices,
            self._narrator,
            Turn(self._client, self._choices, self._narrator),
            EditorFiles(self._client, self.id, self._offered, self._narrator.folder),
        )
        task = asyncio.create_task(self._alone(exchange))
        may_be_told = asyncio.Event()
        self._tasks[task] = exchange, may_be_told

        def ended(_: asyncio.Task[StopReason]) -> None:
            del self._tasks[task]
            may_be_told.set()

        task.add_done_callback(ended)
        return task

    async def _alone(self, exchange: Exchange) -> StopReason:
        """One at a time, here or in another process."""
        try:
            async with self._lock:
                with self._sessions.claimed(self.id, self):
                    return await exchange.take()
        except (asyncio.CancelledError, Stopped, Gone):
            return "cancelled"


def _told_in_the_log(task: asyncio.Task[StopReason]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("the session cannot go on: %s", error)
