"""``end_subtask``: brings back the conversation that began the sub-task, with its result."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Literal, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.store.base import BaseStore
from langgraph.types import Overwrite

from modeshift.messages.instructions import keep_first
from modeshift.messages.normal_form import get_call_id
from modeshift.messages.repair import (
    REJECTED,
    build_not_run_result,
    find_last_answer,
    mark_as_data,
    repair,
    truncate,
)
from modeshift.models.usage import NO_FILL, Usage
from modeshift.modes.errors import InvalidInputError, NodeError
from modeshift.modes.machine import Configuration
from modeshift.modes.phases import Phase, Seen, choose
from modeshift.modes.plain_text import to_one_line
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import end_conversation
from modeshift.threads.mailbox import read_host_changes
from modeshift.threads.routing import change_mode
from modeshift.threads.state import (
    EndedSubtask,
    ModeChange,
    Parent,
    State,
    Subtask,
    Switch,
    Update,
    get_depth,
    put_aside,
    take_back,
)


def begin_subtask(state: State, switch: Switch, before: Configuration) -> Update:
    """The update that puts a conversation aside, in ``before``, for its sub-task."""
    task = switch.get("task")
    if task is None:
        raise NodeError("begins a sub-task of a switch that is none")
    parent = put_aside(
        state,
        mode=before.mode,
        call=switch["call"],
        then=switch.get("then", []),
        last=state.get("usage", {}).get("last"),
        changes=len(state.get("mode_changes", [])) + 1,
    )
    id, approvals = get_call_id(switch["call"]), switch["approvals"] or state["approvals"]
    return {
        **change_mode(
            state, before.mode, switch["mode_slug"], switch["reason"], "human", switch.get("how")
        ),
        "facts": {**state.get("facts", {}), "mode": [], "conversation": []},
        "approved_plan": state.get("approved_plan"),
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
        and deps.find_limit_problem(deps.seat(target, state.get("limit")).limit, target) is None
    )


def list_other_calls(state: State) -> set[str]:
    """The ids of calls in the thread's other conversations: clients tell calls apart by them."""
    own = [state] if state.get("fresh_from") else []
    others = [*own, *state.get("parents", []), *state.get("subtasks", [])]
    return {
        get_call_id(call)
        for each in others
        for message in each["messages"]
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }


STOPPED = "the user stopped it"
MAX_REASON = 200
MAX_SHOWN = 300


async def end_subtask(
    deps: AgentDeps, state: State, thread: str, changed: Update, store: BaseStore | None
) -> tuple[str, str, Update]:
    """The event, the mode that the conversation goes on in which began it, and the update.

    ``changed`` is a change of mode by the host that is not recorded yet.
    """
    await deps.started_calls.background.end(thread)
    subtask, parents = state.get("subtask"), state.get("parents")
    if subtask is None or not parents:
        raise InvalidInputError("phase 'returning' without a sub-task in the state")
    parent, mode = parents[-1], changed.get("mode", state["mode"])
    # What the host has set since the sub-task began stays.
    since: State = {**state, "host_revision": parent.get("host_revision", {})}
    host_changes = await read_host_changes(store, thread, since)
    changes = list(cast("list[ModeChange]", changed.get("mode_changes", [])))
    files = _list_files(state, parent)
    target = parent["mode"] if parent["mode"] in deps.catalog else deps.catalog.default
    is_moved = bool(changed) or mode != subtask["mode"] or "mode" in host_changes
    # A mode that is gone is left by nobody's choice, and the limit of a plan stays.
    moves = [*state.get("mode_changes", [])[parent["changes"] :], *changes]
    is_lifted = "mode" in host_changes or any(each["decided_by"] != "nobody" for each in moves)
    if is_moved:
        target = mode
    elif target != mode:
        left = change_mode(state, mode, target, "the sub-task has ended", "nobody")
        changes += cast("list[ModeChange]", left["mode_changes"])
    kept = state["approvals"] != subtask["approvals"] or "approvals" in host_changes
    ended = _describe(state, subtask, files)
    name = deps.catalog[subtask["mode"]].name if subtask["mode"] in deps.catalog else "another"
    unanswered = _list_unanswered(state)
    messages = [*parent["messages"], _build_result(parent, ended, name), *unanswered]
    # What a person approved does not begin any more once they or the host want something else.
    is_cut_short = is_moved or kept or unanswered or subtask.get("failure") == STOPPED
    following = [] if is_cut_short else parent.get("then", [])
    (event,) = choose(Phase.RETURNING, Seen(has_switch=bool(following)))
    return (
        event,
        target,
        {
            **take_back(parent),
            "mode": target,
            "switch": {**following[0], "then": following[1:]} if following else None,
            "mode_changes": changes,
            "parents": Overwrite(parents[:-1]),
            "subtasks": [ended],
            "messages": Overwrite(messages if following else repair(messages)),
            "approvals": state["approvals"] if kept else parent["approvals"],
            "written": list(dict.fromkeys([*parent["written"], *files])),
            "facts": end_conversation(deps, parent, state.get("facts", {}), target, files),
            "approved_plan": (
                None if is_lifted and target != parent["mode"] else parent.get("approved_plan")
            ),
            "due_calls": [],
            "asked": None,
            "compact_from": 0,
            "usage": Usage(last=parent["last"]),
        },
    )


def _list_files(state: State, parent: Parent) -> list[str]:
    """The files that the sub-task wrote, in whatever modes it was."""
    records = state.get("mode_changes", [])[parent["changes"] :]
    names = [name for record in records for name in record.get("written", [])]
    return list(dict.fromkeys([*names, *state.get("written", [])]))


def _describe(state: State, subtask: Subtask, files: list[str]) -> EndedSubtask:
    unanswered = len(_list_unanswered(state))
    messages = repair(state["messages"][: len(state["messages"]) - unanswered])
    failure, answer = subtask.get("failure"), find_last_answer(messages)
    status: Literal["completed", "failed"] = "completed" if failure is None else "failed"
    text = answer.text if answer is not None and failure is None else ""
    return EndedSubtask(
        id=subtask["id"],
        mode=subtask["mode"],
        message=subtask["message"],
        status=status,
        result=failure or text or "It said nothing.",
        files=files,
        rejected=list(_list_rejected(messages)),
        messages=messages,
    )


def _list_rejected(messages: list[AnyMessage]) -> Iterator[str]:
    args = dict[str, object]()
    for message in messages:
        if isinstance(message, AIMessage):
            args |= {get_call_id(call): call["args"] for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.text.startswith(REJECTED):
            title = to_one_line(str(args.get(message.tool_call_id)), MAX_SHOWN)
            yield f"{message.name} {title}: {message.text.removeprefix(REJECTED).strip(';, ')}"


def _build_result(parent: Parent, ended: EndedSubtask, name: str) -> ToolMessage:
    """What the conversation is told, which is another model's words for the most part."""
    call, is_done = parent["call"], ended["status"] == "completed"
    lines = [ended["result"]] if is_done else []
    if ended["files"]:
        lines.append(f"Files written: {', '.join(ended['files'])}.")
    if ended["rejected"]:
        lines += ["Rejected by the user:", *(f"- {line}" for line in ended["rejected"])]
    data = truncate("\n".join(lines))
    marked = [mark_as_data(data, f"sub-task in {name} mode", get_call_id(call))] if data else []
    if is_done:
        text = "\n".join([f"The sub-task in {name} mode has ended. Its report:", *marked])
        return ToolMessage(text, tool_call_id=get_call_id(call), name=call["name"])
    head = f"The sub-task in {name} mode was not finished: {ended['result']}"
    return build_not_run_result(call, "\n".join([head, *marked]))


def _list_unanswered(state: State) -> list[AnyMessage]:
    """The messages of a person at the end, which the sub-task has not answered."""
    new = takewhile(lambda entry: isinstance(entry, HumanMessage), reversed(state["messages"][1:]))
    return [*new][::-1]
