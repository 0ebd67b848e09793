"""``make modes``: the modes as they hold, what each may do with each tool, and who says so."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from graph.harness import Harness
from graph.settings import ENV_FILE, Settings, load_settings
from graph.workshop import Workshop
from modes.errors import UserError
from modes.mode import Mode
from modes.permissions import Kind
from modes.toolspec import ToolSpec
from modes.verdict import Approvals, verdict


def main(env_file: Path = ENV_FILE) -> None:
    """Print it, or end with a message."""
    try:
        settings = load_settings(env_file)
        harness = Workshop(settings).harness()
    except UserError as error:
        sys.exit(f"modeshift: {error}")
    print("\n".join(report(settings, harness)))


def report(settings: Settings, harness: Harness) -> Iterator[str]:
    """The lines of the report."""
    yield f"workspace  {settings.workspace}"
    yield f"approvals  {settings.approvals}"
    for notice in harness.notices:
        yield f"notice     {notice}"
    for slug in harness.catalog:
        yield ""
        yield from _mode(harness, harness.catalog[slug], settings.approvals)


def _mode(harness: Harness, mode: Mode, approvals: Approvals) -> Iterator[str]:
    default = ", the default" if mode.slug == harness.catalog.default else ""
    yield f"{mode.slug}  ({mode.origin.level}: {mode.origin.file}{default})"
    yield f"  model {mode.model or harness.models.default}"
    if rules := harness.rules.get(mode.slug):
        yield f"  rules of the workspace: {len(rules)} characters"
    for tool in harness.toolbox.specs:
        found = verdict(mode, tool, None, approvals)
        yield _row(tool.name, found.kind, _source(mode, tool, found.reason))
        for above in mode.standing:
            yield from _patterns(above.rules.get(tool.name, {}), above.origin, above.only_denies)
        yield from _patterns(mode.permissions.get(tool.name, {}), mode.origin.file)


def _source(mode: Mode, tool: ToolSpec, reason: str) -> str:
    grant = mode.grant(tool.group) if tool.group is not None else None
    if tool.group is not None and grant is None:
        return f"no group {tool.group.value!r}"
    limit = f"; only on {grant.file_regex!r}" if grant is not None and grant.file_regex else ""
    return f"{reason}{limit}"


def _patterns(rules: Mapping[str, Kind], origin: str, only_denies: bool = False) -> Iterator[str]:
    for pattern, kind in rules.items():
        if not only_denies or kind == "deny":
            yield _row(f"  {pattern}", kind, origin)


def _row(name: str, kind: str, why: str) -> str:
    return f"  {name:<26} {kind:<6} {why}"


if __name__ == "__main__":
    main()
