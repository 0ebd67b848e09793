"""``Session``: one thread in an editor, and the turns that are taken in it."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from acp import RequestError
from acp.interfaces import Client
from acp.schema import (
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    FileSystemCapabilities,
    SessionInfoUpdate,
    StopReason,
    TextContentBlock,
)
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained, GraphRecursionError
from langgraph.runtime import RunControl
from langgraph.types import Command, Durability, Interrupt, StreamMode
from pydantic import ValidationError

from doors.editor.content import PromptBlock, Said, said, text_block
from doors.editor.files import EditorFiles
from doors.editor.narrator import Narrator
from doors.editor.options import Options
from doors.editor.permissions import Question, plans_of
from doors.editor.shops import Shop, Shops
from doors.editor.store import Record, Sessions
from graph.decisions import Request
from graph.history import VOID
from graph.state import Input
from modes.errors import ConfigurationError, InvalidInputError, ProviderError
from modes.machine import Phase
from modes.plain_text import plain
from tools.buffers import buffers

CLEANING_SECONDS = 2
"""How long a cancelled turn may take to end what it runs, before its end is told all the same."""
MAX_TITLE = 80
TAKEN_BACK = "Taken back: you have set another mode."
STREAMS: list[StreamMode] = ["messages", "updates", "tasks", "custom"]
DURABILITY: Durability = "sync"
"""An approval is stored before the call begins."""

Given = Input | Command[Any] | None
"""What the graph is run with; None to go on."""

log = logging.getLogger("modeshift")


class Stopped(Exception):  # noqa: N818  # no error
    """The person has dismissed a question, and with it the turn."""


class Gone(Exception):  # noqa: N818  # no error
    """There is no editor any more: what waits for a person still waits."""


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
        self.record = record
        self._client = client
        self._shops = shops
        self._sessions = sessions
        self._offered = offered
        self._config: RunnableConfig = {"configurable": {"thread_id": record.id}}
        self._narrator = Narrator(client, record.id)
        self._lock = asyncio.Lock()
        self._turns: dict[asyncio.Task[StopReason], asyncio.Event] = {}
        """Each with whether its end may be told."""
        self._waiting_again: asyncio.Task[StopReason] | None = None
        """The turn that does nothing but ask once more what was open when the session was left."""
        self._is_superseded = False
        self._control: RunControl | None = None
        self._mode_is_set = asyncio.Event()
        self._on_the_way: dict[str, Any] = {}
        """What is chosen, and in the input of the run that has just begun."""
        self._is_left = False
        self._notices = set[str]()
        self._shop: Shop
        self._mode = self._approvals = ""
        """As they are in the thread."""
        self._told: Options | None = None
        self._told_commands: object = None

    @property
    def cwd(self) -> Path:
        """The workspace."""
        return Path(self.record.cwd)

    @property
    def options(self) -> Options:
        """What there is to choose; what the user has chosen counts as chosen at once."""
        return Options(
            self._shop.modes,
            self._shops.settings.choices,
            self.record.mode or self._mode,
            self._model,
            self.record.approvals or self._approvals,
        )

    @property
    def _model(self) -> str:
        choices, chosen = self._shops.settings.choices, self.record.model
        return chosen if chosen is not None and chosen in choices else choices[0]

    async def read(self) -> dict[str, Any]:
        """The thread's state, and the agent as its files are now; raises ``UserError``."""
        if not await asyncio.to_thread(self.cwd.is_dir):
            raise InvalidInputError(f"the folder {self.record.cwd!r} is not there any more")
        # Another process may have written it since.
        self.record = await self._sessions.find(self.record.id) or self.record
        self._shop = await self._shops.get(self.cwd, self._model)
        harness = self._shop.harness
        values = (await self._shop.agent.aget_state(self._config)).values
        mode = str(values.get("mode"))
        self._mode = mode if mode in harness.catalog else harness.catalog.default
        self._approvals = values.get("approvals") or harness.approvals.value
        if self.record.mode not in harness.catalog:
            self.record.mode = None
            self._mode_is_set.clear()
        return values

    async def begin(self) -> None:
        """What follows the answer that opened the session: the commands, a question that waits."""
        await self.tell_commands()
        if self.record.mode is None and await self._interrupt() is not None and not self._turns:
            self._ask_again()

    def opened(self) -> Options:
        """The options for the answer to new, load and resume: told with it."""
        self._told, self._told_commands = self.options, None
        return self._told

    # What the user chooses.

    async def choose(self, option: str, value: object) -> Options:
        """Take it from the next step on; raises ``UserError`` for what there is not to choose."""
        if self._turns:
            await self._choose(option, value)
        else:
            with self._sessions.claimed(self.record.id, self):
                await self.read()
                await self._choose(option, value)
        return self.options

    async def _choose(self, option: str, value: object) -> None:
        chosen = self.options.check(option, value)
        if option == "model":
            await self._shops.get(self.cwd, chosen)  # it may lack its key, say
        if getattr(self.options, option) == chosen:
            await self.tell()
            return
        if option == "mode":
            await self._check_model_of(chosen)
        record = replace(self.record, **{option: chosen})
        await self._sessions.save(record)
        self.record = record
        if self._control is not None:
            self._control.request_drain()
        if option == "mode":
            self._mode_is_set.set()
            if not self._turns:
                await self._narrator.stopped(TAKEN_BACK)
        await self.tell()

    async def _check_model_of(self, mode: str) -> None:
        harness = self._shop.harness
        if problem := await asyncio.to_thread(harness.models.problem, harness.catalog[mode].model):
            raise InvalidInputError(problem)

    async def tell(self) -> None:
        """Tell the editor what has changed of the options, whoever changed it."""
        now, before = self.options, self._told
        self._told = now
        if before is None or now.mode != before.mode:
            mode = CurrentModeUpdate(session_update="current_mode_update", current_mode_id=now.mode)
            await self._narrator.send(mode)
        if now != before:
            update = ConfigOptionUpdate(
                session_update="config_option_update", config_options=now.config()
            )
            await self._narrator.send(update)
        await self.tell_commands()

    async def tell_commands(self) -> None:
        """Tell which slash commands there are, if they are not known yet."""
        options = self.options
        if options.modes != self._told_commands:
            self._told_commands = options.modes
            update = AvailableCommandsUpdate(
                session_update="available_commands_update", available_commands=options.commands()
            )
            await self._narrator.send(update)

    # Turns.

    async def prompt(self, blocks: Sequence[PromptBlock]) -> StopReason:
        """A turn on what the user says, behind those that are under way."""
        if self._waiting_again is not None:
            self._is_superseded = True  # nobody answered; this is said instead
            self._waiting_again.cancel()
        return await self._taken(asyncio.create_task(self._alone(blocks)))

    def _ask_again(self) -> None:
        """Ask what was open when the session was left, and go on with the answer."""
        turn = self._waiting_again = asyncio.create_task(self._alone(None))
        self._turns[turn] = asyncio.Event()
        turn.add_done_callback(self._asked_again)

    def _asked_again(self, turn: asyncio.Task[StopReason]) -> None:
        del self._turns[turn]
        if self._waiting_again is turn:
            self._waiting_again = None
        if not turn.cancelled() and (error := turn.exception()) is not None:
            log.error("the session cannot go on: %s", error)

    async def _taken(self, turn: asyncio.Task[StopReason]) -> StopReason:
        may_be_told = self._turns[turn] = asyncio.Event()

        def ended(_: asyncio.Task[StopReason]) -> None:
            del self._turns[turn]
            may_be_told.set()

        turn.add_done_callback(ended)
        await may_be_told.wait()
        # One that was cancelled before it began has had no say in it.
        return turn.result() if turn.done() and not turn.cancelled() else "cancelled"

    def cancel(self) -> None:
        """End the turn under way, and those behind it."""
        for turn, may_be_told in self._turns.items():
            turn.cancel()
            asyncio.get_running_loop().call_later(CLEANING_SECONDS, may_be_told.set)

    async def close(self) -> None:
        """End them, and wait until they have."""
        turns = list(self._turns)
        self.cancel()
        if turns:
            await asyncio.wait(turns, timeout=CLEANING_SECONDS)

    async def leave(self) -> None:
        """End them because nobody is there any more: what waits for a person still waits."""
        self._is_left = True
        await self.close()

    async def _alone(self, blocks: Sequence[PromptBlock] | None) -> StopReason:
        """One turn, nobody else's at the same time, here or in another process."""
        try:
            async with self._lock:
                with self._sessions.claimed(self.record.id, self):
                    return await self._turn(blocks)
        except (asyncio.CancelledError, Stopped, Gone):
            return "cancelled"

    async def _turn(self, blocks: Sequence[PromptBlock] | None) -> StopReason:
        values = await self.read()
        await self.tell()
        self._narrator.knows(values.get("messages", []))
        files = EditorFiles(self._client, self.record.id, self._offered)
        buffers.set(files)
        try:
            if blocks is None:
                open_question = await self._interrupt()
                return "end_turn" if open_question is None else await self._run(None, open_question)
            given = await self._given(blocks)
            return "end_turn" if given is None else await self._run(given)
        except Gone:
            raise
        except (asyncio.CancelledError, Stopped):
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
            files.close()

    async def _clean_up(self) -> None:
        """After a cancelled turn: what waited for a person does not wait any more."""
        if self._is_left:
            return
        if self._is_superseded:
            self._is_superseded = False
            return
        await self._narrator.stopped()
        state = await self._shop.agent.aget_state(self._config)
        if state.interrupts:
            await self._write({"phase": Phase.IDLE.value})

    async def _given(self, blocks: Sequence[PromptBlock]) -> Given:
        """The graph's input; None where there is nothing to do but what is done by then."""
        first = blocks[0] if blocks else None
        if isinstance(first, TextContentBlock) and (found := self.options.command(first.text)):
            slug, rest = found
            blocks = [*([text_block(rest)] if rest else []), *blocks[1:]]
            await self.choose("mode", slug)
            if not blocks:
                await self._narrator.say(f"{self._shop.harness.catalog[slug].name} mode.")
                return None
        content = said(blocks, self.cwd)
        await self._call_it(content)
        if isinstance(content, str) and (answer := await self._answer(content)):
            return answer
        wished = self._on_the_way = self._wished()
        given: Any = {"messages": [HumanMessage(content)], **wished}
        return cast(Input, given)

    async def _call_it(self, content: Said) -> None:
        """Give the session a title: what the user said first."""
        text = HumanMessage(content).text.strip() or "An image"
        if self.record.title is None:
            self.record.title = plain(text, MAX_TITLE)
        await self._sessions.save(self.record)
        title, updated = self.record.title, self.record.updated
        await self._narrator.send(
            SessionInfoUpdate(session_update="session_info_update", title=title, updated_at=updated)
        )

    async def _answer(self, text: str) -> Command[Any] | None:
        """The user's words as the answer to a question that is open, and to nothing else."""
        interrupt = await self._interrupt()
        if interrupt is None or self.record.mode is not None:
            return None
        request: Request = interrupt.value
        allowed = [config["allowed_decisions"] for config in request["review_configs"]]
        if len(allowed) != 1 or "respond" not in allowed[0]:
            return None
        return _resumed(interrupt, [{"type": "respond", "message": text}])

    async def _interrupt(self) -> Interrupt | None:
        state = await self._shop.agent.aget_state(self._config)
        return next(iter(state.interrupts), None)

    # The run.

    async def _run(self, given: Given = None, interrupt: Interrupt | None = None) -> StopReason:
        """To the end of the turn, from an input or from a question that is open."""
        while True:
            if interrupt is None:
                try:
                    interrupt = await self._stream(given)
                except GraphDrained:
                    await self._apply()
                    given = None
                    continue
            if interrupt is None:
                return "max_tokens" if self._narrator.was_cut_off else "end_turn"
            given = await self._ask(interrupt)
            self._waiting_again = interrupt = None
            if given is None and not self._mode_is_set.is_set():
                return "end_turn"
            if given is None:
                await self._apply()

    async def _stream(self, given: Given) -> Interrupt | None:
        """Run until it ends, waits for a person, or has been drained."""
        control = RunControl()
        if given is None:
            self._control = control
        interrupt = None
        stream = self._shop.agent.astream(
            given, self._config, stream_mode=STREAMS, durability=DURABILITY, control=control
        )
        part: Any
        try:
            async with aclosing(stream) as parts:  # type: ignore[type-var]  # a generator it is
                async for kind, part in parts:
                    if kind == "updates" and "__interrupt__" in part:
                        (interrupt,) = part["__interrupt__"]
                    else:
                        await self._heard(kind, part)
                    if kind == "updates":
                        # Not before the first node has taken in what the run was given.
                        self._control = control
                    if self._control is not None and self._has_chosen():
                        control.request_drain()
                        if kind == "tasks" and "input" in part:
                            raise GraphDrained  # its tasks have not begun, and need not
        finally:
            self._control = None
        return interrupt

    async def _heard(self, stream: str, part: Any) -> None:
        harness, narrator = self._shop.harness, self._narrator
        match stream, part:
            case "messages", (message, _):
                await narrator.piece(harness, message)
            case "custom", {"type": "tool_output", "tool_call_id": str(id), "text": str(text)}:
                await narrator.output(id, text)
            case "tasks", {"name": "act", "input": {"planned": planned}}:
                if planned["denied"] is None:
                    await narrator.begins(harness, planned)
            case "updates", dict():
                for node, update in part.items():
                    await self._updated(node, update or {})

    async def _updated(self, node: str, update: dict[str, Any]) -> None:
        await self._narrator.update(self._shop.harness, node, update)
        self._mode = update.get("mode", self._mode)
        self._approvals = update.get("approvals", self._approvals)
        if node == "intake":
            await self._granted(self._on_the_way)
        for notice in update.get("notices", ()):
            if notice not in self._notices and notice != VOID:  # the cards say that
                self._notices.add(notice)
                await self._narrator.say(f"> Notice: {notice}\n\n")
        await self.tell()

    # What the user has chosen while it ran.

    def _wished(self) -> dict[str, Any]:
        """What is chosen and not in the thread yet."""
        wished = {"mode": self.record.mode, "approvals": self.record.approvals}
        return {name: value for name, value in wished.items() if value is not None}

    def _has_chosen(self) -> bool:
        """Whether the run goes on in another way than the user wants by now."""
        is_due = self._wished().items() - self._on_the_way.items()
        return bool(is_due) or self._model != self._shop.harness.models.default

    async def _granted(self, wished: dict[str, Any]) -> None:
        """It is in the thread."""
        self._on_the_way = {}
        if "mode" in wished:
            self._mode_is_set.clear()
        self._mode = wished.get("mode", self._mode)
        self._approvals = wished.get("approvals", self._approvals)
        for name, value in wished.items():
            if getattr(self.record, name) == value:
                setattr(self.record, name, None)
        await self._sessions.save(self.record)

    async def _apply(self) -> None:
        """Between two steps: put what the user chose into the thread."""
        if self._model != self._shop.harness.models.default:
            self._shop = await self._shops.get(self.cwd, self._model)
        wished = self._wished()
        await self._write(wished or {"approvals": self._approvals})
        await self._granted(wished)

    async def _write(self, values: dict[str, Any]) -> None:
        # As ``intake``: behind it the machine says anew what comes next.
        await self._shop.agent.aupdate_state(self._config, values, as_node="intake")

    # Questions.

    async def _ask(self, interrupt: Interrupt) -> Command[Any] | None:
        """Ask for each call; None where the answer is to come in the chat, or the mode was set.

        Raises ``Stopped`` where the person dismissed a question.
        """
        request: Request = interrupt.value
        harness = self._shop.harness
        state = await self._shop.agent.aget_state(self._config)
        mode, written = state.values["mode"], state.values.get("written", [])
        plans = await asyncio.to_thread(plans_of, harness, written)
        decisions = list[dict[str, Any]]()
        for asked in request["action_requests"]:
            question = await asyncio.to_thread(Question.of, harness, asked, mode, plans)
            if question.is_open:
                await self._narrator.say(asked["description"])
                return None
            self._narrator.waits(question.card)
            response = await self._answered(question)
            if response is None:
                return None
            decisions.append(response)
        return _resumed(interrupt, decisions)

    async def _answered(self, question: Question) -> dict[str, Any] | None:
        """The decision on one call; None as in ``_ask``."""
        asking = asyncio.ensure_future(
            self._client.request_permission(
                session_id=self.record.id,
                tool_call=question.tool_call(),
                options=question.choices(),
            )
        )
        mode_set = asyncio.ensure_future(self._mode_is_set.wait())
        try:
            await asyncio.wait({asking, mode_set}, return_when=asyncio.FIRST_COMPLETED)
            if mode_set.done():
                return None
            chosen = question.decision(await asking)
        except ConnectionError:
            raise Gone from None
        except (RequestError, ValidationError) as error:
            problem = f"the editor did not ask about {question.card.title!r}: {error}"
            raise RequestError(-32603, problem) from error
        finally:
            asking.cancel()
            mode_set.cancel()
        if chosen is None:
            raise Stopped
        return chosen.decision

    async def replay(self) -> None:
        """Tell the whole history."""
        values = await self.read()
        interrupt = await self._interrupt()
        waiting = [] if interrupt is None else interrupt.value["action_requests"]
        await self._narrator.replay(
            self._shop.harness, values.get("messages", []), {asked["id"] for asked in waiting}
        )
        if todos := values.get("todos"):
            await self._narrator.plan(todos)


async def _to_the_end(doing: Coroutine[Any, Any, None]) -> None:
    """See it through, however often the turn is cancelled: the next one waits for it."""
    task = asyncio.ensure_future(doing)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)


def _resumed(interrupt: Interrupt, decisions: list[dict[str, Any]]) -> Command[Any]:
    answer = {"decisions": decisions, "question": interrupt.value["question"]}
    return Command(resume={interrupt.id: answer})
