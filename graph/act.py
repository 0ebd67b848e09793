"""``act``: runs one tool call, after asking for the verdict once more."""

from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Command

from graph.fingerprint import call_digest
from graph.harness import Harness
from graph.history import UNKNOWN, VOID, not_run
from graph.judge import Judged, Moment, judge
from graph.node import Node, Place, next_step
from graph.state import ActTask, Approved
from modes.errors import told
from modes.machine import Configuration, Event, Phase
from modes.toolspec import Effect

MAX_RESULT_CHARACTERS = 100_000


def act_node(harness: Harness) -> Node:
    """One task per call. A failure is an answer to the model, never an end of the run."""

    async def act(task: ActTask, config: RunnableConfig, runtime: Runtime[None]) -> Command[Any]:
        if task["mode"] not in harness.catalog:
            # The files have changed under a run that was cut off: as if a turn began.
            return Command(goto="intake" if task["is_lead"] else ())
        planned = task["planned"]
        approved = planned["approved"]
        call = planned["call"]
        if planned["denied"] is not None:
            return _move_on(
                harness, task, {"messages": [not_run(call, _bounded(planned["denied"]))]}
            )
        if approved is not None:
            call = ToolCall(name=call["name"], args=approved["args"], id=call["id"])
        moment = Moment.of(harness, task)
        judged = await judge(harness, moment, call)
        update: dict[str, Any] = {}
        is_same = approved is None or approved["digest"] == call_digest(harness, moment, judged)
        message = _refusal(judged, approved) if is_same else not_run(call, VOID)
        if message is None:
            assert runtime.execution_info is not None
            task_id = runtime.execution_info.task_id
            if judged.changes_the_world and not harness.once.begin(task_id, task["life"]):
                message = not_run(call, UNKNOWN)
            else:
                message = await _run(judged, config, update)
                _tell_of_edit(message, approved)
                if judged.effect is Effect.EDIT and message.status == "success":
                    update["written"] = _with_written(task, judged)
        update["messages"] = [message]
        is_done = judged.effect is Effect.COMPLETE and message.status == "success"
        if is_done:
            update["messages"].append(AIMessage(message.text))
        return _move_on(harness, task, update, is_done=is_done)

    return act


def _move_on(
    harness: Harness, task: ActTask, update: dict[str, Any], *, is_done: bool = False
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
    now = harness.machine.send(Configuration(task["mode"], Phase.ACTING), event)
    place = Place(
        mode=now.mode,
        phase=now.phase.value,
        approvals=task["approvals"],
        remembered=task["remembered"],
        written=update.get("written", task["written"]),
        plan=task["rest"],
        switch=task["switch"],
    )
    update |= {"phase": place["phase"], "plan": place["plan"]}
    return Command(update=update, goto=next_step(harness, place))


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
            return not_run(judged.call, _bounded(verdict.refusal))
        case "ask" if approved is None:
            return not_run(judged.call, "Not run: nobody has approved this call.")
        case _:
            return None


async def _run(judged: Judged, config: RunnableConfig, update: dict[str, Any]) -> ToolMessage:
    """Run the tool; a tool that keeps notes adds them to ``update``."""
    assert judged.tool is not None
    try:
        # With its paths as they were resolved and judged, not as they may resolve by now.
        args = {**judged.call["args"], **judged.real_paths}
        call = ToolCall(name=judged.call["name"], args=args, id=judged.call["id"], type="tool_call")
        message = await judged.tool.runnable.ainvoke(call, config)
    except Exception as error:  # noqa: BLE001  # whatever a tool of the user's raises
        return not_run(judged.call, _bounded(told(error)))
    assert isinstance(message, ToolMessage)
    message.content = _bounded(message.text)
    if judged.effect is Effect.NOTE:
        update.update(message.artifact)
        message.artifact = None
    return message


def _bounded(text: str) -> str:
    """A result that a provider takes: a file's name may hold any byte, a file any length."""
    text = text.encode("utf-8", "backslashreplace").decode()
    left_out = len(text) - MAX_RESULT_CHARACTERS
    if left_out <= 0:
        return text
    return f"{text[:MAX_RESULT_CHARACTERS]}\n[{left_out} more characters left out]"


def _tell_of_edit(message: ToolMessage, approved: Approved | None) -> None:
    if approved is not None and approved["edited"]:
        message.content = (
            f"[The user changed the arguments to {approved['args']!r} before it ran; "
            f"do not repeat your own call.]\n{message.text}"
        )
