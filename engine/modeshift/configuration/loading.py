"""``AgentLoader`` makes the agent from files; ``AgentCache`` makes it again when one changes."""

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache, partial
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from modeshift.configuration.databases import list_databases, list_own_files
from modeshift.configuration.notifying import build_notifier
from modeshift.configuration.prices import load_ceilings
from modeshift.configuration.settings import Settings, get_default_workspace, load_settings
from modeshift.configuration.sources import LoadedFiles, Sources
from modeshift.configuration.workspaces import ANYBODY, Workspaces
from modeshift.models.loading import Models
from modeshift.modes.catalog import prompts_of
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.plain_text import to_one_line
from modeshift.project import find_root, load_project
from modeshift.threads.compiled import Agent
from modeshift.threads.deps import AgentDeps, StartedCalls
from modeshift.threads.journal import Journal
from modeshift.threads.mailbox import Mailbox
from modeshift.tools.processes.process import Limits
from modeshift.tools.processes.sandboxes import (
    Commands,
    NoSandbox,
    Sandbox,
    SandboxOptions,
    find_sandbox,
)
from modeshift.tools.server_tools import ManagedServer, NoPool, ServerPool, open_pool
from modeshift.tools.servers import Server
from modeshift.tools.toolbox import build_toolbox, tool_specs
from modeshift.tools.workspace.workspace import Workspace
from modeshift.turns.briefing import describe_environment

log = logging.getLogger("modeshift")


def choose_sandbox(settings: Settings) -> Sandbox | NoSandbox:
    """The sandbox for commands, if there is one and the user wants it. Blocks."""
    if settings.sandbox == "off":
        return NoSandbox("SANDBOX=off")
    return find_sandbox(
        SandboxOptions(settings.command_network, list_own_files(settings), settings.command_secrets)
    )


def build_commands(settings: Settings) -> Commands:
    """How commands run. Blocks."""
    sandbox = choose_sandbox(settings)
    limits = Limits(settings.command_memory, settings.command_processes)
    return Commands(None if isinstance(sandbox, NoSandbox) else sandbox, limits)


class AgentLoader:
    """Loads a workspace and a model; loads them again, or keeps the last version if that fails."""

    loaded: LoadedFiles | None = None
    """The files that ``deps`` was last made from."""

    def __init__(
        self,
        settings: Settings,
        started_calls: StartedCalls | None = None,
        servers: tuple[Server, ...] = (),
        pool: ServerPool | NoPool | None = None,
    ) -> None:
        """Make the default workspace; one that the user names must exist, if a tool needs one.

        All loaders of a process get the same ``started_calls`` and the same ``pool``.
        ``servers`` are the MCP servers of the editor's session. Blocks, as the methods do; raises
        ``ConfigurationError``.
        """
        self._settings = settings
        make = partial(Workspace, settings.workspace, list_databases(settings))
        needed = any(spec.needs_workspace for spec in tool_specs(make(must_exist=False)))
        if needed:
            self._make_folder()
        self._workspace = make(heeds_ignore_files=True, must_exist=needed)
        self._commands = build_commands(settings)
        self._models = Models(
            settings.model,
            settings.context_window,
            settings.cache_ttl,
            settings.model_parameters,
            settings.mode_changes,
            asks_servers=True,
        )
        self._started_calls = started_calls or StartedCalls()
        self._pool = pool or open_pool()
        # A folder that the agent may not open still has modes and rules for it.
        self._sources = Sources(settings, make(must_exist=needed), servers)
        self._notifier = build_notifier(settings)
        self._looked = -inf

    def deps(self) -> AgentDeps:
        """What the nodes share, from the modes' files as they are now; raises ``UserError``."""
        loaded = self.loaded = self._load()
        notices = [*loaded.notices]
        for mode in {mode.model: mode for mode in loaded.catalog.values()}.values():
            with suppress(ConfigurationError):  # reported below
                self._models.learn(mode)
        for slug, mode in loaded.catalog.items():
            if problem := self._models.problem(mode):
                notices.append(f"{mode.file}: mode {slug!r} cannot be used: {problem}")
        self._workspace.ignored.refresh()
        notices += self._workspace.ignored.problems
        if find_root().is_relative_to(self._workspace.root):
            notices.append(
                "the workspace contains this very clone: the agent can edit its own code and gates"
            )
        toolbox = build_toolbox(
            self._workspace, loaded.catalog, self._commands, self._settings.network_hosts
        )
        configured = [entry.server for entry in loaded.servers if entry.server is not None]
        if any(server.command for server in configured):
            self._make_folder()  # commands run there
        servers: Sequence[ManagedServer] = ()
        if not isinstance(self._pool, NoPool):
            servers = self._pool.assign(self, configured, self._workspace, self._commands.sandbox)
        elif configured:
            names = ", ".join(repr(server.name) for server in configured)
            notices.append(f"no MCP server is started ({names}): {self._pool.problem}")
        deps = AgentDeps(
            loaded.catalog,
            toolbox,
            self._models,
            self._settings.approvals,
            servers=tuple(servers),
            prompt_rules=loaded.rules.render,
            prompts=prompts_of(self._settings.modes_folder),
            rules_at=loaded.project.rules_at,
            describe_environment=partial(describe_environment, toolbox),
            notices=tuple(notices),
            workspace=_name_workspace(self._settings),
            bound_answers=self._settings.bound_answers,
            subtask_depth=self._settings.subtask_depth,
            max_switches=self._settings.max_switches,
            ceilings=load_ceilings(self._settings),
            notifier=self._notifier,
            started_calls=self._started_calls,
            tests=loaded.tests,
        )
        try:
            deps.system_prompt  # noqa: B018  # rendered at its first use
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
        return deps

    def _make_folder(self) -> None:
        if self._settings.workspace == get_default_workspace():
            with suppress(OSError):  # the workspace says that it is not there
                self._settings.workspace.mkdir(exist_ok=True)

    def _load(self) -> LoadedFiles:
        try:
            return self._sources.load()
        except Exception as error:
            if self.loaded is None:
                raise
            # Whatever happens to the files, in the middle of a checkout say: the threads continue
            # with the last version that loaded, and each of them gets a notice.
            log.exception("the modes' files could not be read again")
            problem = to_one_line(f"{type(error).__name__}: {error}")
            unread = "the files of modes could not be read again; the modes stay as they were"
            return replace(self.loaded, notices=(f"{unread}: {problem}",))

    def is_outdated(self, asked: float = inf) -> bool:
        """Whether a file that ``deps`` was last made from may have changed when this was asked.

        ``asked`` is a ``time.monotonic``: one look serves all who asked before it began.
        """
        if asked <= self._looked:
            return False
        began = time.monotonic()
        if self._sources.have_changed():
            return True
        self._looked = began
        return False


def _name_workspace(settings: Settings) -> str:
    root = settings.workspaces
    if root is None or not settings.workspace.is_relative_to(root):
        return ""
    return settings.workspace.relative_to(root).as_posix()


MAX_CACHED = 100


class CachedAgent(NamedTuple):
    """An agent, with the loader that made it."""

    agent: Agent
    loader: AgentLoader

    @property
    def deps(self) -> AgentDeps:
        """What its nodes share, with the tools of MCP servers that are known by now."""
        return self.agent.live.deps


class AgentCache:
    """One agent for each workspace, model and list of an editor's servers; one cache a process."""

    def __init__(
        self,
        settings: Settings,
        saver: BaseCheckpointSaver[Any] | None = None,
        store: BaseStore | None = None,
        journal: Journal | None = None,
    ) -> None:
        """``store`` is where the host sets a thread's mode while a run goes on.

        ``journal`` is in the database of the saver.
        """
        self.settings = settings
        self._saver = saver
        self.store = store
        self._cached: dict[tuple[Path, str, str], CachedAgent] = {}
        self._lock = Lock()  # or each of the first requests would make an agent
        # Shared by all: a conversation may go from one model to another.
        self._started_calls = StartedCalls(journal, settings.undo_days)
        if self._started_calls.undo is not None:
            self._started_calls.undo.clean()
        self._pool = open_pool()

    async def of_thread(
        self, thread: str, user: str, store: BaseStore | None, *, enters: bool
    ) -> CachedAgent:
        """The agent in the thread's workspace, by ``store``; a thread that ``enters`` keeps that.

        Raises ``UserError``.
        """
        places = Workspaces(self.settings, Mailbox(store))
        workspace = await (places.enter if enters else places.find)(thread, user)
        model, asked = self.settings.model, time.monotonic()
        if self._lock.acquire(blocking=False):
            try:
                if (cached := self._find(_get_key(workspace, model), asked)) is not None:
                    return cached
            finally:
                self._lock.release()
        return await asyncio.to_thread(self.get, workspace, model, asked=asked)

    def _find(self, key: tuple[Path, str, str], asked: float) -> CachedAgent | None:
        """The agent that is there, if its files are as they were by one ``stat`` each.

        Who calls it has the lock.
        """
        if (cached := self._cached.pop(key, None)) is not None:
            self._cached[key] = cached  # the last one used is the last one forgotten
        return cached if cached is None or not cached.loader.is_outdated(asked) else None

    def get(
        self, workspace: Path, model: str, servers: tuple[Server, ...] = (), *, asked: float = inf
    ) -> CachedAgent:
        """The agent for the files as they are now. Blocks; raises ``UserError``.

        ``servers`` are the MCP servers that an editor's session has; ``asked`` is as for
        ``AgentLoader.is_outdated``.
        """
        key = _get_key(workspace, model, servers)
        with self._lock:
            if (found := self._find(key, asked)) is not None:
                return found
            if key in self._cached:
                loader = self._cached[key].loader
            else:
                settings = self.settings.model_copy(update={"workspace": workspace})
                loader = AgentLoader(
                    settings.with_model(model), self._started_calls, servers, self._pool
                )
            deps = loader.deps()
            for notice in deps.notices:
                log.warning(notice)
            agent = load_project().build(deps, self._saver, self.settings.max_steps)
            agent.store = self.store
            self._cached[key] = CachedAgent(agent, loader)
            if len(self._cached) > MAX_CACHED:
                del self._cached[next(iter(self._cached))]
            return self._cached[key]

    async def end_servers(self) -> None:
        """End the MCP servers that its agents have started."""
        if not isinstance(self._pool, NoPool):
            await self._pool.end_all()

    async def delete_thread(self, thread: str) -> None:
        """Delete all that is stored of a thread."""
        if self._saver is not None:
            await self._saver.adelete_thread(thread)
            await self._started_calls.journal.delete_thread(thread)

    async def copy_thread(self, source: str, target: str) -> None:
        """Copy all that is stored of a thread to a new one."""
        if self._saver is not None:
            await self._saver.acopy_thread(source, target)


def _get_key(
    workspace: Path, model: str, servers: tuple[Server, ...] = ()
) -> tuple[Path, str, str]:
    return workspace, model, json.dumps([asdict(server) for server in servers])


_first = Lock()


@cache
def _served() -> AgentCache:
    # modeshift/server/answers.py names the question where the user need not.
    settings = load_settings().model_copy(update={"bound_answers": True})
    # The server has checkpointer and store.
    return AgentCache(settings, journal=Journal(settings.open_database(), settings.checkpoints))


async def get_served(
    thread: str = "", user: str = ANYBODY, store: BaseStore | None = None, *, enters: bool = False
) -> CachedAgent:
    """The agent that this process serves, as ``AgentCache.of_thread`` gives it."""
    return await (await get_served_cache()).of_thread(thread, user, store, enters=enters)


async def get_served_cache() -> AgentCache:
    """The agents of this process."""

    def make() -> None:
        with _first:  # or each of the first requests would make a cache
            _served()

    if not _served.cache_info().currsize:
        await asyncio.to_thread(make)
    return _served()
