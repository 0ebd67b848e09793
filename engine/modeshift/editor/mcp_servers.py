"""``take_servers``: the MCP servers that an editor sends with a session."""

from collections.abc import Sequence
from typing import NamedTuple

from acp import schema

from modeshift.mcp.server import Server
from modeshift.modes.plain_text import is_plain, to_one_line

McpServer = schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio


class EditorServers(NamedTuple):
    """Those that can be started, and the others by name, with why."""

    servers: tuple[Server, ...] = ()
    refused: tuple[str, ...] = ()


def take_servers(given: Sequence[McpServer]) -> EditorServers:
    """Take what the editor's user has configured: trusted, and kept nowhere."""
    servers: dict[str, Server] = {}
    refused: list[str] = []
    for one in given:
        name = one.name.strip()
        if not name or not is_plain(name) or name in servers:
            refused.append(f"{_show(one)} (its name is not one line of its own)")
        elif isinstance(one, schema.McpServerStdio):
            env = {variable.name: variable.value for variable in one.env}
            servers[name] = Server(
                name=name,
                origin="editor",
                command=one.command,
                args=tuple(one.args),
                env=env,
                network=True,
            )
        elif isinstance(one, schema.HttpMcpServer):
            headers = {header.name: header.value for header in one.headers}
            servers[name] = Server(name=name, origin="editor", url=one.url, headers=headers)
        else:
            refused.append(f"{_show(one)} (the transport {one.type!r} is not supported)")
    return EditorServers(tuple(servers.values()), tuple(refused))


def _show(server: McpServer) -> str:
    return f"'{to_one_line(server.name, 100)}'"
