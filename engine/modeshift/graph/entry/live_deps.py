"""``LiveDeps``: what the nodes share, with the tools of MCP servers as these come up.

A server is started when a mode first needs it, and only then is it known which tools it has. Each
node begins with what is known by then.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from modeshift.graph.deps import AgentDeps
from modeshift.graph.records.switches import list_switches
from modeshift.mcp.binding import bind_tools
from modeshift.mcp.managed import Offer
from modeshift.modes.machine import MAX_SERVER_TOOLS


def with_known_tools(deps: AgentDeps) -> AgentDeps:
    """With the tools that its servers are known to offer, and notices of those left out."""
    bound = bind_tools(deps.servers)
    deps = replace(deps, toolbox=deps.toolbox.with_tools(bound.tools))
    notices = [*deps.notices, *bound.notices]
    if left_out := deps.machine.left_out:
        modes = (f"{len(names)} in {slug!r}, from {names[0]}" for slug, names in left_out.items())
        notices.append(
            f"a mode has {MAX_SERVER_TOOLS} tools of MCP servers at most; left out are "
            f"{'; '.join(modes)} on. Give its group mcp the options servers or tools"
        )
    return replace(deps, notices=tuple(notices))


class LiveDeps:
    """Holds ``AgentDeps``, which are made anew when other tools are known; for any thread."""

    def __init__(self, deps: AgentDeps) -> None:
        self._first = deps
        self._known: tuple[tuple[Offer | None, ...], AgentDeps] = (
            (None,) * len(deps.servers),
            deps,
        )

    @property
    def deps(self) -> AgentDeps:
        """With the tools that are known now."""
        offers = tuple(server.offer for server in self._first.servers)
        known, deps = self._known
        if known != offers:
            deps = with_known_tools(self._first)
            self._known = offers, deps
        return deps

    async def prepare(self, state: Mapping[str, Any]) -> AgentDeps:
        """Have the servers started whose tools the thread's mode may have; what is known then."""
        if not self._first.servers:
            return self._first
        targets = [one["mode_slug"] for one in list_switches(state.get("switch"))]
        await self._prepare({state.get("mode"), *targets})
        return self.deps

    async def _prepare(self, slugs: Collection[str | None]) -> None:
        """Have the servers started whose tools these modes may have."""
        catalog = self._first.catalog
        modes = [catalog[slug if slug in catalog else catalog.default] for slug in slugs]
        grants = [grant for mode in modes if (grant := mode.grant("mcp")) is not None]
        needed = [
            server.prepare()
            for server in self._first.servers
            if any(grant.has_server(server.server.name) for grant in grants)
        ]
        if needed:
            await asyncio.gather(*needed)
