"""``read_servers``: which MCP servers there are, and which of them may be started.

The user's own ``mcp.json`` goes before the editor's servers, and these before the workspace's,
which are started only as a person has trusted them. Nothing here starts a server.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from modeshift.configuration.last_loaded import LastLoaded, read_user_file
from modeshift.configuration.settings import Settings
from modeshift.configuration.trust_file import TrustedServer, TrustFile
from modeshift.modes.errors import (
    ConfigurationError,
    InvalidCallError,
    ModeFileError,
    ToolFailedError,
    describe_misfit,
)
from modeshift.modes.plain_data import JsonObject, PlainData, parse_data
from modeshift.modes.plain_text import find_invisible, is_plain, to_one_line
from modeshift.tools.servers import DEFAULT_SECONDS, Server
from modeshift.tools.workspace.workspace import Workspace

MAX_SERVERS = 100
MAX_NAME = 100
MAX_WARNINGS = 20
MAX_SECONDS = 3600
_STDIO = "stdio"
_TRANSPORTS = {_STDIO: _STDIO, "http": "http", "streamablehttp": "http"}
"""Transports by the names that files have for them, without dashes and capitals."""
_DROPPED = {"alwaysAllow", "autoApprove"}
_REFERENCE = re.compile(r"\$\{([^}]*)\}?")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-(?P<default>.*))?", re.S)
_FOLDER = "workspaceFolder"
"""Roo's word for the workspace; every other name is one of the environment's variables."""
Text = Annotated[str, Field(min_length=1)]


class ServerEntry(PlainData):
    """A server as its file has it, with no variable resolved."""

    type: Literal["stdio", "http"]
    command: Text | None = None
    args: tuple[str, ...] = ()
    env: Mapping[Annotated[str, Field(pattern=r"^[^=]+$")], str] = {}
    cwd: Text | None = None
    url: Text | None = None
    headers: Mapping[Text, str] = {}
    network: bool = True
    """A field of ours: false keeps a process in the sandbox off the network."""
    writes: bool = False
    """A field of ours: true lets a process in the sandbox change the workspace."""
    disabled: bool = False
    disabled_tools: tuple[str, ...] = ()
    timeout: float = Field(DEFAULT_SECONDS, gt=0)

    @field_validator("timeout")
    @classmethod
    def _take_seconds(cls, value: float) -> float:
        # Kilo and Roo count in seconds, up to an hour; Claude Code in milliseconds.
        return value if value <= MAX_SECONDS else min(max(value / 1000, 1), MAX_SECONDS)

    @model_validator(mode="after")
    def _check_transport(self) -> Self:
        ways = (self.command is not None, self.url is not None)
        if ways != (self.type == _STDIO, self.type != _STDIO):
            raise ValueError("give a command, or a url (with type: http)")
        if hidden := find_invisible("\n".join(self.texts)):
            raise ValueError(f"has characters that are not shown: {hidden[0]!r}")
        return self

    @property
    def texts(self) -> list[str]:
        """All texts of the entry that may have a ``${VAR}``."""
        single = [text for text in (self.command, self.cwd, self.url) if text is not None]
        return [*single, *self.args, *self.env, *self.env.values(), *self.headers.values()]

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The names of the environment's variables whose values the server would get."""
        names = [
            variable[1]
            for text in self.texts
            for match in _REFERENCE.finditer(text)
            if (variable := _VARIABLE.fullmatch(match[1])) and variable[1] != _FOLDER
        ]
        return tuple(dict.fromkeys(names))

    def as_written(self) -> JsonObject:
        """The fields that differ from their defaults, as JSON: this is what a person trusts."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)

    def resolve(self, name: str, origin: Literal["user", "workspace"], workspace: Path) -> Server:
        """The server that can be started; raises ``ValueError`` with why it cannot."""

        def get(variable: str) -> str | None:
            return str(workspace) if variable == _FOLDER else os.environ.get(variable)

        def fill(text: str) -> str:
            return _REFERENCE.sub(lambda match: _look_up(match, get), text)

        url = None if self.url is None else fill(self.url)
        parts = None if url is None else urlsplit(url)
        if parts and not (parts.scheme in ("http", "https") and parts.hostname):
            raise ValueError("its url is no http:// or https:// address")
        return Server(
            name=name,
            origin=origin,
            command=None if self.command is None else fill(self.command),
            args=tuple(map(fill, self.args)),
            env={key: fill(value) for key, value in self.env.items()},
            cwd=None if self.cwd is None else str(workspace / fill(self.cwd)),
            url=url,
            headers={key: fill(value) for key, value in self.headers.items()},
            disabled_tools=self.disabled_tools,
            timeout=self.timeout,
            network=self.network,
            writes=self.writes,
        )


_KEYS = frozenset(map(to_camel, ServerEntry.model_fields))


def _look_up(match: re.Match[str], get: Callable[[str], str | None]) -> str:
    variable = _VARIABLE.fullmatch(match[1])
    if variable is None or not match[0].endswith("}") or "${" in (variable["default"] or ""):
        raise ValueError(f"{to_one_line(match[0], 100)!r} is no ${{VAR}}")
    default = variable["default"]
    value = get(variable[1])
    if value is None and default is None:
        raise ValueError(f"the variable {variable[1]} is not set")
    return value or default or ""


def parse_servers(text: str, name: str) -> tuple[dict[str, ServerEntry], list[str]]:
    """The servers under ``mcpServers`` by name, and what was dropped of them, in words.

    Raises ``ModeFileError`` where there is no such thing.
    """
    data = parse_data(text, name)
    entries = data.get("mcpServers") if isinstance(data, dict) else None
    if not isinstance(entries, dict):
        raise ModeFileError(f'{name}: is not {{"mcpServers": {{...}}}}')
    if len(entries) > MAX_SERVERS:
        raise ModeFileError(f"{name}: more than {MAX_SERVERS} servers")
    warnings = [f"{name}: unknown key {_show(key)}" for key in data if key != "mcpServers"]
    servers: dict[str, ServerEntry] = {}
    for key, value in entries.items():
        server = key.strip()
        try:
            if server in servers or not (server and is_plain(server) and len(server) <= MAX_NAME):
                raise ValueError("its name is not one line of printable characters, once")
            servers[server] = _parse_entry(value)
        except ValueError as error:
            why = str(error)
            if isinstance(error, ValidationError):
                why = to_one_line(describe_misfit(error))
            warnings.append(f"{name}: MCP server {_show(key)} is left out: {why}")
        else:
            warnings += [f"{name}: {warning}" for warning in _list_dropped(server, value)]
    if len(warnings) > MAX_WARNINGS:
        more = f"{name}: and {len(warnings) - MAX_WARNINGS} more of this kind"
        warnings = [*warnings[:MAX_WARNINGS], more]
    return servers, warnings


def _show(text: object) -> str:
    return f"'{to_one_line(str(text), MAX_NAME)}'"


def _parse_entry(value: object) -> ServerEntry:
    if not isinstance(value, dict):
        raise ValueError("is not a mapping of keys")
    known = {**value, "type": _find_transport(value)}
    return ServerEntry.model_validate(
        {key: value for key, value in known.items() if key in _KEYS and value is not None}
    )


def _find_transport(value: JsonObject) -> str:
    kind = value.get("type") or value.get("transport") or ("http" if value.get("url") else _STDIO)
    spelled = re.sub("[-_ ]", "", str(kind)).lower()
    if spelled == "sse":
        raise ValueError("the transport 'sse' is not supported; its successor is type: http")
    if spelled not in _TRANSPORTS:
        raise ValueError(f"type {_show(kind)} is neither stdio nor http")
    return _TRANSPORTS[spelled]


def _list_dropped(server: str, value: JsonObject) -> Iterator[str]:
    for key in value:
        if key in _DROPPED:
            yield (
                f"{key} of MCP server {_show(server)} is dropped: what runs unasked is yours to "
                f"say, in permissions.yaml, where its tools are called mcp__{server}__..."
            )
        elif key not in _KEYS and key != "transport":
            yield f"MCP server {_show(server)}: unknown key {_show(key)} is ignored"


USER_FILE = "mcp.json"
PROJECT_FILES = (".mcp.json", ".kilocode/mcp.json", ".roo/mcp.json")
"""Files of a workspace; the first one that names a server wins."""
MAX_FILE_BYTES = 1_000_000


@dataclass(frozen=True)
class FoundServer:
    """A server that a file or the editor names."""

    name: str
    source: str
    server: Server | None = None
    """The server that can be started, if one can."""
    problem: str = ""
    """Why it cannot be started."""


class ProjectServers(NamedTuple):
    """What a workspace's files say: each server with its file, and what was left out."""

    entries: Mapping[str, tuple[str, ServerEntry]]
    warnings: tuple[str, ...]


def read_project_servers(workspace: Workspace) -> ProjectServers:
    """Read the workspace's files; what does not load becomes a warning. Blocks."""
    entries: dict[str, tuple[str, ServerEntry]] = {}
    warnings: list[str] = []
    for file in PROJECT_FILES:
        if not os.path.lexists(workspace.root / file):
            continue
        try:
            servers, dropped = parse_servers(workspace.read(file, MAX_FILE_BYTES), file)
        except (ToolFailedError, InvalidCallError) as error:
            warnings.append(f"{file}: left out: {error}")
            continue
        except ModeFileError as error:
            warnings.append(f"{error}; the file is ignored")
            continue
        warnings += dropped
        for name, entry in servers.items():
            first, other = entries.setdefault(name, (file, entry))
            if other != entry:
                warnings.append(f"{file}: MCP server {name!r} is left out: {first} has another")
    return ProjectServers(entries, tuple(warnings))


def read_servers(
    last: LastLoaded, settings: Settings, workspace: Workspace, editor: Iterable[Server] = ()
) -> tuple[FoundServer, ...]:
    """All servers, by precedence; what does not load becomes a notice. Blocks.

    ``editor`` has the servers of the editor's session.
    """
    servers: dict[str, FoundServer] = {}
    editors = (FoundServer(server.name, "the editor", server) for server in editor)
    own = _list_own(last, settings, workspace)
    for server in (*own, *editors, *_list_project(last, settings, workspace)):
        first = servers.setdefault(server.name, server)
        if first is not server:
            last.notices.append(
                f"MCP server {server.name!r} of {server.source} is left out: "
                f"{first.source} has one of that name"
            )
    return tuple(servers.values())


def _list_own(last: LastLoaded, settings: Settings, workspace: Workspace) -> Iterator[FoundServer]:
    file = settings.config_folder / USER_FILE
    last.watch(file)

    def read() -> tuple[dict[str, ServerEntry], list[str]] | None:
        text = read_user_file(file)
        return None if text is None else parse_servers(text, str(file))

    if (own := last.load(str(file), read)) is not None:
        servers, dropped = own
        last.notices += dropped
        for name, entry in servers.items():
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
        last.notices.append(
            f"MCP servers of {root} that are not started: {', '.join(waiting)}; "
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
        server = entry.resolve(name, origin, workspace.root)
    except ValueError as error:
        last.notices.append(f"{file}: MCP server {name!r} is left out: {error}")
        return FoundServer(name, file, problem=str(error))
    return FoundServer(name, file, replace(server, pinned=trusted.tools if trusted else None))
