"""``SessionConfig``: the mode, the model and the approvals of a session, and who is told of them.

What a user chooses is kept at once, and goes into the thread between two steps of a run,
or with the next one: until it is there it stays a wish in the session's record.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from acp.schema import AvailableCommandsUpdate, ConfigOptionUpdate, CurrentModeUpdate
from langgraph.runtime import RunControl

from doors.editor.agent_cache import AgentCache, LoadedAgent
from doors.editor.options import Modes, Options
from doors.editor.store import Record, Sessions
from doors.editor.updates import SessionUpdates
from graph.state import Switch
from graph.switch import void_switch
from modes.errors import InvalidInputError

_clock = count(1)
TAKEN_BACK = "Taken back: you have set another mode."


class SessionConfig:
    """Of one session; mutable."""

    loaded: LoadedAgent
    """The agent, for the folder and the chosen model."""

    def __init__(
        self, record: Record, agents: AgentCache, sessions: Sessions, updates: SessionUpdates
    ) -> None:
        self.record = record
        self.control: RunControl | None = None
        """Of the run under way, once it has taken in what it was given."""
        self.mode_is_set = asyncio.Event()
        """By the user, and not yet in the thread."""
        self._agents = agents
        self._sessions = sessions
        self._updates = updates
        self.choosing = asyncio.Lock()
        """Held from what is read for a choice until that is made."""
        self._writing = asyncio.Lock()
        self._is_at_work = False
        self.is_asking = False
        """Whether the turn waits for an answer that does not change what is chosen."""
        self._on_the_way: dict[str, Any] = {}
        """Wishes in the input of the run that has just begun."""
        self._mode = self._approvals = ""
        """As they are in the thread."""
        self._changed_elsewhere = 0
        """When that was last noticed, on the clock of ``_clock``."""
        self._told: Options | None = None
        self._told_commands: Modes | None = None

    @property
    def options(self) -> Options:
        """What there is to choose; a wish counts as chosen."""
        return Options(
            self.loaded.modes,
            self._agents.settings.choices,
            self.record.mode or self._mode,
            self._model,
            self.record.approvals or self._approvals,
        )

    @property
    def _model(self) -> str:
        session_config, chosen = self._agents.settings.choices, self.record.model
        return chosen if chosen is not None and chosen in session_config else session_config[0]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Around a turn: what is chosen in it is said by the run, which is ahead of the thread."""
        self._is_at_work = True
        try:
            yield
        finally:
            self._is_at_work = self.is_asking = False

    async def read(self) -> dict[str, Any]:
        """The thread's state, and the agent as its files are now; raises ``UserError``.

        In a turn the state alone.
        """
        cwd = Path(self.record.cwd)
        if not await asyncio.to_thread(cwd.is_dir):
            raise InvalidInputError(f"the folder {self.record.cwd!r} is not there any more")
        async with self._writing:
            if self._is_at_work:
                return (await self.loaded.state(self.record.id)).values
            known = None if self._told is None else self.options
            # Another process may have written it since.
            self.record = await self._sessions.find(self.record.id) or self.record
            self.loaded = await self._agents.get(cwd, self._model)
            values = (await self.loaded.state(self.record.id)).values
            deps = self.loaded.deps
            mode = str(values.get("mode"))
            self._mode = mode if mode in deps.catalog else deps.catalog.default
            self._approvals = values.get("approvals") or deps.approvals.value
            if self.record.mode not in deps.catalog:
                self.record = replace(self.record, mode=None)
                self.mode_is_set.clear()
            self._notice(known)
        return values

    def _notice(self, known: Options | None) -> None:
        """Note when what was ``known`` has been changed elsewhere."""
        now = self.options
        if known is not None and known.mode not in self.loaded.deps.catalog:
            known = replace(known, mode=now.mode)  # it is no more, and nobody's choice
        if known is not None and known.chosen != now.chosen:
            self._changed_elsewhere = next(_clock)

    @staticmethod
    def now() -> int:
        """The time, for ``is_changed_since``."""
        return next(_clock)

    def is_changed_since(self, time: int) -> bool:
        """Whether another process has chosen something, of which the editor heard later."""
        return self._changed_elsewhere > time

    async def choose(self, option: str, value: object, *, in_turn: bool = False) -> None:
        """Take it from the next step on; raises ``UserError`` for what there is not to choose.

        One after another. What is chosen already is a choice too while a turn may be about
        to change it.
        """
        chosen = self.options.check(option, value)
        if option == "model":
            await self._agents.get(Path(self.record.cwd), chosen)  # it may lack its key, say
        elif option == "mode":
            await self._check_model_of(chosen)
        may_change = in_turn and not self.is_asking
        if may_change or getattr(self.options, option) != chosen:
            await self.keep(**{option: chosen})
            if self.control is not None:
                self.control.request_drain()
            if option == "mode":
                self.mode_is_set.set()
        await self.tell()

    async def forget(self, option: str, value: str) -> None:
        """Do not wish it any more: the user has decided otherwise since."""
        if getattr(self.record, option) == value:
            await self.keep(**{option: None})

    async def _check_model_of(self, mode: str) -> None:
        deps = self.loaded.deps
        if problem := await asyncio.to_thread(deps.models.problem, deps.catalog[mode].model):
            raise InvalidInputError(problem)

    async def keep(self, **changes: Any) -> None:
        """Change the record, if it can be stored."""
        async with self._writing:
            await self._store(**changes)

    async def _store(self, **changes: Any) -> None:
        expected = replace(self.record, **changes)
        self.record = await self._sessions.change(self.record, **changes)
        if self.record.wishes != expected.wishes:
            self._changed_elsewhere = next(_clock)

    async def take_back(self, values: Mapping[str, Any]) -> None:
        """A question in another mode is none any more."""
        await self._updates.catch_up(self.loaded.deps, values.get("messages", []))
        await self._updates.stopped(TAKEN_BACK)

    # How a wish gets into the thread.

    def _wished(self) -> dict[str, Any]:
        wished = {"mode": self.record.mode, "approvals": self.record.approvals}
        return {name: value for name, value in wished.items() if value is not None}

    def for_input(self) -> dict[str, Any]:
        """What is wished, for the input of a run that begins now."""
        self._on_the_way = self._wished()
        return self._on_the_way

    def are_due(self) -> bool:
        """Whether the run goes on in another way than the user wants by now."""
        is_due = self._wished().items() - self._on_the_way.items()
        return bool(is_due) or self._model != self.loaded.deps.models.default

    def run_has_ended(self) -> None:
        """Whatever became of it: what is not in the thread is still wished."""
        self.control = None
        self._on_the_way = {}

    async def apply(self) -> None:
        """Put them into the thread, between two steps of a run."""
        if self._model != self.loaded.deps.models.default:
            self.loaded = await self._agents.get(Path(self.record.cwd), self._model)
        wished = self._wished()
        values = (await self.loaded.state(self.record.id)).values
        update = wished or {"approvals": self._approvals}
        if (switch := values.get("switch")) is not None:
            update = {**update, "switch": _overruled(switch, wished)}
        await self.loaded.write(self.record.id, update)
        await self._are_in_the_thread(wished)

    async def heard(self, update: dict[str, Any]) -> None:
        """Take in what a node has written; the first one has taken in the run's input."""
        self._mode = update.get("mode", self._mode)
        self._approvals = update.get("approvals", self._approvals)
        await self._are_in_the_thread(self._on_the_way)
        await self.tell()

    async def _are_in_the_thread(self, wished: dict[str, Any]) -> None:
        self._on_the_way = {}
        self._mode = wished.get("mode", self._mode)
        self._approvals = wished.get("approvals", self._approvals)
        async with self._writing:
            # What was chosen since stays a wish.
            granted = [name for name in wished if getattr(self.record, name) == wished[name]]
            if granted:
                await self._store(**dict.fromkeys(granted))
            if self.record.mode is None:
                self.mode_is_set.clear()

    # What the editor is told.

    def opened(self) -> Options:
        """The options for the answer to new, load and resume: told with it."""
        self._told, self._told_commands = self.options, None
        return self._told

    async def tell(self) -> None:
        """Tell the editor what has changed, whoever changed it."""
        now, before = self.options, self._told
        self._told = now
        if before is None or now.mode != before.mode:
            mode = CurrentModeUpdate(session_update="current_mode_update", current_mode_id=now.mode)
            await self._updates.send(mode)
        if now != before:
            update = ConfigOptionUpdate(
                session_update="config_option_update", config_options=now.config()
            )
            await self._updates.send(update)
        await self.tell_commands()

    async def tell_commands(self) -> None:
        """Tell which slash commands there are, if they are not known yet."""
        options = self.options
        if options.modes != self._told_commands:
            self._told_commands = options.modes
            update = AvailableCommandsUpdate(
                session_update="available_commands_update", available_commands=options.commands()
            )
            await self._updates.send(update)


def _overruled(switch: Switch, wished: dict[str, Any]) -> Switch:
    """A switch that was approved, and is not done, under what has been chosen since."""
    approvals = wished.get("approvals", switch["approvals"])
    switch = {**switch, "approvals": approvals}
    return void_switch(switch) if "mode" in wished else switch
