"""``Calls`` of an answer, judged, and the ``OpenQuestion`` that may come of them."""

from collections.abc import Sequence
from typing import Any

from langgraph.errors import GraphInterrupt
from langgraph.types import Overwrite

from modeshift.calls.contents import digest_contents
from modeshift.calls.decisions import Decision, ask_person
from modeshift.calls.judging import (
    Judged,
    JudgedQuestion,
    digest_question,
    find_failing,
    judge_question,
)
from modeshift.calls.outcome import Outcome, plan_batches
from modeshift.calls.requests import build_request
from modeshift.messages.repair import VOID, repair
from modeshift.modes.errors import NodeError
from modeshift.threads.deps import AgentDeps
from modeshift.threads.state import Asked, Planned, State, Update


class OpenQuestion:
    """The question that is open, judged again; nothing that a person decides counts before."""

    def __init__(
        self,
        deps: AgentDeps,
        question: JudgedQuestion,
        thread: str,
        who: str = "",
        decided: list[Decision] | None = None,
    ) -> None:
        """``thread`` is an id; ``decided`` is what was answered before a run was cut off."""
        self._deps = deps
        self._question = question
        self._thread = thread
        self._who = who
        self._decided = decided
        self._decisions: list[Decision] | None = None
        self.is_waiting = False
        """Whether the run has been interrupted for it and goes on without an answer."""

    def ask(self) -> None:
        """Interrupt the run until a person has decided on each call that needs it.

        LangGraph runs the node again from its start then, so it may do nothing before.
        """
        asking = [each for each in self._question.judged if each.needs_person]
        self._decisions = []
        if asking:
            unique = f"{self._question.message}{self._question.asked['digest']}"
            request = build_request(self._deps, self._question.context, asking, unique)
            self._decisions = None
            self.is_waiting = self._decided is None
            try:
                self._decisions = ask_person(self._deps, asking, request)
            except GraphInterrupt:
                if self._decided is None:
                    raise
                self._decisions = self._decided
            self.is_waiting = False

    async def settle(self) -> tuple[str, Update]:
        """What follows from the decisions: the event, and the update."""
        if self._decisions is None:
            raise NodeError("nobody has been asked: call question.ask() first")
        journal = self._deps.started_calls.journal
        await journal.decide(self._thread, self._question.id, self._decisions, self._who)
        outcome = Outcome(self._deps, self._question, self._thread)
        asking = (each for each in self._question.judged if each.needs_person)
        ids = (each.id for each in asking)
        await outcome.settle(dict(zip(ids, self._decisions, strict=True)))
        return outcome.update()


async def open_question(
    deps: AgentDeps, state: State, thread: str, who: str = ""
) -> OpenQuestion | None:
    """The open question; None if there is none, or it would be another one now.

    ``thread`` is an id, ``who`` the name of the user who may answer.
    """
    question = await judge_question(deps, state)
    if question is None:
        return None
    decided = await deps.started_calls.journal.find_decisions(thread, question.id)
    return OpenQuestion(deps, question, thread, who, decided)


def withdraw_question(state: State) -> Update:
    """What it was about (mode, rules or files) has changed since."""
    return Update(
        messages=Overwrite(repair(state["messages"], text=VOID)),
        notices=[*state.get("notices", []), VOID],
    )


class Calls:
    """All calls of one message of the model."""

    def __init__(
        self,
        deps: AgentDeps,
        message: str,
        judged: Sequence[Judged],
        made: dict[str, Any],
        approvals: str,
        thread: str,
    ) -> None:
        """``message`` is the id of the message that made them; ``made`` is the step's.

        ``approvals`` is the policy under which they were judged, ``thread`` the id of theirs.
        """
        self._deps = deps
        self._message = message
        self._judged = judged
        self._made = made
        self._approvals = approvals
        self._thread = thread
        self._asking = [each for each in judged if each.verdict.kind == "ask"]

    @property
    def need_a_person(self) -> bool:
        """Whether a person has to decide on one of them at least, or a switch goes by edge."""
        return bool(self._asking)

    async def question(self) -> Asked:
        """What the person is to be asked, for ``go(Event.REVIEW, asked=...)``."""
        edited = [path for each in self._asking for path in each.edited_paths]
        contents = await digest_contents(self._deps, edited)
        asked = Asked(
            digest=digest_question(self._judged), contents=contents, approvals=self._approvals
        )
        if failing := find_failing(self._judged):
            asked["failing"] = failing
        self._made["asked"] = asked
        return asked

    def batches(self) -> list[list[Planned]]:
        """What is due, for ``go(Event.ACT, plan=...)``.

        Raises ``NodeError`` if a person must be asked.
        """
        if self._asking:
            name = self._asking[0].call["name"]
            raise NodeError(f"a person has to decide on {name} first: go(Event.REVIEW, asked=...)")
        journal = self._deps.started_calls.journal.mark(self._thread)
        plan = plan_batches(journal, self._message, self._judged, {})
        self._made["plan"] = plan
        return plan
