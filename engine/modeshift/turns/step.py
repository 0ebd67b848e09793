"""``Step``: one run of a node. What a node may do, and what it must not leave out.

A node gets a step and returns the result of the step's move. What every node must do (take in
what the host has set, reconcile the mode) is done before the step is made.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime
from langgraph.types import Command

from modeshift.calls.act import DueCall, judge_due_call
from modeshift.calls.decisions import Answer
from modeshift.calls.question import (
    Calls,
    OpenQuestion,
    judge_answer,
    open_question,
    withdraw_question,
)
from modeshift.calls.requests import build_title
from modeshift.calls.turn_end import end_turn, move_on
from modeshift.messages.instructions import Instruction
from modeshift.modes.phases import Event, Phase
from modeshift.threads.state import ActTask, State, Switch, Update, list_own_keys
from modeshift.tools.processes.process import Ended
from modeshift.turns.briefing import build_note, has_edited, is_told
from modeshift.turns.compaction import compact
from modeshift.turns.own_node import ask_own_question, run_own_command, write_notes
from modeshift.turns.start import Start
from modeshift.turns.subtasks import begin_subtask, end_subtask
from modeshift.turns.switching import apply_switch, drop_switch
from modeshift.turns.think import ask_model, choose_event

T = TypeVar("T")
Result = Update | Command[str]
Moved = TypeVar("Moved", Update, Command[str])
Node = Callable[..., Awaitable[Result]]
"""A coroutine function from a ``Step`` (a mode's: and its slug) to the result of its move."""


class Step:
    """One run of a node; made by the engine."""

    def __init__(self, start: Start, config: RunnableConfig, runtime: Runtime[None]) -> None:
        self.thread = start.thread
        """The thread's id."""
        self._deps = start.deps
        self._start = start
        self._config = config
        self._runtime = runtime
        # What it has made so far; nothing else may be judged, written or settled.
        self._answer: AIMessage | None = None
        self._calls: Calls | None = None
        self._question: OpenQuestion | None = None
        self._call: DueCall | None = None
        self._update = Update(**start.update)
        """What the engine writes whatever the node decides."""
        self._result: Result | None = None
        self._notes = list[Instruction]()
        self._questions = 0
        """How many it has asked: what is asked again is another question."""
        self._is_asking = False
        """Whether the run has been interrupted and goes on without an answer."""
        self._has_run = False
        """Whether it has run a command."""
        self._running = asyncio.Lock()
        """Held while its command runs: two at once would not see what the other changes."""

    @property
    def state(self) -> Mapping[str, Any]:
        """The thread's state as the node finds it; in ``act`` without the history.

        What the engine writes cannot be changed in place: its lists are tuples here.
        """
        own, state = list_own_keys(self._deps.state), self._start.state
        return MappingProxyType(
            {key: value if key in own else _freeze(value) for key, value in state.items()}
        )

    @property
    def update(self) -> Update:
        """What the node is to return: what its move returned."""
        return cast("Update", self._result)

    # For a node of the clone's own, and for ``think``.

    def go(self, event: str, **more: object) -> Update:
        """Move the machine by an event of ``graph/chart.py``; ``more`` are own keys of the state.

        Raises ``NodeError`` for an event that the chart does not have here, a second move, and a
        key that only the engine writes.
        """
        phase, calls = self._start.phase, self._calls
        if phase is None or (phase in list(Phase) and event in list(Event)):
            event = choose_event(self._start, self._answer, event, more)
        made = {} if calls is None else {"asked": calls.asked, "due_calls": calls.due_calls}
        self._check_own(
            key for key, value in more.items() if value is None or value is not made.get(key)
        )
        if self._notes and "instructions" not in self._update:  # the model was not asked with them
            write_notes(self._start, self._notes, self._update)
        return self._move(event, cast("Update", more))

    @property
    def has_edited(self) -> bool:
        """Whether a call of the model's last answer has changed a file."""
        return has_edited(self._deps, self._start.state["messages"])

    def tell(self, text: str) -> None:
        """Tell the model, behind the last message; it stays in the conversation."""
        self._expect_no_move("tells the model")
        start = self._start
        self._notes.append(build_note(self._deps, start.state, start.now.mode, text))

    def show(self, text: str) -> None:
        """Tell the model, unless it was the last that was told under the same first line."""
        if not is_told(self._start.state, self._notes, text):
            self.tell(text)

    async def run_command(self, line: str, seconds: int = 120) -> Ended:
        """Run a command of your own in the workspace; nobody is asked.

        It runs in the sandbox where there is one, with the rights that the mode's commands have,
        and again if this process is killed before the node's end. What it prints is marked as data.
        """
        self._expect_own("run a command")
        self._has_run = True
        async with self._running:
            return await run_own_command(self._start, line, seconds, self._update)

    def ask_person(self, name: str, text: str, args: Mapping[str, object] | None = None) -> Answer:
        """Interrupt the run until a person has said yes or no; every client shows ``text``.

        ``name`` stands where a call has its tool's name, ``args`` where it has its arguments.
        LangGraph runs the node again from its start then, so it may do nothing before. The answer
        is true for yes; its ``reason`` is what the person said with a no.
        """
        self._expect_own("ask")
        if self._has_run:
            raise self._start.refuse("runs a command before it asks, and so again after the answer")
        self._questions += 1
        self._is_asking = True
        answer = ask_own_question(
            self._start, self._config, name, text, args or {}, self._questions
        )
        self._is_asking = False
        return answer

    # think

    async def ask_model(self, mode: str) -> AIMessage | None:
        """The model's answer; None if the history must be summarized, or the sub-task has failed.

        Then ``update`` is what the node returns. Raises ``UserError`` for what fails elsewhere.
        """
        self._expect(Phase.THINKING)
        answer, update = await ask_model(self._start, mode, self._config, self._notes)
        if not isinstance(answer, AIMessage):
            self._move(answer, update)
            return None
        self._update |= update
        self._answer = answer
        return answer

    async def judge(self, answer: AIMessage) -> Calls:
        """The calls of the model's answer, with the verdict on each."""
        if self._answer is not answer:
            raise self._start.refuse("judges an answer that is not the model's")
        calls = await judge_answer(self._deps, self._start.state, answer, self.thread)
        self._calls = calls
        return calls

    # intake, review, switch_mode, end_subtask, compact_history

    @property
    def is_waiting(self) -> bool:
        """At ``intake``: whether what waits goes on as it is, for nothing was said."""
        return self._get(self._start.opening, "intake").is_unchanged

    def keep_waiting(self) -> Update:
        """Leave what waits as it is."""
        return self._finish(self._get(self._start.opening, "intake").keep())

    def begin_turn(self) -> Update:
        """Repair the history, and start the turn if somebody has said something."""
        return self._finish(self._get(self._start.opening, "intake").begin())

    async def open_question(self) -> OpenQuestion | None:
        """The question that is open; None if it would be another one now."""
        self._expect(Phase.REVIEWING)
        if not self._start.changed:
            question = await open_question(self._deps, self._start.state, self._config)
            self._question = question
        return self._question

    def withdraw_question(self) -> Update:
        """Answer the calls with why nobody was asked: their mode, rules or files have changed."""
        return self._move(*withdraw_question(self._start.state))

    async def settle(self, question: OpenQuestion) -> Update:
        """Do what the person has decided."""
        if question is not self._question:
            raise self._start.refuse("settles a question that is not the open one")
        return self._move(*await question.settle())

    def approved_switch(self) -> Switch | None:
        """The switch that is due; None if the mode or the limit has changed since the yes."""
        return self._get(self._start.due, "switch_mode").switch

    def drop_switch(self) -> Update:
        """Go on without the switch."""
        due, start = self._get(self._start.due, "switch_mode"), self._start
        dropped = drop_switch(self._deps, start.state, due.why, start.now)
        return self._finish(cast("Update", {**self._update, **dropped}))

    def enter(self, switch: Switch) -> Update:
        """Enter the mode: the next step has its tools and instructions."""
        return self._enter(switch, partial(apply_switch, self._deps))

    def begin_subtask(self, switch: Switch) -> Update:
        """Put the conversation aside for the sub-task's."""
        return self._enter(switch, begin_subtask)

    def _enter(self, switch: Switch, change: Callable[..., Update]) -> Update:
        due, start = self._get(self._start.due, "switch_mode"), self._start
        if due.switch is not switch:
            raise start.refuse("applies a switch that no person has approved for now")
        update = change(start.state, switch, start.now)
        return self._move(due.event, update, switch["mode_slug"], due.way, due.facts)

    async def end_subtask(self) -> Update:
        """Go on with the conversation that began the sub-task."""
        start, store = self._start, self._runtime.store
        event, mode, update = await end_subtask(
            self._deps, start.state, self.thread, start.changed, store
        )
        return self._move(event, update, mode)

    async def compact(self) -> Update:
        """Put a summary in the place of the history, or say why not."""
        mode = self._start.now.mode
        event, update = await compact(self._deps, self._start.state, self._config, mode)
        return self._move(event, {**update, "mode": mode})

    # act

    async def judge_again(self) -> DueCall | None:
        """The call that is due, judged now; None if the run goes on with other code or modes."""
        task = cast("ActTask", self._start.state)
        self._call = await judge_due_call(
            self._deps, task, self._config, self._runtime, self.thread
        )
        return self._call

    def start_again(self) -> Command[str]:
        """Begin again, as for a new turn."""
        anew: Command[str] = Command(goto="intake" if self.state["is_last"] else ())
        return self._finish(anew)

    async def move_on(
        self, update: Update, *, is_done: bool = False, **own: object
    ) -> Command[str]:
        """Go on behind the call: with the next one, a switch, or the model."""
        call, store = self._call, self._runtime.store
        if call is None or update is not call.result:
            raise self._start.refuse("moves on with what is not the result of the call that is due")
        self._check_own(own)
        more = cast("Update", {**update, **own})
        return self._finish(
            await move_on(self._deps, call.task, more, self.thread, store, is_done=is_done)
        )

    # What holds all of this together.

    def _move(self, event: str, update: Update, *to: Any) -> Update:
        """Along an edge of the chart; ``to`` is a mode, by which way, and the facts that decide."""
        before = self._start.now
        # The machine knows more events: those that change the mode, and the host's.
        if (before.phase, event) not in self._deps.chart.targets:
            edge = f"from {before.phase!r} by {event!s}"
            raise self._start.refuse(f"takes an edge that is not in graph/chart.py: {edge}")
        now = self._deps.machine.send(before, event, *to)
        moved: Update = {**self._update, **update, "phase": now.phase}
        # Where a history was made shorter, no model has spoken.
        if now.phase == Phase.IDLE and before.phase != Phase.COMPACTING:
            state = cast("State", {**self._start.state, **moved})
            if ended := end_turn(self._deps, state, now):
                changes: Any = moved.get("mode_changes", [])
                moved = {**moved, **ended, "mode_changes": changes + ended["mode_changes"]}
        return self._finish(moved)

    def _finish(self, result: Moved) -> Moved:
        if self._result is not None or self._running.locked():
            raise self._start.refuse("moves twice, or while its command runs; it makes one move")
        self._result = result
        return result

    def _check_own(self, keys: Iterable[str]) -> None:
        own = list_own_keys(self._deps.state)
        if wrong := sorted({*keys} - own):
            listed = ", ".join(sorted(own)) or "none"
            raise self._start.refuse(
                f"must not write {wrong[0]!r}; the keys of your own State: {listed}"
            )

    def _expect(self, phase: Phase) -> None:
        if self._start.phase != phase:
            raise self._start.refuse(f"does what belongs to the phase {phase.value!r}")

    def _expect_own(self, action: str) -> None:
        if self._start.phase in (None, *Phase):
            raise self._start.refuse(f"cannot {action}: only the node of a phase of your own can")
        self._expect_no_move(f"would {action}")

    def _expect_no_move(self, action: str) -> None:
        if self._result is not None:
            raise self._start.refuse(f"{action} behind its move, where it would be lost; move last")

    def _get(self, value: T | None, node: str) -> T:
        if value is None:
            raise self._start.refuse(f"does what belongs to {node}")
        return value


async def run_step(
    start: Start, node: Node, config: RunnableConfig, runtime: Runtime[None], *mode: str
) -> Result:
    """What a node with a step of its own returns, if it is what its move returned."""
    step = Step(start, config, runtime)
    try:
        result = await node(step, *mode)
    except GraphInterrupt as interrupt:
        if (notifier := start.deps.notifier) is not None:
            request, deps = interrupt.args[0][0].value, start.deps
            actions = request.get("action_requests") or ()
            titles = [build_title(deps, each["name"], each["args"]) for each in actions]
            notifier.tell(start.thread, start.now.mode, request, titles)
        raise
    question = step._question
    if step._is_asking or (question is not None and question.is_waiting):
        raise start.refuse("swallows the interrupt that asks a person; let it pass")
    if step._result is None or result is not step._result:
        raise start.refuse("must return what its move gave: end with step.go(...)")
    if hold := start.deps.started_calls.journal.holds.get(start.thread):
        await hold.keep()
    return result


def _freeze(value: object) -> object:
    if isinstance(value, dict):
        return MappingProxyType({key: _freeze(each) for key, each in value.items()})
    return tuple(map(_freeze, value)) if isinstance(value, list) else value
