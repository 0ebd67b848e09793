"""The answers that a question suggests, and the mode to which each would switch."""

from collections.abc import Iterable, Mapping
from typing import Any

from modeshift.modes.effects import Effect
from modeshift.modes.mode import Mode
from modeshift.modes.plain_text import to_one_line
from modeshift.modes.policy import Approvals, verdict
from modeshift.modes.toolspec import ToolSpec


def list_switch_targets(effect: Effect, args: Mapping[str, Any]) -> list[str]:
    """The modes to which a call may switch, itself or by the answer to it."""
    if effect.switches_mode:
        return [args["mode_slug"]]
    if effect.takes_answer:
        return [slug for slug in list_suggestions(args).values() if slug is not None]
    return []


def find_answer_problem(
    specs: Iterable[ToolSpec], mode: Mode, target: str, depth: int
) -> str | None:
    """Why no answer to a question in ``mode`` may switch to ``target``; None if one may."""
    if depth:
        return "In a sub-task no answer switches the mode; ask without naming one."
    for spec in specs:
        if spec.effect.switches_mode and not spec.effect.starts_subtask:
            found = verdict(mode, spec, {"mode_slug": target}, Approvals.MANUAL)
            return found.reason if found.kind == "deny" else None
    return None


def list_suggestions(args: Mapping[str, Any]) -> dict[str, str | None]:
    """The labels to choose from, each with the mode it switches to, from a question's arguments.

    The label names the mode, so that whoever chooses it knows. An answer in other words never
    switches.
    """
    labels: dict[str, str | None] = {}
    for suggestion in args.get("follow_up") or ():
        mode_slug = suggestion.get("mode")
        text = to_one_line(suggestion["text"])
        labels[text + (f" (switch to {mode_slug})" if mode_slug else "")] = mode_slug
    return labels
