"""``intake``: opens the turn."""

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.types import Overwrite

from graph.approvals.always_allow import forget
from graph.briefing import drop_stale_thinking
from graph.deps import AgentDeps
from graph.entry.checks import drop_invalid
from graph.messages.repair import find_open_calls, get_call_id, repair
from graph.models.usage import NEW_TURN, Usage
from graph.routing import Node, reconcile_mode
from graph.state import State
from modes.machine import Event, Phase


def intake_node(deps: AgentDeps) -> Node:
    """Repairs the history, applies what the host set, and starts the turn if there is one."""

    async def intake(state: State) -> dict[str, Any]:
        before = state.get("messages", [])
        state, dropped = drop_invalid(state)
        now, changed = reconcile_mode(deps, state)
        remembered, notices = forget(deps, state.get("remembered", []), state.get("forget") or [])
        forgotten = {"remembered": remembered, "forget": [], "notices": notices}
        if now.phase is Phase.REVIEWING and not changed and not dropped and find_open_calls(before):
            # Nothing was said and the mode is the same: what waits for a person still waits.
            return {"phase": now.phase.value, **forgotten}

        plan = state.get("plan", []) if now.phase is Phase.ACTING else []
        running = [get_call_id(planned["call"]) for planned in plan[0]] if plan else []
        messages = repair(state.get("messages", []), running)
        limit = state.get("limit")
        if limit is not None and limit not in deps.catalog:
            notices = [
                f"the mode of this thread's limit, {limit!r}, no longer exists: until the host "
                "sets another limit, no tool of a group runs",
                *notices,
            ]
        if (slug := state.get("mode", now.mode)) not in deps.catalog:
            name = deps.catalog[now.mode].name
            notice = f"Mode {slug!r} no longer exists; this thread continues in {name} mode."
            _insert_before_question(messages, notice)
            notices = [notice, *notices]
        messages, stale = drop_stale_thinking(deps, now.mode, state, messages)
        notices += stale
        now = deps.machine.send(now, Event.RESET)
        if messages and not isinstance(messages[-1], AIMessage):
            now = deps.machine.send(now, Event.START)
        if state.get("compact"):
            now = deps.machine.send(now, Event.COMPACT)
        notices += [
            f"{key!r} of this thread held invalid values; they are dropped" for key in dropped
        ]
        update: dict[str, Any] = {
            **{key: value for key, value in state.items() if key in dropped},
            "mode": now.mode,
            "limit": limit,
            "phase": now.phase.value,
            "first_mode": state.get("first_mode", deps.catalog.default),
            "approvals": state.get("approvals", deps.approvals.value),
            "plan": [],
            "switch": None,
            "refused": [],
            "compact": False,
            "compact_from": 0,
            "written": state.get("written", []),
            **forgotten,
            "notices": [*deps.notices, *notices],
            "usage": Overwrite(Usage()) if "usage" in dropped else NEW_TURN,
            **changed,
        }
        if "mode_changes" in dropped:
            changes = [*state["mode_changes"], *changed.get("mode_changes", [])]
            update["mode_changes"] = Overwrite(changes)
        if "instructions" in dropped:
            update["instructions"] = Overwrite([])
        if messages != before:
            # In the middle of the history, so all of it is written anew.
            update["messages"] = Overwrite(messages)
        return update

    return intake


def _insert_before_question(messages: list[AnyMessage], text: str) -> None:
    """As a message, so that every client shows it; no history begins or ends with one of ours."""
    index = len(messages)
    while index > 0 and isinstance(messages[index - 1], HumanMessage):
        index -= 1
    if 0 < index < len(messages):
        messages.insert(index, AIMessage(text))
