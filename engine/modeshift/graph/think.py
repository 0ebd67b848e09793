"""The mode nodes: one model call, in the mode's words and with its tools."""

import logging
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from modeshift.graph.approvals.contents import digest_contents
from modeshift.graph.approvals.judged import plan_batches
from modeshift.graph.approvals.judging import CallContext, digest_question, judge_all
from modeshift.graph.briefing.news import list_news
from modeshift.graph.compaction.due import is_due, may_compact
from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.instructions import keep_first, list_in_place
from modeshift.graph.messages.normal_form import normalize
from modeshift.graph.models.bound_model import call_model
from modeshift.graph.models.usage import count_answer
from modeshift.graph.records.approvals import Asked
from modeshift.graph.records.subtasks import Subtask
from modeshift.graph.routing import Node, get_thread, reconcile_mode
from modeshift.graph.state import State, get_depth
from modeshift.graph.subtasks.begin import list_other_calls
from modeshift.modes.chart import Event
from modeshift.modes.errors import ConfigurationError, ProviderError, TooLongError

log = logging.getLogger("modeshift")


def mode_node(deps: AgentDeps, slug: str) -> Node:
    """The node of the mode ``slug``; what fails in a sub-task ends that and not the run."""

    async def think(state: State, config: RunnableConfig) -> dict[str, Any]:
        update, message = await ask_model(deps, slug, state, config)
        return update if message is None else await judge_answer(deps, state, update, message)

    return think


async def ask_model(
    deps: AgentDeps, slug: str, state: State, config: RunnableConfig
) -> tuple[dict[str, Any], AIMessage | None]:
    """The update, and the answer, which is not in it yet; None if something else is due."""
    try:
        return await _ask_or_compact(deps, slug, state, config)
    except (ProviderError, ConfigurationError) as error:
        if (subtask := state.get("subtask")) is None:
            raise
        log.warning("a sub-task ends: %s", error)
        now, update = reconcile_mode(deps, state)
        failed: Subtask = {**subtask, "failure": str(error)}
        phase = deps.machine.send(now, Event.RETURN).phase.value
        return update | {"subtask": failed, "phase": phase}, None


async def _ask_or_compact(
    deps: AgentDeps, slug: str, state: State, config: RunnableConfig
) -> tuple[dict[str, Any], AIMessage | None]:
    limit = state.get("limit")
    # Commands that run in the background with the rights of another mode end here.
    here = deps.environment_digest(slug, limit)
    await deps.started_calls.background.end(get_thread(config), unless=here)
    bound = deps.bound_model(slug, limit, get_depth(state))
    now, update = reconcile_mode(deps, state)
    if is_due(deps, slug, state):
        return update | {"phase": deps.machine.send(now, Event.COMPACT).phase.value}, None
    told = list_in_place(state["messages"], state.get("instructions", []))
    news = await list_news(deps, slug, state, told)
    try:
        known = [*keep_first(state.get("instructions", [])), *told, *news]
        message = await call_model(bound, state["messages"], config, known)
    except TooLongError:
        # Once more if there was no summary: it is shortened without one then.
        if state.get("compact_from", 0) is not None and not may_compact(state):
            raise
        return update | {"phase": deps.machine.send(now, Event.COMPACT).phase.value}, None
    update["usage"] = count_answer(message, bound.name, bound.window)
    return {**update, "instructions": news} if news else update, message


async def judge_answer(
    deps: AgentDeps, state: State, update: dict[str, Any], message: AIMessage
) -> dict[str, Any]:
    """The update with the answer, and with what comes of its calls."""
    now, _ = reconcile_mode(deps, state)
    message = normalize(message, list_other_calls(state))
    update = {**update, "messages": [message]}
    if not message.tool_calls:
        event = Event.RETURN if get_depth(state) else Event.ANSWER
        return update | {"phase": deps.machine.send(now, event).phase.value}

    context = CallContext.of(deps, state, len(message.tool_calls) == 1, state["refused"])
    judged = await judge_all(deps, context, message.tool_calls)
    asking = [one for one in judged if one.verdict.kind == "ask"]
    if not asking:
        plan = plan_batches(deps.started_calls.process_id, str(message.id), judged, {})
        return update | {"phase": deps.machine.send(now, Event.ACT).phase.value, "plan": plan}
    edited = [path for one in asking for path in one.edited_paths]
    contents = await digest_contents(deps, edited)
    asked = Asked(
        digest=digest_question(judged), contents=contents, approvals=context.approvals.value
    )
    return update | {"phase": deps.machine.send(now, Event.REVIEW).phase.value, "asked": asked}
