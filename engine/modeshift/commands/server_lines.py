"""``with_server_tools`` and ``list_servers``: the MCP servers in the report of ``make modes``."""

import asyncio
from collections.abc import Iterator, Sequence

from modeshift.configuration.mcp_file import FoundServer
from modeshift.modes.errors import ToolFailedError
from modeshift.modes.plain_text import to_one_line
from modeshift.threads.compiled import with_known_tools
from modeshift.threads.deps import AgentDeps
from modeshift.tools.server_tools import ManagedServer, NoPool, Offer, ServerPool, open_pool


def with_server_tools(deps: AgentDeps, *, start: bool) -> AgentDeps:
    """Add the trusted tools of MCP servers; with ``start``, those that the servers list now."""
    if start:
        pool = open_pool()
        if not isinstance(pool, NoPool):
            asyncio.run(_start_all(deps, pool))
    else:
        for server in deps.servers:
            if server.server.pinned is not None:
                server.offer = Offer(tuple(server.server.pinned.values()))
    return with_known_tools(deps)


async def _start_all(deps: AgentDeps, pool: ServerPool) -> None:
    async def list_one(managed: ManagedServer) -> None:
        toolbox = deps.toolbox
        try:
            offer = await pool.list_tools(managed.server, toolbox.workspace, toolbox.sandbox)
        except ToolFailedError as error:
            managed.offer = Offer(problem=to_one_line(str(error)))
        else:
            managed.offer = Offer(tuple(offer))

    await asyncio.gather(*map(list_one, deps.servers))


def list_servers(servers: Sequence[FoundServer], deps: AgentDeps) -> Iterator[str]:
    """A line about each MCP server."""
    known = {server.server.name: server.offer for server in deps.servers}
    width = max(len(server.name) for server in servers)
    for server in servers:
        offer = known.get(server.name)
        state = f"left out: {server.problem}"
        if server.server is not None and server.name not in known:
            state = "left out: no MCP server is started, as a notice says"
        elif server.server is not None:
            state = "its tools are known once it has started; START=1 starts it now"
        if offer is not None:
            pinned = server.server is not None and server.server.pinned is not None
            whose = "; those that you have trusted are below, mode by mode" if pinned else ""
            state = offer.problem or f"tools: {len(offer.tools)}{whose}"
        yield f"  {server.name:<{width}} {state}  ({server.source})"
        if server.server is not None and server.server.disabled_tools:
            names = to_one_line(", ".join(server.server.disabled_tools))
            yield f"    disabled: {names}"
