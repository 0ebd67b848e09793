"""``intake``: opens the turn."""

from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite

from modeshift.graph.approvals.always_allow import forget
from modeshift.graph.briefing.news import drop_stale_thinking
from modeshift.graph.deps import AgentDeps
from modeshift.graph.entry.checks import drop_invalid, overwrite_dropped
from modeshift.graph.messages.normal_form import get_call_id
from modeshift.graph.messages.repair import CHANGED, NOT_RUN, find_open_calls, repair
from modeshift.graph.models.usage import NEW_TURN, Usage
from modeshift.graph.records.subtasks import Subtask
from modeshift.graph.routing import Node, read_host_changes, reconcile_mode, sets_only_approvals
from modeshift.graph.state import State
from modeshift.graph.subtasks.end import STOPPED
from modeshift.modes.chart import Configuration, Event, Phase


def intake_node(deps: AgentDeps) -> Node:
    """Repairs the history, applies what the host set, and starts the turn if there is one."""

    async def intake(state: State, config: RunnableConfig) -> dict[str, Any]:
        host_changes = await read_host_changes(deps, state, config)
        before = state.get("messages", [])
        # A message may come with rights, which are in the mailbox, too.
        is_said = bool(before) and isinstance(before[-1], HumanMessage)
        goes_on = host_changes and not is_said and state.get("phase", Phase.IDLE) != Phase.IDLE
        state = cast("State", {**state, **host_changes})
        state, dropped = drop_invalid(state)
        now, changed = reconcile_mode(deps, state)
        forgotten, notices = _forget(deps, state)
        if not changed and not dropped and _stays_open(state, now.phase, host_changes):
            # An approved switch may set approvals, too: what was set later counts.
            switch = state.get("switch")
            switch = switch and {**switch, "approvals": state["approvals"]}
            kept = {"phase": now.phase.value, "switch": switch, "notices": notices}
            return kept | host_changes | forgotten

        plan = state.get("plan", []) if now.phase is Phase.ACTING else []
        running = [
            get_call_id(planned["call"])
            for planned in (plan[0] if plan else [])
            if deps.started_calls.may_have_begun(planned)
        ]
        messages = repair(state.get("messages", []), running, CHANGED if goes_on else NOT_RUN)
        if lost := _describe_lost_mode(deps, state, now.mode):
            notices.insert(0, lost)
            _insert_before_user_message(messages, lost)
        messages, stale = drop_stale_thinking(deps, now.mode, state, messages)
        now, subtask = _begin_turn(deps, state, now, messages)
        notices += [*_describe_lost_limit(deps, state), *stale]
        notices += [
            f"{key!r} of this thread held invalid values; they are dropped" for key in dropped
        ]
        update: dict[str, Any] = {
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
            "notices": [*deps.notices, *notices],
            "usage": Usage() if goes_on else NEW_TURN,
            **forgotten,
            **changed,
        }
        return (
            {key: state.get(key) for key in dropped if key in state}
            | host_changes
            | update
            | overwrite_dropped(state, dropped, changed)
            | _write_messages(before, messages)
        )

    return intake


def _stays_open(state: State, phase: Phase, host_changes: dict[str, Any]) -> bool:
    """Whether what waits still waits, or goes on: nothing was said, and the mode is the same."""
    if state.get("end_subtask") or not find_open_calls(state.get("messages", [])):
        return False
    if phase in (Phase.ACTING, Phase.SWITCHING):
        return sets_only_approvals(host_changes)
    return phase is Phase.REVIEWING


def _write_messages(before: list[AnyMessage], after: list[AnyMessage]) -> dict[str, Any]:
    """The update; where the middle of the history has changed, all of it is written anew."""
    if after[: len(before)] != before:
        return {"messages": Overwrite(after)}
    return {"messages": after[len(before) :]} if len(after) > len(before) else {}


def _forget(deps: AgentDeps, state: State) -> tuple[dict[str, Any], list[str]]:
    """The update without what is revoked, in conversations that wait for a sub-task, too."""
    ids = state.get("forget") or []
    remembered, notices = forget(deps, state.get("remembered", []), ids)
    update: dict[str, Any] = {"remembered": remembered, "forget": []}
    if ids and (parents := state.get("parents")):
        update["parents"] = Overwrite(
            [{**one, "remembered": forget(deps, one["remembered"], ids)[0]} for one in parents]
        )
    return update, notices


def _begin_turn(
    deps: AgentDeps, state: State, now: Configuration, messages: list[AnyMessage]
) -> tuple[Configuration, Subtask | None]:
    """Where the turn begins: at a sub-task's end if it is done, or the host stops it."""
    now = deps.machine.send(now, Event.RESET)
    if messages and not isinstance(messages[-1], AIMessage):
        now = deps.machine.send(now, Event.START)
    subtask = state.get("subtask") if state.get("parents") else None
    if subtask is not None and state.get("end_subtask"):
        return deps.machine.send(now, Event.RETURN), {**subtask, "failure": STOPPED}
    if subtask is not None and now.phase is Phase.IDLE:
        return deps.machine.send(now, Event.RETURN), subtask
    return deps.machine.send(now, Event.COMPACT) if state.get("compact") else now, subtask


def _describe_lost_mode(deps: AgentDeps, state: State, slug: str) -> str | None:
    """What a person should know if the thread's mode no longer exists, and ``slug`` follows."""
    if (mode := state.get("mode", slug)) in deps.catalog:
        return None
    name = deps.catalog[slug].name
    return f"Mode {mode!r} no longer exists; this thread continues in {name} mode."


def _describe_lost_limit(deps: AgentDeps, state: State) -> list[str]:
    limit = state.get("limit")
    if limit is None or limit in deps.catalog:
        return []
    return [
        f"the mode of this thread's limit, {limit!r}, no longer exists: until the host sets "
        "another limit, no tool of a group runs"
    ]


def _insert_before_user_message(messages: list[AnyMessage], text: str) -> None:
    """As a message, so that every client shows it; no history begins or ends with one of ours."""
    index = len(messages)
    while index > 0 and isinstance(messages[index - 1], HumanMessage):
        index -= 1
    if 0 < index < len(messages):
        messages.insert(index, AIMessage(text))
