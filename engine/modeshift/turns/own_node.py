"""``OwnNode``: what a node of a clone's own may do beside its move: tell, run a command, ask."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from modeshift.calls.decisions import ask_yes_or_no
from modeshift.calls.requests import build_own_request
from modeshift.calls.running import is_test_run
from modeshift.messages.instructions import Instruction
from modeshift.messages.repair import mark_as_data
from modeshift.modes.errors import ModelError, NodeError, ToolFailedError
from modeshift.modes.facts import Done, end_unseen
from modeshift.modes.machine import Configuration
from modeshift.modes.phases import Phase
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import follow
from modeshift.threads.routing import get_thread
from modeshift.threads.state import Facts, State, Update
from modeshift.tools.processes.background import Calling, Ran, shorten
from modeshift.tools.processes.process import MAX_SECONDS, Ended
from modeshift.tools.processes.sandboxes import Command
from modeshift.turns.briefing import build_note, has_edited, is_told


class OwnNode:
    """A run of a node; ``Step`` is one."""

    _deps: AgentDeps
    _node: str
    thread: str
    """The thread's id."""
    _config: RunnableConfig
    _given: State
    _now: Configuration
    _update: Update
    _notes: list[Instruction]
    _has_run: bool
    """Whether it has run a command."""
    _questions: int
    """How many it has asked: what is asked again is another question, in this step or the next."""
    _is_asking: bool
    """Whether the run has been interrupted and goes on without an answer."""
    _result: Any
    """The update that the node's move gave; None before it."""
    _running: asyncio.Lock
    """Held while a command of its own runs: two at once would not see what the other changes."""

    @property
    def has_edited(self) -> bool:
        """Whether a call of the model's last answer has changed a file."""
        return has_edited(self._deps, self._given["messages"])

    def tell(self, text: str) -> None:
        """Tell the model, behind the last message; it stays in the conversation."""
        self._expect_no_move("tells the model")
        self._notes.append(build_note(self._deps, self._given, self._now.mode, text))

    def _write_notes(self) -> None:
        if "instructions" in self._update:
            return
        if isinstance(self._given["messages"][-1], AIMessage):  # behind which no provider takes one
            self._update["messages"] = [HumanMessage(note["text"]) for note in self._notes]
        else:
            self._update["instructions"] = self._notes

    def show(self, text: str) -> None:
        """Tell the model, unless it was the last that was told under the same first line."""
        if not is_told(self._given, self._notes, text):
            self.tell(text)

    async def run_command(self, line: str, seconds: int = 120) -> Ended:
        """Run a command of your own in the workspace; nobody is asked.

        It runs in the sandbox where there is one, with the rights that the mode's commands have,
        and again if this process is killed before the node's end. What it prints is marked as data.
        """
        self._expect_own("run a command")
        self._has_run = True
        command = Command(line, ".", min(max(seconds, 1), MAX_SECONDS))
        async with self._running:
            facts = self._update.get("facts", self._given.get("facts", {}))
            # Unless it comes to its end, in a time limit of the node's, say.
            self._update["facts"] = follow(self._deps, facts, end_unseen(self._now.mode))
            ended, self._update["facts"] = await _run_command(
                self._deps, {**self._given, "facts": facts}, self._now.mode, command, self._config
            )
        return ended

    def ask_person(self, name: str, text: str, args: Mapping[str, Any] | None = None) -> bool:
        """Interrupt the run until a person has said yes or no; every client shows ``text``.

        ``name`` stands where a call has its tool's name, ``args`` where it has its arguments.
        LangGraph runs the node again from its start then, so it may do nothing before.
        """
        self._expect_own("ask")
        if self._has_run:
            raise self._refuse("runs a command before it asks, and so again after the answer")
        if any(spec.name == name for spec in self._deps.toolbox.specs):
            raise self._refuse(f"asks under the name of the tool {name!r}")
        last = self._given["messages"][-1].id if self._given.get("messages") else ""
        self._questions += 1
        step = self._config.get("metadata", {}).get("langgraph_step")
        unique = f"{self.thread}\0{last}\0{step}\0{self._questions}\0{self._node}\0{name}\0{text}"
        request = build_own_request(name, text, args or {}, unique)
        self._is_asking = True
        decision = ask_yes_or_no(request, is_required=self._deps.bound_answers)
        self._is_asking = False
        return decision["type"] == "approve"

    def _expect_own(self, action: str) -> None:
        if self._node in ("act", "intake") or self._now.phase in list(Phase):
            raise self._refuse(f"cannot {action}: only the node of a phase of your own can")
        self._expect_no_move(f"would {action}")

    def _expect_no_move(self, action: str) -> None:
        if self._result is not None:
            raise self._refuse(f"{action} behind its move, where it would be lost; move last")

    def _refuse(self, problem: str) -> NodeError:
        return NodeError(f"the node {self._node!r} {problem}")


async def _run_command(
    deps: AgentDeps, state: State, slug: str, shell: Command, config: RunnableConfig
) -> tuple[Ended, Facts]:
    """Run a command of the clone's, with the rights that the mode's own commands have.

    Also gives the facts after it. Its text is marked as data: what it prints may be anybody's.
    """
    seat, toolbox = deps.seat(slug, state.get("limit")), deps.toolbox
    commands = deps.started_calls.background.of(get_thread(config), seat.environment)
    running = commands.name_running() if commands else ""
    try:
        if running and toolbox.sandbox:
            raise ToolFailedError(f"one runs at a time in the sandbox, and {running} still does")
        may_edit = seat.edit_restriction is None
        ended = await toolbox.commands.run(toolbox.workspace, shell, Calling(edits_freely=may_edit))
    except ModelError as error:
        ended = Ended(None, f"[not run: {error}]")
    done = Done(
        tool="",
        mode=slug,
        is_success=True,
        may_have_written=seat.edit_restriction is None or toolbox.sandbox is None,
        line=shell.line,
        exit_code=ended.exit_code,
        was_alone=not running,
        runs_tests=is_test_run(deps, Ran(shell.line, shell.cwd, ended.exit_code)),
    )
    shown = replace(ended, text=mark_as_data(shorten(ended.text), shell.line, ""))
    return shown, follow(deps, state.get("facts", {}), done)
