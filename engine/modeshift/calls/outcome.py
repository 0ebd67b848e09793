"""``Outcome``: collects what follows from a person's decisions into one state update."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, assert_never

from langchain_core.messages import ToolCall, ToolMessage

from modeshift.calls.contents import digest_contents
from modeshift.calls.decisions import Approve, Decision, Edit, Respond
from modeshift.calls.judging import CallContext, Judged, judge
from modeshift.calls.remembered import remember
from modeshift.calls.requests import MAX_REASON, NO_REASON
from modeshift.calls.ways import list_suggestions
from modeshift.messages.normal_form import get_call_id
from modeshift.messages.repair import BEHIND, VOID, build_not_run_result, build_rejection
from modeshift.modes.effects import Effect
from modeshift.modes.facts import Done
from modeshift.modes.phases import Phase, Seen, choose
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import to_one_line
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import follow
from modeshift.threads.state import (
    Approved,
    Asked,
    NewTask,
    Planned,
    Switch,
    Todo,
    Update,
    list_switches,
)

How = Literal["by hand", "by edge"] | None


class JudgedQuestion(NamedTuple):
    """The open question, judged again."""

    message: str
    """The id of the message with the calls."""
    asked: Asked
    context: CallContext
    judged: list[Judged]
    id: str = ""
    """The question's name in its thread; empty where nobody is asked."""


class Outcome:
    """The decisions on the calls of one message; mutable."""

    def __init__(self, deps: AgentDeps, question: JudgedQuestion, thread: str) -> None:
        """``thread`` is an id."""
        self._deps = deps
        self._question = question
        self._context = question.context
        self._thread = thread
        self._approved: dict[str, Approved] = {}
        self._results: list[ToolMessage] = []
        self._switch: Switch | None = None
        self._refused = list(question.context.refused)
        self._facts = question.context.facts
        self._remembered = {approval["id"]: approval for approval in question.context.remembered}

    async def settle(self, decisions: Mapping[str, Decision]) -> None:
        """Apply the decisions, call by call; they are by id, of the calls that were asked about.

        Calls that a rejection voids are answered, whether somebody was asked about them or not.
        """
        rejected: list[Effect] = []
        for judged in self._question.judged:
            decision = decisions.get(judged.id)
            if decision is not None and decision["type"] == "reject":
                self._reject(judged, decision.get("message", ""))
                rejected.append(judged.effect)
            elif any(effect.voids(judged.effect) for effect in rejected):
                self._results.append(build_not_run_result(judged.call, BEHIND))
            elif decision is not None:
                await self._apply(judged, decision)
            elif judged.verdict.is_by_edge:
                reply = "Nobody had to be asked."
                self._choose(judged, judged.call["args"], reply, how="by edge")

    async def _apply(self, judged: Judged, decision: Approve | Edit | Respond) -> None:
        match decision["type"]:
            case "approve":
                remember = decision.get("remember", False)
                await self._approve(judged, decision.get("approvals"), remember)
                if self._switch and "context" in decision:
                    self._switch["context"] = decision["context"]
            case "edit":
                await self._edit(judged, decision["edited_action"]["args"])
            case "respond":
                self._respond(judged, decision["message"])
            case _:
                assert_never(decision["type"])

    async def _approve(self, judged: Judged, approvals: str | None, pattern: str | bool) -> None:
        """``pattern`` is what to remember: True for this very call, False for nothing."""
        if judged.effect.switches_mode:
            self._choose(judged, judged.call["args"], "The user approved.", approvals)
            return
        if await self._allow(judged, edited=False) and pattern is not False:
            pattern_text = judged.subject.exact if pattern is True else str(pattern)
            assert pattern_text is not None
            slug, tool = self._context.seat.mode.slug, judged.call["name"]
            approval = remember(self._deps, slug, tool, pattern_text, exact=pattern is True)
            self._remembered[approval["id"]] = approval

    async def _edit(self, judged: Judged, args: JsonObject) -> None:
        """Approve the call with these arguments, unless they are denied."""
        call = ToolCall(name=judged.call["name"], args=args, id=judged.call["id"], type="tool_call")
        # Earlier refusals do not count: the person has just asked for this.
        is_by_hand = (
            judged.effect.switches_mode and args["mode_slug"] != judged.call["args"]["mode_slug"]
        )
        context = replace(self._context, refused=(), is_by_hand=is_by_hand)
        edited = await judge(self._deps, context, call)
        if edited.verdict.kind == "deny":
            text = f"The user changed the arguments to {args!r}, which did not run either: "
            self._results.append(build_not_run_result(judged.call, text + edited.verdict.refusal))
        elif edited.plan != judged.plan and not is_by_hand and edited.effect.switches_mode:
            self._results.append(build_not_run_result(judged.call, VOID))
        elif edited.effect.switches_mode:
            how: How = "by hand" if is_by_hand else None
            self._choose(edited, args, "The user approved.", how=how)
        else:
            await self._allow(edited, edited=True)

    def _reject(self, judged: Judged, message: str) -> None:
        """Refuse the call; a rejected switch is not asked for again in this turn.

        A no with words to a plan asks for another plan: this one is not asked for again.
        """
        effect, plan = judged.effect, judged.plan
        if effect.switches_mode and not effect.starts_subtask and judged.args is not None:
            self._refused.append(plan["digest"] if plan and message else judged.args["mode_slug"])
        self._results.append(build_rejection(judged.call, message))

    def _respond(self, judged: Judged, message: str) -> None:
        """Answer a question; the label of a suggestion to switch approves that switch."""
        slug = self._context.seat.mode.slug
        mode_slug = list_suggestions(judged.args or {}).get(message.strip())
        if mode_slug not in (None, slug) and self._switch is None:
            self._choose(judged, {"mode_slug": mode_slug, "reason": message}, message)
        else:
            self._results.append(_success(judged.call, message))
        done = Done(tool=judged.call["name"], mode=slug, is_success=True, is_answer=True)
        self._facts = follow(self._deps, self._facts, done)

    async def _allow(self, judged: Judged, *, edited: bool) -> bool:
        """Let the call run, unless a file is not as it was when the person was asked."""
        before = self._question.asked["contents"]
        contents = await digest_contents(self._deps, judged.edited_paths)
        # Nobody was shown a file that only the person has named.
        known = {**contents, **before} if edited else before
        has_changed = any(known.get(path) != digest for path, digest in contents.items())
        journal, args = self._deps.started_calls.journal, judged.call["args"]
        key = judged.digest(self._thread, self._question.message)
        # Unless it was the call itself: then ``act`` has its result.
        if has_changed and await journal.read(key) is None:
            self._results.append(build_not_run_result(judged.call, VOID))
            return False
        approved = Approved(args=args, edited=edited, digest=key, contents=contents)
        self._approved[judged.id] = approved
        return True

    def _choose(
        self,
        judged: Judged,
        target: JsonObject,
        reply: str,
        approvals: str | None = None,
        how: How = None,
    ) -> None:
        """Record a switch. An earlier one is answered and replaced; sub-tasks follow each other."""
        task = None
        if judged.effect.starts_subtask:
            todos = [
                Todo(content=todo["content"], status=todo["status"])
                for todo in (judged.args or {}).get("todos") or ()  # a model may give mere texts
            ]
            task = NewTask(message=target["message"], todos=todos)
        why = task["message"] if task else (target.get("reason") or "").strip() or NO_REASON
        switch = Switch(
            mode_slug=target["mode_slug"],
            reason=to_one_line(why, MAX_REASON),
            task=task,
            call=judged.call,
            reply=reply,
            approvals=approvals,
            digest=self._deps.catalog[target["mode_slug"]].digest,
        )
        if how is not None:
            switch["how"] = how
        if judged.plan is not None:
            switch["approved_plan"] = judged.plan
        before = self._switch
        if before is not None and before.get("task") and task:
            switch = {**before, "then": [*before.get("then", ()), switch]}
        elif before is not None:
            self._results.append(_success(before["call"], before["reply"]))
        self._switch = switch

    def update(self) -> tuple[str, Update]:
        """The event that follows, and the state update."""
        settled = {result.tool_call_id for result in self._results}
        settled |= {get_call_id(switch["call"]) for switch in list_switches(self._switch)}
        left = [each for each in self._question.judged if each.id not in settled]
        due = list[list[Planned]]()
        if left:
            journal = self._deps.started_calls.journal.mark(self._thread)
            due = plan_batches(journal, self._question.message, left, self._approved)
        seen = Seen(has_calls=bool(due), has_switch=self._switch is not None)
        (event,) = choose(Phase.REVIEWING, seen)
        return event, Update(
            messages=self._results,
            switch=self._switch,
            refused=self._refused,
            facts=self._facts,
            remembered=list(self._remembered.values()),
            due_calls=due,
        )


def _success(call: ToolCall, text: str) -> ToolMessage:
    return ToolMessage(text, tool_call_id=get_call_id(call), name=call["name"])


def plan_batches(
    journal: str, message: str, judged: Sequence[Judged], approved: Mapping[str, Approved]
) -> list[list[Planned]]:
    """The calls in the order they run: those that change something alone, others in parallel.

    ``journal`` is ``Journal.mark``, ``message`` the id of the message that made the calls;
    ``approved`` is by call id.
    """
    plan: list[list[Planned]] = []
    beside = False
    for each in judged:
        planned = Planned(
            call=each.call,
            message=message,
            approved=approved.get(each.id),
            denied=each.verdict.refusal if each.verdict.kind == "deny" else None,
            journal=journal,
        )
        if each.effect.changes_the_world and not each.verdict.changes_nothing:  # may run twice
            planned["key"] = each.digest(message)
        if beside and each.runs_beside_others:
            plan[-1].append(planned)
        else:
            plan.append([planned])
        beside = each.runs_beside_others
    return plan
