"""The wiring: nodes, edges, compile."""

import asyncio
import logging
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
from graph.node import router
from graph.review import review_node
from graph.settings import Settings, load_settings
from graph.state import Input, State
from graph.switch import switch_node
from graph.think import mode_node
from graph.workshop import Workshop
from modes.errors import UserError

Agent = CompiledStateGraph[State, None, Input, State]
log = logging.getLogger("modeshift")


def build_harness(settings: Settings) -> Harness:
    """Everything the nodes need. Reads files, so it blocks; raises ``UserError``."""
    return Workshop(settings).harness()


def build_agent(
    harness: Harness, checkpointer: BaseCheckpointSaver[Any] | None = None, max_steps: int = 500
) -> Agent:
    """Compile the graph of a harness."""
    route = router(harness)
    graph = StateGraph(State, input_schema=Input)
    graph.channels["mode"] = Checked(str, mode_check(harness.catalog), "mode")
    graph.channels["approvals"] = Checked(str, approvals_check, "approvals")
    graph.channels["phase"] = Checked(str, phase_check, "phase")
    modes = [harness.machine.mode_node(slug) for slug in harness.catalog]

    graph.add_node("intake", intake_node(harness))
    for slug in harness.catalog:
        graph.add_node(harness.machine.mode_node(slug), mode_node(harness, slug))
    graph.add_node("review", review_node(harness))
    # LangGraph would make a channel of every key of ActTask, which only a Send carries.
    graph.add_node(
        "act",
        act_node(harness),
        input_schema=State,
        destinations=("act", "switch_mode", "intake", *modes, END),
    )
    graph.add_node("switch_mode", switch_node(harness))

    graph.add_edge(START, "intake")
    graph.add_conditional_edges("intake", route, ["review", *modes, END])
    for mode in modes:
        graph.add_conditional_edges(mode, route, ["review", "act", END])
    graph.add_conditional_edges("review", route, ["act", "switch_mode", *modes])
    graph.add_conditional_edges("switch_mode", route, modes)

    compiled = graph.compile(checkpointer=checkpointer, name="agent")
    compiled.channels[START] = CheckedInput(Input, input_check(harness.catalog))
    return compiled.with_config(recursion_limit=max_steps)


class _Served:
    """The agent that the server serves: made at its first use, and anew when its files change."""

    def __init__(self) -> None:
        self._lock = Lock()  # or the first requests would make one each
        self._workshop: Workshop | None = None
        self._agent: Agent | None = None

    def agent(self) -> Agent:
        with self._lock:
            if self._agent is None or self._workshop is None:
                self._settings = load_settings()
                self._workshop = Workshop(self._settings)
                self._agent = self._build(self._workshop)
            elif self._workshop.is_outdated():
                try:
                    self._agent = self._build(self._workshop)
                except UserError as error:
                    log.warning("the modes from before hold: %s", error)
            return self._agent

    def _build(self, workshop: Workshop) -> Agent:
        harness = workshop.harness()
        for notice in harness.notices:
            log.warning(notice)
        return build_agent(harness, max_steps=self._settings.max_steps)


_served = _Served()


async def agent() -> Agent:
    """The graph ``agent`` of ``langgraph.json``, as the modes' files are now.

    The server asks for it at every run. To a thread, because reading files is
    forbidden in its event loop.
    """
    return await asyncio.to_thread(_served.agent)
