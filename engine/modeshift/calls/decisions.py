"""What a person may decide, and the check of a decision before it counts.

The shape is that of LangChain's human-in-the-loop middleware and of Agent Chat UI.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired

from langgraph.types import interrupt
from pydantic import AfterValidator, Discriminator, RootModel, ValidationError, with_config
from typing_extensions import TypedDict, override

from modeshift.calls.judging import Judged
from modeshift.calls.requests import build_own_request
from modeshift.modes.edges.edges import Context
from modeshift.modes.errors import InvalidCallError, InvalidInputError, describe_misfit
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.rules.matching import check_pattern
from modeshift.threads.deps import AgentDeps
from modeshift.tools.toolbox import Toolbox


@with_config(extra="forbid")
class _Decided(TypedDict):
    id: NotRequired[str]
    """The action request's id; with it decisions may come in any order."""


class Approve(_Decided):
    """Let the call run as it is."""

    type: Literal["approve"]
    approvals: NotRequired[Literal["manual", "auto"]]
    """With a switch: the policy to set along with it."""
    context: NotRequired[Context]
    """With a plan: what the model is sent from then on, if not as the edge says."""
    remember: NotRequired[bool | str]
    """Stop asking in this thread and mode: for this very command or file (true), or for all that
    match a pattern."""


class Reject(_Decided):
    """Do not let it run."""

    type: Literal["reject"]
    message: NotRequired[str]


@with_config(extra="forbid")
class EditedAction(TypedDict):
    """The same tool with other arguments."""

    name: str
    args: JsonObject


class Edit(_Decided):
    """Let the call run with other arguments, which are judged again."""

    type: Literal["edit"]
    edited_action: EditedAction


class Respond(_Decided):
    """Answer the question."""

    type: Literal["respond"]
    message: str


EXAMPLE = '{"decisions": [{"type": "approve"}]}, with one decision for each action request'
YES_OR_NO = frozenset({"type", "message", "id"})
Decision = Annotated[Approve | Reject | Edit | Respond, Discriminator("type")]


@with_config(extra="forbid")
class Decisions(TypedDict):
    """One decision for each action request, in order or by ``id``."""

    decisions: list[Decision]
    question: NotRequired[str]
    """The question's id: an answer to another one is refused."""


_Check = Callable[[list[Decision]], list[Decision]]
_check: ContextVar[Callable[[Decisions], Decisions]] = ContextVar("check")


def _run_check(answer: Decisions) -> Decisions:
    return _check.get()(answer)


SCHEMA = {
    "description": f"Such as {EXAMPLE}.",
    "type": "object",
    "required": ["decisions"],
    "properties": {"decisions": {"type": "array"}, "question": {"type": "string"}},
}
"""What clients see of an answer: LangGraph copies it piece by piece, a few times a question."""


class _Answer(RootModel[Annotated[Decisions, AfterValidator(_run_check)]]):
    """The type of an answer: a model, for LangGraph builds any other type for every question."""

    @classmethod
    @override
    def __get_pydantic_json_schema__(cls, core: object, handler: object) -> JsonObject:
        return SCHEMA


def ask_person(
    deps: AgentDeps, asking: Sequence[Judged], request: Mapping[str, object]
) -> list[Decision]:
    """Interrupt the run until a person has decided on each call.

    Raises ``InvalidInputError`` for an answer that does not fit, and the interrupt stays open.
    """

    def check(decisions: list[Decision]) -> list[Decision]:
        if len(decisions) != len(asking):
            raise InvalidInputError(
                f"{len(decisions)} decisions for {len(asking)} action requests; "
                "give one for each, in their order"
            )
        decisions = _put_in_order(decisions, asking)
        for decision, judged in zip(decisions, asking, strict=True):
            _check_decision(deps.toolbox, decision, judged)
        return decisions

    return _interrupt(deps, request, check)


@dataclass(frozen=True)
class Answer:
    """A person's answer to a node's own question; it is true for yes."""

    is_yes: bool
    reason: str = ""
    """What they said with a no."""

    def __bool__(self) -> bool:
        return self.is_yes


def ask_yes_or_no(
    deps: AgentDeps, name: str, text: str, args: Mapping[str, object], *unique: object
) -> Answer:
    """The answer to a node's own question; each has ``unique`` parts of its own."""

    def check(decisions: list[Decision]) -> list[Decision]:
        match decisions:
            case [{"type": "approve" | "reject"} as decision] if decision.keys() <= YES_OR_NO:
                return decisions
        raise InvalidInputError(f"this question takes one yes or no; give {EXAMPLE}")

    request = build_own_request(name, text, args, "\0".join(map(str, unique)))
    (decision,) = _interrupt(deps, request, check)
    is_yes = decision["type"] == "approve"
    return Answer(is_yes, "" if decision["type"] != "reject" else decision.get("message", ""))


def _interrupt(deps: AgentDeps, request: Mapping[str, object], check: _Check) -> list[Decision]:
    # LangGraph runs the check before it takes the answer as given; after that is too late.
    def check_all(answer: Decisions) -> Decisions:
        answered, question = answer.get("question"), request["question"]
        if answered is None and deps.bound_answers:
            raise InvalidInputError(f'the answer must name its question: "question": {question!r}')
        if answered not in (None, question):
            raise InvalidInputError(
                f"this answers question {answered!r}, but the question is now {question!r}"
            )
        return {**answer, "decisions": check(answer["decisions"])}

    token = _check.set(check_all)
    try:
        answer = interrupt(request, response_schema=_Answer).root
    except ValidationError as error:
        text = describe_misfit(error)
        if error.errors()[0]["type"] != "value_error":  # pydantic's words, not those of check
            text = f"the answer does not fit: {text}; give {EXAMPLE}"
        raise InvalidInputError(text) from None
    finally:
        _check.reset(token)
    return answer["decisions"]


def _put_in_order(decisions: list[Decision], asking: Sequence[Judged]) -> list[Decision]:
    ids = [call.id for call in asking]
    named = [decision["id"] for decision in decisions if "id" in decision]
    if not named:
        return decisions
    if sorted(named) != sorted(ids):
        raise InvalidInputError(
            f"the decisions are for the ids {named!r}; give one for each of: {', '.join(ids)}"
        )
    return sorted(decisions, key=lambda decision: ids.index(decision["id"]))


def _check_decision(toolbox: Toolbox, decision: Decision, judged: Judged) -> None:
    name, allowed = judged.call["name"], judged.allowed_decisions
    if decision["type"] not in allowed:
        raise InvalidInputError(
            f"decision {decision['type']!r} on {name}; allowed are: {', '.join(allowed)}"
        )
    if decision["type"] == "approve":
        if "context" in decision and judged.plan is None:
            raise InvalidInputError(f"'context' goes with a plan, and {name} hands over none")
        if "approvals" in decision and not judged.effect.switches_mode:
            raise InvalidInputError(
                f"'approvals' goes with the approval of a switch, not of {name}"
            )
        _check_remember(decision.get("remember", False), judged)
    if decision["type"] == "edit":
        edited = decision["edited_action"]
        if edited["name"] != name:
            raise InvalidInputError(
                f"an edit changes the arguments of {name}, not the tool (got {edited['name']!r})"
            )
        assert judged.tool is not None and judged.args is not None
        own = {key: judged.args[key] for key in judged.tool.spec.state}
        try:
            toolbox.validate(judged.tool, toolbox.fill_in(name, edited["args"], own))
        except InvalidCallError as error:
            raise InvalidInputError(str(error)) from error


def _check_remember(pattern: bool | str, judged: Judged) -> None:
    if pattern is False:
        return
    name = judged.call["name"]
    if not judged.can_be_remembered:
        raise InvalidInputError(f"'remember' on {name}: a person decides on this every time")
    if pattern is True:
        if judged.subject.exact is None:
            raise InvalidInputError(
                f"'remember' on {name} needs a pattern: this is not one plain command or file"
            )
        return
    assert judged.tool is not None
    try:
        check_pattern(judged.tool.spec, pattern)
    except ValueError as error:
        raise InvalidInputError(f"cannot remember: {error}") from error
    if not judged.subject.certainly_matches(pattern):
        raise InvalidInputError(
            f"the pattern {pattern!r} to remember does not match this call of {name}"
        )
