"""``Step``: one run of a node. What a node may do, and what it must not leave out.

A node gets a step and returns what the step's last move gives. What every node must do (take in
what the host has set, reconcile the mode) is done where the step is made.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Command

from modeshift.calls.act import DueCall, judge_due_call
from modeshift.calls.edits import deny_failing_edits
from modeshift.calls.judging import CallContext, judge_all
from modeshift.calls.question import Calls, OpenQuestion, open_question, withdraw_question
from modeshift.calls.turn_end import end_turn, move_on
from modeshift.calls.ways import choose_way, find_switch_problem, read_switch_facts
from modeshift.messages.instructions import Instruction
from modeshift.messages.repair import VOID, find_open_calls
from modeshift.modes.choice import Seen, choose
from modeshift.modes.edges.edge_table import Way
from modeshift.modes.errors import ConfigurationError, ProviderError
from modeshift.modes.phases import Event, Phase
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import begin_thread
from modeshift.threads.mailbox import read_host_changes
from modeshift.threads.routing import get_thread, get_user, reconcile_mode
from modeshift.threads.state import ActTask, ModeChange, State, Switch, Update
from modeshift.turns.compaction import compact
from modeshift.turns.intake import Opening
from modeshift.turns.own_node import OwnNode
from modeshift.turns.subtasks import begin_subtask, end_subtask
from modeshift.turns.think import apply_switch, ask_model, drop_switch, find_approved_switch

Result = Update | Command[Any]
Moved = TypeVar("Moved", Update, Command[Any])
Node = Callable[..., Awaitable[Result]]
"""A coroutine function from a ``Step`` (a mode's: and its slug) to what the step's move gave."""


class Step(OwnNode):
    """One run of a node; made by the engine."""

    def __init__(
        self,
        deps: AgentDeps,
        node: str,
        state: Mapping[str, Any],
        config: RunnableConfig,
        runtime: Runtime[None],
    ) -> None:
        self._deps = deps
        self._node = node
        self._config = config
        self.thread = get_thread(config)
        self._runtime = runtime
        self._given = cast("State", state)
        self._update = Update()
        """What the engine writes whatever the node decides."""
        self._result: Result | None = None
        self._changes: Sequence[ModeChange] = ()
        """The record of a change of mode that is written with this step."""
        self._made: dict[str, Any] = {}
        """What this step has made, and so may be written."""
        self._notes: list[Instruction] = []
        self._opening: Opening | None = None
        self._question: OpenQuestion | None = None
        self._call: DueCall | None = None
        self._facts: Mapping[str, bool | None] = {}
        """The facts that decide on the switch that is due."""
        self._way_problem: str | None = None
        """Why the switch that is due cannot be applied: its edge is not open any more, say."""
        self._has_run = False
        self._questions = 0
        self._is_asking = False
        self._running = asyncio.Lock()

    async def run(self, node: Node, *mode: str) -> Result:
        """What the node returns, if it is what its move returned; for the engine alone."""
        await self._prepare()
        result = self._check(await node(self, *mode))
        if hold := self._deps.started_calls.journal.holds.get(self.thread):
            await hold.keep()
        return result

    async def _prepare(self) -> None:
        """Take in what the host has set, and reconcile the mode; ``act`` does so call by call."""
        if self._node == "act":
            return
        if self._node in ("intake", "review"):
            changes = await read_host_changes(self._runtime.store, self.thread, self._given)
            if self._node == "intake":
                facts = await begin_thread(self._deps, self._given)
                if facts is not None:
                    self._given = cast("State", {**self._given, "facts": facts})
                self._opening = Opening(self._deps, self._given, changes)
                await self._opening.look_up(self.thread)
                self._given, self._now = self._opening.state, self._opening.now
                return
            self._given = cast("State", {**self._given, **changes})
            self._update = cast("Update", changes)
        self._now, changed = reconcile_mode(self._deps, self._given)
        self._changed = changed
        self._changes = cast("Sequence[ModeChange]", changed.get("mode_changes", ()))
        self._update = {**self._update, **changed}
        if "facts" in changed:
            self._given = cast("State", {**self._given, "facts": changed["facts"]})
        switch = self._given.get("switch")
        if self._now.phase == Phase.SWITCHING and switch is not None:
            self._facts = await read_switch_facts(self._deps, self._given, switch)
            self._way_problem = find_switch_problem(self._deps, self._given, switch, self._facts)

    @property
    def state(self) -> Mapping[str, Any]:
        """The thread's state as the node finds it; in ``act`` without the history.

        What the engine writes cannot be changed in place: its lists are tuples here.
        """
        own, state = self._deps.own_keys, cast("dict[str, Any]", self._given)
        return MappingProxyType(
            {key: value if key in own else _freeze(value) for key, value in state.items()}
        )

    @property
    def update(self) -> Update:
        """What the node is to return: what its move returned."""
        if self._result is None:
            raise self._refuse("returns without a move; let it end with step.go(...)")
        return cast("Update", self._result)

    # For a node of the clone's own, and for ``think``.

    def go(self, event: str, **more: Any) -> Update:
        """Move the machine by an event of ``graph/chart.py``; ``more`` are own keys of the state.

        Raises ``NodeError`` for an event that the chart does not have here, a second move, and a
        key that only the engine writes.
        """
        if self._node in ("act", "intake"):
            raise self._refuse(f"cannot send {event!s}: it has moves of its own")
        if self._now.phase == Phase.THINKING:
            event = self._check_thinking(event, more)
        elif self._now.phase in list(Phase) and event in list(Event):
            raise self._refuse(f"cannot send {event!s} here: the engine does")
        made = {key: value for key, value in more.items() if self._made.get(key) is value}
        self._check_own(more.keys() - made.keys())
        if self._notes:
            self._write_notes()
        return self._move(event, cast("Update", more))

    def _check_thinking(self, event: str, more: Mapping[str, Any]) -> str:
        """The event that is sent: of a sub-task, an answer is its end."""
        answer = self._made.get("answer")
        needed = {Event.REVIEW: "asked", Event.ACT: "plan"}.get(cast("Event", event))
        if needed is not None and needed not in more:
            raise self._refuse(f"sends {event!s} without {needed!r}, which step.judge() leads to")
        if event == Event.ANSWER and (answer is None or answer.tool_calls):
            raise self._refuse("ends the turn without an answer, or before its calls are judged")
        if event not in list(Event):
            return event
        if needed is None and event != Event.ANSWER:
            raise self._refuse(f"cannot send {event!s} here: the engine does")
        in_subtask = self._given.get("subtask") is not None
        return choose(Phase.THINKING, Seen("plan" in more, "asked" in more, in_subtask=in_subtask))[
            0
        ]

    # think

    async def ask_model(self, mode: str) -> AIMessage | None:
        """The model's answer; None if the history must be summarized, or the sub-task has failed.

        Then ``update`` is what the node returns. Raises ``UserError`` for what fails elsewhere.
        """
        self._expect(Phase.THINKING)
        if find_open_calls(self._given["messages"]):
            raise self._refuse("asks the model although a call has no result yet")
        try:
            answer, update = await ask_model(
                self._deps, mode, self._given, self.thread, self._config, self._notes
            )
        except (ProviderError, ConfigurationError) as error:
            if (subtask := self._given.get("subtask")) is None:
                raise
            (event,) = choose(Phase.THINKING, Seen(in_subtask=True, has_failed=True))
            self._move(event, Update(subtask={**subtask, "failure": str(error)}))
            return None
        if answer is None:
            (event,) = choose(Phase.THINKING, Seen(needs_summary=True))
            self._move(event, Update())
            return None
        self._update |= update
        self._made["answer"] = answer
        return answer

    async def judge(self, answer: AIMessage) -> Calls:
        """The calls of the model's answer, with the verdict on each."""
        self._expect(Phase.THINKING)
        if self._made.get("answer") is not answer:
            raise self._refuse("judges an answer that is not the model's")
        context = CallContext.of(
            self._deps, self._given, len(answer.tool_calls) == 1, self._given["refused"]
        )
        judged = await judge_all(self._deps, context, answer.tool_calls)
        judged = await deny_failing_edits(self._deps, context, judged)
        policy = context.approvals.value
        return Calls(self._deps, str(answer.id), judged, self._made, policy, self.thread)

    # intake, review, switch_mode, end_subtask, compact_history

    @property
    def is_waiting(self) -> bool:
        """At ``intake``: whether what waits goes on as it is, for nothing was said."""
        return self._expect_opening().is_unchanged

    def keep_waiting(self) -> Update:
        """Leave what waits as it is."""
        if not self.is_waiting:
            raise self._refuse("leaves what waits, but something was said or set")
        return self._finish(self._expect_opening().keep())

    def begin_turn(self) -> Update:
        """Repair the history, and start the turn if somebody has said something."""
        return self._finish(self._expect_opening().begin())

    async def open_question(self) -> OpenQuestion | None:
        """The question that is open; None if it would be another one now."""
        self._expect(Phase.REVIEWING)
        if not self._changed:
            thread, who = self.thread, get_user(self._config)
            self._question = await open_question(self._deps, self._given, thread, who)
        return self._question

    def withdraw_question(self) -> Update:
        """Answer the calls with why nobody was asked: their mode, rules or files have changed."""
        self._expect(Phase.REVIEWING)
        (event,) = choose(Phase.REVIEWING, Seen())
        return self._move(event, withdraw_question(self._given))

    async def settle(self, question: OpenQuestion) -> Update:
        """Do what the person has decided."""
        self._expect(Phase.REVIEWING)
        if question is not self._question:
            raise self._refuse("settles a question that is not the open one")
        return self._move(*await question.settle())

    def approved_switch(self) -> Switch | None:
        """The switch that is due; None if the mode or the limit has changed since the yes."""
        self._expect(Phase.SWITCHING)
        switch = find_approved_switch(self._deps, self._given)
        if switch is not None and not self._changed and self._way_problem is None:
            self._made["switch"] = switch
        return self._made.get("switch")

    def drop_switch(self) -> Update:
        """Go on without the switch."""
        self._expect(Phase.SWITCHING)
        now = self._deps.machine.send_all(self._now, choose(Phase.SWITCHING, Seen()))
        dropped = drop_switch(self._given, self._way_problem or VOID)
        update = {**dropped, **self._update, "mode": now.mode, "phase": now.phase}
        return self._finish(cast("Update", update))

    def enter(self, switch: Switch) -> Update:
        """Enter the mode: the next step has its tools and instructions."""
        self._check_switch(switch)
        update = apply_switch(self._deps, self._given, switch, self._now)
        return self._enter(switch, update)

    def begin_subtask(self, switch: Switch) -> Update:
        """Put the conversation aside for the sub-task's."""
        self._check_switch(switch)
        update = begin_subtask(self._given, switch, self._now)
        return self._enter(switch, update)

    def _enter(self, switch: Switch, update: Update) -> Update:
        (event,) = choose(Phase.SWITCHING, Seen(has_switch=True))
        return self._move(event, update, switch["mode_slug"], choose_way(switch), self._facts)

    async def end_subtask(self) -> Update:
        """Go on with the conversation that began the sub-task."""
        self._expect(Phase.RETURNING)
        event, mode, update = await end_subtask(
            self._deps, self._given, self.thread, self._changed, self._runtime.store
        )
        return self._move(event, update, mode)

    async def compact(self) -> Update:
        """Put a summary in the place of the history, or say why not."""
        self._expect(Phase.COMPACTING)
        mode = self._now.mode
        event, update = await compact(self._deps, self._given, self._config, mode)
        return self._move(event, {**update, "mode": mode})

    # act

    async def judge_again(self) -> DueCall | None:
        """The call that is due, judged now; None if the run goes on with other code or modes."""
        if self._node != "act":
            raise self._refuse("has no call that is due; act has")
        task = cast("ActTask", self._given)
        self._call = await judge_due_call(
            self._deps, task, self._config, self._runtime, self.thread
        )
        return self._call

    def start_again(self) -> Command[Any]:
        """Begin again, as for a new turn."""
        if self._node != "act":
            raise self._refuse("has no call that is due; act has")
        anew: Command[Any] = Command(goto="intake" if self.state["is_last"] else ())
        return self._finish(anew)

    async def move_on(self, update: Update, *, is_done: bool = False, **own: Any) -> Command[Any]:
        """Go on behind the call: with the next one, a switch, or the model."""
        call = self._call
        if call is None or update is not call.result:
            raise self._refuse("moves on with what is not the result of the call that is due")
        self._check_own(own)
        more = cast("Update", {**update, **own})
        return self._finish(
            await move_on(
                self._deps, call.task, more, self.thread, self._runtime.store, is_done=is_done
            )
        )

    # What holds all of this together.

    def _check(self, result: Result) -> Result:
        """What the node has returned, if it is what its move returned."""
        if self._is_asking or (self._question is not None and self._question.is_waiting):
            raise self._refuse("swallows the interrupt that asks a person; let it pass")
        if result is not self.update:
            raise self._refuse("must return what its move gave, and nothing else")
        return result

    def _move(
        self,
        event: str,
        update: Update,
        mode_slug: str | None = None,
        way: Way = Way.HAND,
        facts: Mapping[str, bool | None] = MappingProxyType({}),
    ) -> Update:
        now = self._deps.machine.move(self._now, event, mode_slug, way, facts)
        if now is None:
            edge = f"from {self._now.phase!r} by {event!s}"
            raise self._refuse(f"takes an edge that is not in graph/chart.py: {edge}")
        moved: Update = {**self._update, **update, "phase": now.phase}
        has_then = now.phase == Phase.IDLE and self._deps.catalog[now.mode].then is not None
        if not has_then or self._now.phase == Phase.COMPACTING:  # where no model has spoken
            return self._finish(moved)
        if ended := end_turn(self._deps, cast("State", {**self._given, **moved}), now):
            changes = [*self._changes, *cast("list[ModeChange]", ended["mode_changes"])]
            moved = {**moved, **ended, "mode_changes": changes}
        return self._finish(moved)

    def _finish(self, result: Moved) -> Moved:
        if self._result is not None:
            raise self._refuse("moves twice; a node makes one move")
        if self._running.locked():
            raise self._refuse("moves while its command runs; await that first")
        self._result = result
        return result

    def _check_own(self, keys: Collection[str]) -> None:
        if wrong := sorted({*keys} - self._deps.own_keys):
            own = ", ".join(sorted(self._deps.own_keys)) or "none"
            raise self._refuse(f"must not write {wrong[0]!r}; the keys of your own State: {own}")

    def _expect(self, phase: Phase) -> None:
        if self._node == "act" or self._now.phase != phase:
            raise self._refuse(f"does what belongs to the phase {phase.value!r}")

    def _expect_opening(self) -> Opening:
        if self._opening is None:
            raise self._refuse("does what belongs to intake")
        return self._opening

    def _check_switch(self, switch: Switch) -> None:
        self._expect(Phase.SWITCHING)
        if self._made.get("switch") is not switch:
            raise self._refuse("applies a switch that no person has approved for now")


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType({key: _freeze(each) for key, each in value.items()})
    return tuple(map(_freeze, value)) if isinstance(value, list) else value
