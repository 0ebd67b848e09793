"""``Exchange``: one message of the user's, from its taking in to what its end leaves behind."""

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
from doors.editor.graph_run import Gone, Stopped, Turn, resumed
from doors.editor.message import Message
from doors.editor.session_config import Choices
from doors.editor.updates import Narrator
from graph.approvals.requests import Request
from graph.state import Input
from modes.errors import ConfigurationError, InvalidInputError, ProviderError, UserError
from modes.machine import Phase
from tools.workspace.client_files import buffers

STOPPED_HERE = "[The user stopped this answer here.]"

log = logging.getLogger("modeshift")


class Exchange:
    """Of one message, or, without one, of the question that waits."""

    def __init__(
        self,
        message: Message | None,
        choices: Choices,
        narrator: Narrator,
        turn: Turn,
        files: EditorFiles,
    ) -> None:
        self.is_left = False
        """Whether nobody wants its end any more: what waits for a person still waits."""
        self.turn = turn
        self._message = message
        self._choices = choices
        self._narrator = narrator
        self._files = files
        self._id = choices.record.id
        self._arrived = choices.now()
        self.has_run = False
        """Whether the graph was run: what waited for a person by then is settled."""

    async def take(self) -> StopReason:
        """Raises ``UserError`` and ``RequestError``; ``Stopped`` and ``Gone`` as a turn does."""
        choices, message = self._choices, self._message
        async with choices.choosing:  # what was chosen before the message counts for it
            values = await choices.read()
        await choices.tell()
        if message is not None and choices.is_changed_since(self._arrived):
            raise InvalidInputError(
                f"not run: elsewhere this session has been set to {choices.options.mode!r}, "
                f"{choices.options.model!r} and approvals {choices.options.approvals!r}; "
                "send the message again if that is right"
            )
        await self._narrator.catch_up(choices.shop.deps, values.get("messages", []))
        if message is not None and not await self._begins(message, values):
            return "end_turn"
        buffers.set(self._files)
        try:
            with choices.at_work():
                return await self._run()
        except Gone:
            raise
        except (asyncio.CancelledError, Stopped):
            self._files.close()  # what it leaves unanswered holds threads
            await _to_the_end(self._clean_up())
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
            self._files.close()

    async def _begins(self, message: Message, values: Mapping[str, Any]) -> bool:
        """Do what the message asks of the session; says whether there is more in it."""
        choices = self._choices
        if message.mode is not None:
            async with choices.choosing:
                await choices.choose("mode", message.mode)
            if choices.mode_is_set.is_set():
                await choices.take_back(values)
        if not message.content:
            await self._narrator.say(f"{choices.shop.deps.catalog[message.mode].name} mode.")
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

    async def _run(self) -> StopReason:
        self.has_run = True
        shop, message, turn = self._choices.shop, self._message, self.turn
        question = await shop.question(self._id)
        if message is None:
            return "end_turn" if question is None else await turn.run(None, question)
        if question is None:
            await shop.settle(self._id)
        elif answer := self._answer(question, message.content):
            return await turn.run(answer)
        given: Any = {"messages": [HumanMessage(message.content)], **self._choices.for_input()}
        return await turn.run(cast(Input, given))

    async def _clean_up(self) -> None:
        """After a cancelled turn: what waited for a person does not wait any more."""
        if self.is_left:
            return
        choices, words = self._choices, self._narrator.streamed
        try:
            await choices.shop.settle(self._id)
            values = await choices.read()
            messages = values.get("messages", [])
            await self._narrator.catch_up(choices.shop.deps, messages)
            if words.strip() and not _is_kept(words, messages):
                # The model knows what the user has read of it.
                said = AIMessage(f"{words}\n\n{STOPPED_HERE}")
                await choices.shop.write(self._id, {"messages": [said], "phase": Phase.IDLE.value})
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
