"""The question that a person is asked, and what they read before deciding."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from json import dumps
from typing import NotRequired

from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from modeshift.calls.judging import CallContext, Judged
from modeshift.calls.plans import describe_plan
from modeshift.calls.ways import list_suggestions
from modeshift.modes.edges.edge_table import Way
from modeshift.modes.effects import ToolSpec
from modeshift.modes.errors import InvalidCallError
from modeshift.modes.mode import Mode
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import (
    escape_invisible,
    find_invisible,
    make_readable,
    name_count,
    to_one_line,
)
from modeshift.threads.deps import AgentDeps
from modeshift.threads.state import ApprovedPlan

MAX_REASON = 1000
PLAN_ENDS = " What the approved plan limits ends with it."
NO_REASON = "The model gave no reason."
MAX_PLACES = 10
MAX_TASK = 60
MAX_TITLE = 200


class ActionRequest(TypedDict):
    """A call that waits for a decision."""

    name: str
    args: JsonObject
    description: str
    id: str
    remember: NotRequired[str]
    """What ``"remember": true`` would remember, where that is possible."""
    pattern: NotRequired[str]
    """A pattern to remember instead, which a person may widen, where the tool takes patterns."""
    condition: NotRequired[str]
    """The condition of a switch's edge, which is met, where it has one."""
    plan: NotRequired[JsonObject]
    """An ``ApprovedPlan``, empty for none; what it ``says``; and its edge's ``context``."""


class ReviewConfig(TypedDict):
    """Which decisions an action takes."""

    action_name: str
    allowed_decisions: list[str]


class Request(TypedDict):
    """The value of the interrupt."""

    action_requests: list[ActionRequest]
    review_configs: list[ReviewConfig]
    question: str
    """The question's id; an answer may say which it is for."""


def build_request(
    deps: AgentDeps, context: CallContext, asking: Sequence[Judged], unique: str
) -> Request:
    """The question to put to the person; ``unique`` differs from one question to another."""
    return Request(
        question=sha256(unique.encode()).hexdigest()[:16],
        action_requests=[_action_request(deps, context, judged) for judged in asking],
        review_configs=[
            ReviewConfig(
                action_name=judged.call["name"], allowed_decisions=list(judged.allowed_decisions)
            )
            for judged in asking
        ],
    )


def build_own_request(name: str, text: str, args: Mapping[str, object], unique: str) -> Request:
    """A question of a node of the clone's own, called ``name``, which takes a yes or a no."""
    question = sha256(unique.encode()).hexdigest()[:16]
    plain = to_jsonable_python({**args}, fallback=str)
    return Request(
        question=question,
        action_requests=[
            ActionRequest(name=name, args=plain, description=make_readable(text), id=question)
        ],
        review_configs=[ReviewConfig(action_name=name, allowed_decisions=["approve", "reject"])],
    )


def _action_request(deps: AgentDeps, context: CallContext, judged: Judged) -> ActionRequest:
    assert judged.tool is not None and judged.args is not None
    args = judged.call["args"]  # as they are, which is how it runs
    # A person sees the amount that is paid where the model names none, too.
    shown = (*judged.tool.spec.subject, *judged.tool.spec.state)
    subject = {name: judged.args.get(name) for name in shown if name not in args}
    args = {**args, **to_jsonable_python(subject, fallback=str)}
    if judged.effect.switches_mode and not judged.effect.starts_subtask:
        why = (args.get("reason") or "").strip() or NO_REASON
        args = {**args, "reason": to_one_line(why, MAX_REASON)}
    request = ActionRequest(
        name=judged.call["name"],
        args=args,
        description=_describe(deps, context, judged, args),
        id=str(judged.call["id"]),
    )
    if judged.can_be_remembered and judged.subject.exact is not None:
        request["remember"] = escape_invisible(judged.subject.exact)
        if judged.subject.pattern is not None:
            request["pattern"] = escape_invisible(judged.subject.pattern)
    if (plan := _show_plan(deps, context, judged)) is not None:
        request["plan"] = plan
        request["description"] += f"\n{plan['says']}"
    if judged.verdict.condition:
        request["condition"] = judged.verdict.condition
    return request


def _show_plan(deps: AgentDeps, context: CallContext, judged: Judged) -> JsonObject | None:
    plan, edge, is_switch = judged.plan, None, judged.effect.switches_mode
    if is_switch and not judged.effect.starts_subtask:
        target = (judged.args or {})["mode_slug"]
        edge = deps.edges.find(context.seat.mode.slug, target, Way.ASK)
    if plan is None and not (edge and edge.plan):
        return None
    says, chosen = describe_plan(plan), edge.context if edge else "all"
    if plan is not None and is_switch:
        said = [message for message in context.messages if isinstance(message, HumanMessage)]
        sizes = [count_tokens_approximately(each) for each in (context.messages, said)]
        ways = [
            f"the conversation (about {sizes[0]:,} tokens, which the provider's cache may have)",
            f"your words and the plan (about {sizes[1] + len(plan['text']) // 4:,}, new to it)",
        ]
        first, other = ways if chosen == "all" else reversed(ways)
        says += f" The model goes on with {first}, not with {other}."
    plan = plan or ApprovedPlan(path="", digest="", text="", paths=[])
    return {**plan, "says": says, "context": chosen}


def _describe(deps: AgentDeps, context: CallContext, judged: Judged, shown: JsonObject) -> str:
    assert judged.args is not None
    mode, place = context.seat.mode, ""
    if context.seat.depth:
        place = f" (in the sub-task {to_one_line(context.task, MAX_TASK)!r})"
    if judged.effect.switches_mode:
        target = deps.catalog[judged.args["mode_slug"]]
        risks = list_risks(deps, mode, target)
        met = [judged.verdict.condition] if judged.verdict.condition else []
        changes = " ".join([describe_switch(deps, mode, target, to_person=True), *risks, *met])
        if judged.effect.starts_subtask:
            todos = [
                f"- {todo['content']} ({todo.get('status', 'pending')})"
                for todo in judged.args["todos"] or ()
            ]
            text = make_readable("\n".join([judged.args["message"], *todos]))
            return (
                f"Start a sub-task in {target.name} mode{place}? "
                f"{changes} It is told:\n{text}"
                f"{_describe_unseen(judged)}"
            )
        return (
            f"Switch from {mode.name} to {target.name} mode? "
            f"{'' if shown['reason'] == NO_REASON else 'Reason: '}{shown['reason']}\n"
            f"{changes}{PLAN_ENDS if context.plan else ''}"
        )
    if judged.effect.takes_answer:
        labels = [f"- {label}" for label in list_suggestions(judged.args)]
        who = [f"{mode.name} mode{place} asks:"] if place else []
        return "\n".join([*who, make_readable(judged.args["question"]), *labels])
    wants = f"{mode.name} mode{place} wants to use {judged.call['name']}"
    reason = judged.verdict.reason
    if judged.effect.runs_programs:
        rights = _describe_rights(deps, context, judged)
        return f"{wants}: {reason}. {rights}{_describe_unseen(judged)}"
    return f"{wants}{_describe_resolved(judged)}: {reason}.{_describe_unseen(judged)}"


def describe_switch(deps: AgentDeps, source: Mode, target: Mode, *, to_person: bool = False) -> str:
    """What a switch changes: the tools, the files that may be edited, the model."""
    gained, lost = deps.machine.compare_tools(source.slug, target.slug)
    tools = [
        f"Tools {how}: {', '.join(names) or 'none'}."
        for how, names in (("gained", gained), ("lost", lost))
        if names or not to_person
    ]
    changes = [*tools, *list_other_changes(deps, source, target)]
    return " ".join(changes or ["The tools, the files to edit and the model stay the same."])


def list_risks(deps: AgentDeps, source: Mode, target: Mode) -> list[str]:
    """What the modes do at most, in a sentence for a person; none where that stays the same."""
    before, after = (deps.find_risk(mode)[1] for mode in (source, target))
    return [f"At most, it then {after}; now it {before}."] if before != after else []


def list_other_changes(deps: AgentDeps, source: Mode, target: Mode) -> Iterator[str]:
    """What a switch changes beside the tools, in sentences."""
    before, after = source.edit_limit, target.edit_limit
    if before is not None and after is not None and before != after:
        yield f"Files to edit: {after or 'every file'} instead of {before or 'every file'}."
    is_held = deps.toolbox.sandbox is not None and target.is_closed_off("command")
    if is_held and not source.is_closed_off("command"):
        yield "Commands run unasked there, where they can change nothing."
    old, new = (mode.model or deps.models.default for mode in (source, target))
    if old != new:
        yield f"Model: {new} instead of {old}."


def _describe_rights(deps: AgentDeps, context: CallContext, judged: Judged) -> str:
    """What a command can do to the workspace, and whether it has the network."""
    sandbox, reason = deps.toolbox.sandbox, judged.verdict.reason
    restriction = context.seat.edit_restriction
    if sandbox is None:
        warning = "" if "not sandboxed" in reason else "It is not sandboxed. "
        more = f", and may change files although {restriction}" if restriction else ""
        return f"{warning}It has all your rights{more}."
    is_closed, is_held = judged.verdict.is_closed_off, judged.writable == ()
    change = "cannot" if restriction or judged.verdict.changes_nothing or is_held else "can"
    but = " only as the plan says" if judged.writable and change == "can" else ""
    network = "has the network" if sandbox.has_network and not is_closed else "has no network"
    return f"It {change} change the workspace{but}, and {network}."


def _describe_resolved(judged: Judged) -> str:
    """The files or the address meant, where the call names them in another way: by a link, say."""
    assert judged.tool is not None
    args = judged.call["args"] | {name: judged.resolved[name] for name in judged.tool.spec.state}
    real = [value for name, value in judged.resolved.items() if value != args.get(name)]
    return f" on {', '.join(map(repr, real))}" if real else ""


def _describe_unseen(judged: Judged) -> str:
    """The characters of the arguments that a client would not show, written out."""
    places = [place for text in _list_texts(judged.call["args"]) for place in find_invisible(text)]
    if not places:
        return ""
    named = [f"...{to_one_line(place)}..." for place in places[:MAX_PLACES]]
    if (more := len(places) - MAX_PLACES) > 0:
        named.append(f"and {name_count(more, 'more place')}")
    return f"\nIt contains invisible characters, here escaped: {', '.join(named)}"


def _list_texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for name, inner in value.items():
                yield from (name, *_list_texts(inner))
        case list():
            for inner in value:
                yield from _list_texts(inner)


def build_title(deps: AgentDeps, name: str, args: Mapping[str, object]) -> str:
    """What a call does, in one line that is partly the model's; the name of an unknown tool."""
    try:
        title = _build_title(deps, deps.toolbox[name].spec, args)
    except InvalidCallError:
        title = ""
    return to_one_line(title, MAX_TITLE) or to_one_line(name, MAX_TITLE)


def _build_title(deps: AgentDeps, spec: ToolSpec, args: Mapping[str, object]) -> str:
    if spec.effect.title:
        return spec.effect.title
    if spec.effect.switches_mode:
        slug = str(args.get("mode_slug"))
        name = deps.catalog.get_name(slug)
        return (
            f"Sub-task in {name} mode" if spec.effect.starts_subtask else f"Switch to {name} mode"
        )
    if spec.effect.takes_answer:
        return str(args.get("question"))
    if spec.command is not None:
        return " ⏎ ".join(str(args.get(spec.command)).splitlines())
    if spec.subject:
        typed = [args[name] for name in spec.subject if args.get(name) is not None]
        named = to_jsonable_python(typed, fallback=str)
        values: list[object] = [
            each if isinstance(each, str) else dumps(each, ensure_ascii=False) for each in named
        ]
    elif spec.effect.changes_files:
        values = [args.get(name) for name in spec.paths]
    else:
        values = list(args.values())
    words = [value for value in values if isinstance(value, str) and value != "."]
    return " ".join([spec.name.replace("_", " ").capitalize(), *words])
