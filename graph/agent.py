"""The wiring: nodes, edges, compile."""

from functools import partial
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph

import modeshift
from modeshift.graph.act import act_node
from modeshift.graph.compaction.node import compact_node
from modeshift.graph.deps import AgentDeps
from modeshift.graph.entry.checks import build_input_check, build_update_check
from modeshift.graph.entry.compiled import Agent
from modeshift.graph.entry.live_deps import LiveDeps
from modeshift.graph.intake import intake_node
from modeshift.graph.messages.channels import CheckedInput, use_last
from modeshift.graph.review import review_node
from modeshift.graph.routing import build_router
from modeshift.graph.state import Input, State
from modeshift.graph.subtasks.end import end_subtask_node
from modeshift.graph.switch import switch_node
from modeshift.graph.think import mode_node
from tools import TOOLS

__all__ = ["Agent", "agent", "build_agent"]


def build_agent(
    deps: AgentDeps, checkpointer: BaseCheckpointSaver[Any] | None = None, max_steps: int = 500
) -> Agent:
    """Compile the graph around ``deps``."""
    route, live = build_router(deps), LiveDeps(deps)
    graph = StateGraph(State, input_schema=Input)
    use_last(graph.channels)
    modes = [deps.machine.mode_node(slug) for slug in deps.catalog]

    graph.add_node("intake", live.follow(intake_node))
    for slug in deps.catalog:
        graph.add_node(deps.machine.mode_node(slug), live.follow(partial(mode_node, slug=slug)))
    graph.add_node("review", live.follow(review_node))
    # LangGraph would make a channel of every key of ActTask, which only a Send carries.
    graph.add_node(
        "act",
        live.follow(act_node),
        input_schema=State,
        destinations=("act", "switch_mode", "end_subtask", "intake", *modes, END),
    )
    graph.add_node("switch_mode", live.follow(switch_node))
    graph.add_node("end_subtask", live.follow(end_subtask_node))
    graph.add_node("compact_history", live.follow(compact_node))

    graph.add_edge(START, "intake")
    # Every edge there can be. What a host writes between two steps, it writes as ``intake``.
    edges = {
        "intake": ["review", "act", "switch_mode", "end_subtask", "compact_history", *modes, END],
        "review": ["act", "switch_mode", *modes],
        "switch_mode": modes,
        "end_subtask": ["switch_mode", *modes, END],
        "compact_history": [*modes, END],
    }
    edges |= {mode: ["review", "act", "compact_history", "end_subtask", END] for mode in modes}
    for source, targets in edges.items():
        # To ``intake`` if the host has set something meanwhile.
        graph.add_conditional_edges(source, route, ["intake", *targets])

    compiled = graph.compile(checkpointer=checkpointer, name="agent")
    specs = deps.toolbox.specs
    compiled.channels[START] = CheckedInput(Input, build_input_check(deps.catalog, specs))
    agent = Agent.of(compiled, build_update_check(deps.catalog, specs), live)
    return agent.with_config(recursion_limit=max_steps)


agent = modeshift.serve(build_agent, root=Path(__file__).parent.parent, tools=TOOLS)
