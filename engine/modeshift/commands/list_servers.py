"""``list_servers``: the part of ``make modes`` about MCP servers and their tools."""

import asyncio
from collections.abc import Iterator, Sequence

from modeshift.graph.configuration.mcp_servers import FoundServer
from modeshift.graph.deps import AgentDeps
from modeshift.graph.entry.live_deps import with_known_tools
from modeshift.mcp.managed import ManagedServer, Offer, list_tools
from modeshift.modes.errors import ToolFailedError
from modeshift.modes.plain_text import to_one_line


def with_server_tools(deps: AgentDeps, *, start: bool) -> AgentDeps:
    """With the tools that a person has trusted; or, to ``start``, those that there are now."""
    if start:
        asyncio.run(_start_all(deps))
    else:
        for one in deps.servers:
            if one.server.pinned is not None:
                one.offer = Offer(tuple(one.server.pinned.values()))
    return with_known_tools(deps)


async def _start_all(deps: AgentDeps) -> None:
    async def list_one(managed: ManagedServer) -> None:
        toolbox = deps.toolbox
        try:
            found = await list_tools(managed.server, toolbox.workspace, toolbox.sandbox)
        except ToolFailedError as error:
            managed.offer = Offer(problem=to_one_line(str(error)))
        else:
            managed.offer = Offer(tuple(found))

    await asyncio.gather(*map(list_one, deps.servers))


def list_servers(found: Sequence[FoundServer], deps: AgentDeps) -> Iterator[str]:
    """Each server, and what is known of it."""
    known = {one.server.name: one.offer for one in deps.servers}
    width = max(len(one.name) for one in found)
    for one in found:
        offer = known.get(one.name)
        state = f"left out: {one.problem}"
        if one.server is not None:
            state = "its tools are known once it has started; START=1 starts it now"
        if offer is not None:
            pinned = one.server is not None and one.server.pinned is not None
            whose = "; those that you have trusted are below, mode by mode" if pinned else ""
            state = offer.problem or f"tools: {len(offer.tools)}{whose}"
        yield f"  {one.name:<{width}} {state}  ({one.source})"
        if one.server is not None and one.server.disabled_tools:
            names = to_one_line(", ".join(one.server.disabled_tools))
            yield f"    disabled: {names}"
