"""What is put aside when a sub-task begins."""

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Overwrite

from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.instructions import keep_first
from modeshift.graph.messages.normal_form import get_call_id
from modeshift.graph.models.usage import NO_FILL
from modeshift.graph.records.subtasks import Parent, Subtask
from modeshift.graph.records.switches import Switch
from modeshift.graph.routing import change_mode
from modeshift.graph.state import State, Update, get_depth
from modeshift.modes.chart import Configuration
from modeshift.modes.errors import NodeError


def begin_subtask(state: State, switch: Switch, before: Configuration) -> Update:
    """The update that puts a conversation aside, in ``before``, for its sub-task."""
    task = switch.get("task")
    if task is None:
        raise NodeError("begins a sub-task of a switch that is none")
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
    id, approvals = get_call_id(switch["call"]), switch["approvals"] or state["approvals"]
    return {
        **change_mode(state, before.mode, switch["mode_slug"], switch["reason"], "human"),
        "switch": None,
        "parents": [parent],
        "subtask": Subtask(
            id=id,
            mode=switch["mode_slug"],
            message=task["message"],
            depth=get_depth(state) + 1,
            approvals=approvals,
        ),
        "messages": Overwrite([HumanMessage(task["message"], id=f"{id} task")]),
        "instructions": Overwrite(keep_first(state.get("instructions", []))),
        "todos": task["todos"],
        "approvals": approvals,
        "remembered": [],
        "compact_from": 0,
        "usage": NO_FILL,
    }


def is_as_approved(deps: AgentDeps, state: State, switch: Switch) -> bool:
    """Whether the mode is as it was when a person approved it, and within the host's limit."""
    target = switch["mode_slug"]
    return (
        target in deps.catalog
        and deps.catalog[target].digest == switch["digest"]
        and deps.find_limit_problem(deps.limit_mode(state.get("limit")), target) is None
    )


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
