"""``make trust WORKSPACE=...``: show a workspace's own modes, rules and servers, and trust them."""

import asyncio
import json
import shlex
from collections.abc import Iterator, Mapping

from modeshift.commands.question import YesOrNo
from modeshift.configuration.loading import build_commands
from modeshift.configuration.mcp_file import ProjectServers, ServerEntry, read_project_servers
from modeshift.configuration.project_files import ProjectFiles, read_project
from modeshift.configuration.settings import Settings, load_settings
from modeshift.configuration.sources import check_modes_file
from modeshift.configuration.trust_file import TrustedServer, TrustFile, find_differences
from modeshift.modes.errors import ToolFailedError
from modeshift.modes.files import parse_modes
from modeshift.modes.mode import Level, Mode
from modeshift.modes.plain_text import escape_invisible, make_readable, name_count, to_one_line
from modeshift.tools.server_tools import NoPool, open_pool
from modeshift.tools.servers import ToolDescription
from modeshift.tools.toolbox import tool_specs
from modeshift.tools.workspace.workspace import Workspace


def main(*, show: bool = False, revoke: bool = False) -> Iterator[str | YesOrNo]:
    """Show what is trusted, and record it once all of it could be read; raises ``UserError``.

    MCP servers come after the files, and are asked about one by one.
    """
    settings = load_settings()
    workspace = Workspace(settings.workspace, must_exist=False)
    has_files = any(spec.needs_workspace for spec in tool_specs(workspace))
    trust = TrustFile(settings.trust_file)
    if revoke:
        had = trust.revoke(workspace.root)
        yield f"{workspace.root} {'is no longer trusted' if had else 'was not trusted'}"
        return
    workspace = Workspace(settings.workspace, must_exist=has_files)
    files = read_project(workspace) if has_files else ProjectFiles()  # which nobody else reads then
    servers = read_project_servers(workspace)
    if not files and not any(servers):
        yield f"{workspace.root} has no modes or rules of its own; there is nothing to trust"
    elif show:
        for name, text in files.texts.items():
            yield f"{name}:"
            yield from (f"  | {escape_invisible(line.expandtabs())}" for line in text.splitlines())
        yield from _list_problems(files)
        yield from _show_servers(servers, settings)
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
    yield from _trust_servers(servers, settings, workspace)


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


def _show_servers(project: ProjectServers, settings: Settings) -> Iterator[str]:
    """Show the servers that the files name; starts none."""
    is_sandboxed = build_commands(settings).sandbox is not None
    for name, (file, entry) in project.entries.items():
        yield from _describe(name, file, entry, is_sandboxed=is_sandboxed)
    yield from (f"  {to_one_line(warning, 1000)}" for warning in project.warnings)


def _trust_servers(
    project: ProjectServers, settings: Settings, workspace: Workspace
) -> Iterator[str | YesOrNo]:
    """Show each server; once a person wants it started, its tools; record what is accepted."""
    pool = open_pool()
    if isinstance(pool, NoPool):
        yield from _show_servers(project, settings)
        yield from [f"none of these can be trusted: {pool.problem}"] if project.entries else []
        return
    sandbox, trust = build_commands(settings).sandbox, TrustFile(settings.trust_file)
    trusted = trust.trusted_servers(workspace.root)
    for name, (file, entry) in project.entries.items():
        yield ""
        yield from _describe(name, file, entry, is_sandboxed=sandbox is not None)
        if entry.disabled:
            continue
        before = trusted.get(name)
        if changes := before.find_changes(entry.as_written()) if before else "":
            yield _row("changed", f"since it was last trusted: {changes}")
        start = YesOrNo(f"Start {name!r} now, to see what it tells the model?")
        try:
            server = entry.resolve(name, "workspace", workspace.root)
            yield start
            tools = asyncio.run(pool.list_tools(server, workspace, sandbox)) if start.is_yes else []
        except (ValueError, ToolFailedError) as error:
            yield f"{name}: not trusted: {to_one_line(str(error), 1000)}"
            continue
        if not start.is_yes:
            yield f"{name}: not started; what was trusted of it stays as it was"
            continue
        accepted = {tool.name: tool for tool in tools if not tool.find_hidden()}
        yield from _describe_tools(tools, before.tools if before else {})
        accept = YesOrNo(f"Trust {name!r} and its tools ({len(accepted)}), as shown?")
        yield accept
        if accept.is_yes:
            trust.trust_server(workspace.root, name, TrustedServer(entry.as_written(), accepted))
        yield f"{name}: {'trusted, until something of this changes' if accept.is_yes else 'no'}"
    yield from (f"  {to_one_line(warning, 1000)}" for warning in project.warnings)


def _row(word: str, text: str) -> str:
    return f"  {word:<12} {escape_invisible(text)}"


def _describe(name: str, file: str, entry: ServerEntry, *, is_sandboxed: bool) -> Iterator[str]:
    yield f"MCP server {name!r}  ({file}{', disabled' if entry.disabled else ''})"
    if entry.command is not None:
        yield _row("command", shlex.join([entry.command, *entry.args]))
        if entry.cwd is not None:
            yield _row("folder", entry.cwd)
        yield _row("sandboxed", "yes" if is_sandboxed else "no: it can do all that you can")
        yield _row("writes", "yes" if entry.writes or not is_sandboxed else "no")
        yield _row("network", "yes" if entry.network or not is_sandboxed else "no")
    else:
        yield _row("address", str(entry.url))
    for word, values in (("environment", entry.env), ("headers", entry.headers)):
        if values:
            yield _row(word, ", ".join(f"{key}={value}" for key, value in values.items()))
    if entry.variables:
        yield _row("it gets", f"from your environment: {', '.join(entry.variables)}")


def _describe_tools(
    tools: list[ToolDescription], before: Mapping[str, ToolDescription]
) -> Iterator[str]:
    for tool in tools:
        hidden = tool.find_hidden()
        refused = "  REFUSED: it has characters that are not shown" if hidden else ""
        yield f"  tool {to_one_line(tool.name)}{refused}"
        for line in make_readable(tool.description).splitlines():
            yield f"    | {escape_invisible(line.expandtabs())}"
        for word, value in (("schema", tool.input_schema), ("annotations", tool.annotations)):
            if value:
                shown = json.dumps(value, ensure_ascii=False)
                yield f"    {word} {escape_invisible(shown)}"
        if tool.name in before and (changes := before[tool.name].find_changes(tool)):
            yield f"    changed since it was last trusted: {changes}"
    for name in before.keys() - {tool.name for tool in tools}:
        yield f"  tool {to_one_line(name)} is gone"
