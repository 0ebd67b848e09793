"""What is put aside when a sub-task begins."""

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Overwrite

from graph.deps import AgentDeps
from graph.messages.instructions import keep_first
from graph.messages.normal_form import get_call_id
from graph.models.usage import NO_FILL
from graph.records.subtasks import Parent, Subtask
from graph.records.switches import NewTask, Switch, list_switches
from graph.routing import change_mode
from graph.state import State, get_depth
from modes.chart import Configuration, Phase
from modes.mode import Mode
from modes.toolspec import ToolSpec


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
    conversation = read_conversation(state, switch, task)
    messages, instructions = conversation.pop("messages"), conversation.pop("instructions")
    id = get_call_id(switch["call"])
    return {
        **change_mode(state, before.mode, now.mode, switch["reason"], "human"),
        **conversation,
        "switch": None,
        "parents": [parent],
        "messages": Overwrite(messages),
        "instructions": Overwrite(instructions),
        "ahead": Overwrite([one for one in state.get("ahead", []) if one["id"] != id]),
    }


def read_conversation(state: State, switch: Switch, task: NewTask) -> dict[str, Any]:
    """The sub-task's conversation as it begins, or with what it has done ahead of its turn."""
    id, approvals = get_call_id(switch["call"]), switch["approvals"] or state["approvals"]
    found: dict[str, Any] = {
        "phase": Phase.THINKING.value,
        "subtask": Subtask(
            id=id,
            mode=switch["mode_slug"],
            message=task["message"],
            depth=get_depth(state) + 1,
            approvals=approvals,
        ),
        "messages": [HumanMessage(task["message"], id=f"{id} task")],
        "instructions": keep_first(state.get("instructions", [])),
        "todos": task["todos"],
        "approvals": approvals,
        "remembered": [],
        "compact_from": 0,
        "plan": [],
        "asked": None,
        "usage": NO_FILL,
    }
    for step in state.get("ahead", []):
        if step["id"] == id:
            new = {key: value for key, value in step["update"].items() if key in found}
            found |= new | {
                key: [*found[key], *new.get(key, [])] for key in ("messages", "instructions")
            }
    return found


def is_as_approved(deps: AgentDeps, state: State, switch: Switch) -> bool:
    """Whether the mode is as it was when a person approved it, and within the host's limit."""
    target = switch["mode_slug"]
    return (
        target in deps.catalog
        and deps.catalog[target].digest == switch["digest"]
        and deps.find_limit_problem(deps.limit_mode(state.get("limit")), target) is None
    )


def may_look_ahead(deps: AgentDeps, state: State, switch: Switch) -> bool:
    """Whether all sub-tasks of a message are in modes that can only look, and have not begun."""
    tasks = list_switches(switch)
    begun = {one["id"] for one in state.get("ahead", [])}
    return len(tasks) > 1 and all(
        is_as_approved(deps, state, one)
        and get_call_id(one["call"]) not in begun
        and not _changes_the_world(deps.catalog[one["mode_slug"]], deps.toolbox.specs)
        for one in tasks
    )


def _changes_the_world(mode: Mode, tools: Iterable[ToolSpec]) -> bool:
    return any(
        tool.effect.changes_the_world and (tool.group is None or mode.grant(tool.group) is not None)
        for tool in tools
    )


def list_other_calls(state: State) -> set[str]:
    """The ids of calls in the thread's other conversations: clients tell calls apart by them."""
    steps = [one["update"] for one in state.get("ahead", [])]
    others: list[Any] = [*state.get("parents", []), *state.get("subtasks", []), *steps]
    return {
        get_call_id(call)
        for one in others
        for message in one.get("messages", [])
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
