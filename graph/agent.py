"""The wiring: nodes, edges, compile."""

import asyncio
from functools import cache
from threading import Lock
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from graph.act import act_node
from graph.channels import (
    Checked,
    CheckedInput,
    approvals_check,
    input_check,
    mode_check,
    phase_check,
)
from graph.harness import Harness
from graph.intake import intake_node
from graph.models import load_model
from graph.node import router
from graph.review import review_node
from graph.settings import Settings, load_settings
from graph.state import Input, State
from graph.switch import switch_node
from graph.think import mode_node
from modes.catalog import load_catalog
from tools.toolbox import build_toolbox
from tools.workspace import Workspace

Agent = CompiledStateGraph[State, None, Input, State]


def build_harness(settings: Settings) -> Harness:
    """Everything the nodes need. Reads files, so it blocks; raises ``UserError``."""
    catalog = load_catalog(settings.default_mode)
    toolbox = build_toolbox(Workspace(settings.workspace), catalog)
    return Harness(catalog, toolbox, load_model(settings.model), settings.approvals)


def build_agent(
    harness: Harness, checkpointer: BaseCheckpointSaver[Any] | None = None, max_steps: int = 500
) -> Agent:
    """Compile the graph of a harness."""
    route = router(harness)
    graph = StateGraph(State, input_schema=Input)
    graph.channels["mode"] = Checked(str, mode_check(harness.catalog), "mode")
    graph.channels["approvals"] = Checked(str, approvals_check, "approvals")
    graph.channels["phase"] = Checked(str, phase_check, "phase")
    modes = list(harness.catalog)

    graph.add_node("intake", intake_node(harness))
    for slug in modes:
        graph.add_node(slug, mode_node(harness, slug))
    graph.add_node("review", review_node(harness))
    # LangGraph would make a channel of every key of ActTask, which only a Send carries.
    graph.add_node(
        "act",
        act_node(harness),
        input_schema=State,
        destinations=("act", "switch_mode", *modes, END),
    )
    graph.add_node("switch_mode", switch_node(harness))

    graph.add_edge(START, "intake")
    graph.add_conditional_edges("intake", route, ["review", *modes, END])
    for slug in modes:
        graph.add_conditional_edges(slug, route, ["review", "act", END])
    graph.add_conditional_edges("review", route, ["act", "switch_mode", *modes])
    graph.add_conditional_edges("switch_mode", route, modes)

    compiled = graph.compile(checkpointer=checkpointer, name="agent")
    compiled.channels[START] = CheckedInput(Input, input_check(harness.catalog))
    return compiled.with_config(recursion_limit=max_steps)


_building = Lock()


@cache
def _built() -> Agent:
    settings = load_settings()
    return build_agent(build_harness(settings), max_steps=settings.max_steps)


def _agent() -> Agent:
    with _building:  # cache alone would let the first requests build one each
        return _built()


async def agent() -> Agent:
    """The graph ``agent`` of ``langgraph.json``, built at its first use.

    To a thread, because building reads files and the dev server forbids that in
    its event loop.
    """
    return await asyncio.to_thread(_agent)
