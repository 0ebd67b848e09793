"""``Session``: one thread in an editor, and the turns that are taken in it, one at a time."""

import asyncio
import logging
import sqlite3
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from acp import RequestError
from acp.interfaces import Client
from acp.schema import FileSystemCapabilities, SessionInfoUpdate, StopReason
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.errors import GraphRecursionError
from langgraph.types import Command, Interrupt

from doors.editor.choices import Choices
from doors.editor.content import PromptBlock, Said
from doors.editor.files import EditorFiles
from doors.editor.folder import Folder
from doors.editor.message import Message
from doors.editor.narrator import Narrator
from doors.editor.options import Options
from doors.editor.shops import Shops
from doors.editor.store import Record, Sessions
from doors.editor.turn import Gone, Stopped, Turn, resumed
from graph.decisions import Request
from graph.state import Input
from modes.errors import ConfigurationError, InvalidInputError, ProviderError, UserError
from modes.machine import Phase
from tools.buffers import buffers

CLEANING_SECONDS = 2
"""How long a cancelled turn may take to end what it runs, before its end is told all the same."""
STOPPED_HERE = "[The user stopped this answer here.]"
TAKEN_BACK = "Taken back: you have set another mode."

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
        self._choosing = asyncio.Lock()
        self._tasks: dict[asyncio.Task[StopReason], asyncio.Event] = {}
        """The turns, under way and waiting, each with whether its end may be told."""
        self._again: tuple[asyncio.Task[StopReason], Turn] | None = None
        """The turn that began with what was open when the session was left."""
        self._superseded: asyncio.Task[StopReason] | None = None
        self._is_closed = self._is_left = False

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
        question = await self._choices.shop.question(self.id)
        is_asked = self._choices.record.mode is None and not self._tasks and not self._is_closed
        if question is not None and is_asked:
            turn = self._turn()
            self._again = self._started(self._alone(turn, None)), turn
            self._again[0].add_done_callback(_told_in_the_log)

    async def replay(self) -> None:
        """Tell the whole history."""
        values = await self._choices.read()
        shop = self._choices.shop
        is_asked = self._choices.record.mode is None and await shop.question(self.id) is not None
        messages = values.get("messages", [])
        if not self._tasks:
            await self._narrator.reopen(shop.harness, messages, is_asked=is_asked)
        await self._narrator.replay(shop.harness, messages)
        if todos := values.get("todos"):
            await self._narrator.plan(todos)

    async def choose(self, option: str, value: object) -> Options:
        """Take it from the next step on; raises ``UserError`` for what there is not to choose."""
        choices = self._choices
        async with self._choosing:
            if self._tasks:
                await choices.choose(option, value, in_turn=True)
            else:
                with self._sessions.claimed(self.id, self):
                    values = await choices.read()
                    await choices.choose(option, value)
                    if choices.mode_is_set.is_set() and not self._tasks:
                        await self._take_back(values)
            return choices.options

    async def _take_back(self, values: Mapping[str, Any]) -> None:
        """A question in another mode is none any more."""
        await self._narrator.catch_up(self._choices.shop.harness, values.get("messages", []))
        await self._narrator.stopped(TAKEN_BACK)

    async def prompt(self, blocks: Sequence[PromptBlock]) -> StopReason:
        """A turn on what the user says, behind those that are under way.

        Raises ``UserError`` for a message that is none, or is not to be run now.
        """
        message = Message.of(blocks, self._choices.options, self._narrator.folder)
        if self._again is not None and not self._again[1].is_running:
            self._superseded = self._again[0]  # nobody answered; this is said instead
            self._superseded.cancel()
        task = self._started(self._alone(self._turn(), message))
        await self._tasks[task].wait()
        # One that was cancelled before it began has had no say in it.
        return task.result() if task.done() and not task.cancelled() else "cancelled"

    def cancel(self) -> None:
        """End the turn under way, and those behind it."""
        for task, may_be_told in self._tasks.items():
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
        self._is_left = True
        await self.close()

    def _turn(self) -> Turn:
        return Turn(self._client, self._choices, self._narrator)

    def _started(self, doing: Coroutine[Any, Any, StopReason]) -> asyncio.Task[StopReason]:
        task = asyncio.create_task(doing)
        may_be_told = self._tasks[task] = asyncio.Event()

        def ended(_: asyncio.Task[StopReason]) -> None:
            del self._tasks[task]
            may_be_told.set()

        task.add_done_callback(ended)
        return task

    async def _alone(self, turn: Turn, message: Message | None) -> StopReason:
        """One turn, nobody else's at the same time, here or in another process."""
        try:
            async with self._lock:
                with self._sessions.claimed(self.id, self):
                    return await self._taken(turn, message)
        except (asyncio.CancelledError, Stopped, Gone):
            return "cancelled"

    async def _taken(self, turn: Turn, message: Message | None) -> StopReason:
        choices = self._choices
        async with self._choosing:  # what was chosen before the message counts for it
            values = await choices.read()
        if not await choices.is_as_told() and message is not None:
            raise InvalidInputError(
                f"not run: elsewhere this session has been set to {choices.options.mode!r}, "
                f"{choices.options.model!r} and approvals {choices.options.approvals!r}; "
                "send the message again if that is right"
            )
        await self._narrator.catch_up(choices.shop.harness, values.get("messages", []))
        if message is not None and not await self._begins(message, values):
            return "end_turn"
        files = EditorFiles(self._client, self.id, self._offered, self._narrator.folder)
        buffers.set(files)
        try:
            with choices.at_work():
                return await self._run(turn, message)
        except Gone:
            raise
        except (asyncio.CancelledError, Stopped):
            files.close()  # what it leaves unanswered holds threads
            await _to_the_end(self._clean_up(asyncio.current_task()))
            raise
        except GraphRecursionError:
            await self._narrator.stopped()
            return "max_turn_requests"
        except (ProviderError, ConfigurationError) as error:
            await self._narrator.stopped()
            raise RequestError(-32603, str(error)) from error
        except Exception:
            await self._narrator.stopped()
            raise
        finally:
            files.close()

    async def _begins(self, message: Message, values: Mapping[str, Any]) -> bool:
        """Do what the message asks of the session; says whether there is more in it."""
        choices = self._choices
        if message.mode is not None:
            async with self._choosing:
                await choices.choose("mode", message.mode)
            if choices.mode_is_set.is_set():
                await self._take_back(values)
        if not message.content:
            await self._narrator.say(f"{choices.shop.harness.catalog[message.mode].name} mode.")
            return False
        await choices.keep(title=choices.record.title or message.title)
        await self._narrator.send(
            SessionInfoUpdate(
                session_update="session_info_update",
                title=choices.record.title,
                updated_at=choices.record.updated,
            )
        )
        return True

    async def _run(self, turn: Turn, message: Message | None) -> StopReason:
        shop = self._choices.shop
        question = await shop.question(self.id)
        if message is None:
            return "end_turn" if question is None else await turn.run(None, question)
        if question is None:
            await shop.settle(self.id)
        elif answer := self._answer(question, message.content):
            return await turn.run(answer)
        given: Any = {"messages": [HumanMessage(message.content)], **self._choices.for_input()}
        return await turn.run(cast(Input, given))

    async def _clean_up(self, cancelled: object) -> None:
        """After a cancelled turn: what waited for a person does not wait any more."""
        if self._is_left or cancelled is self._superseded:
            return
        choices, words = self._choices, self._narrator.streamed
        try:
            await choices.shop.settle(self.id)
            values = await choices.read()
            messages = values.get("messages", [])
            await self._narrator.catch_up(choices.shop.harness, messages)
            if words.strip() and not _is_kept(words, messages):
                # The model knows what the user has read of it.
                said = AIMessage(f"{words}\n\n{STOPPED_HERE}")
                await choices.shop.write(self.id, {"messages": [said], "phase": Phase.IDLE.value})
            await choices.tell()
        except (UserError, sqlite3.Error) as error:  # the turn ends all the same
            log.warning("after a cancel: %s", error)
        finally:
            await self._narrator.stopped()

    def _answer(self, question: Interrupt, content: Said) -> Command[Any] | None:
        """The user's words as the answer to a question that is open, and to nothing else."""
        request: Request = question.value
        allowed = [config["allowed_decisions"] for config in request["review_configs"]]
        if not isinstance(content, str) or self._choices.record.mode is not None:
            return None
        if len(allowed) != 1 or "respond" not in allowed[0]:
            return None
        return resumed(question, [{"type": "respond", "message": content}])


def _is_kept(words: str, messages: Sequence[AnyMessage]) -> bool:
    """Whether the answer was stored before it was cancelled."""
    last = messages[-1] if messages else None
    return isinstance(last, AIMessage) and last.text.startswith(words)


async def _to_the_end(doing: Coroutine[Any, Any, None]) -> None:
    """See it through, however often the turn is cancelled: the next one waits for it."""
    task = asyncio.ensure_future(doing)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)


def _told_in_the_log(task: asyncio.Task[StopReason]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("the session cannot go on: %s", error)
