"""``act``: judges one tool call again, just before running it, and runs it."""

from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Command

from modeshift.graph.approvals.contents import digest_contents, list_approved_files, renew_approvals
from modeshift.graph.approvals.judged import Judged
from modeshift.graph.approvals.judging import CallContext, judge
from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.normal_form import get_call_id
from modeshift.graph.messages.repair import CHANGED, UNKNOWN, VOID, build_not_run_result
from modeshift.graph.messages.untrusted import EDITED, truncate
from modeshift.graph.records.approvals import Planned
from modeshift.graph.routing import (
    Node,
    get_thread,
    next_step,
    read_host_changes,
    sets_only_approvals,
)
from modeshift.graph.run_tool import run_tool
from modeshift.graph.state import ActTask
from modeshift.modes.chart import Configuration, Event, Phase


def act_node(deps: AgentDeps) -> Node:
    """One task per call. A failure is an answer to the model, never an end of the run."""

    async def act(task: ActTask, config: RunnableConfig, runtime: Runtime[None]) -> Command[Any]:
        if ActTask.__required_keys__ - task.keys() or task["mode"] not in deps.catalog:
            # An interrupted run continues with other code or modes: start as for a new turn.
            return Command(goto="intake" if task["is_last"] else ())
        planned, approved = task["planned"], task["planned"]["approved"]
        call = planned["call"]
        if approved is not None:
            call = ToolCall(name=call["name"], args=approved["args"], id=call["id"])
        context = CallContext.of(deps, task)
        judged = await judge(deps, context, call)
        thread = get_thread(config)
        refusal = await _refuse(deps, planned, judged, thread)
        refusal = refusal or await _begin(deps, task, judged, thread)
        if refusal is not None:
            result = build_not_run_result(call, truncate(refusal))
            return await _move_on(deps, task, {"messages": [result]}, config)

        shared = list_approved_files(task["plan"]).intersection(judged.edited_paths)
        try:
            before = await digest_contents(deps, shared)
            message, update = await run_tool(deps, context, judged, config, runtime.stream_writer)
        finally:
            _end(deps, call, thread)
        if approved is not None and approved["edited"]:
            _mark_edited(message, approved["args"])
        update["messages"] = [message]
        if message.status != "success":
            return await _move_on(deps, task, update, config)
        if judged.edited_paths:
            written = [*task["written"], *judged.edited_paths]
            update["written"] = list(dict.fromkeys(written))
            after = await digest_contents(deps, shared)
            task = {**task, "plan": renew_approvals(task["plan"], before, after)}
        if judged.effect.ends_turn:
            update["messages"].append(AIMessage(message.text))
        return await _move_on(deps, task, update, config, is_done=judged.effect.ends_turn)

    return act


async def _refuse(deps: AgentDeps, planned: Planned, judged: Judged, thread: str) -> str | None:
    """Why the call must not run; None if it may."""
    approved, verdict = planned["approved"], judged.verdict
    if planned["denied"] is not None:
        return planned["denied"]
    # Before its approval: a call that was cut off may have changed what that was given for.
    may_matter = judged.tool is None or judged.effect.changes_the_world
    if may_matter and deps.started_calls.has_begun(thread, planned):
        return UNKNOWN
    if approved is not None:
        # It must be the call that a person approved, on files that are as they were then.
        is_same = approved["digest"] == judged.digest(thread, planned.get("message", ""))
        if not is_same or approved.get("contents") != await digest_contents(
            deps, judged.edited_paths
        ):
            return VOID
    if verdict.kind == "deny":
        return verdict.refusal
    if verdict.kind == "ask" and approved is None:
        return "Not run: nobody has approved this call."
    return None


async def _begin(deps: AgentDeps, task: ActTask, judged: Judged, thread: str) -> str | None:
    """Record the call as begun; why it must not, if it may have run or the host has changed."""
    calls = deps.started_calls
    if judged.effect.changes_the_world and not calls.begin(thread, task["planned"]):
        return UNKNOWN
    id, name, taken = get_call_id(judged.call), judged.call["name"], task.get("host_revision", 0)
    return None if await calls.mailbox.begin(thread, id, name, taken) else CHANGED


def _end(deps: AgentDeps, call: ToolCall, thread: str) -> None:
    deps.started_calls.mailbox.end(thread, get_call_id(call))


def _mark_edited(message: ToolMessage, args: dict[str, Any]) -> None:
    """Say in the result that a person has edited the call's arguments."""
    message.content = EDITED.format(args=args) + message.text
    if message.artifact is None or isinstance(message.artifact, dict):
        message.artifact = {**(message.artifact or {}), "changed_to": args}


async def _move_on(
    deps: AgentDeps,
    task: ActTask,
    update: dict[str, Any],
    config: RunnableConfig,
    *,
    is_done: bool = False,
) -> Command[Any]:
    """Advance the state machine and the plan, once per batch.

    With a ``Command`` instead of an edge: after parallel tasks LangGraph evaluates an
    edge once for each of them, and none of them sees the others' results.
    """
    if not task["is_last"]:
        return Command(update=update)
    host_changes = await read_host_changes(deps, task, config)
    if host_changes and not sets_only_approvals(host_changes):
        # What is left of the plan was judged before: ``intake`` answers it.
        return Command(update={**update, "plan": []}, goto="intake")
    if task["plan"]:
        event = Event.ACT
    elif task["switch"]:
        event = Event.SWITCH
    else:
        ends = Event.RETURN if task.get("subtask") else Event.COMPLETE
        event = ends if is_done else Event.ACTED
    now = deps.machine.send(Configuration(task["mode"], Phase.ACTING), event)
    update |= {"phase": now.phase.value, "plan": task["plan"]}
    after: ActTask = {
        **task,
        "phase": now.phase.value,
        "written": update.get("written", task["written"]),
    }
    return Command(update=update, goto="intake" if host_changes else next_step(deps, after))
