"""``Turn``: handles one message, from the checks before it to the cleanup after it."""

import asyncio
import logging
import sqlite3
from collections.abc import Coroutine, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from acp import schema, text_block
from acp.schema import SessionInfoUpdate, StopReason
from langchain_core.messages import HumanMessage
from langgraph.errors import GraphRecursionError
from langgraph.types import Interrupt

from modeshift.calls.requests import Request
from modeshift.editor.asking import EditorGone, TurnDismissed, ask_in_editor
from modeshift.editor.files import EditorFiles, Folder
from modeshift.editor.options import COMPACT, Options
from modeshift.editor.session_config import SessionConfig
from modeshift.events import Begun, Chunk, Printed, RunEvent, Wrote
from modeshift.messages.normal_form import Content
from modeshift.messages.repair import VOID, mark_as_data
from modeshift.modes.errors import InvalidInputError, UserError
from modeshift.modes.plain_text import escape_invisible, to_one_line
from modeshift.thread import Run
from modeshift.tools.workspace.client_files import buffers

PromptBlock = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
MAX_TITLE = 80


@dataclass(frozen=True)
class Prompt:
    """A user's message: a mode, content, or ``/compact``; at least one of these."""

    mode: str | None
    """The mode of a slash command that the message begins with."""
    content: Content
    compacts: bool = False
    """Whether the slash command is ``/compact``."""

    @classmethod
    def parse(cls, blocks: Sequence[PromptBlock], options: Options, folder: Folder) -> Self:
        """Read a message; raises ``InvalidInputError`` if it is empty, or no model accepts it."""
        name = None
        first = blocks[0] if blocks else None
        if isinstance(first, schema.TextContentBlock) and (
            command := options.parse_command(first.text)
        ):
            name, rest = command
            blocks = [*([text_block(rest)] if rest else []), *blocks[1:]]
        content = _parse_content(blocks, folder)
        if name is None and not content:
            raise InvalidInputError("the message is empty; say something, or attach text")
        compacts = name == COMPACT and COMPACT not in options.modes
        return cls(None if compacts else name, content, compacts)

    @property
    def title(self) -> str:
        """A title for a session that begins with it."""
        return to_one_line(HumanMessage(self.content).text.strip() or "An image", MAX_TITLE)


def parse_choice(blocks: Sequence[PromptBlock], options: Options) -> tuple[str, str] | None:
    """The option and the value of a message that is nothing but a choice."""
    match blocks:
        case [schema.TextContentBlock(text=text)] if command := options.parse_command(text):
            name, value = command[0], command[1].strip()
            if name in options.modes:
                return None if value else ("mode", name)
            return None if name == COMPACT else (name, value)
    return None


def _parse_content(blocks: Sequence[PromptBlock], folder: Folder) -> Content:
    text, images = "", list[dict[str, str]]()
    is_behind_text = False
    for block in blocks:
        match block:
            case schema.TextContentBlock():
                # Text around a mentioned file brings its own spaces; two texts are two lines.
                text += f"\n{block.text}" if is_behind_text else block.text
            case schema.ResourceContentBlock():
                text += _name_resource(block.uri, block.name, folder)
            case schema.EmbeddedResourceContentBlock(resource=resource):
                if isinstance(resource, schema.BlobResourceContents):
                    raise InvalidInputError(f"{resource.uri} is attached as bytes; attach text")
                source = _name_resource(resource.uri, resource.uri, folder)
                text += f"\n{mark_as_data(resource.text, source, resource.uri)}\n"
            case schema.ImageContentBlock():
                image = {"type": "image", "base64": block.data, "mime_type": block.mime_type}
                images.append(image)
                continue
            case _:
                raise InvalidInputError(
                    f"a message cannot contain {block.type}; it can contain text and images"
                )
        is_behind_text = isinstance(block, schema.TextContentBlock) and block.text[-1:] != "\n"
    if not images:
        return text if text.strip() else ""
    return [*([{"type": "text", "text": text}] if text.strip() else []), *images]


def _name_resource(uri: str, name: str, folder: Folder) -> str:
    """A name by which the model finds the resource: a path in the workspace, else its link."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise InvalidInputError(f"uri {uri[:300]!r} is not valid: {error}") from error
    if parts.scheme != "file":
        return escape_invisible(f"[{name}]({uri})")
    lines = f"#{parts.fragment}" if parts.fragment else ""
    # A line break in a name must not become one in what the user says.
    return escape_invisible(f"{folder.relative(Path(unquote(parts.path)))}{lines}")


log = logging.getLogger("modeshift")


class _Paused(Exception):  # noqa: N818  # not an error
    """The run stands between two steps, because the user has chosen another model."""


@dataclass
class Turn:
    """A turn on one message."""

    prompt: Prompt
    config: SessionConfig
    files: EditorFiles
    asks_first: bool
    """Whether the question that is open is asked before the message is taken."""
    keeps_question: bool = False
    """Whether an open question stays open when the turn is cancelled."""
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether its end may be reported."""

    async def run(self) -> StopReason:
        """Run the turn.

        Raises ``UserError``, ``TurnDismissed``, ``EditorGone``, ``RequestError`` if the editor
        cannot ask, and whatever the graph raises.
        """
        config = self.config
        await config.refresh()
        await config.show()
        await self._prepare()
        buffers.set(self.files)
        try:
            async with config.running:
                return await self._answer()
        except EditorGone:
            raise
        except (asyncio.CancelledError, TurnDismissed):
            self.files.close()  # requests without an answer block threads
            await _finish(self._clean_up())
            raise
        except Exception as error:
            await self.config.updates.end_open_calls()
            if isinstance(error, GraphRecursionError):
                return "max_turn_requests"
            raise
        finally:
            self.files.close()
            # Also where a question stays open: for the editor the turn is over.
            await config.loaded.agent.started_calls.background.end(config.record.id)

    async def _prepare(self) -> None:
        config, prompt = self.config, self.prompt
        if prompt.mode is not None:
            await config.choose("mode", prompt.mode)
        if prompt.content:
            await config.change(title=config.record.title or prompt.title)
        await config.updates.send(
            SessionInfoUpdate(
                session_update="session_info_update",
                title=config.record.title,
                updated_at=config.record.updated,
            )
        )

    async def _answer(self) -> StopReason:
        config, prompt = self.config, self.prompt
        question = await config.open_question()
        answer = question and self._answer_in_chat(question)
        if self.asks_first and question is not None and answer is None:
            stop = await self._run_graph(config.thread.go_on(), question)
            question = await config.open_question()
            if stop != "end_turn" or question is not None:
                return stop
        values: dict[str, object] = {}
        if prompt.compacts:
            values["compact"] = True
        elif answer is not None:
            return await self._run_graph(answer)
        if prompt.content:
            values["messages"] = [HumanMessage(prompt.content)]
        if prompt.content or question is None:  # else it is asked again
            await config.drop_open_question()
        return await self._run_graph(config.thread.run(values))

    async def _run_graph(self, run: Run, interrupt: Interrupt | None = None) -> StopReason:
        """Run to the end, from the beginning of a run or from an open question."""
        config, updates, goes_on = self.config, self.config.updates, False
        while True:
            try:
                interrupt = interrupt or await self._show_run(run, goes_on=goes_on)
            except _Paused:
                run, goes_on = config.thread.go_on(), True
                await config.load_model()
                continue
            if interrupt is None:
                return "max_tokens" if updates.was_cut_off else "end_turn"
            answer, interrupt = await ask_in_editor(config, interrupt), None
            if answer is None and not config.mode_is_pending.is_set():
                return "end_turn"
            run, goes_on = answer or config.thread.go_on(), answer is None

    async def _show_run(self, run: Run, *, goes_on: bool) -> Interrupt | None:
        """Show a run until its end, or until a person has to decide.

        Raises ``_Paused`` once the user has chosen another model. The first step is always done,
        as it takes in what the run is given, unless it just ``goes_on``.
        """
        config, interrupt, can_pause = self.config, None, goes_on
        async with aclosing(run.events()) as events:
            async for event in events:
                if isinstance(event, Interrupt):
                    interrupt = event
                await self._show(event)
                can_pause = can_pause or isinstance(event, Wrote | Interrupt)
                if isinstance(event, Begun) and can_pause and config.model_is_pending:
                    raise _Paused
        return interrupt

    async def _show(self, event: RunEvent) -> None:
        updates = self.config.updates
        match event:
            case Chunk(message):
                await updates.show_chunk(message)
            case Printed(id, text):
                await updates.show_output(id, text)
            case Begun("act", {"planned": planned}):
                if planned["denied"] is None:
                    await updates.begin_call(planned)
            case Begun("compact_history"):
                await updates.begin_compaction()
            case Wrote(update=update):
                await updates.show_update(event)
                for notice in update.get("notices", ()):
                    if notice != VOID:  # the tool calls say so themselves
                        await updates.show_notice(notice)
                await self.config.follow(dict(update))

    def _answer_in_chat(self, question: Interrupt) -> Run | None:
        """The user's words as the answer, if the question is one that words can answer."""
        request: Request = question.value
        allowed = [config["allowed_decisions"] for config in request["review_configs"]]
        words = self.prompt.content
        if not isinstance(words, str) or len(allowed) != 1 or "respond" not in allowed[0]:
            return None
        return self.config.thread.answer(question, [{"type": "respond", "message": words}])

    async def _clean_up(self) -> None:
        """After a cancelled turn: drop the open question, and end the sub-tasks."""
        if self.keeps_question:
            return
        config = self.config
        try:
            await config.drop_open_question()
            await config.refresh()
            while (await config.thread.state()).values.get("subtask"):
                # It stops where the conversation that began the sub-task would go on.
                await config.loaded.agent.ainvoke(
                    {"end_subtask": True},
                    config.thread.config,
                    interrupt_after=["end_subtask"],
                    durability="sync",
                )
                await config.refresh()
            await config.show()
        except (UserError, sqlite3.Error) as error:  # the turn ends all the same
            log.warning("after a cancel: %s", error)
        finally:
            await self.config.updates.end_open_calls()


async def _finish(doing: Coroutine[object, object, None]) -> None:
    """Await it to its end, even if the turn is cancelled again: the next turn waits for it."""
    task = asyncio.ensure_future(doing)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
