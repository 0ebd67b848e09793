"""The answers that a question suggests, and the mode to which each would switch."""

from collections.abc import Mapping
from typing import Any

from modes.effects import Effect
from modes.plain_text import to_one_line


def list_switch_targets(effect: Effect, args: Mapping[str, Any]) -> list[str]:
    """The modes to which a call may switch, itself or by the answer to it."""
    if effect.switches_mode:
        return [args["mode_slug"]]
    if effect.takes_answer:
        return [slug for slug in list_suggestions(args).values() if slug is not None]
    return []


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
