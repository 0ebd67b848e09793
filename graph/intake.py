"""``intake``: opens the turn."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.types import Overwrite

from graph.approvals.always_allow import forget
from graph.deps import AgentDeps
from graph.messages.repair import call_id, open_calls, repair
from graph.mode_changes import reconcile_mode
from graph.routing import Node
from graph.state import State
from graph.state_checks import drop_unsound
from modes.machine import Event, Phase


def intake_node(deps: AgentDeps) -> Node:
    """Repairs the history, applies what the host set, and starts the turn if there is one."""

    async def intake(state: State) -> dict[str, Any]:
        before = state.get("messages", [])
        state, lost = drop_unsound(state)
        now, change = reconcile_mode(deps, state)
        if now.phase is Phase.REVIEWING and not change and not lost and open_calls(before):
            # Nothing was said and the mode is the same: what waits for a person still waits.
            return {"phase": now.phase.value, **_forgetting(deps, state)}
        plan = state.get("plan", []) if now.phase is Phase.ACTING else []
        running = [call_id(planned["call"]) for planned in plan[0]] if plan else []
        messages = repair(state.get("messages", []), running)
        gone = [record["source"] for record in change if record["source"] not in deps.catalog]
        notices = [_is_gone(deps, slug, now.mode) for slug in gone]
        for notice in notices:
            _say_before_the_question(messages, notice)
        forgetting = _forgetting(deps, state)
        now = deps.machine.send(now, Event.RESET)
        if _wants_an_answer(messages):
            now = deps.machine.send(now, Event.START)
        update: dict[str, Any] = {
            **{key: value for key, value in state.items() if key in lost},
            "mode": now.mode,
            "phase": now.phase.value,
            "first_mode": state.get("first_mode", deps.catalog.default),
            "mode_changes": change,
            "approvals": state.get("approvals", deps.approvals.value),
            "plan": [],
            "switch": None,
            "refused": [],
            **forgetting,
            "written": [] if change else state.get("written", []),
            "notices": [
                *deps.notices,
                *notices,
                *forgetting["notices"],
                *(f"what made no sense in this thread's {key!r} is dropped" for key in lost),
            ],
        }
        if "mode_changes" in lost:
            update["mode_changes"] = Overwrite([*state["mode_changes"], *change])
        if messages != before:
            # In the middle of the history, so all of it is written anew.
            update["messages"] = Overwrite(messages)
        return update

    return intake


def _forgetting(deps: AgentDeps, state: State) -> dict[str, Any]:
    remembered, notices = forget(deps, state.get("remembered", []), state.get("forget") or [])
    return {"remembered": remembered, "forget": [], "notices": notices}


def _is_gone(deps: AgentDeps, slug: str, now: str) -> str:
    return f"The mode {slug!r} is no more; this thread goes on in {deps.catalog[now].name} mode."


def _say_before_the_question(messages: list[AnyMessage], text: str) -> None:
    """As a message, so that every client shows it; no history begins or ends with one of ours."""
    place = len(messages)
    while place > 0 and isinstance(messages[place - 1], HumanMessage):
        place -= 1
    if 0 < place < len(messages):
        messages.insert(place, AIMessage(text))


def _wants_an_answer(messages: Sequence[AnyMessage]) -> bool:
    return bool(messages) and not isinstance(messages[-1], AIMessage)
