"""``list_tools``: what a server offers, for a person who decides whether to trust it."""

from pathlib import Path

from modes.errors import ToolFailedError
from tools.mcp.described import ToolDescription
from tools.mcp.server import Server
from tools.processes.sandboxes import Sandbox


async def list_tools(
    server: Server, workspace: Path, sandbox: Sandbox | None = None
) -> list[ToolDescription]:
    """Start the server as a mode would, list its tools, end it.

    Without ``sandbox`` it has all rights of the user. Raises ``ToolFailedError`` with a sentence
    for a person where it cannot be started or does not answer within ``server.timeout``.
    """
    where = f"in {workspace}{'' if sandbox is None else ', in the sandbox'}"
    raise ToolFailedError(f"MCP server {server.name!r} {where}: not supported yet")
