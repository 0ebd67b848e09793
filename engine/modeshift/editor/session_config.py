"""``SessionConfig``: the mode, the model and the approvals of a session.

What a user chooses is stored at once: a model in the session's record, a mode or approvals in the
mailbox, from which a run takes them in between two of its steps.
"""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import cast

from acp.helpers import update_available_commands, update_current_mode
from acp.schema import ConfigOptionUpdate, Cost, UsageUpdate
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.types import Interrupt

from modeshift.calls.remembered import ALL, describe_remembered
from modeshift.configuration.loading import AgentCache, CachedAgent
from modeshift.configuration.prices import CURRENCY, load_prices
from modeshift.editor.display.updates import SessionUpdates
from modeshift.editor.options import Options
from modeshift.editor.store import Record, Sessions
from modeshift.editor.transport import Editor
from modeshift.models.usage import Usage, add_usage
from modeshift.modes.errors import InvalidInputError, UserError
from modeshift.modes.phases import Phase
from modeshift.modes.plain_text import to_one_line
from modeshift.thread import STREAMS, Thread
from modeshift.threads.compiled import Agent
from modeshift.threads.mailbox import REVISION, Mailbox, StateValues
from modeshift.tools.servers import Server
from modeshift.tools.workspace.client_files import buffers

MAX_CONCURRENCY = 8
"""Calls of one message that run at once: each that waits for the editor blocks a thread."""
WITHDRAWN = "Withdrawn: you have chosen another mode."


class SessionConfig:
    """The options of one session; mutable."""

    loaded: CachedAgent
    """The agent for the folder and the chosen model."""

    def __init__(self, editor: Editor, record: Record, agents: AgentCache, store: Sessions) -> None:
        self.record = record
        self.updates = SessionUpdates(editor, record, lambda: self.loaded.deps)
        config = RunnableConfig(
            configurable={"thread_id": record.id}, max_concurrency=MAX_CONCURRENCY
        )
        self.thread = Thread(config, self._get_agent, streams=(*STREAMS, "tasks"))
        self.mode_is_pending = asyncio.Event()
        self.running = asyncio.Lock()
        """Held while a turn goes on: its run knows more than the stored thread."""
        self.servers: tuple[Server, ...] = ()
        """The MCP servers that the editor has for this session."""
        self._agents = agents
        self._store = store
        self._lock = asyncio.Lock()
        self._stored = {"mode": "", "approvals": ""}
        """Both as they are in the thread's state."""
        self._news: dict[str, str] = {}
        """Settings in the mailbox that the thread has not taken in yet."""
        self._shown: dict[str, object] = {}
        """What the editor was last sent."""
        self._usage = Usage()
        """What the thread has taken by now."""

    async def _get_agent(self) -> Agent:
        return self.loaded.agent

    async def drop_open_question(self) -> None:
        """Drop an open question; keep what a run had finished when it was cut off.

        LangGraph stores the results of finished tasks beside the checkpoint, where the next run's
        input would drop them.
        """
        state, agent = await self.thread.state(), self.loaded.agent
        if state.interrupts:
            idle = {"phase": Phase.IDLE.value}
            await agent.aupdate_state(self.thread.config, idle, as_node="intake")
        elif state.tasks:
            await agent.aupdate_state(self.thread.config, None, as_node=END)

    @property
    def options(self) -> Options:
        """What can be chosen and what is chosen, pending or not."""
        now = {**self._stored, **self._news}
        return Options(
            self.loaded.deps.catalog,
            self._agents.settings.choices,
            now["mode"],
            self._model,
            now["approvals"],
            self.loaded.deps.approval_words,
        )

    @property
    def _model(self) -> str:
        models, chosen = self._agents.settings.choices, self.record.model
        return chosen if chosen is not None and chosen in models else models[0]

    @property
    def model_is_pending(self) -> bool:
        """Whether the user has chosen a model that the run does not use yet."""
        return self._model != self.loaded.deps.models.default

    async def load_model(self) -> None:
        """Load the agent with the chosen model."""
        async with self._lock:
            self.loaded = await self._load_agent(self._model)

    async def _load_agent(self, model: str) -> CachedAgent:
        """The agent for the folder as its files are now; raises ``UserError``."""

        def load() -> CachedAgent:
            buffers.set(None)  # what a person trusts is on disk, not what an editor has open
            return self._agents.get(Path(self.record.cwd), model, self.servers)

        return await asyncio.to_thread(load)

    async def refresh(self) -> None:
        """Read what may have changed; raises ``UserError``. In a turn nothing is read."""
        async with self._lock:
            await self._refresh()

    async def _refresh(self) -> None:
        if not await asyncio.to_thread(os.path.isdir, self.record.cwd):
            raise InvalidInputError(f"{self.record.cwd[:300]!r} is not an existing folder")
        if self.running.locked():
            return
        self.record = await self._store.find(self.record.id) or self.record
        self.loaded = await self._load_agent(self._model)
        deps = self.loaded.deps
        state = await self.thread.state()
        mode = str(state.values.get("mode"))
        mode = mode if mode in deps.catalog else deps.catalog.default
        approvals = state.values.get("approvals") or deps.approvals.value
        self._stored = {"mode": mode, "approvals": approvals}
        self._usage = state.values.get("usage", Usage())
        await self._read_news(state.values.get(REVISION, {}))
        is_waiting = bool(state.interrupts) and not self.mode_is_pending.is_set()
        await self.updates.catch_up(state.values, is_waiting=is_waiting)

    async def open_question(self) -> Interrupt | None:
        """The question that waits for a person; choosing a mode withdraws it."""
        if self.mode_is_pending.is_set():
            return None
        return await self.thread.question()

    async def choose(self, option: str, value: object) -> None:
        """Take a choice, also of what is shown; raises ``UserError`` for what cannot be chosen."""
        async with self._lock:
            await self._refresh()
            chosen = self.options.check(option, value)
            if option == "model":
                await self._load_agent(chosen)  # its key may be missing
                await self._change(model=chosen)
            else:
                await self.thread.set(**{option: chosen})
                self._news[option] = chosen
                self._note_pending_mode()
            if self.mode_is_pending.is_set() and not self.running.locked():
                await self.updates.end_open_calls(WITHDRAWN)
            await self.show()

    async def list_allowed(self, forget: str) -> str:
        """List by number what is always allowed, without number ``forget``, or without ``all``."""
        remembered = await self.thread.remembered()
        if forget:
            ids = {str(n): [each["id"]] for n, each in enumerate(remembered, 1)} | {ALL: ALL}
            if forget not in ids:
                raise InvalidInputError(f"/allowed shows no {to_one_line(forget)!r}")
            await self.thread.set(forget=ids[forget])
            remembered = await self.thread.remembered()
        described = [describe_remembered(self.loaded.deps, each) for each in remembered]
        lines = [f"{n}: {line}" for n, line in enumerate(described, 1)]
        return "\n".join(lines) or 'No "always" of yours holds in this session.'

    async def change(self, **changes: str) -> None:
        """Change and store the record."""
        async with self._lock:
            await self._change(**changes)

    async def _change(self, **changes: str) -> None:
        self.record = await self._store.store(replace(self.record, **changes))

    async def _read_news(self, taken: int) -> None:
        self._news = await Mailbox(self._agents.store).find_news(self.record.id, taken)
        if self._news.get("mode", self._stored["mode"]) not in self.loaded.deps.catalog:
            del self._news["mode"]
        self._note_pending_mode()

    def _note_pending_mode(self) -> None:
        if self._news.get("mode", self._stored["mode"]) == self._stored["mode"]:
            self.mode_is_pending.clear()
        else:
            self.mode_is_pending.set()

    async def follow(self, update: StateValues) -> None:
        """Take in what a node has written into the thread, and show it."""
        async with self._lock:
            self._stored |= {key: update[key] for key in self._stored if key in update}
            if isinstance(more := update.get("usage"), dict):
                self._usage = add_usage(self._usage, cast("Usage", more))
            if REVISION in update:
                await self._read_news(update[REVISION])
        await self.show()

    def describe(self) -> dict[str, object]:
        """The options as the response to new, load and resume carries them."""
        now = self.options
        self._shown = {"mode": now.mode, "options": now}
        return {"modes": now.mode_state(), "config_options": now.config_options()}

    async def show(self) -> None:
        """Send the editor what has changed, whoever changed it."""
        now = self.options
        options = ConfigOptionUpdate(
            session_update="config_option_update", config_options=now.config_options()
        )
        for name, value, update in (
            ("mode", now.mode, update_current_mode(now.mode)),
            ("options", now, options),
            ("commands", now.modes, update_available_commands(now.commands())),
        ):
            if self._shown.get(name) != value:
                self._shown[name] = value
                await self.updates.send(update)
        await self._show_usage()

    async def _show_usage(self) -> None:
        """Send how full the window is, unless a number is missing that the protocol wants."""
        taken, last = self._usage.get("thread", {}), self._usage.get("last")
        if last is None or last["used"] is None or last["window"] is None:
            return
        if self._shown.get("usage") == taken:
            return
        self._shown["usage"] = taken
        update = UsageUpdate(session_update="usage_update", used=last["used"], size=last["window"])
        try:
            settings = self._agents.settings
            cost = await asyncio.to_thread(lambda: load_prices(settings).find_cost(taken))
        except UserError as error:
            await self.updates.show_notice(str(error))
        else:
            if cost is not None:
                update.cost = Cost(amount=float(cost), currency=CURRENCY)
        await self.updates.send(update)
