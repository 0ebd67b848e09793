"""``JudgedQuestion``: the question that is open, whose calls are judged again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import NamedTuple

from modeshift.calls.judging import CallContext, Judged, judge_all
from modeshift.messages.repair import find_last_answer, find_open_calls
from modeshift.modes.errors import ToolFailedError
from modeshift.modes.policy import Approvals, Verdict
from modeshift.threads.deps import AgentDeps
from modeshift.threads.state import Asked, State


def deny_failing(judged: Sequence[Judged], failing: Mapping[str, str]) -> list[Judged]:
    """Deny those calls that would fail; ``failing`` has the reasons by id."""
    return [
        Judged(each.call, Verdict("deny", failing[each.id], ToolFailedError))
        if each.id in failing
        else each
        for each in judged
    ]


def find_failing(judged: Sequence[Judged]) -> dict[str, str]:
    """The reasons of calls that were denied as failing, by id, for ``deny_failing``."""
    return {
        each.id: each.verdict.reason for each in judged if each.verdict.error is ToolFailedError
    }


class JudgedQuestion(NamedTuple):
    """The open question, judged again."""

    message: str
    """The id of the message with the calls."""
    asked: Asked
    context: CallContext
    judged: list[Judged]

    @property
    def id(self) -> str:
        """Names the question in its thread."""
        return f"{self.message} {self.asked['digest']}"

    def describe(self, decided: Mapping[str, str]) -> dict[str, object]:
        """The calls and what was ``decided``, by id, and what the machine allowed then."""
        calls = [{**each.describe(), "decision": decided.get(each.id)} for each in self.judged]
        return {**self.context.describe(), "calls": calls}


async def judge_question(deps: AgentDeps, state: State) -> JudgedQuestion | None:
    """The question that is open; None if there is none, or it would be another one now."""
    message, calls = find_last_answer(state["messages"]), find_open_calls(state["messages"])
    asked = state.get("asked")
    if not calls or message is None or asked is None:
        return None
    context = CallContext.of(deps, state, len(message.tool_calls) == 1, state["refused"])
    context = replace(context, approvals=Approvals(asked.get("approvals", context.approvals)))
    judged = deny_failing(await judge_all(deps, context, calls), asked.get("failing", {}))
    if asked["digest"] != digest_question(judged):
        return None
    return JudgedQuestion(str(message.id), asked, context, judged)


def digest_question(judged: Sequence[Judged]) -> str:
    """A digest of the calls and the kinds of their verdicts: the same question, the same digest."""
    return sha256(
        "".join(each.verdict.kind + each.digest() for each in judged).encode()
    ).hexdigest()
