"""The questions to a person: what an editor asks, and which decision an answer is."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    PermissionOptionKind,
    RequestPermissionResponse,
    ToolCallUpdate,
)
from langchain_core.messages import ToolCall

from doors.editor.content import as_output
from doors.editor.diffs import Content
from doors.editor.folder import Folder
from doors.editor.tool_calls import ToolCallView
from graph.approvals.requests import ActionRequest
from graph.approvals.suggestions import suggestions
from graph.deps import AgentDeps
from modes.errors import ToolFailedError
from modes.plain_text import plain

MAX_TARGETS = 4
MAX_ANSWERS = 4
MAX_PLAN = 20_000
MAX_LABEL = 80


@dataclass(frozen=True)
class Option:
    """One way to answer; ``decision`` is None for an answer in the chat."""

    id: str
    name: str
    kind: PermissionOptionKind
    decision: dict[str, Any] | None


@dataclass(frozen=True)
class Question:
    """One call that needs a person."""

    view: ToolCallView
    content: tuple[Content, ...]
    options: tuple[Option, ...]

    @classmethod
    def of(
        cls,
        deps: AgentDeps,
        folder: Folder,
        asked: ActionRequest,
        mode: str,
        plans: tuple[Content, ...],
    ) -> "Question":
        """What is asked in ``mode``; ``plans`` are what it has written so far. Blocks."""
        call = ToolCall(name=asked["name"], args=asked["args"], id=asked["id"])
        view = ToolCallView.at_once(deps, folder, call, is_due=True)
        # What the model says is shown as it is: a picture in it, say, would be fetched.
        told = as_output(asked["description"])
        if view.effect.switches_mode:
            content = (told, *plans)
            options = (*_switch(), *_others(deps, asked, mode), _reject("No, stay"))
        elif view.effect.takes_answer:
            content = (told,)
            options = (*_answers(asked), _in_the_chat())
        else:
            content = (*(view.preview or (as_output(_call(asked, view)),)), told)
            options = (*_tool(asked, view), _reject("Reject"))
        return cls(view, content, options)

    @property
    def is_open(self) -> bool:
        """Whether there is nothing to choose from: it can only be answered in words."""
        return len(self.options) == 1

    def tool_call(self) -> ToolCallUpdate:
        """The card to ask on."""
        return self.view.question(list(self.content))

    def choices(self) -> list[PermissionOption]:
        """The options, the safest last."""
        return [
            PermissionOption(option_id=one.id, name=one.name, kind=one.kind) for one in self.options
        ]

    def decision(self, response: RequestPermissionResponse) -> Option | None:
        """What was chosen; None where nothing was that was offered."""
        outcome = response.outcome
        if not isinstance(outcome, AllowedOutcome):
            return None
        return next((one for one in self.options if one.id == outcome.option_id), None)


def plans_of(deps: AgentDeps, written: list[str]) -> tuple[Content, ...]:
    """The Markdown files that a mode has written, for whoever decides on leaving it. Blocks."""
    found = []
    for path in written:
        if path.endswith(".md"):
            try:
                text = deps.toolbox.workspace.read(path, MAX_PLAN, is_real=True)
            except ToolFailedError as error:
                found.append(as_output(f"{path} is not shown: {error}"))
            else:
                found.append(as_output(f"{path}:\n\n{text}"))
    return tuple(found)


def _reject(name: str) -> Option:
    return Option("reject", name, "reject_once", {"type": "reject"})


def _switch() -> Iterator[Option]:
    yield Option(
        "auto", "Yes, and auto-accept", "allow_always", {"type": "approve", "approvals": "auto"}
    )
    yield Option(
        "manual",
        "Yes, and approve each action",
        "allow_once",
        {"type": "approve", "approvals": "manual"},
    )


def _others(deps: AgentDeps, asked: ActionRequest, mode: str) -> Iterator[Option]:
    """Other modes to go to; not those whose model cannot be had."""
    left = [slug for slug in deps.catalog if slug not in (mode, asked["args"].get("mode_slug"))]
    for slug in left[:MAX_TARGETS]:
        target = deps.catalog[slug]
        if deps.models.problem(target.model) is None:
            args: dict[str, Any] = {**asked["args"], "mode_slug": slug}
            action = {"name": asked["name"], "args": args}
            decision = {"type": "edit", "edited_action": action}
            yield Option(f"to-{slug}", f"Yes, but to {target.name} mode", "allow_once", decision)


def _tool(asked: ActionRequest, view: ToolCallView) -> Iterator[Option]:
    yield Option("once", "Allow once", "allow_once", {"type": "approve"})
    if "remember" in asked:
        yield Option(
            "always",
            f"Always in this session: {plain(view.title, MAX_LABEL)}",
            "allow_always",
            {"type": "approve", "remember": True},
        )


def _answers(asked: ActionRequest) -> Iterator[Option]:
    """The words are the model's, so they stand behind ours."""
    found = list(suggestions(asked["args"]).items())[:MAX_ANSWERS]
    for number, (label, slug) in enumerate(found):
        what = f"Switch to {slug} mode, and answer" if slug else "Answer"
        name = f"{what}: {plain(label.removesuffix(f' (switch to {slug})'), MAX_LABEL)}"
        decision = {"type": "respond", "message": label}
        yield Option(f"answer-{number}", name, "allow_once", decision)


def _call(asked: ActionRequest, view: ToolCallView) -> str:
    """All that will run, of which a title shows the beginning."""
    if view.effect.runs_programs:
        return "\n".join(str(value) for value in asked["args"].values())
    return "\n".join(f"{name}: {value}" for name, value in asked["args"].items())


def _in_the_chat() -> Option:
    return Option("chat", "Answer in the chat", "reject_once", None)
