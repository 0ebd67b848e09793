"""What is put aside when a sub-task begins."""

from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Overwrite

from graph.messages.repair import get_call_id
from graph.models.usage import NO_FILL
from graph.routing import change_mode
from graph.state import NewTask, Parent, State, Subtask, Switch, get_depth
from modes.machine import Configuration


def begin_subtask(
    state: State, switch: Switch, task: NewTask, before: Configuration, now: Configuration
) -> dict[str, Any]:
    """The update that puts a conversation aside, in ``before``, for its sub-task, in ``now``."""
    parent = Parent(
        call=switch["call"],
        then=switch.get("then", []),
        subtask=state.get("subtask"),
        mode=before.mode,
        approvals=state["approvals"],
        messages=state["messages"],
        instructions=state.get("instructions", []),
        todos=state.get("todos", []),
        remembered=state.get("remembered", []),
        written=state.get("written", []),
        last=state.get("usage", {}).get("last"),
        changes=len(state.get("mode_changes", [])) + 1,
        host_revision=state.get("host_revision", 0),
    )
    approvals = switch["approvals"] or state["approvals"]
    subtask = Subtask(
        id=get_call_id(switch["call"]),
        mode=now.mode,
        message=task["message"],
        depth=get_depth(state) + 1,
        approvals=approvals,
    )
    return {
        **change_mode(state, before.mode, now.mode, switch["reason"], "human"),
        "phase": now.phase.value,
        "switch": None,
        "parents": [parent],
        "subtask": subtask,
        "messages": Overwrite([HumanMessage(task["message"], id=str(uuid4()))]),
        "instructions": Overwrite([]),
        "todos": task["todos"],
        "approvals": approvals,
        "remembered": [],
        "compact_from": 0,
        "usage": NO_FILL,
    }


def list_other_calls(state: State) -> set[str]:
    """The ids of calls in the thread's other conversations: clients tell calls apart by them."""
    others = [*state.get("parents", []), *state.get("subtasks", [])]
    return {
        get_call_id(call)
        for one in others
        for message in one["messages"]
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
