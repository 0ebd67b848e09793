"""What a node is, and how the machine's answer becomes the next step of the graph."""

from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.graph import END
from langgraph.types import Command, Send
from typing_extensions import TypedDict

from graph.deps import AgentDeps
from graph.state import ActTask, Planned, Remembered, State, Switch
from modes.machine import Configuration, Phase

Node = Callable[..., Awaitable[dict[str, Any] | Command[Any]]]
"""A coroutine function from the state (``act``: from an ``ActTask``) to an update of it."""


class RoutingState(TypedDict):
    """The part of the state that the edges read; without the history, which is long."""

    mode: str
    phase: str
    approvals: str
    remembered: list[Remembered]
    written: list[str]
    plan: list[list[Planned]]
    switch: Switch | None


def read_configuration(state: State | RoutingState) -> Configuration:
    """Where the thread is."""
    return Configuration(state["mode"], Phase(state["phase"]))


def build_router(deps: AgentDeps) -> Callable[[RoutingState], Awaitable[str | list[Send]]]:
    """The one edge behind every node: it asks the machine where to go."""

    # A coroutine function: LangGraph sends a plain one to a worker thread, at every step.
    async def route(place: RoutingState) -> str | list[Send]:
        return next_step(deps, place)

    return route


def next_step(deps: AgentDeps, place: RoutingState) -> str | list[Send]:
    """The node that comes next; for ``act`` a task for each call of the first batch."""
    node = deps.machine.node(read_configuration(place))
    if node != "act":
        return END if node is None else node
    batch, rest = place["plan"][0], place["plan"][1:]
    return [
        Send(
            "act",
            ActTask(
                planned=planned,
                mode=place["mode"],
                approvals=place["approvals"],
                remembered=place["remembered"],
                written=place["written"],
                is_lead=planned is batch[-1],
                rest=rest,
                switch=place["switch"],
            ),
        )
        for planned in batch
    ]
