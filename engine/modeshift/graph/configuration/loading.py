"""``AgentLoader``: makes ``AgentDeps`` from the settings and the modes' files as they are."""

import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial

from modeshift.graph.briefing.surroundings import describe_environment
from modeshift.graph.configuration.own_files import list_databases, list_own_files
from modeshift.graph.configuration.sources import LoadedFiles, Sources
from modeshift.graph.deps import AgentDeps
from modeshift.graph.models.loading import Models
from modeshift.graph.settings import Settings, get_default_workspace
from modeshift.graph.threads.started_calls import StartedCalls
from modeshift.mcp.pool import ServerPool
from modeshift.mcp.server import Server
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.plain_text import to_one_line
from modeshift.project import find_root
from modeshift.tools.calls.toolbox import build_toolbox
from modeshift.tools.processes.process import Limits
from modeshift.tools.processes.sandboxes import (
    Commands,
    NoSandbox,
    Sandbox,
    SandboxOptions,
    find_sandbox,
)
from modeshift.tools.workspace.workspace import Workspace

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
    """For one workspace and model. Can load again; if that fails, the last version stays."""

    loaded: LoadedFiles | None = None
    """What ``deps`` was last made from."""

    def __init__(
        self,
        settings: Settings,
        started_calls: StartedCalls | None = None,
        servers: tuple[Server, ...] = (),
        pool: ServerPool | None = None,
    ) -> None:
        """Makes the default workspace; one that the user names must exist.

        A process that has several loaders gives them one ``started_calls`` and one ``pool``.
        ``servers`` are the MCP servers of the editor's session. Blocks, as the methods do; raises
        ``ConfigurationError``.
        """
        if settings.workspace == get_default_workspace():
            with suppress(OSError):  # the workspace says that it is not there
                settings.workspace.mkdir(exist_ok=True)
        self._settings = settings
        self._workspace = Workspace(
            settings.workspace, list_databases(settings), heeds_ignore_files=True
        )
        self._commands = build_commands(settings)
        self._models = Models(
            settings.model,
            settings.context_window,
            settings.cache_ttl,
            settings.model_parameters,
            settings.mode_changes,
        )
        self._started_calls = started_calls or StartedCalls()
        self._pool = pool or ServerPool()
        # What an agent may not open still steers it.
        plain = Workspace(settings.workspace, list_databases(settings))
        self._sources = Sources(settings, plain, servers)

    def deps(self) -> AgentDeps:
        """What the nodes share, from the modes' files as they are now; raises ``UserError``."""
        loaded = self.loaded = self._load()
        notices = [*loaded.notices]
        for slug in loaded.catalog:
            mode = loaded.catalog[slug]
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
        found = [one.server for one in loaded.servers if one.server is not None]
        servers = self._pool.assign(self, found, self._workspace, self._commands.sandbox)
        deps = AgentDeps(
            loaded.catalog,
            toolbox,
            self._models,
            self._settings.approvals,
            servers=servers,
            prompt_rules=loaded.rules.render,
            rules_at=loaded.project.rules_at,
            describe_environment=partial(describe_environment, toolbox),
            notices=tuple(notices),
            bound_answers=self._settings.bound_answers,
            subtask_depth=self._settings.subtask_depth,
            started_calls=self._started_calls,
        )
        try:
            deps.system_prompt  # noqa: B018  # rendered at its first use
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
        return deps

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

    def is_outdated(self) -> bool:
        """Whether a file that ``deps`` was last made from may have changed."""
        return self._sources.have_changed()
