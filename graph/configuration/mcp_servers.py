"""``ServerSources``: which MCP servers there are, and which of them may be started.

The user's own ``mcp.json`` goes before the editor's servers, and these before the workspace's,
which are started only as a person has trusted them. Nothing here starts a server.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from graph.configuration.mcp_file import ServerEntry, ServersFile, parse_servers
from graph.configuration.trust import TrustedServer, TrustFile
from graph.configuration.user_files import read_user_file
from graph.configuration.watch import Watch
from graph.settings import Settings
from modes.errors import ConfigurationError, InvalidCallError, ModeFileError, ToolFailedError
from modes.plain_text import to_one_line
from tools.mcp.server import Server
from tools.workspace.workspace import Workspace

USER_FILE = "mcp.json"
PROJECT_FILES = (".mcp.json", ".kilocode/mcp.json", ".roo/mcp.json")
"""The earlier one's servers go before the later one's."""
MAX_FILE_BYTES = 1_000_000


@dataclass(frozen=True)
class FoundServer:
    """A server that a file or the editor names."""

    name: str
    source: str
    server: Server | None = None
    """What can be started."""
    problem: str = ""
    """Why nothing is."""


@dataclass(frozen=True)
class LoadedServers:
    """All that were found, and what a person should know."""

    found: tuple[FoundServer, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def servers(self) -> tuple[Server, ...]:
        """Those that may be started."""
        return tuple(one.server for one in self.found if one.server is not None)


@dataclass(frozen=True)
class ProjectServers:
    """What a workspace's files say: each server with its file, and what was left out."""

    entries: Mapping[str, tuple[str, ServerEntry]]
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to trust."""
        return bool(self.entries or self.warnings)


def read_project_servers(workspace: Workspace) -> ProjectServers:
    """Read the workspace's files; what does not load becomes a warning. Blocks."""
    entries: dict[str, tuple[str, ServerEntry]] = {}
    warnings: list[str] = []
    for file in PROJECT_FILES:
        if not os.path.lexists(workspace.root / file):
            continue
        try:
            parsed = parse_servers(workspace.read(file, MAX_FILE_BYTES), file)
        except (ToolFailedError, InvalidCallError) as error:
            warnings.append(f"{file}: left out: {error}")
            continue
        except ModeFileError as error:
            warnings.append(f"{error}; the file is ignored")
            continue
        warnings += parsed.warnings
        for name, entry in parsed.servers.items():
            first, other = entries.setdefault(name, (file, entry))
            if other != entry:
                warnings.append(f"{file}: MCP server {name!r} is left out: {first} has another")
    return ProjectServers(entries, tuple(warnings))


class ServerSources:
    """For one workspace and the servers of one editor's session; keeps what last loaded."""

    def __init__(
        self, settings: Settings, workspace: Workspace, editor: tuple[Server, ...] = ()
    ) -> None:
        self._settings = settings
        self._workspace = workspace
        self._editor = editor
        self._own = ServersFile()
        self._watch = Watch()
        self._notices: list[str] = []

    def load(self) -> LoadedServers:
        """Read everything; what does not load becomes a notice. Blocks."""
        watch = Watch()
        self._notices = []
        found: dict[str, FoundServer] = {}
        editors = (FoundServer(server.name, "the editor", server) for server in self._editor)
        for one in (*self._list_own(), *editors, *self._list_project()):
            first = found.setdefault(one.name, one)
            if first is not one:
                self._notices.append(
                    f"MCP server {one.name!r} of {one.source} is left out: "
                    f"{first.source} has one of that name"
                )
        root = self._workspace.root
        files = (self._settings.config_folder / USER_FILE, *(root / name for name in PROJECT_FILES))
        watch.keep((*files, self._settings.trust_file))
        self._watch = watch
        notices = tuple(to_one_line(notice, 1000) for notice in self._notices)
        return LoadedServers(tuple(found.values()), notices)

    def have_changed(self) -> bool:
        """Whether a file may have changed since ``load``."""
        return self._watch.has_changed()

    def _list_own(self) -> Iterator[FoundServer]:
        file = self._settings.config_folder / USER_FILE
        try:
            text = read_user_file(file)
            self._own = ServersFile() if text is None else parse_servers(text, str(file))
            self._notices += self._own.warnings
        except ModeFileError as error:
            self._notices.append(f"{error}; its MCP servers stay as they were")
        for name, entry in self._own.servers.items():
            yield self._find(name, str(file), entry, "user")

    def _list_project(self) -> Iterator[FoundServer]:
        project = read_project_servers(self._workspace)
        self._notices += project.warnings
        root = self._workspace.root
        try:
            trusted = TrustFile(self._settings.trust_file).trusted_servers(root)
        except ConfigurationError as error:
            self._notices.append(str(error))
            trusted = {}
        waiting: list[str] = []
        for name, (file, entry) in project.entries.items():
            before = trusted.get(name)
            changes = before.find_changes(entry.as_written()) if before else ""
            if entry.disabled or (before and not changes):
                yield self._find(name, file, entry, "workspace", before)
                continue
            problem = f"changed since you trusted it: {changes}" if changes else "not trusted"
            waiting.append(f"{name!r} of {file} ({problem})")
            yield FoundServer(name, file, problem=problem)
        if waiting:
            more = f", and {len(waiting) - 10} more" if len(waiting) > 10 else ""
            self._notices.append(
                f"MCP servers of {root} that are not started: {', '.join(waiting[:10])}{more}; "
                f"look at them: make trust WORKSPACE={root}"
            )

    def _find(
        self,
        name: str,
        file: str,
        entry: ServerEntry,
        origin: Literal["user", "workspace"],
        trusted: TrustedServer | None = None,
    ) -> FoundServer:
        if entry.disabled:
            return FoundServer(name, file, problem="disabled")
        try:
            server = entry.resolve(name, origin, self._workspace.root, os.environ)
        except ValueError as error:
            self._notices.append(f"{file}: MCP server {name!r} is left out: {error}")
            return FoundServer(name, file, problem=str(error))
        pinned = trusted.tools if trusted else None
        return FoundServer(name, file, replace(server, pinned=pinned))
