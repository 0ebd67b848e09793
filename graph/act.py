"""``act``: runs one tool call, after asking for the verdict once more."""

from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from graph.harness import Harness
from graph.history import call_id
from graph.judge import Judged, Moment, judge
from graph.node import Node
from graph.state import ActTask, Approved
from modes.errors import ModelError
from modes.machine import Configuration, Event, Phase
from modes.toolspec import Effect
from modes.verdict import Approvals


def act_node(harness: Harness) -> Node:
    """One task per call. A failure is an answer to the model, never an end of the run."""

    async def act(task: ActTask, config: RunnableConfig) -> dict[str, Any]:
        moment = Moment(harness.catalog[task["mode"]], Approvals(task["approvals"]), task["alone"])
        approved = task["approved"]
        call = ToolCall(**{**task["call"], "args": approved["args"]}) if approved else task["call"]
        judged = await judge(harness, moment, call)
        update: dict[str, Any] = {}
        message = _refusal(judged, approved) or await _run(judged, config, update)
        if approved and approved["edited"]:
            message.content = (
                f"[The user changed the arguments to {approved['args']!r} before it ran; "
                f"do not repeat your own call.]\n{message.text}"
            )
        messages: list[AIMessage | ToolMessage] = [message]
        is_done = judged.effect is Effect.COMPLETE and message.status == "success"
        if is_done:
            messages.append(AIMessage(message.text))
        return {**update, "messages": messages, **_next(harness, task, is_done)}

    return act


def _refusal(judged: Judged, approved: Approved | None) -> ToolMessage | None:
    """The answer to a call that must not run, or None."""
    verdict = judged.verdict
    if approved is not None and approved["name"] != judged.call["name"]:
        return _error(judged.call, f"Not run: what was approved is {approved['name']}.")
    match verdict.kind:
        case "deny":
            return _error(judged.call, verdict.reason)
        case "ask" if approved is None:
            return _error(judged.call, "Not run: nobody has approved this call.")
        case _:
            return None


async def _run(judged: Judged, config: RunnableConfig, update: dict[str, Any]) -> ToolMessage:
    """Run the tool; a tool that keeps notes adds them to ``update``."""
    assert judged.tool is not None
    try:
        message = await judged.tool.runnable.ainvoke({**judged.call, "type": "tool_call"}, config)
    except GraphBubbleUp:
        raise
    except ModelError as error:
        return _error(judged.call, str(error))
    except Exception as error:  # noqa: BLE001  # whatever a tool of the user's raises
        return _error(judged.call, f"{type(error).__name__}: {error}")
    assert isinstance(message, ToolMessage)
    if isinstance(message.artifact, dict):
        update.update(message.artifact)
        message.artifact = None
    return message


def _error(call: ToolCall, text: str) -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id(call), name=call["name"], status="error")


def _next(harness: Harness, task: ActTask, is_done: bool) -> dict[str, Any]:
    """Move the machine and the plan on, once per batch."""
    if not task["is_lead"]:
        return {}
    if task["rest"]:
        event = Event.ACT
    elif task["switching"]:
        event = Event.SWITCH
    else:
        event = Event.COMPLETE if is_done else Event.ACTED
    now = harness.machine.send(Configuration(task["mode"], Phase.ACTING), event)
    return {"phase": now.phase.value, "plan": task["rest"]}
