"""``run_tool``: runs the tool of a judged call and makes its result a message."""

from typing import Any

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import StreamWriter

from modeshift.graph.approvals.judged import Judged
from modeshift.graph.approvals.judging import CallContext
from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.normal_form import get_call_id
from modeshift.graph.messages.repair import build_not_run_result
from modeshift.graph.messages.untrusted import MAX_RESULT_CHARACTERS, mark_as_data, truncate
from modeshift.graph.routing import get_thread
from modeshift.modes.errors import ModelError, ToolFailedError, describe_error
from modeshift.tools.processes.calling import Calling, calling


async def run_tool(
    deps: AgentDeps,
    context: CallContext,
    judged: Judged,
    config: RunnableConfig,
    write: StreamWriter,
) -> tuple[ToolMessage, dict[str, Any]]:
    """The tool's message, and its state updates if its effect has ``updates_state``.

    A failure is a message too, with ``status="error"``. What the tool prints while it runs is on
    the stream ``custom``.
    """
    assert judged.tool is not None
    mode, host_limit = context.mode, context.limit_slug
    id = get_call_id(judged.call)
    # As many characters as the window has tokens: a quarter of it, at four letters to a token.
    window = deps.bound_model(mode.slug).window or MAX_RESULT_CHARACTERS
    max_characters = min(MAX_RESULT_CHARACTERS, window)

    def emit(text: str) -> None:
        write({"type": "tool_output", "tool_call_id": id, "text": text})

    is_read_only = judged.verdict.is_read_only
    edits_freely = deps.edit_restriction(mode.slug, host_limit) is None and not is_read_only
    # With paths and URL as they were resolved and judged, not as they may resolve by now.
    args = {**judged.call["args"], **judged.resolved}
    call = ToolCall(name=judged.call["name"], args=args, id=id, type="tool_call")
    thread = get_thread(config)
    here = deps.environment_digest(mode.slug, host_limit)
    commands = deps.started_calls.background.of(thread, here)
    before = calling.set(Calling(edits_freely, is_read_only, emit, id, commands))
    try:
        message = await judged.tool.runnable.ainvoke(call, config)
    except Exception as error:  # noqa: BLE001  # whatever a tool of the user's raises
        return build_not_run_result(
            judged.call, _describe_failure(error, judged, max_characters)
        ), {}
    finally:
        calling.reset(before)
    assert isinstance(message, ToolMessage)
    given = message.content if isinstance(message.content, list) else []
    images = [one for one in given if isinstance(one, dict) and one.get("type") == "image"]
    message.content = truncate(message.text, max_characters)
    updates: dict[str, Any] = {}
    if judged.effect.updates_state:
        updates, message.artifact = message.artifact, None
    elif judged.effect.result_is_data:
        text = mark_as_data(message.content, _name_source(judged), id)
        message.content = [{"type": "text", "text": text}, *images] if images else text
    return message, updates


def _describe_failure(error: Exception, judged: Judged, max_characters: int) -> str:
    """What the model is told; the text of an exception that is not ours is data."""
    text = truncate(describe_error(error), max_characters)
    source, id = _name_source(judged), get_call_id(judged.call)
    if isinstance(error, ToolFailedError) and error.data:
        return f"{text}\n{mark_as_data(truncate(error.data), source, id)}"
    if isinstance(error, ModelError):
        return text
    return mark_as_data(text, f"error of {source}", id)


def _name_source(judged: Judged) -> str:
    """The tool with its file, command or address."""
    assert judged.tool is not None
    spec = judged.tool.spec
    names = (spec.command, spec.url, *spec.paths)
    given = [judged.call["args"].get(name) for name in names if name is not None]
    return " ".join([spec.name, *(str(value) for value in given if value is not None)])
