"""``PromptTurn``: one message of the user's, from the checks before it to the cleanup after it."""

import asyncio
import logging
import sqlite3
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, cast

from acp.schema import SessionInfoUpdate, StopReason
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.errors import GraphRecursionError
from langgraph.types import Command, Interrupt

from doors.editor.display.updates import SessionUpdates
from doors.editor.files import EditorFiles
from doors.editor.graph_run import (
    DURABILITY,
    EditorGone,
    GraphRun,
    TurnDismissed,
    resume_with,
)
from doors.editor.session_config import SessionConfig
from doors.editor.user_prompt import Content, Prompt
from graph.approvals.requests import Request
from graph.state import Input
from modes.chart import Phase
from modes.errors import InvalidInputError, UserError
from tools.workspace.client_files import buffers

STOPPED_HERE = "[The user stopped this answer here.]"

log = logging.getLogger("modeshift")


class PromptTurn:
    """A turn on one message."""

    def __init__(
        self,
        prompt: Prompt,
        config: SessionConfig,
        updates: SessionUpdates,
        graph_run: GraphRun,
        files: EditorFiles,
    ) -> None:
        self.prompt = prompt
        self.graph_run = graph_run
        self.asks_first = False
        """Whether the question that is open is asked before the message is taken."""
        self.keeps_question = False
        """Whether an open question stays open when the turn is cancelled."""
        self.is_over = asyncio.Event()
        """Whether its end may be reported."""
        self._config = config
        self._updates = updates
        self._files = files
        self._foreign_changes = config.foreign_changes

    async def run(self) -> StopReason:
        """Run the turn. Raises ``UserError``, ``RequestError`` and what ``GraphRun`` raises."""
        config = self._config
        await config.refresh()
        await config.show()
        await self._prepare(self.prompt)
        buffers.set(self._files)
        try:
            with config.turn():
                return await self._run()
        except EditorGone:
            raise
        except (asyncio.CancelledError, TurnDismissed):
            self._files.close()  # requests without an answer block threads
            await _finish(self._clean_up())
            raise
        except Exception as error:
            await self._updates.end_open_calls()
            if isinstance(error, GraphRecursionError):
                return "max_turn_requests"
            raise
        finally:
            self._files.close()
            # Also where a question stays open: for the editor the turn is over.
            await config.loaded.agent.started_calls.background.end(config.record.id)

    async def _prepare(self, prompt: Prompt) -> None:
        """Apply a slash command and the title; refuse if another process changed the options."""
        config = self._config
        if config.foreign_changes != self._foreign_changes:
            now = config.options
            raise InvalidInputError(
                f"not run: elsewhere this session has been set to {now.mode!r}, {now.model!r} and "
                f"approvals {now.approvals!r}; send the message again if that is right"
            )
        if prompt.mode is not None:
            await config.choose("mode", prompt.mode)
        if prompt.content:
            await config.change(title=config.record.title or prompt.title)
        await self._updates.send(
            SessionInfoUpdate(
                session_update="session_info_update",
                title=config.record.title,
                updated_at=config.record.updated,
            )
        )

    async def _run(self) -> StopReason:
        config, prompt = self._config, self.prompt
        question = await config.open_question()
        answer = question and _answer_in_chat(question, prompt.content)
        if self.asks_first and question is not None and answer is None:
            stop = await self.graph_run.run(None, question)
            question = await config.open_question()
            if stop != "end_turn" or question is not None:
                return stop
        given: Any = {}
        if prompt.compacts:
            given["compact"] = True
        elif question is not None and (answer := _answer_in_chat(question, prompt.content)):
            return await self.graph_run.run(answer)
        if prompt.content:
            given["messages"] = [HumanMessage(prompt.content)]
        if prompt.content or question is None:  # else it is asked again
            await config.drop_open_question()
        return await self.graph_run.run(cast(Input, given))

    async def _clean_up(self) -> None:
        """After a cancelled turn: drop the open question, and store the text that was streamed."""
        if self.keeps_question:
            return
        config, words = self._config, self._updates.streamed
        try:
            await config.drop_open_question()
            await config.refresh()
            state = await config.read_state()
            if words.strip() and not _is_stored(words, state.values.get("messages", [])):
                message = AIMessage(f"{words}\n\n{STOPPED_HERE}")
                update = {"messages": [message], "phase": Phase.IDLE.value}
                await config.write_state(update)
            while (await config.read_state()).values.get("subtask"):
                # It stops where the conversation that began the sub-task would go on.
                await config.loaded.agent.ainvoke(
                    {"end_subtask": True},
                    config.run_config,
                    interrupt_after=["end_subtask"],
                    durability=DURABILITY,
                )
                await config.refresh()
            await config.show()
        except (UserError, sqlite3.Error) as error:  # the turn ends all the same
            log.warning("after a cancel: %s", error)
        finally:
            await self._updates.end_open_calls()


def _answer_in_chat(question: Interrupt, content: Content) -> Command[Any] | None:
    """The user's words as the answer, if the question is one that words can answer."""
    request: Request = question.value
    allowed = [config["allowed_decisions"] for config in request["review_configs"]]
    if not isinstance(content, str) or len(allowed) != 1 or "respond" not in allowed[0]:
        return None
    return resume_with(question, [{"type": "respond", "message": content}])


def _is_stored(words: str, messages: Sequence[AnyMessage]) -> bool:
    last = messages[-1] if messages else None
    return isinstance(last, AIMessage) and last.text.startswith(words)


async def _finish(doing: Coroutine[Any, Any, None]) -> None:
    """Await it to its end, even if the turn is cancelled again: the next turn waits for it."""
    task = asyncio.ensure_future(doing)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
