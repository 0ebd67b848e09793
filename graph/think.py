"""The mode nodes: one model call, in the mode's words and with its tools."""

import logging
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from graph.approvals.batches import plan_batches
from graph.approvals.contents import digest_contents
from graph.approvals.judging import CallContext, judge_all
from graph.approvals.question import digest_question
from graph.briefing.news import find_news
from graph.compaction.due import is_due, may_compact
from graph.deps import AgentDeps
from graph.messages.instructions import list_in_place
from graph.messages.normal_form import normalize
from graph.models.bound_model import call_model
from graph.models.usage import count_answer
from graph.routing import Node, reconcile_mode
from graph.state import Asked, State, Subtask, get_depth
from graph.subtasks.begin import list_other_calls
from modes.errors import ConfigurationError, ProviderError, TooLongError
from modes.machine import Event

log = logging.getLogger("modeshift")


def mode_node(deps: AgentDeps, slug: str) -> Node:
    """The node of the mode ``slug``; what fails in a sub-task ends that and not the run."""
    ask = _ask_node(deps, slug)

    async def think(state: State, config: RunnableConfig) -> dict[str, Any] | Command[Any]:
        try:
            return await ask(state, config)
        except (ProviderError, ConfigurationError) as error:
            if (subtask := state.get("subtask")) is None:
                raise
            log.warning("a sub-task ends: %s", error)
            now, update = reconcile_mode(deps, state)
            failed: Subtask = {**subtask, "failure": str(error)}
            phase = deps.machine.send(now, Event.RETURN).phase.value
            return update | {"subtask": failed, "phase": phase}

    return think


def _ask_node(deps: AgentDeps, slug: str) -> Node:
    async def ask(state: State, config: RunnableConfig) -> dict[str, Any]:
        depth = get_depth(state)
        thread = str(config["configurable"].get("thread_id", ""))
        limit = state.get("limit")
        # What was started under the rights of another mode.
        here = deps.environment_digest(slug, limit)
        await deps.started_calls.background.end(thread, unless=here)
        bound = deps.bound_model(slug, limit, depth)
        now, update = reconcile_mode(deps, state)
        if is_due(deps, slug, state):
            return update | {"phase": deps.machine.send(now, Event.COMPACT).phase.value}
        told = list_in_place(state["messages"], state.get("instructions", []))
        news = await find_news(deps, slug, state, told)
        try:
            message = await call_model(bound, state["messages"], config, [*told, *news])
        except TooLongError:
            if not may_compact(state):
                raise
            return update | {"phase": deps.machine.send(now, Event.COMPACT).phase.value}
        message = normalize(message, list_other_calls(state))
        update |= {
            "messages": [message],
            "usage": count_answer(message, bound.name, bound.window),
            **({"instructions": news} if news else {}),
        }
        if not message.tool_calls:
            event = Event.RETURN if depth else Event.ANSWER
            return update | {"phase": deps.machine.send(now, event).phase.value}

        context = CallContext.of(deps, state, len(message.tool_calls) == 1, state["refused"])
        judged = await judge_all(deps, context, message.tool_calls)
        asking = [one for one in judged if one.verdict.kind == "ask"]
        if not asking:
            plan = plan_batches(deps, str(message.id), judged, {})
            return update | {"phase": deps.machine.send(now, Event.ACT).phase.value, "plan": plan}
        edited = [path for one in asking for path in one.edited_paths]
        asked = Asked(digest=digest_question(judged), contents=await digest_contents(deps, edited))
        return update | {"phase": deps.machine.send(now, Event.REVIEW).phase.value, "asked": asked}

    return ask
