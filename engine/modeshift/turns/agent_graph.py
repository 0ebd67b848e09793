"""``AgentGraph``: a clone's nodes, wired as its chart says, each with a ``Step`` of its own."""

from collections.abc import Iterable
from functools import cache, partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from modeshift.messages.channels import use_last
from modeshift.modes.chart import EACH_MODE
from modeshift.modes.errors import ConfigurationError
from modeshift.observing import observe
from modeshift.threads.compiled import Agent, LiveDeps
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import StateValues
from modeshift.threads.routing import build_router
from modeshift.threads.state import State, build_input_type, list_own_keys
from modeshift.threads.stopping import stop
from modeshift.turns.start import find_start
from modeshift.turns.step import Node, Result, run_step


class AgentGraph:
    """The graph of a clone. Its edges are those of the chart: nothing else says what is next."""

    def __init__(self, deps: AgentDeps) -> None:
        self._deps = deps
        self._live = LiveDeps(deps)
        self._graph: StateGraph[State, None, State, State] = StateGraph(
            deps.state, input_schema=build_input_type(deps.state)
        )
        use_last(self._graph.channels)
        self._added = set[str]()
        self._slugs: dict[str, str] = {}
        """The mode of each node that is a mode's."""
        self._of_modes: dict[Node, Any] = {}
        """What LangGraph has made of a function: it looks at each for a tenth of a millisecond."""

    @property
    def modes(self) -> Iterable[str]:
        """The slugs of all modes."""
        return self._deps.catalog

    def add_node(self, name: str, node: Node) -> None:
        """Add the node that a phase of the chart names, or ``intake``."""
        self._add(name, name, node)

    def add_mode(self, slug: str, node: Node) -> None:
        """Add the node of a mode, which also gets the slug."""
        name = self._deps.machine.mode_node(slug)
        self._slugs[name] = slug
        self._add(EACH_MODE, name, node)
        self._of_modes.setdefault(node, self._graph.nodes[name].runnable)

    def _add(self, row: str, name: str, node: Node) -> None:
        live, slugs, first, servers = self._live, self._slugs, self._deps, self._deps.servers

        async def run(state: StateValues, config: RunnableConfig, runtime: Runtime[None]) -> Result:
            deps = await live.prepare(state) if servers else first
            info, metadata = runtime.execution_info, config["metadata"]
            thread = (info and info.thread_id) or ""
            name = metadata["langgraph_node"]
            run_id = str(metadata.get("run_id", ""))
            mode = [slugs[name]] if name in slugs else []
            with observe("step", node=name, thread=thread, run=run_id):
                async with stop.step():
                    start = await find_start(deps, name, state, thread, runtime.store)
                    return await run_step(start, node, config, runtime, *mode)

        targets = self._list_targets(row)
        # A partial: within a function LangGraph looks for a subgraph, which takes a millisecond.
        # ``act`` says where it goes itself. LangGraph would make a channel of every key of ActTask.
        more: dict[str, Any] = {"input_schema": State, "destinations": tuple(targets)}
        action = self._of_modes.get(node) if name in slugs else None
        self._graph.add_node(name, action or partial(run), **(more if name == "act" else {}))
        self._added.add(row)

    @cache  # noqa: B019  # of a graph that is dropped once it is compiled
    def _list_targets(self, row: str) -> list[str]:
        """Where the node of a row of the chart leads; to ``intake`` if the host sets something."""
        chart, modes = self._deps.chart, map(self._deps.machine.mode_node, self._deps.catalog)
        if row == "intake":
            phases = set(chart.nodes)
        else:
            sources = {phase for phase, node in chart.nodes.items() if node == row}
            phases = {target for (source, _), target in chart.targets.items() if source in sources}
        nodes = [chart.nodes[phase] for phase in chart.nodes if phase in phases]
        named = [node for node in nodes if node not in (None, EACH_MODE)]
        targets = [*(str(node) for node in named), *(modes if EACH_MODE in nodes else ())]
        ends = [END] if None in nodes else []
        return list(dict.fromkeys([*targets, *ends, "intake"]))

    def compile(
        self, checkpointer: BaseCheckpointSaver[str] | None = None, max_steps: int = 500
    ) -> Agent:
        """The agent. Raises ``ConfigurationError`` for a node that the chart or the graph lacks."""
        self._check_nodes()
        graph, route = self._graph, build_router(self._deps)
        graph.add_edge(START, "intake")
        first, *others = self._slugs
        for name in graph.nodes:
            if name not in ("act", *others):
                row = EACH_MODE if name == first else name
                graph.add_conditional_edges(name, route, self._list_targets(row))
        graph.branches.update(dict.fromkeys(others, graph.branches[first]))
        compiled = graph.compile(checkpointer=checkpointer, name="agent")
        agent = Agent(live=self._live, **vars(compiled))
        return agent.with_config(recursion_limit=max_steps)

    def _check_nodes(self) -> None:
        own = list_own_keys(self._deps.state)
        for spec in self._deps.toolbox.specs:
            if strange := {*spec.state} - own:
                told = f"the tool {spec.name} has the injected argument {min(strange)!r}"
                raise ConfigurationError(f"{told}, which is no key of State in graph/state.py")
        named = {"intake", *filter(None, self._deps.chart.nodes.values())}
        if missing := named - self._added:
            raise ConfigurationError(
                f"graph/agent.py adds no node {min(missing)!r}, which graph/chart.py names"
            )
        if unnamed := self._added - named:
            raise ConfigurationError(
                f"no phase of graph/chart.py has the node {min(unnamed)!r}, so it never runs"
            )
