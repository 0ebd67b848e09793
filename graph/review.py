"""``review``: one interrupt for all calls of a message that need a person."""

from typing import Any, assert_never

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.types import interrupt

from graph.decisions import Decision, Decisions, answer_schema, request, suggestions
from graph.harness import Harness
from graph.history import call_id, is_alone, open_calls
from graph.judge import Judged, Moment, batches, judge, judge_all
from graph.node import Node, configuration
from graph.state import Approved, State, Switch
from modes.machine import Event
from modes.toolspec import Effect


def review_node(harness: Harness) -> Node:
    """On resume the node runs again from its start; nothing in it has an effect outside."""

    async def review(state: State) -> dict[str, Any]:
        moment = Moment.of(harness, state, is_alone(state["messages"]))
        judged = await judge_all(harness, moment, open_calls(state["messages"]))
        asking = [one for one in judged if one.verdict.kind == "ask"]
        outcome = Outcome(harness, moment, list(state["refused"]))
        if asking:
            answer: Decisions = interrupt(
                request(harness, moment.mode, asking),
                response_schema=answer_schema(harness.toolbox, asking),
            )
            for one, decision in zip(asking, answer["decisions"], strict=True):
                await outcome.take(one, decision)
        return outcome.update(state, judged)

    return review


class Outcome:
    """What comes of a person's decisions."""

    def __init__(self, harness: Harness, moment: Moment, refused: list[str]) -> None:
        self._harness = harness
        self._moment = moment
        self._refused = refused
        self._approved: dict[str, Approved] = {}
        self._answers: list[ToolMessage] = []
        self._switch: Switch | None = None

    async def take(self, one: Judged, decision: Decision) -> None:
        """Take in the decision on one call."""
        match decision["type"]:
            case "approve":
                self._approve(one, approvals=decision.get("approvals"))
            case "edit":
                await self._edit(one, decision["edited_action"]["args"])
            case "reject":
                self._reject(one, decision.get("message", ""))
            case "respond":
                self._respond(one, decision["message"])
            case _:
                assert_never(decision["type"])

    def _approve(self, one: Judged, *, approvals: str | None = None, is_edit: bool = False) -> None:
        if one.effect is Effect.SWITCH:
            args = one.call["args"]
            self._switch = Switch(
                mode_slug=args["mode_slug"],
                reason=args["reason"],
                call_id=call_id(one.call),
                approvals=approvals,
            )
        else:
            self._approved[call_id(one.call)] = Approved(
                name=one.call["name"], args=one.call["args"], edited=is_edit
            )

    async def _edit(self, one: Judged, args: dict[str, Any]) -> None:
        edited = await judge(self._harness, self._moment, ToolCall(**{**one.call, "args": args}))
        if edited.verdict.kind == "deny":
            self._answer(
                one,
                f"The user changed the arguments to {args!r}, which did not run either: "
                f"{edited.verdict.refusal}",
            )
        else:
            self._approve(edited, is_edit=True)

    def _reject(self, one: Judged, message: str) -> None:
        if one.effect is Effect.SWITCH and one.args is not None:
            self._refused.append(one.args["mode_slug"])
        why = f" and said: {message}" if message else "; do not repeat it unless asked to"
        self._answer(one, f"Not run: the user rejected this call{why}")

    def _respond(self, one: Judged, message: str) -> None:
        self._answer(one, message, status="success")
        mode_slug = suggestions(one.args or {}).get(message.strip())
        if mode_slug and mode_slug != self._moment.mode.slug and self._switch is None:
            self._switch = Switch(mode_slug=mode_slug, reason=message, call_id=None, approvals=None)

    def _answer(self, one: Judged, text: str, status: Any = "error") -> None:
        self._answers.append(
            ToolMessage(text, tool_call_id=call_id(one.call), name=one.call["name"], status=status)
        )

    def update(self, state: State, judged: list[Judged]) -> dict[str, Any]:
        """The update of the state, and where the machine goes with it."""
        settled = {answer.tool_call_id for answer in self._answers}
        if self._switch is not None:
            settled.add(self._switch["call_id"] or "")
        plan = batches(
            [one for one in judged if call_id(one.call) not in settled],
            self._approved,
        )
        event = Event.ACT if plan else Event.SWITCH if self._switch else Event.DECIDED
        return {
            "messages": self._answers,
            "switch": self._switch,
            "refused": self._refused,
            "plan": plan,
            "phase": self._harness.machine.send(configuration(state), event).phase.value,
        }
