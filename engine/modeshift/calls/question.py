"""``Calls`` of an answer, judged, and the ``OpenQuestion`` that may come of them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.types import Overwrite

from modeshift.calls.contents import apply_edit, digest_contents
from modeshift.calls.decisions import Decision, ask_person
from modeshift.calls.judging import CallContext, Judged, judge_all
from modeshift.calls.outcome import JudgedQuestion, Outcome, plan_batches
from modeshift.calls.requests import build_request
from modeshift.messages.repair import VOID, find_last_answer, find_open_calls, repair
from modeshift.modes.errors import NodeError, ToolFailedError
from modeshift.modes.phases import Phase, Seen, choose
from modeshift.modes.policy import Approvals, Verdict, verdict
from modeshift.threads.audit import append_entry
from modeshift.threads.deps import AgentDeps
from modeshift.threads.routing import get_thread
from modeshift.threads.state import Asked, Planned, State, Update
from modeshift.tools.workspace.text import read_replacements


@dataclass(eq=False)
class OpenQuestion:
    """The question that is open, judged again; nothing that a person decides counts before."""

    _deps: AgentDeps
    _question: JudgedQuestion
    _thread: str
    _who: str
    """The name of the user who may answer."""
    _decided: list[Decision] | None
    """What was answered before a run was cut off."""
    _decisions: list[Decision] | None = field(default=None, init=False)
    is_waiting: bool = field(default=False, init=False)
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
        journal, judged = self._deps.started_calls.journal, self._question.judged
        question = self._question.id
        await journal.decide(self._thread, question, self._decisions, self._who)
        outcome = Outcome(self._deps, self._question, self._thread)
        ids = (each.id for each in judged if each.needs_person)
        decided = dict(zip(ids, self._decisions, strict=True))
        kinds = {id: each["type"] for id, each in decided.items()}
        calls = [{**each.describe(), "decision": kinds.get(each.id)} for each in judged]
        where = self._question.context.describe()
        told = {"kind": "decision", "who": self._who, "question": question, "calls": calls, **where}
        await append_entry(journal, self._thread, f"decision {question}", told)
        await outcome.settle(decided)
        return outcome.update()


async def judge_question(deps: AgentDeps, state: State) -> JudgedQuestion | None:
    """The question that is open; None if there is none, or it would be another one now."""
    message, calls = find_last_answer(state["messages"]), find_open_calls(state["messages"])
    asked = state.get("asked")
    if not calls or message is None or asked is None:
        return None
    context = CallContext.of(deps, state, len(message.tool_calls) == 1, state.get("refused", ()))
    context = replace(context, approvals=Approvals(asked.get("approvals", context.approvals)))
    judged = await judge_all(deps, context, calls)
    judged = _deny_failing(judged, asked.get("failing", {}))
    if asked["digest"] != digest_question(judged):
        return None
    id = f"{message.id} {asked['digest']}"
    return JudgedQuestion(str(message.id), asked, context, judged, id)


def digest_question(judged: Sequence[Judged]) -> str:
    """A digest of the calls and the kinds of their verdicts: the same question, the same digest."""
    return sha256(
        "".join(each.verdict.kind + each.digest() for each in judged).encode()
    ).hexdigest()


async def open_question(
    deps: AgentDeps, state: State, config: RunnableConfig
) -> OpenQuestion | None:
    """The open question; None if there is none, or it would be another one now."""
    question = await judge_question(deps, state)
    if question is None:
        return None
    thread = get_thread(config)
    decided = await deps.started_calls.journal.find_decisions(thread, question.id)
    # The name, as the server knows it; empty where it knows none.
    who = str(config["configurable"].get("langgraph_auth_user_id") or "")
    return OpenQuestion(deps, question, thread, who, decided)


def withdraw_question(state: State) -> tuple[str, Update]:
    """The event and the update where mode, rules or files have changed since it was asked."""
    messages = Overwrite(repair(state["messages"], text=VOID))
    (event,) = choose(Phase.REVIEWING, Seen())
    return event, Update(messages=messages, notices=[*state.get("notices", []), VOID])


@dataclass(eq=False)
class Calls:
    """All calls of one message of the model."""

    _deps: AgentDeps
    _message: str
    """The id of the message that made them."""
    _judged: Sequence[Judged]
    _approvals: str
    """The policy under which they were judged."""
    _thread: str
    asked: Asked | None = field(default=None, init=False)
    """The result of ``question``."""
    due_calls: list[list[Planned]] | None = field(default=None, init=False)
    """The result of ``batches``."""

    @property
    def _asking(self) -> list[Judged]:
        return [each for each in self._judged if each.verdict.kind == "ask"]

    @property
    def need_a_person(self) -> bool:
        """Whether a person must decide on a call, or a switch follows an edge that asks nobody."""
        return bool(self._asking)

    async def question(self) -> Asked:
        """What the person is to be asked, for ``go(Event.REVIEW, asked=...)``."""
        edited = [path for each in self._asking for path in each.edited_paths]
        contents = await digest_contents(self._deps, edited)
        asked = Asked(
            digest=digest_question(self._judged), contents=contents, approvals=self._approvals
        )
        failed = [each for each in self._judged if each.verdict.error is ToolFailedError]
        if failed:
            asked["failing"] = {each.id: each.verdict.reason for each in failed}
        self.asked = asked
        return asked

    def batches(self) -> list[list[Planned]]:
        """The calls that are due, for ``go``; raises ``NodeError`` if a person must be asked."""
        if asking := self._asking:
            name = asking[0].call["name"]
            raise NodeError(f"a person has to decide on {name} first: go(Event.REVIEW, asked=...)")
        journal = self._deps.started_calls.journal.mark(self._thread)
        self.due_calls = plan_batches(journal, self._message, self._judged, {})
        return self.due_calls


async def judge_answer(deps: AgentDeps, state: State, answer: AIMessage, thread: str) -> Calls:
    """The calls of the model's answer, with the verdict on each.

    Edits that cannot be made as the files are now are denied, so that nobody is asked in vain. One
    behind a call that changes something may still fit when its turn comes.
    """
    context = CallContext.of(deps, state, len(answer.tool_calls) == 1, state.get("refused", ()))
    judged = await judge_all(deps, context, answer.tool_calls)
    failing = dict[str, str]()
    for each in judged:
        if each.needs_person and (problem := await _find_problem(deps, context, each)) is not None:
            failing[each.id] = problem
        elif each.effect.changes_the_world and not each.verdict.changes_nothing:
            break
    judged = _deny_failing(judged, failing)
    return Calls(deps, str(answer.id), judged, context.approvals.value, thread)


def _deny_failing(judged: Sequence[Judged], failing: Mapping[str, str]) -> list[Judged]:
    """Deny those calls that would fail; ``failing`` has the reasons by id."""
    denied = {id: Verdict("deny", why, ToolFailedError) for id, why in failing.items()}
    return [Judged(each.call, denied[each.id]) if each.id in denied else each for each in judged]


async def _find_problem(deps: AgentDeps, context: CallContext, judged: Judged) -> str | None:
    """Why the edit cannot be made; as it quotes the file, only where the model may read that."""
    tool, args = judged.tool, judged.args
    if tool is None or args is None or not judged.edited_paths or not read_replacements(args):
        return None
    if not all(_may_read(deps, context, path) for path in judged.edited_paths):
        return None
    try:
        await asyncio.to_thread(apply_edit, deps.toolbox.workspace, tool, args)
    except ToolFailedError as error:
        return str(error)
    return None


def _may_read(deps: AgentDeps, context: CallContext, path: str) -> bool:
    """Whether each reading tool of the mode, and of the limit, shows the file unasked."""
    seat = context.seat
    specs = [deps.toolbox[name].spec for name in seat.tools]
    readers = [spec for spec in specs if spec.effect.reads_files and spec.paths]
    modes = [mode for mode in (seat.mode, seat.limit) if mode is not None]
    verdicts = [
        verdict(mode, spec, dict.fromkeys(spec.paths, path), context.approvals).kind
        for mode in modes
        for spec in readers
    ]
    return bool(verdicts) and {*verdicts} == {"allow"}
