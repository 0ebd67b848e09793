"""``build_title``: what a call does, in a few words."""

from collections.abc import Mapping
from typing import Any

from graph.deps import AgentDeps
from tools.tool import Tool


def build_title(deps: AgentDeps, tool: Tool, args: Mapping[str, Any]) -> str:
    """The text is partly the model's: show it on one line, invisible characters escaped."""
    spec = tool.spec
    if spec.effect.title:
        return spec.effect.title
    if spec.effect.switches_mode:
        slug = args.get("mode_slug")
        name = deps.catalog[slug].name if slug in deps.catalog else slug
        return (
            f"Sub-task in {name} mode" if spec.effect.starts_subtask else f"Switch to {name} mode"
        )
    if spec.effect.takes_answer:
        return str(args.get("question"))
    if spec.command is not None:
        return " ⏎ ".join(str(args.get(spec.command)).splitlines())
    if spec.effect.changes_files:
        values = [args.get(name) for name in spec.paths]
    else:
        values = list(args.values())
    words = [value for value in values if isinstance(value, str) and value != "."]
    return " ".join([spec.name.replace("_", " ").capitalize(), *words])
