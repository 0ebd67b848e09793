"""``make modes``: the modes as they hold, what each may do with each tool, and who says so.

MODE=slug     one mode alone
PROMPT=1      the system prompt of each mode, too
"""

import os
from collections.abc import Iterator, Mapping
from itertools import groupby

from doors.commands.cli import run
from graph.configuration.loading import AgentLoader
from graph.deps import AgentDeps
from graph.settings import Settings, load_settings
from modes.mode import Mode
from modes.plain_text import plain
from modes.policy import Approvals, verdict
from modes.rights import commands_to_look
from modes.rules.permissions import Kind
from modes.toolspec import ToolSpec


def main() -> Iterator[str]:
    """The report; raises ``UserError``."""
    settings = load_settings()
    yield from report(settings, AgentLoader(settings).deps(), os.environ.get("MODE"))


def report(settings: Settings, deps: AgentDeps, slug: str | None = None) -> Iterator[str]:
    """The lines of the report, of one mode or of all."""
    yield f"workspace  {settings.workspace}"
    yield f"approvals  {settings.approvals}"
    for notice in deps.notices:
        yield f"notice     {notice}"
    for mode in [deps.catalog[slug]] if slug else map(deps.catalog.__getitem__, deps.catalog):
        yield ""
        yield from _mode(deps, mode, settings.approvals)
        if os.environ.get("PROMPT") == "1":
            yield from (
                f"  | {line}" for line in deps.bound_model(mode.slug).prompt.text.splitlines()
            )


def _mode(deps: AgentDeps, mode: Mode, approvals: Approvals) -> Iterator[str]:
    default = ", the default" if mode.slug == deps.catalog.default else ""
    yield f"{mode.slug}  {mode.name}  ({mode.origin.level}: {mode.origin.file}{default})"
    yield f"  model {mode.model or deps.models.default}"
    if rules := deps.rules(mode.slug):
        yield f"  rules of the workspace: {len(rules)} characters"
    for tool in deps.toolbox.specs:
        found = verdict(mode, tool, None, approvals)
        why = _source(mode, tool, found.reason) + _reach(deps, mode, tool, found.kind)
        yield _row(tool.name, "deny" if commands_to_look(mode, tool) else found.kind, why)
        if found.kind != "deny":
            yield from _rules(mode, tool.name)


def _source(mode: Mode, tool: ToolSpec, reason: str) -> str:
    grant = mode.grant(tool.group) if tool.group is not None else None
    if tool.group is not None and grant is None:
        alone = ", but for what is listed" if commands_to_look(mode, tool) else ""
        return f"no group {tool.group!r}{alone}"
    limit = f"; only on files that match '{grant.file_regex}'" if grant and grant.file_regex else ""
    return f"{reason}{limit}"


def _reach(deps: AgentDeps, mode: Mode, tool: ToolSpec, kind: Kind) -> str:
    """Whether a command is held to what the mode may edit."""
    restriction = deps.edit_restriction(mode.slug)
    if not tool.effect.runs_programs or kind == "deny" or restriction is None:
        return ""
    changes = "cannot change the workspace" if tool.sandboxed else "may change files all the same"
    return f"; it {changes}: {restriction}"


def _rules(mode: Mode, tool: str) -> Iterator[str]:
    """The rules for single calls; the later ones win, and the user's denials over all."""
    for rules in mode.defaults:
        others = {p: kind for p, kind in rules.rules.get(tool, {}).items() if kind != "deny"}
        yield from _patterns(others, rules.origin)
    yield from _patterns(mode.permissions.get(tool, {}), mode.origin.file)
    for rules in mode.denials:
        denied = {p: kind for p, kind in rules.rules.get(tool, {}).items() if kind == "deny"}
        yield from _patterns(denied, f"{rules.origin}, always")


def _patterns(rules: Mapping[str, Kind], origin: str) -> Iterator[str]:
    for kind, group in groupby(rules.items(), key=lambda item: item[1]):
        yield f"    {kind:<5} {', '.join(plain(repr(pattern)) for pattern, _ in group)}  ({origin})"


def _row(name: str, kind: str, why: str) -> str:
    return f"  {name:<22} {kind:<6} {why}"


if __name__ == "__main__":
    run(main, __doc__)
