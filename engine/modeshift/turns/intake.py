"""``Opening``: how a turn begins, or goes on."""

from typing import cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.types import Overwrite

from modeshift.calls.contents import find_begun
from modeshift.calls.remembered import forget, revoke_invalid
from modeshift.messages.normal_form import get_call_id
from modeshift.messages.repair import CHANGED, NOT_RUN, find_open_calls, repair
from modeshift.messages.thinking import join_history, split_history
from modeshift.models.usage import NEW_TURN, Usage
from modeshift.modes.machine import Configuration
from modeshift.modes.phases import Phase, Seen, choose
from modeshift.modes.plain_data import JsonObject
from modeshift.threads.checks import drop_invalid, overwrite_dropped
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import enter_mode, follow
from modeshift.threads.routing import leaves_due_calls, reconcile_mode
from modeshift.threads.state import RoutingState, State, Subtask, Update, drop_approvals
from modeshift.turns.briefing import drop_stale_thinking
from modeshift.turns.subtasks import STOPPED
from modeshift.turns.undo import mark_turn, take_back_cut_off


class Opening:
    """A thread as ``intake`` finds it: with what the host has set, without what does not fit."""

    def __init__(self, deps: AgentDeps, state: State, host_changes: JsonObject) -> None:
        """``host_changes`` are what the thread does not have yet."""
        self._deps = deps
        self._host_changes = host_changes
        self._before = state.get("messages", [])
        # A message may come with rights, which are in the mailbox, too.
        is_said = bool(self._before) and isinstance(self._before[-1], HumanMessage)
        is_idle = state.get("phase", Phase.IDLE) == Phase.IDLE
        self._goes_on = bool(host_changes) and not is_said and not is_idle
        # A sub-task begins with a message that nobody has said, and its turn is that of its parent.
        is_said = is_said and not (state.get("subtask") and len(self._before) == 1)
        self._is_said = is_said
        self._is_new = is_said or is_idle
        changes = {key: value for key, value in host_changes.items() if key != "forget"}
        state = cast("State", {**state, **changes})
        self.state, self._dropped = drop_invalid(state, deps.state, deps.chart.phases)
        self.now, self._changed = reconcile_mode(deps, self.state)
        ids = [*self.state.get("forget", ()), *host_changes.get("forget", ())]
        self._beside = forget(self.state, ids)
        """What is written beside the turn: what is remembered, and where the undo log stands."""
        remembered = self._beside["remembered"]
        self._beside["remembered"], self._notices = revoke_invalid(deps, self.state, remembered)
        self._begun = dict[str, ToolMessage]()
        """Results of calls that a run had begun when it was cut off."""
        self._facts = self.state.get("facts", {})
        """The facts after these calls, in the mode that the host may have changed since."""

    async def look_up(self, thread: str) -> None:
        """See what the calls have done that were under way, and where the undo log stands."""
        if self._is_said and not self.state.get("subtask"):
            self._notices += await take_back_cut_off(self._deps, thread, self.state)
            mark = await mark_turn(self._deps, thread, str(self._before[-1].id))
            if mark != self.state.get("undo_from", ""):
                self._beside["undo_from"] = mark
        due = self.state.get("due_calls", []) if self.now.phase == Phase.ACTING else []
        for planned in due[0] if due else []:
            if begun := await find_begun(self._deps, planned, thread, self.now.mode):
                call = planned["call"]
                self._begun[get_call_id(call)] = begun.build_result(call)
                self._facts = follow(self._deps, self._facts, begun.done)

    @property
    def is_unchanged(self) -> bool:
        """Whether what waits still waits, or goes on: nothing was said, the mode is the same.

        In a phase of the clone's own its node is still to run, in whatever mode there is.
        """
        state, phase = self.state, self.now.phase
        if self._dropped or state.get("end_subtask"):
            return False
        if not find_open_calls(state.get("messages", [])):
            is_own = phase not in list(Phase) and state.get("mode") in self._deps.catalog
            return is_own and not self._is_said
        if self._changed:
            return False
        if phase in (Phase.ACTING, Phase.SWITCHING):
            return leaves_due_calls(self._host_changes)
        return phase == Phase.REVIEWING

    def keep(self) -> Update:
        """The update that leaves it waiting."""
        # An approved switch may set approvals, too: what was set later counts.
        switch = self.state.get("switch")
        if switch is not None and "approvals" in self._host_changes:
            switch = drop_approvals(switch)
        update = {"phase": self.now.phase, "switch": switch, "notices": self._notices}
        return cast("Update", update | self._host_changes | self._beside | self._changed)

    def begin(self) -> Update:
        """The update that repairs the history and starts the turn, if there is one."""
        deps, state, notices = self._deps, self.state, [*self._notices]
        facts = enter_mode({**state, "facts": self._facts}) if self._changed else self._facts
        messages = self._repair(notices)
        now, subtask = _begin_turn(deps, state, self.now, messages)
        notices += _describe_lost_limit(deps, state)
        notices += [
            f"{key!r} of this thread held invalid values; they are dropped" for key in self._dropped
        ]
        update: dict[str, object] = {
            "mode": now.mode,
            "limit": state.get("limit"),
            "phase": now.phase,
            "first_mode": state.get("first_mode", deps.catalog.default),
            "approvals": state.get("approvals", deps.approvals.value),
            "due_calls": [],
            "switch": None,
            "refused": [],
            "switched": state.get("switched", 0) if self._goes_on else 0,
            "subtask": subtask,
            "end_subtask": False,
            "compact": now.phase == Phase.RETURNING and bool(state.get("compact")),
            "compact_from": 0,
            "written": state.get("written", []),
            "notices": [*deps.notices, *notices],
            **({"workspace": deps.workspace} if deps.workspace else {}),
            "usage": NEW_TURN if self._is_new else Usage(),
            **self._beside,
            **self._changed,
            "facts": facts,
        }
        # Each key is in every later checkpoint: what was never anything but empty is left out.
        had = {"notices", *state, *self._host_changes, *RoutingState.__required_keys__}
        written = {key: value for key, value in update.items() if value or key in had}
        return cast(
            "Update",
            {key: state.get(key) for key in self._dropped if key in state}
            | self._host_changes
            | written
            | overwrite_dropped(state, self._dropped, self._changed, deps.state)
            | _write_messages(self._before, messages),
        )

    def _repair(self, notices: list[str]) -> list[AnyMessage]:
        """The history, which any model takes; adds to the notices."""
        deps, state = self._deps, self.state
        why = CHANGED if self._goes_on else NOT_RUN
        messages = repair(state.get("messages", []), self._begun, why)
        if (gone := state.get("mode", self.now.mode)) not in deps.catalog:
            name = deps.catalog[self.now.mode].name
            lost = f"Mode {gone!r} no longer exists; this thread continues in {name} mode."
            notices.insert(0, lost)
            _insert_before_user_message(messages, lost)
        fresh_from = None if self._changed else state.get("fresh_from")
        left_out, sent = split_history(messages, fresh_from)
        sent, stale = drop_stale_thinking(deps, self.now.mode, state, sent)
        notices += stale
        return join_history(left_out, sent)


def _write_messages(before: list[AnyMessage], after: list[AnyMessage]) -> dict[str, object]:
    """The update; where the middle of the history has changed, all of it is written."""
    if after[: len(before)] != before:
        return {"messages": Overwrite(after)}
    return {"messages": after[len(before) :]} if len(after) > len(before) else {}


def _begin_turn(
    deps: AgentDeps, state: State, now: Configuration, messages: list[AnyMessage]
) -> tuple[Configuration, Subtask | None]:
    """Where the turn begins: at a sub-task's end if it is done, or the host stops it."""
    subtask = state.get("subtask") if state.get("parents") else None
    is_stopped = subtask is not None and bool(state.get("end_subtask"))
    seen = Seen(
        is_turn=bool(messages) and not isinstance(messages[-1], AIMessage),
        in_subtask=subtask is not None,
        has_failed=is_stopped,
        needs_summary=bool(state.get("compact")),
    )
    now = deps.machine.send_all(now, choose(Phase.IDLE, seen))
    return now, {**subtask, "failure": STOPPED} if subtask and is_stopped else subtask


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
