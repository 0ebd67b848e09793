"""``Machine``: at every step, which node runs next and which tools are bound."""

from collections.abc import Collection, Iterable

from modeshift.modes.catalog import Catalog
from modeshift.modes.chart import Configuration, build_chart
from modeshift.modes.limit import is_offered
from modeshift.modes.phases import EACH_MODE, ChartData, Phase
from modeshift.modes.rights import list_free_commands
from modeshift.modes.rules.server_tools import is_server_tool
from modeshift.modes.toolspec import ToolSpec

MAX_SERVER_TOOLS = 100
"""Of all MCP servers together, in a mode: several providers take 128 tools in all."""


class Machine:
    """The chart of one catalog with one set of tools, and what follows from where it is."""

    def __init__(
        self,
        catalog: Catalog,
        tools: Iterable[ToolSpec],
        data: ChartData,
        taken: Collection[str] = (),
    ) -> None:
        """``taken`` are names that the graph uses for something other than a mode's node."""
        self._catalog = catalog
        # No slug has an underscore, so a name with one is free.
        self._nodes = data.nodes
        self._edges = data.targets
        taken = {*taken, *filter(None, data.nodes.values())}
        self._mode_nodes = {slug: f"mode_{slug}" if slug in taken else slug for slug in catalog}
        names = tuple((slug, catalog[slug].name) for slug in catalog)
        self.chart = build_chart(names, catalog.default, data)
        self.send = self.chart.send
        specs = tuple(tools)
        self._bound: dict[str, tuple[str, ...]] = {}
        self.left_out: dict[str, list[str]] = {}
        """The tools of MCP servers that are too many for a mode, if any are."""
        for slug in catalog:
            offered = [tool.name for tool in specs if is_offered(catalog[slug], tool)]
            if left_out := list(filter(is_server_tool, offered))[MAX_SERVER_TOOLS:]:
                self.left_out[slug] = left_out
            self._bound[slug] = tuple(name for name in offered if name not in left_out)
        self._to_look = {
            slug: {tool.name for tool in specs if list_free_commands(catalog[slug], tool)}
            for slug in catalog
        }

    def allows(self, now: Configuration, event: str) -> bool:
        """Whether the chart has an edge for the event."""
        return (now.phase, event) in self._edges

    def node(self, now: Configuration) -> str | None:
        """The node that runs next; None when the turn is over."""
        node = self._nodes[now.phase]
        return self.mode_node(now.mode) if node == EACH_MODE else node

    def mode_node(self, slug: str) -> str:
        """The name of a mode's node: its slug, unless that name is taken."""
        return self._mode_nodes[slug]

    def bound_tools(self, now: Configuration) -> tuple[str, ...]:
        """The names of the tools that the model has now; it has none unless it is thinking."""
        return self._bound[now.mode] if now.phase == Phase.THINKING else ()

    def compare_tools(self, source: str, target: str) -> tuple[list[str], list[str]]:
        """The names of the tools gained, and of those lost, by a change of mode.

        A tool of which a mode may only run a few commands does not count.
        """
        before, after = (
            [name for name in self._bound[slug] if name not in self._to_look[slug]]
            for slug in (self._catalog[source].slug, self._catalog[target].slug)
        )
        gained = [name for name in after if name not in before]
        return gained, [name for name in before if name not in after]
