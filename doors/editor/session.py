"""``Session``: one thread in an editor, and the turns that are taken in it, one at a time."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from acp import RequestError
from acp.interfaces import Client
from acp.schema import FileSystemCapabilities, SessionInfoUpdate, StopReason, TextContentBlock
from langchain_core.messages import HumanMessage
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from doors.editor.choices import Choices
from doors.editor.content import PromptBlock, Said, said, text_block
from doors.editor.files import EditorFiles
from doors.editor.narrator import Narrator
from doors.editor.options import Options
from doors.editor.shops import Shops
from doors.editor.store import Record, Sessions
from doors.editor.turn import Given, Gone, Stopped, Turn, resumed
from graph.decisions import Request
from graph.state import Input
from modes.errors import ConfigurationError, ProviderError
from modes.machine import Phase
from modes.plain_text import plain
from tools.buffers import buffers

CLEANING_SECONDS = 2
"""How long a cancelled turn may take to end what it runs, before its end is told all the same."""
MAX_TITLE = 80
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
        self._narrator = Narrator(client, record.id)
        self._choices = Choices(record, shops, sessions, self._narrator)
        self._lock = asyncio.Lock()
        self._tasks: dict[asyncio.Task[StopReason], asyncio.Event] = {}
        """The turns, under way and waiting, each with whether its end may be told."""
        self._again: tuple[asyncio.Task[StopReason], Turn] | None = None
        """The turn that began with what was open when the session was left."""
        self._superseded: asyncio.Task[StopReason] | None = None
        self._is_left = False

    async def open(self) -> None:
        """Read what is kept; raises ``UserError``."""
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
        if question is not None and self._choices.record.mode is None and not self._tasks:
            turn = self._turn()
            self._again = self._started(self._alone(turn, None)), turn
            self._again[0].add_done_callback(_told_in_the_log)

    async def replay(self) -> None:
        """Tell the whole history."""
        values = await self._choices.read()
        shop = self._choices.shop
        is_going_on = bool(self._tasks) or await shop.question(self.id) is not None
        messages = values.get("messages", [])
        await self._narrator.replay(shop.harness, messages, is_going_on=is_going_on)
        if todos := values.get("todos"):
            await self._narrator.plan(todos)

    async def choose(self, option: str, value: object) -> Options:
        """Take it from the next step on; raises ``UserError`` for what there is not to choose."""
        if self._tasks:
            await self._choices.choose(option, value)
        else:
            with self._sessions.claimed(self.id, self):
                await self._choices.read()
                await self._choices.choose(option, value)
                if self._choices.mode_is_set.is_set() and not self._tasks:
                    await self._narrator.stopped(TAKEN_BACK)
        return self._choices.options

    async def prompt(self, blocks: Sequence[PromptBlock]) -> StopReason:
        """A turn on what the user says, behind those that are under way."""
        if self._again is not None and not self._again[1].is_running:
            self._superseded = self._again[0]  # nobody answered; this is said instead
            self._superseded.cancel()
        task = self._started(self._alone(self._turn(), blocks))
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

    async def _alone(self, turn: Turn, blocks: Sequence[PromptBlock] | None) -> StopReason:
        """One turn, nobody else's at the same time, here or in another process."""
        try:
            async with self._lock:
                with self._sessions.claimed(self.id, self):
                    return await self._taken(turn, blocks)
        except (asyncio.CancelledError, Stopped, Gone):
            return "cancelled"

    async def _taken(self, turn: Turn, blocks: Sequence[PromptBlock] | None) -> StopReason:
        values = await self._choices.read()
        await self._choices.tell()
        await self._narrator.knows(self._choices.shop.harness, values.get("messages", []))
        files = EditorFiles(self._client, self.id, self._offered)
        buffers.set(files)
        try:
            if blocks is None:
                open_question = await self._choices.shop.question(self.id)
                return "end_turn" if open_question is None else await turn.run(None, open_question)
            given = await self._given(blocks)
            return "end_turn" if given is None else await turn.run(given)
        except Gone:
            raise
        except (asyncio.CancelledError, Stopped):
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

    async def _clean_up(self, cancelled: object) -> None:
        """After a cancelled turn: what waited for a person does not wait any more."""
        if self._is_left or cancelled is self._superseded:
            return
        await self._narrator.stopped()
        shop = self._choices.shop
        if await shop.question(self.id) is not None:
            await shop.write(self.id, {"phase": Phase.IDLE.value})

    async def _given(self, blocks: Sequence[PromptBlock]) -> Given:
        """The graph's input; None where there is nothing to do but what is done by then."""
        first = blocks[0] if blocks else None
        choices = self._choices
        if isinstance(first, TextContentBlock) and (found := choices.options.command(first.text)):
            slug, rest = found
            blocks = [*([text_block(rest)] if rest else []), *blocks[1:]]
            await choices.choose("mode", slug)
            if not blocks:
                await self._narrator.say(f"{choices.shop.harness.catalog[slug].name} mode.")
                return None
        content = said(blocks, self.cwd)
        await self._call_it(content)
        if isinstance(content, str) and (answer := await self._answer(content)):
            return answer
        given: Any = {"messages": [HumanMessage(content)], **choices.for_input()}
        return cast(Input, given)

    async def _call_it(self, content: Said) -> None:
        """Give the session a title: what the user said first."""
        text = HumanMessage(content).text.strip() or "An image"
        await self._choices.keep(title=self._choices.record.title or plain(text, MAX_TITLE))
        record = self._choices.record
        await self._narrator.send(
            SessionInfoUpdate(
                session_update="session_info_update", title=record.title, updated_at=record.updated
            )
        )

    async def _answer(self, text: str) -> Command[Any] | None:
        """The user's words as the answer to a question that is open, and to nothing else."""
        interrupt = await self._choices.shop.question(self.id)
        if interrupt is None or self._choices.record.mode is not None:
            return None
        request: Request = interrupt.value
        allowed = [config["allowed_decisions"] for config in request["review_configs"]]
        if len(allowed) != 1 or "respond" not in allowed[0]:
            return None
        return resumed(interrupt, [{"type": "respond", "message": text}])


async def _to_the_end(doing: Coroutine[Any, Any, None]) -> None:
    """See it through, however often the turn is cancelled: the next one waits for it."""
    task = asyncio.ensure_future(doing)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)


def _told_in_the_log(task: asyncio.Task[StopReason]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("the session cannot go on: %s", error)
