"""``list_tools``: what a server offers, for a person who decides whether to trust it."""

from pathlib import Path

from tools.mcp.described import ToolDescription
from tools.mcp.server import Server
from tools.processes.sandboxes import Sandbox
from tools.workspace.workspace import Workspace


async def list_tools(
    server: Server, workspace: Path, sandbox: Sandbox | None = None
) -> list[ToolDescription]:
    """Start the server as a mode would, list its tools, end it.

    Without ``sandbox`` it has all rights of the user. Raises ``ToolFailedError`` with a sentence
    for a person where it cannot be started or does not answer within ``server.timeout``.
    """
    from tools.mcp.session import open_session  # noqa: PLC0415  # it imports the SDK

    async with open_session(server, Workspace(workspace), sandbox) as session:
        return list(session.tools)
