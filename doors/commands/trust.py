"""``make trust WORKSPACE=...``: show a workspace's own modes and rules, and trust them.

REVOKE=1      trust them no more
SHOW=1        show them whole, and trust nothing
"""

import os
from collections.abc import Iterator

from doors.commands.cli import run
from graph.configuration.project_files import ProjectFiles, read_project
from graph.configuration.sources import check_modes
from graph.configuration.trust import TrustFile, find_differences
from graph.settings import Settings, load_settings
from modes.catalog import with_origin
from modes.errors import ConfigurationError
from modes.files.modes_file import parse_modes
from modes.mode import Level, Mode, Origin
from modes.plain_text import escaped, plain
from tools.toolbox import tool_specs
from tools.workspace.workspace import Workspace


def main() -> Iterator[str]:
    """What is trusted, recorded when all of it could be shown; raises ``UserError``."""
    settings = load_settings()
    if _is_on("REVOKE"):
        return iter(_revoke(settings))
    return iter(_show(settings) if _is_on("SHOW") else _trust(settings))


def _is_on(name: str) -> bool:
    given = os.environ.get(name, "")
    if given not in ("", "0", "1"):
        raise ConfigurationError(f"{name}={given!r}: set it to 1, or leave it out")
    return given == "1"


def _revoke(settings: Settings) -> list[str]:
    root = Workspace(settings.workspace).root
    had = TrustFile(settings.trust_file).revoke(root)
    return [f"{root} {'is trusted no more' if had else 'was not trusted'}"]


def _show(settings: Settings) -> list[str]:
    lines = []
    for name, text in read_project(Workspace(settings.workspace)).texts.items():
        lines += [f"{name}:", *(f"  | {escaped(line.expandtabs())}" for line in text.splitlines())]
    return lines


def _trust(settings: Settings) -> list[str]:
    workspace = Workspace(settings.workspace)
    trust = TrustFile(settings.trust_file)
    files = read_project(workspace)
    if not files:
        return [f"{workspace.root} has no modes or rules of its own; there is nothing to trust"]
    before = trust.trusted(workspace.root)
    lines = [
        f"trusted in {workspace.root}, until one of them changes:",
        *_contents(files, workspace),
    ]
    if before is not None:
        changed = find_differences(before, files.digests) or ["nothing"]
        lines.append(f"since it was trusted last: {', '.join(changed)}")
    lines.append("SHOW=1 shows the texts, REVOKE=1 takes the trust back")
    trust.trust(workspace.root, files.digests)
    return lines


def _contents(files: ProjectFiles, workspace: Workspace) -> Iterator[str]:
    for name, text in files.texts.items():
        yield f"  {name} ({len(text)} characters)"
        if name in files.modes:
            modes = tuple(with_origin(parse_modes(text, name), Origin(Level.PROJECT, name)))
            check_modes(modes, tool_specs(workspace))
            for mode in modes:
                yield from _mode(mode)
    for name, problem in files.problems.items():
        yield f"  {plain(name)}: left out: {plain(problem)}"


def _mode(mode: Mode) -> Iterator[str]:
    groups = ", ".join(
        grant.group + (f" on files that match '{grant.file_regex}'" if grant.file_regex else "")
        for grant in mode.groups
    )
    model = f", model {plain(mode.model)}" if mode.model else ""
    yield f"    mode {mode.slug}: {groups or 'no groups'}{model}"
    for tool, patterns in mode.permissions.items():
        for pattern, kind in patterns.items():
            yield f"      {kind} {tool} {plain(repr(pattern))}"


if __name__ == "__main__":
    run(main, __doc__)
