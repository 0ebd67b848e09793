"""``Question``: the calls that wait for a person, as long as they would be asked about just so."""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from graph.approvals.judged import Judged
from graph.approvals.judging import CallContext, judge_all
from graph.deps import AgentDeps
from graph.messages.repair import find_last_answer, find_open_calls
from graph.records.approvals import Asked
from graph.state import State


class Question(NamedTuple):
    """The open question, judged anew."""

    message: str
    """The id of the message with the calls."""
    asked: Asked
    context: CallContext
    judged: list[Judged]


async def judge_question(deps: AgentDeps, state: State) -> Question | None:
    """The question that is open; None if there is none, or it would be another one now."""
    message, calls = find_last_answer(state["messages"]), find_open_calls(state["messages"])
    asked = state.get("asked")
    if not calls or message is None or asked is None:
        return None
    context = CallContext.of(deps, state, len(message.tool_calls) == 1, state["refused"])
    judged = await judge_all(deps, context, calls)
    if asked["digest"] != digest_question(judged):
        return None
    return Question(str(message.id), asked, context, judged)


def digest_question(judged: Sequence[Judged]) -> str:
    """A digest of the calls and the kinds of their verdicts: the same question, the same digest."""
    return sha256("".join(one.verdict.kind + one.digest() for one in judged).encode()).hexdigest()
