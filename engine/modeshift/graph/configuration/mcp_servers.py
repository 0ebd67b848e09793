"""``read_servers``: which MCP servers there are, and which of them may be started.

The user's own ``mcp.json`` goes before the editor's servers, and these before the workspace's,
which are started only as a person has trusted them. Nothing here starts a server.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from modeshift.graph.configuration.mcp_file import ServerEntry, ServersFile, parse_servers
from modeshift.graph.configuration.trust import TrustedServer, TrustFile
from modeshift.graph.configuration.user_files import LastLoaded, read_user_file
from modeshift.graph.settings import Settings
from modeshift.mcp.server import Server
from modeshift.modes.errors import (
    ConfigurationError,
    InvalidCallError,
    ModeFileError,
    ToolFailedError,
)
from modeshift.tools.workspace.workspace import Workspace

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


def read_servers(
    last: LastLoaded, settings: Settings, workspace: Workspace, editor: Iterable[Server] = ()
) -> tuple[FoundServer, ...]:
    """All that there are, by precedence; what does not load becomes a notice. Blocks.

    ``editor`` are those of the editor's session.
    """
    found: dict[str, FoundServer] = {}
    editors = (FoundServer(server.name, "the editor", server) for server in editor)
    own = _list_own(last, settings, workspace)
    for one in (*own, *editors, *_list_project(last, settings, workspace)):
        first = found.setdefault(one.name, one)
        if first is not one:
            last.notices.append(
                f"MCP server {one.name!r} of {one.source} is left out: "
                f"{first.source} has one of that name"
            )
    return tuple(found.values())


def _list_own(last: LastLoaded, settings: Settings, workspace: Workspace) -> Iterator[FoundServer]:
    file = settings.config_folder / USER_FILE
    last.watch(file)

    def read() -> ServersFile | None:
        text = read_user_file(file)
        return None if text is None else parse_servers(text, str(file))

    if (own := last.load(str(file), read)) is not None:
        last.notices += own.warnings
        for name, entry in own.servers.items():
            yield _find(last, name, str(file), entry, workspace)


def _list_project(
    last: LastLoaded, settings: Settings, workspace: Workspace
) -> Iterator[FoundServer]:
    project, root = read_project_servers(workspace), workspace.root
    last.watch(*(root / name for name in PROJECT_FILES))
    trusted: Mapping[str, TrustedServer] = {}
    try:
        trusted = TrustFile(settings.trust_file).trusted_servers(root)
    except ConfigurationError as error:
        last.notices.append(str(error))
    waiting: list[str] = []
    for name, (file, entry) in project.entries.items():
        before = trusted.get(name)
        changes = before.find_changes(entry.as_written()) if before else ""
        if entry.disabled or (before and not changes):
            yield _find(last, name, file, entry, workspace, before)
            continue
        problem = f"changed since you trusted it: {changes}" if changes else "not trusted"
        waiting.append(f"{name!r} of {file} ({problem})")
        yield FoundServer(name, file, problem=problem)
    if waiting:
        more = f", and {len(waiting) - 10} more" if len(waiting) > 10 else ""
        last.notices.append(
            f"MCP servers of {root} that are not started: {', '.join(waiting[:10])}{more}; "
            f"look at them: make trust WORKSPACE={root}"
        )
    last.notices += project.warnings


def _find(
    last: LastLoaded,
    name: str,
    file: str,
    entry: ServerEntry,
    workspace: Workspace,
    trusted: TrustedServer | None = None,
) -> FoundServer:
    """The server of an entry: the user's own, or one of the workspace's as it was ``trusted``."""
    if entry.disabled:
        return FoundServer(name, file, problem="disabled")
    origin: Literal["user", "workspace"] = "workspace" if trusted else "user"
    try:
        server = entry.resolve(name, origin, workspace.root, os.environ)
    except ValueError as error:
        last.notices.append(f"{file}: MCP server {name!r} is left out: {error}")
        return FoundServer(name, file, problem=str(error))
    pinned = trusted.tools if trusted else None
    return FoundServer(name, file, replace(server, pinned=pinned))
