"""``PromptTurn``: one message of the user's, from its taking in to what its end leaves behind."""

import asyncio
import logging
import sqlite3
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from acp import RequestError
from acp.schema import SessionInfoUpdate, StopReason
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.errors import GraphRecursionError
from langgraph.types import Command, Interrupt

from doors.editor.content import Said
from doors.editor.files import EditorFiles
from doors.editor.graph_run import Gone, GraphRun, Stopped, resumed
from doors.editor.message import Message
from doors.editor.session_config import SessionConfig
from doors.editor.updates import SessionUpdates
from graph.approvals.requests import Request
from graph.state import Input
from modes.errors import ConfigurationError, InvalidInputError, ProviderError, UserError
from modes.machine import Phase
from tools.workspace.client_files import buffers

STOPPED_HERE = "[The user stopped this answer here.]"

log = logging.getLogger("modeshift")


class PromptTurn:
    """Of one message, or, without one, of the question that waits."""

    def __init__(
        self,
        message: Message | None,
        session_config: SessionConfig,
        updates: SessionUpdates,
        graph_run: GraphRun,
        files: EditorFiles,
    ) -> None:
        self.is_left = False
        """Whether nobody wants its end any more: what waits for a person still waits."""
        self.graph_run = graph_run
        self._message = message
        self._session_config = session_config
        self._updates = updates
        self._files = files
        self._id = session_config.record.id
        self._arrived = session_config.now()
        self.has_run = False
        """Whether the graph was run: what waited for a person by then is settled."""

    async def take(self) -> StopReason:
        """Raises ``UserError`` and ``RequestError``; ``Stopped`` and ``Gone`` as a turn does."""
        session_config, message = self._session_config, self._message
        async with session_config.choosing:  # what was chosen before the message counts for it
            values = await session_config.read()
        await session_config.tell()
        if message is not None and session_config.is_changed_since(self._arrived):
            now = session_config.options
            raise InvalidInputError(
                f"not run: elsewhere this session has been set to {now.mode!r}, {now.model!r} and "
                f"approvals {now.approvals!r}; send the message again if that is right"
            )
        await self._updates.catch_up(session_config.loaded.deps, values.get("messages", []))
        if message is not None and not await self._begins(message, values):
            return "end_turn"
        buffers.set(self._files)
        try:
            with session_config.at_work():
                return await self._run()
        except Gone:
            raise
        except (asyncio.CancelledError, Stopped):
            self._files.close()  # what it leaves unanswered holds threads
            await _to_the_end(self._clean_up())
            raise
        except GraphRecursionError:
            await self._updates.stopped()
            return "max_turn_requests"
        except (ProviderError, ConfigurationError) as error:
            await self._updates.stopped()
            raise RequestError(-32603, str(error)) from error
        except Exception:
            await self._updates.stopped()
            raise
        finally:
            self._files.close()

    async def _begins(self, message: Message, values: Mapping[str, Any]) -> bool:
        """Do what the message asks of the session; says whether there is more in it."""
        session_config = self._session_config
        if message.mode is not None:
            async with session_config.choosing:
                await session_config.choose("mode", message.mode)
            if session_config.mode_is_set.is_set():
                await session_config.take_back(values)
        if not message.content:
            await self._updates.say(
                f"{session_config.loaded.deps.catalog[message.mode].name} mode."
            )
            return False
        await session_config.keep(title=session_config.record.title or message.title)
        await self._updates.send(
            SessionInfoUpdate(
                session_update="session_info_update",
                title=session_config.record.title,
                updated_at=session_config.record.updated,
            )
        )
        return True

    async def _run(self) -> StopReason:
        self.has_run = True
        loaded, message, graph_run = self._session_config.loaded, self._message, self.graph_run
        question = await loaded.question(self._id)
        if message is None:
            return "end_turn" if question is None else await graph_run.run(None, question)
        if question is None:
            await loaded.settle(self._id)
        elif answer := self._answer(question, message.content):
            return await graph_run.run(answer)
        given: Any = {
            "messages": [HumanMessage(message.content)],
            **self._session_config.for_input(),
        }
        return await graph_run.run(cast(Input, given))

    async def _clean_up(self) -> None:
        """After a cancelled turn: what waited for a person does not wait any more."""
        if self.is_left:
            return
        session_config, words = self._session_config, self._updates.streamed
        try:
            await session_config.loaded.settle(self._id)
            values = await session_config.read()
            messages = values.get("messages", [])
            await self._updates.catch_up(session_config.loaded.deps, messages)
            if words.strip() and not _is_kept(words, messages):
                # The model knows what the user has read of it.
                said = AIMessage(f"{words}\n\n{STOPPED_HERE}")
                await session_config.loaded.write(
                    self._id, {"messages": [said], "phase": Phase.IDLE.value}
                )
            await session_config.tell()
        except (UserError, sqlite3.Error) as error:  # the turn ends all the same
            log.warning("after a cancel: %s", error)
        finally:
            await self._updates.stopped()

    def _answer(self, question: Interrupt, content: Said) -> Command[Any] | None:
        """The user's words as the answer to a question that is open, and to nothing else."""
        request: Request = question.value
        allowed = [config["allowed_decisions"] for config in request["review_configs"]]
        if not isinstance(content, str) or self._session_config.record.mode is not None:
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
