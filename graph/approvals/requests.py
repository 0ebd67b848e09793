"""What a person is asked, and what counts as an answer.

The batched human-in-the-loop shape of LangChain's middleware and Agent Chat UI.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Discriminator
from typing_extensions import TypedDict

from graph.approvals.descriptions import describe
from graph.approvals.judging import Judged
from graph.deps import AgentDeps
from modes.errors import InvalidCallError, InvalidInputError
from modes.mode import Mode
from modes.plain_text import escaped
from modes.rules.matching import check_pattern
from tools.toolbox import Toolbox


class Approve(TypedDict):
    """Let the call run as it is."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # how pydantic is told
    type: Literal["approve"]
    approvals: NotRequired[Literal["manual", "auto"]]
    """With a switch: the policy to set along with it."""
    remember: NotRequired[bool | str]
    """Allow the like of it from now on, in this thread and mode: this very command or file
    (true), or all that match a pattern."""


class Reject(TypedDict):
    """Do not let it run."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    type: Literal["reject"]
    message: NotRequired[str]


class EditedAction(TypedDict):
    """The same tool with other arguments."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    name: str
    args: dict[str, Any]


class Edit(TypedDict):
    """Let the call run with other arguments, which are judged again."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    type: Literal["edit"]
    edited_action: EditedAction


class Respond(TypedDict):
    """Answer the question."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    type: Literal["respond"]
    message: str


Decision = Annotated[Approve | Reject | Edit | Respond, Discriminator("type")]


class Decisions(TypedDict):
    """One decision for each action request, in order."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    decisions: list[Decision]
    question: NotRequired[str]
    """The question's own name: an answer to another one is refused."""


class ActionRequest(TypedDict):
    """A call that waits for a decision."""

    name: str
    args: dict[str, Any]
    description: str
    id: str
    remember: NotRequired[str]
    """What ``"remember": true`` would remember, where that is possible."""


class ReviewConfig(TypedDict):
    """Which decisions an action takes."""

    action_name: str
    allowed_decisions: list[str]


class Request(TypedDict):
    """The value of the interrupt."""

    action_requests: list[ActionRequest]
    review_configs: list[ReviewConfig]
    question: str
    """Names this question; an answer may say which it is for."""


def build_request(deps: AgentDeps, mode: Mode, asking: Sequence[Judged], unique: str) -> Request:
    """The question to put to the person; ``unique`` differs from one question to another."""
    return Request(
        question=sha256(unique.encode()).hexdigest()[:16],
        action_requests=[_action_request(deps, mode, one) for one in asking],
        review_configs=[
            ReviewConfig(action_name=one.call["name"], allowed_decisions=list(_allowed(one)))
            for one in asking
        ],
    )


def _action_request(deps: AgentDeps, mode: Mode, one: Judged) -> ActionRequest:
    asked = ActionRequest(
        name=one.call["name"],
        args=one.call["args"],
        description=describe(deps, mode, one),
        id=str(one.call["id"]),
    )
    if one.can_be_remembered and one.exact is not None:
        asked["remember"] = escaped(one.exact)
    return asked


def build_answer_schema(deps: AgentDeps, asking: Sequence[Judged], question: str) -> Any:
    """The type that an answer must be of; LangGraph leaves the interrupt open for any other.

    The check is part of the type because what is raised after ``interrupt()`` has
    returned comes too late: the answer counts as given by then.
    """

    def fits(answer: Decisions) -> Decisions:
        _is_for(question, answer.get("question"), is_required=deps.bound_answers)
        decisions = answer["decisions"]
        if len(decisions) != len(asking):
            raise InvalidInputError(
                f"{len(decisions)} decisions for {len(asking)} action requests; "
                "give one for each, in their order"
            )
        for decision, one in zip(decisions, asking, strict=True):
            _fits(deps.toolbox, decision, one)
        return answer

    return Annotated[Decisions, AfterValidator(fits)]


def _is_for(question: str, given: str | None, *, is_required: bool) -> None:
    if given is None and is_required:
        raise InvalidInputError(f'the answer must name its question: "question": {question!r}')
    if given not in (None, question):
        raise InvalidInputError(f"an answer to {given!r}; the question is {question!r} by now")


def _fits(toolbox: Toolbox, decision: Decision, one: Judged) -> None:
    name, allowed = one.call["name"], _allowed(one)
    if decision["type"] not in allowed:
        raise InvalidInputError(
            f"decision {decision['type']!r} on {name}; allowed are: {', '.join(allowed)}"
        )
    if decision["type"] == "approve" and "approvals" in decision and not one.effect.switches_mode:
        raise InvalidInputError(f"'approvals' goes with the approval of a switch, not of {name}")
    if decision["type"] == "approve" and decision.get("remember", False) is not False:
        _fits_remember(decision["remember"], one)
    if decision["type"] == "edit":
        edited = decision["edited_action"]
        if edited["name"] != name:
            raise InvalidInputError(
                f"an edit changes the arguments of {name}, not the tool (got {edited['name']!r})"
            )
        try:
            toolbox.validate(toolbox[name], edited["args"])
        except InvalidCallError as error:
            raise InvalidInputError(str(error)) from error


def _fits_remember(pattern: bool | str, one: Judged) -> None:
    name = one.call["name"]
    if not one.can_be_remembered:
        raise InvalidInputError(f"'remember' on {name}: a person decides it every time")
    if pattern is True and one.exact is None:
        raise InvalidInputError(
            f"'remember' on {name} needs a pattern here: this is not one plain command or file"
        )
    if isinstance(pattern, str):
        assert one.tool is not None
        try:
            check_pattern(one.tool.spec, pattern)
        except ValueError as error:
            raise InvalidInputError(f"cannot remember: {error}") from error
        if not one.is_covered_by(pattern):
            raise InvalidInputError(
                f"the pattern {pattern!r} to remember does not match this call of {name}"
            )


def _allowed(one: Judged) -> tuple[str, ...]:
    if one.effect.takes_answer:
        return ("respond", "reject")
    return ("approve", "edit", "reject")
