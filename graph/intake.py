"""``intake``: opens the turn."""

from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite

from graph.approvals.always_allow import forget
from graph.briefing.news import drop_stale_thinking
from graph.deps import AgentDeps
from graph.entry.checks import drop_invalid
from graph.messages.repair import CHANGED, NOT_RUN, find_open_calls, get_call_id, repair
from graph.models.usage import NEW_TURN, Usage
from graph.records.subtasks import Subtask
from graph.routing import Node, find_news, reconcile_mode, sets_only_approvals
from graph.state import State
from graph.subtasks.end import STOPPED
from modes.chart import Configuration, Event, Phase


def intake_node(deps: AgentDeps) -> Node:
    """Repairs the history, applies what the host set, and starts the turn if there is one."""

    async def intake(state: State, config: RunnableConfig) -> dict[str, Any]:
        news = await find_news(deps, state, config)
        usage = Usage() if news and state.get("phase", Phase.IDLE) != Phase.IDLE else NEW_TURN
        state = cast("State", {**state, **news})
        before = state.get("messages", [])
        state, dropped = drop_invalid(state)
        now, changed = reconcile_mode(deps, state)
        forgotten = _forget(deps, state)
        notices = forgotten["notices"]
        if not changed and not dropped and _stays_open(state, now.phase, news):
            # An approved switch may set approvals, too: what was set later counts.
            switch = state.get("switch")
            switch = switch and {**switch, "approvals": state["approvals"]}
            return {"phase": now.phase.value, "switch": switch, **news, **forgotten}

        plan = state.get("plan", []) if now.phase is Phase.ACTING else []
        running = [
            get_call_id(planned["call"])
            for planned in (plan[0] if plan else [])
            if deps.started_calls.may_have_begun(planned)
        ]
        messages = repair(state.get("messages", []), running, CHANGED if news else NOT_RUN)
        notices = [*_describe_lost(deps, state, now.mode, messages), *notices]
        messages, stale = drop_stale_thinking(deps, now.mode, state, messages)
        notices += stale
        now = deps.machine.send(now, Event.RESET)
        if messages and not isinstance(messages[-1], AIMessage):
            now = deps.machine.send(now, Event.START)
        now, subtask = _return_if_due(deps, state, now)
        if state.get("compact") and now.phase is not Phase.RETURNING:
            now = deps.machine.send(now, Event.COMPACT)
        notices += [
            f"{key!r} of this thread held invalid values; they are dropped" for key in dropped
        ]
        update: dict[str, Any] = {
            **{key: value for key, value in state.items() if key in dropped},
            **news,
            "mode": now.mode,
            "limit": state.get("limit"),
            "phase": now.phase.value,
            "first_mode": state.get("first_mode", deps.catalog.default),
            "approvals": state.get("approvals", deps.approvals.value),
            "plan": [],
            "switch": None,
            "refused": [],
            "subtask": subtask,
            "end_subtask": False,
            "compact": now.phase is Phase.RETURNING and bool(state.get("compact")),
            "compact_from": 0,
            "written": state.get("written", []),
            **forgotten,
            "notices": [*deps.notices, *notices],
            "usage": Overwrite(Usage()) if "usage" in dropped else usage,
            **changed,
        }
        if state.get("ahead") and not state.get("parents"):
            update["ahead"] = Overwrite([])
        growing = {"mode_changes", "instructions", "parents", "subtasks", "ahead"}
        for key in growing.intersection(dropped):
            kept: Any = state.get(key, [])
            update[key] = Overwrite([*kept, *changed.get(key, [])])
        return update | _write_messages(before, messages)

    return intake


def _stays_open(state: State, phase: Phase, news: dict[str, Any]) -> bool:
    """Whether what waits still waits, or goes on: nothing was said, and the mode is the same."""
    if state.get("end_subtask") or not find_open_calls(state.get("messages", [])):
        return False
    if phase in (Phase.ACTING, Phase.SWITCHING):
        return sets_only_approvals(news)
    return phase is Phase.REVIEWING


def _write_messages(before: list[AnyMessage], after: list[AnyMessage]) -> dict[str, Any]:
    """The update; where the middle of the history has changed, all of it is written anew."""
    if after[: len(before)] != before:
        return {"messages": Overwrite(after)}
    return {"messages": after[len(before) :]} if len(after) > len(before) else {}


def _forget(deps: AgentDeps, state: State) -> dict[str, Any]:
    """The update without what is revoked, in the conversations that wait for a sub-task, too."""
    ids = state.get("forget") or []
    remembered, notices = forget(deps, state.get("remembered", []), ids)
    update: dict[str, Any] = {"remembered": remembered, "forget": [], "notices": notices}
    if ids and (parents := state.get("parents")):
        update["parents"] = Overwrite(
            [{**one, "remembered": forget(deps, one["remembered"], ids)[0]} for one in parents]
        )
    return update


def _return_if_due(
    deps: AgentDeps, state: State, now: Configuration
) -> tuple[Configuration, Subtask | None]:
    """Where the turn begins: at a sub-task's end if it is done, or the host stops it."""
    subtask = state.get("subtask") if state.get("parents") else None
    if subtask is None or not (state.get("end_subtask") or now.phase is Phase.IDLE):
        return now, subtask
    if state.get("end_subtask"):
        subtask = {**subtask, "failure": STOPPED}
    return deps.machine.send(now, Event.RETURN), subtask


def _describe_lost(
    deps: AgentDeps, state: State, slug: str, messages: list[AnyMessage]
) -> list[str]:
    """What a person should know of modes that there are no more; ``messages`` may get it, too."""
    notices = []
    if (mode := state.get("mode", slug)) not in deps.catalog:
        name = deps.catalog[slug].name
        notices.append(f"Mode {mode!r} no longer exists; this thread continues in {name} mode.")
        _insert_before_question(messages, notices[0])
    limit = state.get("limit")
    if limit is not None and limit not in deps.catalog:
        notices.append(
            f"the mode of this thread's limit, {limit!r}, no longer exists: until the host sets "
            "another limit, no tool of a group runs"
        )
    return notices


def _insert_before_question(messages: list[AnyMessage], text: str) -> None:
    """As a message, so that every client shows it; no history begins or ends with one of ours."""
    index = len(messages)
    while index > 0 and isinstance(messages[index - 1], HumanMessage):
        index -= 1
    if 0 < index < len(messages):
        messages.insert(index, AIMessage(text))
