"""``make trust WORKSPACE=...``: show a workspace's own modes, rules and servers, and trust them."""

from collections.abc import Iterator

from modeshift.commands.question import YesOrNo
from modeshift.commands.trust_servers import show_servers, trust_servers
from modeshift.configuration.mcp_file import read_project_servers
from modeshift.configuration.project_files import ProjectFiles, read_project
from modeshift.configuration.settings import load_settings
from modeshift.configuration.sources import check_modes_file
from modeshift.configuration.trust_file import TrustFile, find_differences
from modeshift.modes.files import parse_modes
from modeshift.modes.mode import Level, Mode
from modeshift.modes.plain_text import escape_invisible, name_count, to_one_line
from modeshift.tools.toolbox import tool_specs
from modeshift.tools.workspace.workspace import Workspace


def main(*, show: bool = False, revoke: bool = False) -> Iterator[str | YesOrNo]:
    """Show what is trusted, and record it once all of it could be read; raises ``UserError``.

    MCP servers come after the files, and are asked about one by one.
    """
    settings = load_settings()
    workspace = Workspace(settings.workspace)
    trust = TrustFile(settings.trust_file)
    if revoke:
        had = trust.revoke(workspace.root)
        yield f"{workspace.root} {'is no longer trusted' if had else 'was not trusted'}"
        return
    files = read_project(workspace)
    servers = read_project_servers(workspace)
    if not files and not any(servers):
        yield f"{workspace.root} has no modes or rules of its own; there is nothing to trust"
    elif show:
        yield from _show(files)
        yield from show_servers(servers, settings)
        return
    if files:
        before = trust.trusted(workspace.root)
        yield f"trusted in {workspace.root}, until one of them changes:"
        yield from _list_contents(files, workspace)
        if before is not None:
            changed = find_differences(before, files.digests) or ["nothing"]
            yield f"changed since it was last trusted: {', '.join(changed)}"
        yield "SHOW=1 shows the files in full, REVOKE=1 takes the trust back"
        trust.trust(workspace.root, files.digests)
    yield from trust_servers(servers, settings, workspace)


def _show(files: ProjectFiles) -> Iterator[str]:
    for name, text in files.texts.items():
        yield f"{name}:"
        yield from (f"  | {escape_invisible(line.expandtabs())}" for line in text.splitlines())
    yield from _list_problems(files)


def _list_contents(files: ProjectFiles, workspace: Workspace) -> Iterator[str]:
    for name, text in files.texts.items():
        yield f"  {name} ({name_count(len(text), 'character')})"
        if name in files.modes:
            parsed = parse_modes(text, name, Level.PROJECT)
            checked = check_modes_file(parsed, tool_specs(workspace))
            for mode in checked.values():
                if isinstance(mode, Mode):
                    yield from _describe_mode(mode)
                else:
                    yield f"    left out: {to_one_line(mode)}"
            if parsed.prompts:
                yield f"    other words for: {to_one_line(', '.join(parsed.prompts))}"
    yield from _list_problems(files)


def _list_problems(files: ProjectFiles) -> Iterator[str]:
    for name, problem in files.problems.items():
        yield f"  {to_one_line(name)}: left out: {to_one_line(problem)}"


def _describe_mode(mode: Mode) -> Iterator[str]:
    groups = ", ".join(
        grant.group
        + (f" on files that match '{grant.file_regex}'" if grant.file_regex else "")
        + (f" in the {grant.sandbox} sandbox, unasked" if grant.sandbox else "")
        for grant in mode.groups
    )
    model = f", model {to_one_line(mode.model)}" if mode.model else ""
    yield f"    mode {mode.slug}: {groups or 'no groups'}{model}"
    for tool, patterns in mode.permissions.items():
        for pattern, kind in patterns.items():
            yield f"      {kind} {tool} {to_one_line(repr(pattern))}"
