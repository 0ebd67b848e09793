"""``Agent``: the compiled graph, which checks what is written from outside before it is saved.

LangGraph saves first and looks afterwards whether the value fits; one that does not stays.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphDrained
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateUpdate
from typing_extensions import override

from modeshift.messages.repair import build_rejection, find_open_calls
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.machine import MAX_SERVER_TOOLS
from modeshift.modes.phases import Phase
from modeshift.storage.kept_threads import HOLD
from modeshift.storage.threads import find_database
from modeshift.threads.checks import (
    MARKED_AS_RESOLVED,
    check_input,
    check_turn,
    check_update,
    read_writes,
)
from modeshift.threads.deps import AgentDeps, StartedCalls
from modeshift.threads.mailbox import RIGHTS, Mailbox, StateValues
from modeshift.threads.routing import is_cut_off
from modeshift.threads.state import Input, State, Switch, drop_approvals, list_switches
from modeshift.threads.stopping import stop
from modeshift.tools.server_tools import Offer, bind_tools
from modeshift.workarounds.langgraph import read_history_at_once

log = logging.getLogger("modeshift")
writes_anything: ContextVar[bool] = ContextVar("writes_anything", default=False)
"""Whether ``update_state`` takes what only code computes: in a task of the engine's own."""


def with_known_tools(deps: AgentDeps) -> AgentDeps:
    """The parts with the tools that servers are known to offer, and notices of those left out."""
    tools, missing = bind_tools(deps.servers)
    deps = replace(deps, toolbox=deps.toolbox.with_tools(tools))
    notices = [*deps.notices, *missing]
    if left_out := deps.machine.left_out:
        modes = (f"{len(names)} in {slug!r}, from {names[0]}" for slug, names in left_out.items())
        notices.append(
            f"a mode has {MAX_SERVER_TOOLS} tools of MCP servers at most; left out are "
            f"{'; '.join(modes)} on. Give its group mcp the options servers or tools"
        )
    return replace(deps, notices=tuple(notices))


class LiveDeps:
    """Holds ``AgentDeps``, which are made again when other tools are known; for any thread."""

    def __init__(self, deps: AgentDeps) -> None:
        self.first = deps
        """The parts with the tools that were known at the start."""
        self._known: tuple[tuple[Offer | None, ...], AgentDeps] = (None,) * len(deps.servers), deps

    @property
    def deps(self) -> AgentDeps:
        """The parts with the tools that are known now."""
        offers = tuple(server.offer for server in self.first.servers)
        known, deps = self._known
        if known != offers:
            deps = with_known_tools(self.first)
            self._known = offers, deps
        return deps

    async def prepare(self, state: StateValues) -> AgentDeps:
        """Start the servers whose tools the thread's mode may have; the parts with them."""
        catalog, switches = self.first.catalog, list_switches(state.get("switch"))
        slugs = {state.get("mode"), *(one["mode_slug"] for one in switches)}
        modes = [catalog[slug if slug and slug in catalog else catalog.default] for slug in slugs]
        grants = [grant for mode in modes if (grant := mode.grant("mcp")) is not None]
        needed = [
            server.prepare()
            for server in self.first.servers
            if any(grant.has_server(server.server.name) for grant in grants)
        ]
        await asyncio.gather(*needed)
        return self.deps


Updates = Sequence[Sequence[StateUpdate]]


class Agent(CompiledStateGraph[State, None, Input, State]):
    """The compiled graph of a clone, with its checks and its parts."""

    def __init__(self, *, live: LiveDeps, **parts: Any) -> None:
        """``parts`` are those of a compiled graph, as LangGraph copies one."""
        super().__init__(**parts)
        read_history_at_once(self.checkpointer)
        self.live = live

    @property
    def started_calls(self) -> StartedCalls:
        """The calls that this process has begun."""
        return self.live.deps.started_calls

    @override
    def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        if isinstance(input, Command):
            check_update(self.live.first, input)
        return self._stream(input, config, options)

    async def _stream(
        self, input: Any, config: RunnableConfig | None, options: dict[str, Any]
    ) -> AsyncIterator[Any]:
        """Run, and end the turn's commands with the turn.

        A turn ends with a run: whole, failed or cancelled, but not one that waits for a person.
        """
        config = await self._hold(config or RunnableConfig(), options)
        if input in MARKED_AS_RESOLVED:
            input, config = None, await self._reject_question(config)
        here = config.get("configurable", {})
        thread, goes_on = str(here.get("thread_id", "")), False
        background = self.started_calls.background
        input = await self._take_in(input, config)
        astream = super().astream
        try:
            with stop.run() as control:
                given = {**options, "control": options.get("control") or control}
                chunks: Any = astream(input, config, **given)
                async with aclosing(chunks):
                    async for chunk in chunks:
                        yield chunk
            if background.has(thread):
                last = {name: value for name, value in here.items() if name != "checkpoint_id"}
                goes_on = bool((await self.aget_state({"configurable": last})).next)
        except (GraphDrained, TimeoutError):
            if not stop.is_due:
                raise
            log.warning("thread %s: cut off, as the server stops; it goes on when told to", thread)
        finally:
            self.started_calls.journal.holds.pop(thread, None)
            if not goes_on:
                await background.end(thread)

    async def _reject_question(self, config: RunnableConfig) -> RunnableConfig:
        """Reject what waits, and end the turn; the config of the thread as it is then."""
        state = await self.aget_state(config)
        if not state.interrupts:
            raise InvalidInputError(f"goto={END!r} rejects what waits, and no question is open")
        calls = find_open_calls(state.values["messages"])
        rejected = [build_rejection(call, "") for call in calls]
        update = {"messages": rejected, "phase": Phase.IDLE.value}
        after = await self.aupdate_state(config, update, as_node="intake")
        here = {**config["configurable"], **after["configurable"]}
        return RunnableConfig(**{**config, "configurable": here})

    async def _take_in(self, input: Any, config: RunnableConfig) -> Any:
        """What the run begins with, once its settings are kept."""
        here = config.get("configurable", {})
        thread = str(here.get("thread_id", ""))
        if isinstance(input, dict):
            if await self._has_taken(thread, config):
                input = None
            else:
                await self.started_calls.background.end(thread)
                await self._keep_finished(here)
                input = await self._drop_known(input, config)
        if input is None:
            return {} if self.checkpointer and await self._has_no_task(config) else None
        if not isinstance(input, Command):
            # In a node it would be too late: the input would be in place of what was waiting.
            input = check_input(self.live.first, input)
        # What the run begins with is set for the thread, later than what no run has taken in yet.
        goes_on = isinstance(input, Command)
        writes = dict(read_writes(input) if goes_on else input)
        given = {key: writes[key] for key in RIGHTS if writes.get(key) is not None}
        if given:
            await Mailbox(self.store).put_input(thread, given, goes_on=goes_on)
        return input

    async def _hold(self, config: RunnableConfig, options: dict[str, object]) -> RunnableConfig:
        """The run's config, by which it stores nothing more when another process takes over."""
        saver, journal = self.checkpointer, self.started_calls.journal
        if not isinstance(saver, BaseCheckpointSaver):
            return config
        if options.get("durability") == "exit":  # what has begun would be in no checkpoint
            options["durability"] = "async"
        here = config.get("configurable", {})
        hold = await journal.hold(str(here.get("thread_id", ""))).take()
        if journal.id != "database" or find_database(saver) is None:
            return config
        return RunnableConfig(**{**config, "configurable": {**here, HOLD: hold}})

    async def _has_taken(self, thread: str, config: RunnableConfig) -> bool:
        """Whether the thread has the run's input: a server that was killed begins the run again."""
        here, noted = config.get("configurable", {}), config.get("metadata", {})
        run, saver = here.get("run_id") or noted.get("run_id"), self.checkpointer
        if not run or not isinstance(saver, BaseCheckpointSaver):
            return False
        if await self.started_calls.journal.take_input(thread, str(run)):
            return False
        whole = RunnableConfig(configurable={"thread_id": thread})
        return bool([_ async for _ in saver.alist(whole, filter={"run_id": str(run)}, limit=1)])

    async def _has_no_task(self, config: RunnableConfig) -> bool:
        """Whether a turn stands where LangGraph has nothing to go on with: ``intake`` does."""
        state = await self.aget_state(config)
        return not state.tasks and is_cut_off(state.values, state.tasks, state.interrupts)

    async def _keep_finished(self, here: dict[str, object]) -> None:
        """Store what a run had done when it was cut off, which LangGraph drops for an input."""
        saver = self.checkpointer
        if not isinstance(saver, BaseCheckpointSaver) or here.get("checkpoint_id"):
            return
        # Not as this run's: LangGraph would take its input for taken.
        thread = RunnableConfig(
            configurable={key: here[key] for key in ("thread_id", HOLD) if key in here},
            metadata={"run_id": "cut off"},
        )
        saved = await saver.aget_tuple(thread)
        if saved is not None and saved.pending_writes:
            state = await self.aget_state(thread)
            if not state.interrupts and any(task.result is not None for task in state.tasks):
                await self.aupdate_state(thread, None, as_node=END)

    async def _drop_known(self, input: StateValues, config: RunnableConfig) -> StateValues:
        """A run's input without the answers that the thread has: a client may send all it shows.

        They would take the place of those, without thinking and with calls of other ids.
        """
        given = input.get("messages")
        if not isinstance(given, list) or not any(map(_get_answer_id, given)):
            return input
        kept = (await self.aget_state(config)).values.get("messages", ())
        known = {message.id for message in kept}
        return {**input, "messages": [one for one in given if _get_answer_id(one) not in known]}

    @override
    def stream(self, input: Any, *given: Any, **options: Any) -> Iterator[Any]:
        if isinstance(input, Command):
            check_update(self.live.first, input)
        elif input is not None:
            input = check_input(self.live.first, input)
        return super().stream(input, *given, **options)

    @override
    def bulk_update_state(self, config: RunnableConfig, supersteps: Updates) -> RunnableConfig:
        self._check_all(supersteps)
        with _name_missing_key():
            return super().bulk_update_state(config, supersteps)

    @override
    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Updates
    ) -> RunnableConfig:
        self._check_all(supersteps)
        state = await self.aget_state(config)
        writes = dict(read_writes([update[0] for step in supersteps for update in step]))
        check_turn(state.values, writes)
        changed = {key: value for key, value in writes.items() if state.values.get(key) != value}
        here, put = config["configurable"], Mailbox(self.store).put_input
        is_alone = changed.keys() == {"approvals"} and not here.get("checkpoint_id")
        # As what is set beside the runs: the question stays open.
        if state.interrupts and is_alone and await put(here["thread_id"], changed):
            return state.config
        if (switch := state.values.get("switch")) is not None and "switch" not in writes:
            supersteps = [[_set_later(update, switch) for update in step] for step in supersteps]
        with _name_missing_key():
            return await super().abulk_update_state(config, supersteps)

    def _check_all(self, supersteps: Updates) -> None:
        if writes_anything.get():
            return
        for update in (one for step in supersteps for one in step):
            check_update(self.live.first, update[0])


def _set_later(update: StateUpdate, switch: Switch) -> StateUpdate:
    """The update; its approvals count over those that a person chose with the switch before."""
    if "approvals" not in dict(read_writes(update[0])):
        return update
    values: Any = [Command(update={"switch": drop_approvals(switch)}), update[0]]
    return update._replace(values=values)


def _get_answer_id(given: object) -> str | None:
    """The id of an assistant's message in a run's input, in each form that LangChain takes."""
    match given:
        case AIMessage(id=str(id)) | {"id": str(id), "type": "ai" | "AIMessageChunk"}:
            return id
        case {"id": str(id), "role": "assistant" | "ai"}:
            return id
    return None


@contextmanager
def _name_missing_key() -> Iterator[None]:
    """The edge behind a node reads keys that a new thread does not have yet."""
    try:
        yield
    except LookupError as error:
        raise InvalidInputError(
            f"the thread has no {error} yet, so `as_node` cannot be used; "
            "leave it out, or send a message first"
        ) from error
