"""``judge_question``: the question that is open, a ``JudgedQuestion``, by its calls now."""

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


class JudgedQuestion(NamedTuple):
    """The open question, judged again."""

    message: str
    """The id of the message with the calls."""
    asked: Asked
    context: CallContext
    judged: list[Judged]
    id: str = ""
    """The question's name in its thread; empty where nobody is asked."""

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
    context = CallContext.of(deps, state, len(message.tool_calls) == 1, state.get("refused", ()))
    context = replace(context, approvals=Approvals(asked.get("approvals", context.approvals)))
    judged = await judge_all(deps, context, calls)
    if failing := asked.get("failing"):
        judged = deny_failing(judged, failing)
    if asked["digest"] != digest_question(judged):
        return None
    id = f"{message.id} {asked['digest']}"
    return JudgedQuestion(str(message.id), asked, context, judged, id)


def digest_question(judged: Sequence[Judged]) -> str:
    """A digest of the calls and the kinds of their verdicts: the same question, the same digest."""
    return sha256(
        "".join(each.verdict.kind + each.digest() for each in judged).encode()
    ).hexdigest()


def deny_failing(judged: Sequence[Judged], failing: Mapping[str, str]) -> list[Judged]:
    """Deny those calls that would fail; ``failing`` has the reasons by id."""
    denied = {id: Verdict("deny", why, ToolFailedError) for id, why in failing.items()}
    return [Judged(each.call, denied[each.id]) if each.id in denied else each for each in judged]
