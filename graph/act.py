"""``act``: runs one tool call, after asking for the verdict once more."""

from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Command

from graph.approvals.contents import digest_files, edited_files
from graph.approvals.identity import digest_call
from graph.approvals.judging import CallContext, Judged, judge
from graph.deps import AgentDeps
from graph.messages.repair import UNKNOWN, VOID, call_id, not_run
from graph.routing import Node, RoutingState, next_step
from graph.run_tool import run_tool, truncate
from graph.started_calls import StartedCall
from graph.state import ActTask, Approved, Planned
from modes.machine import Configuration, Event, Phase
from tools.calling import Calling


def act_node(deps: AgentDeps) -> Node:
    """One task per call. A failure is an answer to the model, never an end of the run."""

    async def act(task: ActTask, config: RunnableConfig, runtime: Runtime[None]) -> Command[Any]:
        if task["mode"] not in deps.catalog:
            # The files have changed under a run that was cut off: as if a turn began.
            return Command(goto="intake" if task["is_lead"] else ())
        planned = task["planned"]
        approved = planned["approved"]
        call = planned["call"]
        if planned["denied"] is not None:
            return _move_on(deps, task, {"messages": [not_run(call, truncate(planned["denied"]))]})
        if approved is not None:
            call = ToolCall(name=call["name"], args=approved["args"], id=call["id"])
        context = CallContext.of(deps, task)
        judged = await judge(deps, context, call)
        update: dict[str, Any] = {}
        is_same = approved is None or await _is_the_same(deps, context, judged, approved, config)
        message = _refusal(judged, approved) if is_same else not_run(call, VOID)
        if message is None:
            if judged.effect.changes_the_world and not _begins(deps, task, judged, config):
                message = not_run(call, UNKNOWN)
            else:
                allowed = _calling(deps, task["mode"], judged, runtime)
                held = await _held(deps, task, judged)
                message, update = await run_tool(judged, allowed, config)
                _tell_of_edit(message, approved)
                if judged.effect.changes_files and message.status == "success":
                    update["written"] = _with_written(task, judged)
                    task = await _renewed(deps, task, held)
        update["messages"] = [message]
        is_done = judged.effect.ends_turn and message.status == "success"
        if is_done:
            update["messages"].append(AIMessage(message.text))
        return _move_on(deps, task, update, is_done=is_done)

    return act


async def _is_the_same(
    deps: AgentDeps,
    context: CallContext,
    judged: Judged,
    approved: Approved,
    config: RunnableConfig,
) -> bool:
    """Whether it is what a person has approved, and the files are as they were then."""
    if approved["digest"] != digest_call(deps, context, judged, config):
        return False
    files = edited_files(judged)
    return not files or approved.get("content") == await digest_files(deps, files)


async def _held(deps: AgentDeps, task: ActTask, judged: Judged) -> list[str]:
    """The ids of approved calls to come that change the same files, which are as approved."""
    files = {*edited_files(judged)}
    held = []
    for planned in (one for batch in task["rest"] for one in batch):
        approved = planned["approved"]
        if (
            approved is not None
            and files & {*approved.get("files", [])}
            and approved.get("content") == await digest_files(deps, approved["files"])
        ):
            held.append(call_id(planned["call"]))
    return held


async def _renewed(deps: AgentDeps, task: ActTask, held: list[str]) -> ActTask:
    """What was approved of these files beside an edit is approved of them as it has left them."""

    async def renewed(planned: Planned) -> Planned:
        approved = planned["approved"]
        if approved is None or call_id(planned["call"]) not in held:
            return planned
        content = await digest_files(deps, approved["files"])
        return {**planned, "approved": {**approved, "content": content}}

    return {**task, "rest": [[await renewed(one) for one in batch] for batch in task["rest"]]}


def _move_on(
    deps: AgentDeps, task: ActTask, update: dict[str, Any], *, is_done: bool = False
) -> Command[Any]:
    """Move the machine and the plan on, once per batch.

    By a ``Command`` and not by an edge: behind parallel tasks LangGraph asks an
    edge once for each of them, and none of them sees its neighbours' answers.
    """
    if not task["is_lead"]:
        return Command(update=update)
    if task["rest"]:
        event = Event.ACT
    elif task["switch"]:
        event = Event.SWITCH
    else:
        event = Event.COMPLETE if is_done else Event.ACTED
    now = deps.machine.send(Configuration(task["mode"], Phase.ACTING), event)
    place = RoutingState(
        mode=now.mode,
        phase=now.phase.value,
        approvals=task["approvals"],
        remembered=task["remembered"],
        written=update.get("written", task["written"]),
        plan=task["rest"],
        switch=task["switch"],
    )
    update |= {"phase": place["phase"], "plan": place["plan"]}
    return Command(update=update, goto=next_step(deps, place))


def _with_written(task: ActTask, judged: Judged) -> list[str]:
    assert judged.tool is not None
    assert judged.args is not None
    paths = [judged.args[name] for name in judged.tool.spec.paths]
    return list(dict.fromkeys([*task["written"], *paths]))


def _refusal(judged: Judged, approved: Approved | None) -> ToolMessage | None:
    """The answer to a call that must not run, or None."""
    verdict = judged.verdict
    match verdict.kind:
        case "deny":
            return not_run(judged.call, truncate(verdict.refusal))
        case "ask" if approved is None:
            return not_run(judged.call, "Not run: nobody has approved this call.")
        case _:
            return None


def _begins(deps: AgentDeps, task: ActTask, judged: Judged, config: RunnableConfig) -> bool:
    """Whether the change has not been begun before."""
    planned = task["planned"]
    digest = digest_call(deps, CallContext.of(deps, task), judged, config)
    call = StartedCall(planned.get("message", ""), call_id(judged.call), digest)
    return deps.started_calls.begin(call, planned.get("process_id"))


def _calling(deps: AgentDeps, mode: str, judged: Judged, runtime: Runtime[None]) -> Calling:
    """What the tool may, and how it is heard while it runs: on the stream ``custom``."""

    def emit(text: str) -> None:
        runtime.stream_writer(
            {"type": "tool_output", "tool_call_id": judged.call["id"], "text": text}
        )

    only_looks = judged.verdict.only_looks
    edits_freely = deps.edit_restriction(mode) is None and not only_looks
    return Calling(edits_freely, only_looks, emit)


def _tell_of_edit(message: ToolMessage, approved: Approved | None) -> None:
    if approved is not None and approved["edited"]:
        message.content = (
            f"[The user changed the arguments to {approved['args']!r} before it ran; "
            f"do not repeat your own call.]\n{message.text}"
        )
