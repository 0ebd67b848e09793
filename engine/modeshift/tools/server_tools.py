"""``bind_tools``: what MCP servers offer, as tools of ours; what they may not offer is left out.

What starts them is a part, found by an entry point: ``open_pool``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from langchain_core.tools import BaseTool
from typing_extensions import override

from modeshift.modes.effects import EFFECTS, ServerTool, ToolSpec
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import to_one_line
from modeshift.modes.rules.matching import name_server_tool
from modeshift.parts import SERVER_POOLS, load
from modeshift.tools.processes.sandboxes import Sandbox
from modeshift.tools.servers import Server, ToolDescription, mend_schema
from modeshift.tools.tool import Tool
from modeshift.tools.workspace.workspace import Workspace


@dataclass(frozen=True)
class Offer:
    """The tools of a server, or why it cannot be used."""

    tools: tuple[ToolDescription, ...] = ()
    problem: str = ""
    change: str = ""
    """Which tools differ from its first list, in words."""


class ManagedServer(Protocol):
    """A server that is started when it is needed."""

    @property
    def server(self) -> Server:
        """The server's configuration."""

    offer: Offer | None
    """None until it has been started once; any thread may read it."""

    async def call(self, tool: ToolDescription, args: JsonObject) -> list[JsonObject]:
        """Call a tool; in any event loop. Raises ``ToolFailedError``."""

    async def prepare(self) -> None:
        """Start it if it should run, and wait a bounded time until it can be used or has failed."""


class ServerPool(Protocol):
    """All MCP servers of a process; for any thread and event loop."""

    def assign(
        self, user: object, servers: Iterable[Server], workspace: Workspace, sandbox: Sandbox | None
    ) -> Sequence[ManagedServer]:
        """The servers as ``user`` has configured them now; starts nothing."""

    async def list_tools(
        self, server: Server, workspace: Workspace, sandbox: Sandbox | None = None
    ) -> list[ToolDescription]:
        """Start it, list its tools, end it. Raises ``ToolFailedError``."""

    async def end_all(self) -> None:
        """End all that have been started."""


@dataclass(frozen=True)
class NoPool:
    """Why no server can be started, and what the user can do about it."""

    problem: str


def open_pool() -> ServerPool | NoPool:
    """The pool of the part ``mcp``; nothing is started yet."""
    try:
        pool: ServerPool = load(SERVER_POOLS, "mcp")()
    except ConfigurationError as error:
        return NoPool(str(error))
    return pool


MAX_DESCRIPTION = 10_000
SHOWN = 200


class ServerToolRunnable(BaseTool):
    """Passes a call on to the server, whatever its arguments are called."""

    served_by: Any
    described: ToolDescription

    @override
    def _run(self, /, **args: object) -> object:
        raise NotImplementedError

    @override
    async def _arun(self, /, **args: object) -> object:
        return await self.served_by.call(self.described, args)


def bind_tools(servers: Iterable[ManagedServer]) -> tuple[list[Tool], list[str]]:
    """The tools that started servers offer, and notices of those that are missing."""
    by_name: dict[str, list[Tool]] = {}
    notices = list[str]()
    for server in servers:
        name = f"MCP server {server.server.name!r}"
        if server.offer is not None and server.offer.problem:
            notices.append(f"{name} cannot be used: {server.offer.problem}")
        if server.offer is not None and server.offer.change:
            change = to_one_line(server.offer.change, SHOWN)
            notices.append(f"{name} lists other tools than at its start: {change}")
        for described in server.offer.tools if server.offer is not None else ():
            if described.name in server.server.disabled_tools:
                continue
            if problem := next(_list_problems(server.server, described), None):
                shown = to_one_line(described.name, SHOWN)
                notices.append(f"{name}: its tool {shown!r} is left out: {problem}")
            else:
                tool = _make_tool(server, described)
                by_name.setdefault(tool.spec.name, []).append(tool)
    for name, same in by_name.items():
        if len(same) > 1:
            files = " and ".join(tool.file for tool in same)
            notices.append(f"{name} would be two tools, of {files}: both are left out")
    return [same[0] for same in by_name.values() if len(same) == 1], notices


def _list_problems(server: Server, tool: ToolDescription) -> Iterator[str]:
    """Why the server's tool is not bound; none if it is."""
    if tool.problem:
        yield tool.problem
    if server.pinned is not None:
        accepted = server.pinned.get(tool.name)
        if accepted is None:
            yield "it was not there when you trusted this workspace; look at it: make trust"
        elif changes := accepted.find_changes(tool):
            yield f"it has changed since you trusted this workspace ({changes}); look: make trust"
    if hidden := tool.find_hidden():
        yield f"it has invisible characters, here escaped: {to_one_line(hidden[0])}"
    if len(tool.description) > MAX_DESCRIPTION:
        yield f"its description has more than {MAX_DESCRIPTION} characters"
    try:
        mend_schema(tool.input_schema)
    except (ValueError, RecursionError) as error:
        yield to_one_line(str(error))


def _make_tool(server: ManagedServer, described: ToolDescription) -> Tool:
    name = name_server_tool(server.server.name, described.name)
    runnable = ServerToolRunnable(
        name=name,
        description=described.description or described.name,
        args_schema=mend_schema(described.input_schema),
        served_by=server,
        described=described,
    )
    host = urlsplit(server.server.url or "").netloc.rpartition("@")[2] or None
    served = ServerTool(
        server.server.name, described.name, described.is_read_only, host, described.digest()
    )
    spec = ToolSpec(name, EFFECTS["mcp"], "mcp", served=served)
    return Tool(spec, runnable, f"the MCP server {server.server.name!r}")
