"""What a person is asked, and what counts as an answer.

The batched human-in-the-loop shape of LangChain's middleware and Agent Chat UI.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Discriminator
from typing_extensions import TypedDict

from graph.harness import Harness
from graph.judge import Judged
from modes.errors import InvalidCallError, InvalidInputError
from modes.mode import Mode
from modes.permissions import covers, exact_pattern
from modes.toolspec import Effect
from modes.verdict import REMEMBERED_EFFECTS
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


class ActionRequest(TypedDict):
    """A call that waits for a decision."""

    name: str
    args: dict[str, Any]
    description: str
    id: str
    remember: NotRequired[str]
    """The pattern that ``"remember": true`` stands for, where it can be said."""


class ReviewConfig(TypedDict):
    """Which decisions an action takes."""

    action_name: str
    allowed_decisions: list[str]


class Request(TypedDict):
    """The value of the interrupt."""

    action_requests: list[ActionRequest]
    review_configs: list[ReviewConfig]


def request(harness: Harness, mode: Mode, asking: Sequence[Judged]) -> Request:
    """The question to put to the person."""
    return Request(
        action_requests=[_action_request(harness, mode, one) for one in asking],
        review_configs=[
            ReviewConfig(action_name=one.call["name"], allowed_decisions=list(_allowed(one)))
            for one in asking
        ],
    )


def _action_request(harness: Harness, mode: Mode, one: Judged) -> ActionRequest:
    asked = ActionRequest(
        name=one.call["name"],
        args=one.call["args"],
        description=describe(harness, mode, one),
        id=str(one.call["id"]),
    )
    if pattern := _exact(one):
        asked["remember"] = pattern
    return asked


def answer_schema(toolbox: Toolbox, asking: Sequence[Judged]) -> Any:
    """The type that an answer must be of; LangGraph leaves the interrupt open for any other.

    The check is part of the type because what is raised after ``interrupt()`` has
    returned comes too late: the answer counts as given by then.
    """

    def fits(answer: Decisions) -> Decisions:
        decisions = answer["decisions"]
        if len(decisions) != len(asking):
            raise InvalidInputError(
                f"{len(decisions)} decisions for {len(asking)} action requests; "
                "give one for each, in their order"
            )
        for decision, one in zip(decisions, asking, strict=True):
            _fits(toolbox, decision, one)
        return answer

    return Annotated[Decisions, AfterValidator(fits)]


def _fits(toolbox: Toolbox, decision: Decision, one: Judged) -> None:
    name, allowed = one.call["name"], _allowed(one)
    if decision["type"] not in allowed:
        raise InvalidInputError(
            f"decision {decision['type']!r} on {name}; allowed are: {', '.join(allowed)}"
        )
    if (
        decision["type"] == "approve"
        and "approvals" in decision
        and one.effect is not Effect.SWITCH
    ):
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
    assert one.tool is not None
    assert one.args is not None
    if one.effect not in REMEMBERED_EFFECTS:
        raise InvalidInputError(f"'remember' on {name}: a person decides it every time")
    if pattern is True and _exact(one) is None:
        raise InvalidInputError(
            f"'remember' on {name} needs a pattern here: {one.args!r} is not one plain command, "
            "or names no single file"
        )
    if isinstance(pattern, str) and not covers(one.tool.spec, pattern, one.args):
        raise InvalidInputError(
            f"the pattern {pattern!r} to remember does not match this call of {name}"
        )


def _exact(one: Judged) -> str | None:
    if one.effect not in REMEMBERED_EFFECTS or one.tool is None or one.args is None:
        return None
    return exact_pattern(one.tool.spec, one.args)


def _allowed(one: Judged) -> tuple[str, ...]:
    if one.effect is Effect.QUESTION:
        return ("respond", "reject")
    return ("approve", "edit", "reject")


def describe(harness: Harness, mode: Mode, one: Judged) -> str:
    """What a person reads before deciding."""
    assert one.args is not None
    match one.effect:
        case Effect.SWITCH:
            slug = one.args["mode_slug"]
            gained, lost = harness.machine.difference(mode.slug, slug)
            return (
                f"Switch from {mode.name} to {harness.catalog[slug].name} mode? "
                f"Reason: {_on_one_line(one.args['reason'])}\n{tools_change(gained, lost)}"
                + model_change(harness, mode.slug, slug)
            )
        case Effect.QUESTION:
            labels = [f"- {label}" for label in suggestions(one.args)]
            return "\n".join([one.args["question"], *labels])
        case _:
            return f"{mode.name} mode wants to use {one.call['name']}: {one.verdict.reason}."


def tools_change(gained: Sequence[str], lost: Sequence[str]) -> str:
    """Which tools a switch brings and takes, in words."""
    return f"Tools gained: {', '.join(gained) or 'none'}. Tools lost: {', '.join(lost) or 'none'}."


def model_change(harness: Harness, source: str, target: str) -> str:
    """Which model a switch brings, in words; empty where it is the same."""
    before, after = (
        harness.catalog[slug].model or harness.models.default for slug in (source, target)
    )
    return "" if before == after else f" Model: {after} instead of {before}."


def suggestions(args: dict[str, Any]) -> dict[str, str | None]:
    """The answers that a question suggests, each with the mode it switches to.

    The label names the mode: who chooses it has been told so, and an answer in
    other words never switches.
    """
    labels: dict[str, str | None] = {}
    for suggestion in args.get("follow_up") or ():
        mode_slug = suggestion.get("mode")
        text = _on_one_line(suggestion["text"])
        labels[text + (f" (switch to {mode_slug})" if mode_slug else "")] = mode_slug
    return labels


def _on_one_line(text: str) -> str:
    """So that the model's words cannot look like ours, or push ours out of sight."""
    return " ".join(text.split())
