"""What a node is, and how the machine's answer becomes the next step of the graph."""

from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.graph import END
from langgraph.types import Send

from graph.harness import Harness
from graph.history import call_id, is_alone, open_calls
from graph.state import ActTask, State
from modes.machine import Configuration, Phase

Node = Callable[..., Awaitable[dict[str, Any]]]
"""A coroutine function from the state (``act``: from an ``ActTask``) to an update of it."""


def configuration(state: State) -> Configuration:
    """Where the thread is."""
    return Configuration(state["mode"], Phase(state["phase"]))


def router(harness: Harness) -> Callable[[State], str | list[Send]]:
    """The one edge behind every node: it asks the machine where to go."""

    def route(state: State) -> str | list[Send]:
        node = harness.machine.node(configuration(state))
        if node is None:
            return END
        return _tasks(state) if node == "act" else node

    return route


def _tasks(state: State) -> list[Send]:
    """One task for each call of the batch under way.

    None in the eyes of a task of that very batch: it sees its own answer, but the
    lead alone has moved the plan on.
    """
    unanswered = {call_id(call): call for call in open_calls(state["messages"])}
    batch, rest = state["plan"][0], state["plan"][1:]
    if not unanswered.keys() >= set(batch):
        return []
    return [
        Send(
            "act",
            ActTask(
                call=unanswered[id],
                mode=state["mode"],
                approvals=state["approvals"],
                approved=state["approved"].get(id),
                alone=is_alone(state["messages"]),
                rest=rest,
                switching=state["switch"] is not None,
                is_lead=id == batch[-1],
            ),
        )
        for id in batch
    ]
