"""What a person reads before deciding, and what the next mode is told of a switch."""

from collections.abc import Iterator, Sequence
from typing import Any

from graph.approvals.judging import Judged
from graph.approvals.suggestions import suggestions
from graph.deps import AgentDeps, edit_limit
from graph.state import Todo
from modes.mode import Mode
from modes.plain_text import escaped, plain, readable, unseen

MAX_NAMED = 30
MAX_REASON = 1000
MAX_PLACES = 10


def describe(deps: AgentDeps, mode: Mode, one: Judged) -> str:
    """What a person reads before deciding on a call."""
    assert one.args is not None
    if one.effect.switches_mode:
        target = deps.catalog[one.args["mode_slug"]]
        return (
            f"Switch from {mode.name} to {target.name} mode? "
            f"Reason: {plain(one.args['reason'], MAX_REASON)}\n"
            f"{describe_switch(deps, mode, target)}"
        )
    if one.effect.takes_answer:
        labels = [f"- {label}" for label in suggestions(one.args)]
        return "\n".join([readable(one.args["question"]), *labels])
    wish = f"{mode.name} mode wants to use {one.call['name']}"
    if one.effect.runs_programs:
        reach = _reach(deps, mode, one.verdict.reason)
        return f"{wish}: {one.verdict.reason}. {reach}{_not_seen(one)}"
    return f"{wish}{_resolved(one)}: {one.verdict.reason}.{_not_seen(one)}"


def _not_seen(one: Judged) -> str:
    """What of the arguments a client would not show, though it would run."""
    places = [place for text in _texts(one.call["args"]) for place in unseen(text)]
    if not places:
        return ""
    more = len(places) - MAX_PLACES
    named = [f"...{plain(place)}..." for place in places[:MAX_PLACES]]
    named += [f"and {more} more places"] if more > 0 else []
    return f"\nSome of it does not show; written out: {', '.join(named)}"


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for name, inner in value.items():
                yield from (name, *_texts(inner))
        case list():
            for inner in value:
                yield from _texts(inner)


def _reach(deps: AgentDeps, mode: Mode, reason: str) -> str:
    """What a command can do to the workspace, and whether it has the network."""
    sandbox = deps.toolbox.sandbox
    restriction = deps.edit_restriction(mode.slug)
    if sandbox is None:
        said = "" if "not sandboxed" in reason else "It is not sandboxed. "
        more = f", and may change files although {restriction}" if restriction else ""
        return f"{said}It has all your rights{more}."
    change = "cannot" if restriction else "can"
    network = "has the network" if sandbox.has_network else "has no network"
    return f"It {change} change the workspace, and {network}."


def _resolved(one: Judged) -> str:
    """The files or the address meant, where the call names them in another way: by a link, say."""
    given = one.call["args"]
    real = [value for name, value in one.resolved.items() if value != given.get(name)]
    return f" on {', '.join(map(repr, real))}" if real else ""


def describe_switch(deps: AgentDeps, source: Mode, target: Mode) -> str:
    """What a switch brings and takes: tools, files to edit, the model."""
    gained, lost = deps.machine.difference(source.slug, target.slug)
    text = f"Tools gained: {', '.join(gained) or 'none'}. Tools lost: {', '.join(lost) or 'none'}."
    if source.grant("edit") and target.grant("edit"):
        before, after = (edit_limit(mode) or "every file" for mode in (source, target))
        if before != after:
            text += f" Files to edit: {after} instead of {before}."
    before, after = (mode.model or deps.models.default for mode in (source, target))
    return text if before == after else f"{text} Model: {after} instead of {before}."


def describe_handover(name: str, written: Sequence[str], todos: Sequence[Todo]) -> str:
    """What the mode that is left has written, a plan say, and the todo list."""
    lines = []
    if written:
        more = len(written) - MAX_NAMED
        rest = f" and {more} more" if more > 0 else ""
        names = ", ".join(map(escaped, written[:MAX_NAMED]))
        lines.append(f"Files written in {name} mode: {names}{rest}.")
    if todos:
        lines.append("The todo list as it stands:")
        lines += [f"- {todo['content']} ({todo['status']})" for todo in todos[:MAX_NAMED]]
        if len(todos) > MAX_NAMED:
            lines.append(f"- and {len(todos) - MAX_NAMED} more")
    return "".join(f"\n{line}" for line in lines)
