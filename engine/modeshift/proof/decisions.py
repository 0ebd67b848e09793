"""``Decided``: what a person can say to the calls that ask, and what the engine makes of it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from langchain_core.messages.tool import ToolCall, tool_call

from modeshift.calls.decisions import Approve, Decision, Edit, EditedAction, Reject
from modeshift.calls.judging import CallContext, Judged, judge
from modeshift.calls.outcome import JudgedQuestion, Outcome
from modeshift.modes.policy import Approvals, Verdict
from modeshift.proof.nodes import drive
from modeshift.proof.places import Pending, read_switch
from modeshift.threads.deps import AgentDeps
from modeshift.threads.state import Asked
from modeshift.tools.tool import Tool

POLICIES = tuple(policy.value for policy in Approvals)
_CALL = Judged(tool_call(name="-", args={}, id="call"), Verdict("ask", "-"))
"""Stands for any call that is no switch."""
_YES, _NO = Approve(type="approve"), Reject(type="reject")


class Decided(NamedTuple):
    """What a person, or an edge, has decided."""

    what: str
    event: str
    switch: Pending | None = None
    meant: Pending | None = None
    """The switch as it was decided; ``switch`` is what the engine makes of it."""


def list_decided(
    deps: AgentDeps, context: CallContext, switching: Iterable[Tool]
) -> Iterator[Decided]:
    """All decisions on a call, on a switch or a sub-task, and on both."""
    for what, said in (("a person approves a call", _YES), ("a person says no", _NO)):
        yield Decided(what, *_settle(deps, context, [_CALL], {"call": said}))
    for tool in switching:
        chosen, behind = set[str](), ""
        for slug in deps.catalog:
            judged = drive(judge(deps, context, _call(tool, slug)))
            others = [other for other in deps.catalog if other not in (slug, *chosen)]
            for verb, meant, decision in _list_answers(tool, judged, slug, others):
                chosen.add(meant.target if meant.how == "by hand" else "")
                event, switch = _settle(deps, context, [judged], decision)
                both = {"call": _YES, **decision}  # which leads on alike with each
                behind = behind or _settle(deps, context, [_CALL, judged], both)[0]
                if switch is not None:
                    yield Decided(f"{verb} {meant}", event, switch, meant)
                    yield Decided(f"{verb} {meant} behind a call", behind, switch, meant)


def _list_answers(
    tool: Tool, judged: Judged, slug: str, others: Iterable[str]
) -> Iterator[tuple[str, Pending, Mapping[str, Decision]]]:
    """The answers to one call, each with the switch that the person means."""
    meant = Pending(slug, tool.spec.effect.starts_subtask, None)
    if judged.verdict.is_by_edge:
        yield "nobody is asked about", meant._replace(how="by edge"), {}
    elif judged.verdict.kind != "deny":
        yield "a person approves", meant, {"switch": _YES}
        for policy in Approvals:
            approve = Approve(type="approve", approvals=policy.value)
            yield "a person approves", meant._replace(approvals=policy.value), {"switch": approve}
        if others:  # as on each other card
            yield "a person rewords", meant, {"switch": _edit(tool, slug, "other words")}
        for other in others:
            by_hand = meant._replace(target=other, how="by hand")
            yield "a person chooses", by_hand, {"switch": _edit(tool, other)}


def _call(tool: Tool, slug: str, words: str = "-") -> ToolCall:
    why = "message" if tool.spec.effect.starts_subtask else "reason"
    return tool_call(name=tool.spec.name, args={"mode_slug": slug, why: words}, id="switch")


def _edit(tool: Tool, slug: str, words: str = "-") -> Edit:
    args = _call(tool, slug, words)["args"]
    return Edit(type="edit", edited_action=EditedAction(name=tool.spec.name, args=args))


def _settle(
    deps: AgentDeps, context: CallContext, judged: list[Judged], decisions: Mapping[str, Decision]
) -> tuple[str, Pending | None]:
    """The event that ``review`` sends, and the switch that is then due."""
    question = JudgedQuestion("", Asked(digest="", contents={}), context, judged)
    outcome = Outcome(deps, question, "")
    drive(outcome.settle(decisions))
    event, update = outcome.update()
    return event, read_switch(update["switch"])
