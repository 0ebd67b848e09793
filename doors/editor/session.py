"""``Session``: one thread in an editor, and the turns that are taken in it, one at a time."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from acp.interfaces import Client
from acp.schema import FileSystemCapabilities, StopReason

from doors.editor.agent_cache import AgentCache
from doors.editor.content import PromptBlock
from doors.editor.files import EditorFiles
from doors.editor.folder import Folder
from doors.editor.graph_run import Gone, GraphRun, Stopped
from doors.editor.message import Message
from doors.editor.options import Options
from doors.editor.prompt_turn import PromptTurn
from doors.editor.session_config import SessionConfig
from doors.editor.store import Record, Sessions
from doors.editor.updates import SessionUpdates

CLEANING_SECONDS = 2
"""How long a cancelled turn may take to end what it runs, before its end is told all the same."""

log = logging.getLogger("modeshift")


class Session:
    """What is open in this process; the thread and the record are kept."""

    def __init__(
        self,
        client: Client,
        record: Record,
        agents: AgentCache,
        sessions: Sessions,
        offered: FileSystemCapabilities,
    ) -> None:
        self.id = record.id
        self.cwd = Path(record.cwd)
        self._client = client
        self._sessions = sessions
        self._offered = offered
        self._updates = SessionUpdates(client, record.id, Folder(self.cwd, self.cwd))
        self._session_config = SessionConfig(record, agents, sessions, self._updates)
        self._lock = asyncio.Lock()
        self._tasks: dict[asyncio.Task[StopReason], tuple[PromptTurn, asyncio.Event]] = {}
        """Those under way and waiting, each with whether its end may be told."""
        self._again: asyncio.Task[StopReason] | None = None
        """Of the question that was open when the session was left."""
        self._is_closed = False

    async def open(self, folder: Path) -> None:
        """Read what is kept, of the ``folder`` as the editor names it; raises ``UserError``."""
        self._updates.folder = Folder(self.cwd, folder)
        await self._session_config.read()

    async def keep(self) -> None:
        """Store that there is this session."""
        await self._session_config.keep()

    def opened(self) -> Options:
        """The options for the answer to new, load and resume."""
        return self._session_config.opened()

    async def begin(self) -> None:
        """What follows that answer: the commands, and a question that waits."""
        await self._session_config.tell_commands()
        await self._ask_again()

    async def _ask_again(self) -> None:
        question = await self._session_config.loaded.question(self.id)
        is_asked = (
            self._session_config.record.mode is None and not self._tasks and not self._is_closed
        )
        if question is not None and is_asked:
            self._again = self._started(None)
            self._again.add_done_callback(_told_in_the_log)

    async def replay(self) -> None:
        """Tell the whole history."""
        values = await self._session_config.read()
        loaded = self._session_config.loaded
        is_asked = (
            self._session_config.record.mode is None and await loaded.question(self.id) is not None
        )
        messages = values.get("messages", [])
        if not self._tasks:
            await self._updates.reopen(loaded.deps, messages, is_asked=is_asked)
        await self._updates.replay(loaded.deps, messages)
        if todos := values.get("todos"):
            await self._updates.plan(todos)

    async def choose(self, option: str, value: object) -> Options:
        """Take it from the next step on; raises ``UserError`` for what there is not to choose."""
        session_config = self._session_config
        async with session_config.choosing:
            if self._sessions.is_claimed_by(self.id, self):
                await session_config.choose(option, value, in_turn=True)
            else:
                with self._sessions.claimed(self.id, self):
                    values = await session_config.read()
                    await session_config.choose(option, value)
                    if session_config.mode_is_set.is_set() and not self._tasks:
                        await session_config.take_back(values)
            return session_config.options

    async def prompt(self, blocks: Sequence[PromptBlock]) -> StopReason:
        """A turn on what the user says, behind those that are under way.

        Raises ``UserError`` for a message that is none, or is not to be run now.
        """
        message = Message.of(blocks, self._session_config.options, self._updates.folder)
        supersedes = self._supersede()
        task = self._started(message)
        prompt_turn, may_be_told = self._tasks[task]
        await may_be_told.wait()
        if supersedes and not prompt_turn.has_run:
            await self._ask_again()
        # One that was cancelled before it began has had no say in it.
        return task.result() if task.done() and not task.cancelled() else "cancelled"

    def _supersede(self) -> bool:
        """End the question that was asked again, if nobody has answered: this is said instead."""
        if self._again not in self._tasks:
            return False
        prompt_turn, _ = self._tasks[self._again]
        if prompt_turn.graph_run.is_running:
            return False
        prompt_turn.is_left = True
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
        for prompt_turn, _ in self._tasks.values():
            prompt_turn.is_left = True
        await self.close()

    def _started(self, message: Message | None) -> asyncio.Task[StopReason]:
        prompt_turn = PromptTurn(
            message,
            self._session_config,
            self._updates,
            GraphRun(self._client, self._session_config, self._updates),
            EditorFiles(self._client, self.id, self._offered, self._updates.folder),
        )
        task = asyncio.create_task(self._alone(prompt_turn))
        may_be_told = asyncio.Event()
        self._tasks[task] = prompt_turn, may_be_told

        def ended(_: asyncio.Task[StopReason]) -> None:
            del self._tasks[task]
            may_be_told.set()

        task.add_done_callback(ended)
        return task

    async def _alone(self, prompt_turn: PromptTurn) -> StopReason:
        """One at a time, here or in another process."""
        try:
            async with self._lock:
                with self._sessions.claimed(self.id, self):
                    return await prompt_turn.take()
        except (asyncio.CancelledError, Stopped, Gone):
            return "cancelled"


def _told_in_the_log(task: asyncio.Task[StopReason]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("the session cannot go on: %s", error)
