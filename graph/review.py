"""``review``: one interrupt for all calls of a message that need a person."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite, interrupt

from graph.approvals.always_allow import remember
from graph.approvals.contents import digest_files, edited_files
from graph.approvals.identity import digest_call, digest_question
from graph.approvals.judging import CallContext, Judged, judge, judge_all, plan_batches
from graph.approvals.requests import Decision, Decisions, build_answer_schema, build_request
from graph.approvals.suggestions import suggestions
from graph.deps import AgentDeps
from graph.messages.repair import (
    VOID,
    call_id,
    is_only_call,
    last_answer,
    not_run,
    open_calls,
    repair,
)
from graph.mode_changes import reconcile_mode
from graph.routing import Node
from graph.state import Approved, ModeChange, Remembered, State, Switch
from modes.machine import Configuration, Event


def review_node(deps: AgentDeps) -> Node:
    """On resume the node runs again from its start; nothing in it has an effect outside."""

    async def review(state: State, config: RunnableConfig) -> dict[str, Any]:
        calls = open_calls(state["messages"])
        now, change = reconcile_mode(deps, state)
        if change or not calls:
            return _void(deps, state, now, change)
        context = CallContext.of(deps, state, is_only_call(state["messages"]), state["refused"])
        judged = await judge_all(deps, context, calls)
        if state.get("asked_under") != digest_question(deps, context, judged):
            return _void(deps, state, now, change)
        asking = [one for one in judged if one.verdict.kind == "ask"]
        message = last_answer(state["messages"])
        assert message is not None
        refused, asked_of = list(state["refused"]), state.get("asked_of", {})
        outcome = Outcome(deps, config, context, str(message.id), refused, asked_of)
        if asking:
            asked = build_request(deps, context.mode, asking, f"{message.id}{state['asked_under']}")
            answer: Decisions = interrupt(
                asked, response_schema=build_answer_schema(deps, asking, asked["question"])
            )
            for one, decision in zip(asking, answer["decisions"], strict=True):
                await outcome.take(one, decision)
        return outcome.update(now, judged, state.get("remembered", []))

    return review


def _void(
    deps: AgentDeps, state: State, now: Configuration, change: list[ModeChange]
) -> dict[str, Any]:
    """Nobody is held to what was asked in another mode, under other rules, of other files."""
    return {
        "messages": Overwrite(repair(state["messages"], text=VOID)),
        "mode": now.mode,
        "mode_changes": change,
        "phase": deps.machine.send(now, Event.DECIDED).phase.value,
        "notices": [*state.get("notices", []), VOID],
    }


class Outcome:
    """What comes of a person's decisions."""

    def __init__(
        self,
        deps: AgentDeps,
        config: RunnableConfig,
        context: CallContext,
        message: str,
        refused: list[str],
        asked_of: Mapping[str, str],
    ) -> None:
        """``message`` is the id of the one whose calls are decided on.

        ``asked_of`` are the ``contents`` at the time of the question.
        """
        self._deps = deps
        self._config = config
        self._context = context
        self._message = message
        self._refused = refused
        self._asked_of = asked_of
        self._approved: dict[str, Approved] = {}
        self._answers: list[ToolMessage] = []
        self._switch: Switch | None = None
        self._remembered: list[Remembered] = []

    async def take(self, one: Judged, decision: Decision) -> None:
        """Take in the decision on one call."""
        match decision["type"]:
            case "approve":
                if await self._approve(one, approvals=decision.get("approvals")):
                    self._remember(one, decision.get("remember", False))
            case "edit":
                await self._edit(one, decision["edited_action"]["args"])
            case "reject":
                self._reject(one, decision.get("message", ""))
            case "respond":
                self._respond(one, decision["message"])
            case _:
                assert_never(decision["type"])

    async def _approve(
        self, one: Judged, *, approvals: str | None = None, is_edit: bool = False
    ) -> bool:
        """Whether the approval holds: for a file in which there is another text it does not."""
        if one.effect.switches_mode:
            self._choose(one, one.call["args"], "The user approved.", approvals)
            return True
        files = edited_files(one)
        content = await digest_files(self._deps, files) if files else ""
        if files and not is_edit and content != self._asked_of.get(call_id(one.call)):
            self._answers.append(not_run(one.call, VOID))
            return False
        self._approved[call_id(one.call)] = Approved(
            args=one.call["args"],
            edited=is_edit,
            digest=digest_call(self._deps, self._context, one, self._config),
            files=files,
            content=content,
        )
        return True

    def _remember(self, one: Judged, pattern: str | bool) -> None:
        if pattern is False:
            return
        what = one.exact if pattern is True else str(pattern)
        assert what is not None
        slug, tool = self._context.mode.slug, one.call["name"]
        kept = remember(self._deps, slug, tool, what, exact=pattern is True)
        self._remembered.append(kept)

    def _choose(
        self, one: Judged, target: Mapping[str, Any], reply: str, approvals: str | None = None
    ) -> None:
        """Take a switch; one that was taken before gives way, and its call gets its answer."""
        if self._switch is not None:
            self._answers.append(_success(self._switch["call"], self._switch["reply"]))
        self._switch = Switch(
            mode_slug=target["mode_slug"],
            reason=target["reason"],
            call=one.call,
            reply=reply,
            approvals=approvals,
            digest=self._deps.catalog[target["mode_slug"]].digest,
        )

    async def _edit(self, one: Judged, args: dict[str, Any]) -> None:
        call = ToolCall(name=one.call["name"], args=args, id=one.call["id"], type="tool_call")
        # The person may well want now what they refused before.
        edited = await judge(self._deps, replace(self._context, refused=()), call)
        if edited.verdict.kind == "deny":
            text = f"The user changed the arguments to {args!r}, which did not run either: "
            self._answers.append(not_run(one.call, text + edited.verdict.refusal))
        else:
            await self._approve(edited, is_edit=True)

    def _reject(self, one: Judged, message: str) -> None:
        if one.effect.switches_mode and one.args is not None:
            self._refused.append(one.args["mode_slug"])
        why = f" and said: {message}" if message else "; do not repeat it unless asked to"
        self._answers.append(not_run(one.call, f"Not run: the user rejected this call{why}"))

    def _respond(self, one: Judged, message: str) -> None:
        mode_slug = suggestions(one.args or {}).get(message.strip())
        if mode_slug is not None and mode_slug != self._context.mode.slug and self._switch is None:
            self._choose(one, {"mode_slug": mode_slug, "reason": message}, message)
        else:
            self._answers.append(_success(one.call, message))

    def update(
        self, now: Configuration, judged: list[Judged], remembered: list[Remembered]
    ) -> dict[str, Any]:
        """The update of the state, and where the machine goes with it."""
        settled = {answer.tool_call_id for answer in self._answers}
        if self._switch is not None:
            settled.add(call_id(self._switch["call"]))
        left = [one for one in judged if call_id(one.call) not in settled]
        plan = plan_batches(self._deps, self._message, left, self._approved)
        event = Event.ACT if plan else Event.SWITCH if self._switch else Event.DECIDED
        return {
            "messages": self._answers,
            "switch": self._switch,
            "refused": self._refused,
            "remembered": list(
                {one["id"]: one for one in (*remembered, *self._remembered)}.values()
            ),
            "plan": plan,
            "phase": self._deps.machine.send(now, event).phase.value,
        }


def _success(call: ToolCall, text: str) -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id(call), name=call["name"])
