"""``make modes``: a grid of modes and tools; of one mode, what each tool may do and who says so."""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from modeshift.calls.turn_end import find_then_problem
from modeshift.calls.ways import list_ways_out
from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.mcp_file import FoundServer
from modeshift.configuration.settings import load_settings
from modeshift.modes.edges.edges import ANY
from modeshift.modes.effects import ToolSpec
from modeshift.modes.errors import ToolFailedError
from modeshift.modes.mode import Level, Mode
from modeshift.modes.plain_text import to_one_line
from modeshift.modes.policy import Approvals, find_risk, list_free_commands, verdict
from modeshift.modes.rules.permissions import Kind
from modeshift.threads.compiled import with_known_tools
from modeshift.threads.deps import AgentDeps
from modeshift.tools.server_tools import ManagedServer, NoPool, Offer, ServerPool, open_pool


def main(mode: str | None = None, *, prompt: bool = False, start: bool = False) -> Iterator[str]:
    """The report on one mode or on all; raises ``UserError``."""
    settings = load_settings()
    loader = AgentLoader(settings)
    deps = _with_server_tools(loader.deps(), start=start)
    notices = [f"notice     {notice}" for notice in deps.notices]
    if mode and mode not in deps.catalog:
        sys.stderr.writelines(f"{notice}\n" for notice in notices)  # why a mode may be missing
    chosen = [deps.catalog[mode]] if mode else list(deps.catalog.values())
    if deps.toolbox.has_workspace:
        yield f"workspace  {settings.workspace}"
    yield from (f"approvals  {settings.approvals}", *notices)
    if loader.loaded is not None and loader.loaded.servers:
        yield from ("", "MCP servers", *_list_servers(loader.loaded.servers, deps))
    if prompt:
        yield from ("", "the system prompt, in every mode", *_indent(deps.system_prompt))
    if mode is None and not prompt:
        yield from ("", *_draw_grid(deps, settings.approvals))
        return
    for shown in chosen:
        yield ""
        yield from _describe_mode(deps, shown, settings.approvals)
        if prompt:
            yield from _indent(deps.seat(shown.slug).words)


def _draw_grid(deps: AgentDeps, approvals: Approvals) -> Iterator[str]:
    modes, specs = list(deps.catalog.values()), deps.toolbox.specs
    width = max(len(tool.name) for tool in specs)
    yield " ".join((" " * width, *(mode.slug for mode in modes)))
    for tool in specs:
        signs = (f"{_find_sign(mode, tool, approvals):<{len(mode.slug)}}" for mode in modes)
        yield f"{tool.name:<{width}} {' '.join(signs)}".rstrip()
    yield from (
        "",
        "+ runs, ? asks, - is refused, * some calls differ: MODE=slug says which, and why",
        "",
    )
    yield from (_name_mode(deps, mode) for mode in modes)


def _find_sign(mode: Mode, tool: ToolSpec, approvals: Approvals) -> str:
    if list_free_commands(mode, tool):
        return "-*"
    kind = verdict(mode, tool, None, approvals).kind
    if kind == "deny":
        return "-"
    grant = mode.grant(tool.group) if tool.group is not None else None
    differs = (grant and grant.file_regex) or any(_list_rules(mode, tool.name))
    return ("+" if kind == "allow" else "?") + ("*" if differs else "")


def _indent(text: str) -> Iterator[str]:
    yield from (f"  | {line}" for line in text.splitlines())


def _name_mode(deps: AgentDeps, mode: Mode) -> str:
    default = ", the default" if mode.slug == deps.catalog.default else ""
    whose = "" if mode.level is Level.BUILT_IN else f"{mode.level}: "
    return f"{mode.slug}  {mode.name}  ({whose}{mode.file}{default})"


def _describe_mode(deps: AgentDeps, mode: Mode, approvals: Approvals) -> Iterator[str]:
    yield _name_mode(deps, mode)
    parameters = f" with {dict(mode.model_parameters)}" if mode.model_parameters else ""
    yield f"  model {mode.model or deps.models.default}{parameters}"
    yield f"  at most, it {find_risk(mode, deps.toolbox.specs)[1]}"
    yield f"  a change of mode: {deps.seat(mode.slug).way[0]}"
    yield from _list_ways(deps, mode.slug)
    if rules := deps.prompt_rules(None) + deps.prompt_rules(mode.slug):
        yield f"  rules: {len(rules)} characters"
    width = max(len(tool.name) for tool in deps.toolbox.specs)
    for tool in deps.toolbox.specs:
        ruling = verdict(mode, tool, None, approvals)
        why = _explain(mode, tool, ruling.reason) + _explain_reach(deps, mode, tool, ruling.kind)
        kind = "deny" if list_free_commands(mode, tool) else ruling.kind
        yield f"  {tool.name:<{width}} {kind:<6} {why}"
        if ruling.kind != "deny":
            yield from _list_rules(mode, tool.name)


def _list_ways(deps: AgentDeps, slug: str) -> Iterator[str]:
    """The modes that the model may ask for, and for sub-tasks: when, and who is asked."""
    for way in (ways := list_ways_out(deps, slug)):
        where = "a sub-task in " if way["is_task"] else "to "
        where += "any mode" if way["to"] == [ANY] else ", ".join(way["to"])
        when = f" once `{way['when']}`" if way["when"] else ""
        yield f"  {where}{when}: {way['asks']} is asked"
    if all(way["is_task"] for way in ways):
        yield "  to no other mode: a person can choose one"
    if then := deps.catalog[slug].then:
        problem = find_then_problem(deps, slug)
        yield f"  once a turn has ended: {f'stays here, as {problem}' if problem else f'to {then}'}"
    if slug in deps.edges.by_hand:
        yield "  a person alone enters it"


def _explain(mode: Mode, tool: ToolSpec, reason: str) -> str:
    grant = mode.grant(tool.group) if tool.group is not None else None
    if tool.group is not None and grant is None:
        alone = ", but for what is listed" if list_free_commands(mode, tool) else ""
        return f"no group {tool.group!r}{alone}"
    limit = f"; only on files that match '{grant.file_regex}'" if grant and grant.file_regex else ""
    return f"{reason.removesuffix(f', so {tool.name} did not run.')}{limit}"


def _explain_reach(deps: AgentDeps, mode: Mode, tool: ToolSpec, kind: Kind) -> str:
    """Whether commands can change only what the mode may edit."""
    restriction = deps.seat(mode.slug).edit_restriction
    if not tool.effect.runs_programs or kind == "deny" or restriction is None:
        return ""
    changes = "cannot change the workspace" if tool.sandboxed else "may change files anyway"
    return f"; it {changes}: {restriction}"


def _list_rules(mode: Mode, tool: str) -> Iterator[str]:
    """The rules for single calls; later ones win, and the user's denials over all others."""
    denied = [(rules.source, _select(rules.rules.get(tool, {}), "deny")) for rules in mode.denials]
    always = {pattern for _, patterns in denied for pattern in patterns}
    for rules in mode.defaults:
        yield from _list_patterns(_select(rules.rules.get(tool, {}), "allow", "ask"), rules.source)
    own = mode.permissions.get(tool, {}).items()
    others = {pattern: kind for pattern, kind in own if kind != "deny" or pattern not in always}
    yield from _list_patterns(others, mode.file)
    for source, patterns in denied:
        yield from _list_patterns(patterns, f"{source}, always")


def _select(rules: Mapping[str, Kind], *kinds: Kind) -> dict[str, Kind]:
    return {pattern: kind for pattern, kind in rules.items() if kind in kinds}


def _list_patterns(rules: Mapping[str, Kind], source: str) -> Iterator[str]:
    for kind, group in groupby(rules.items(), key=lambda item: item[1]):
        patterns = ", ".join(to_one_line(repr(pattern)) for pattern, _ in group)
        yield f"    {kind:<5} {patterns}  ({source})"


def _with_server_tools(deps: AgentDeps, *, start: bool) -> AgentDeps:
    """Add the trusted tools of MCP servers; with ``start``, those that the servers list now."""
    if start:
        pool = open_pool()
        if not isinstance(pool, NoPool):
            asyncio.run(_start_all(deps, pool))
    else:
        for server in deps.servers:
            if server.server.pinned is not None:
                server.offer = Offer(tuple(server.server.pinned.values()))
    return with_known_tools(deps)


async def _start_all(deps: AgentDeps, pool: ServerPool) -> None:
    async def list_one(managed: ManagedServer) -> None:
        toolbox = deps.toolbox
        try:
            offer = await pool.list_tools(managed.server, toolbox.workspace, toolbox.sandbox)
        except ToolFailedError as error:
            managed.offer = Offer(problem=to_one_line(str(error)))
        else:
            managed.offer = Offer(tuple(offer))

    await asyncio.gather(*map(list_one, deps.servers))


def _list_servers(servers: Sequence[FoundServer], deps: AgentDeps) -> Iterator[str]:
    """A line about each MCP server."""
    known = {server.server.name: server.offer for server in deps.servers}
    width = max(len(server.name) for server in servers)
    for server in servers:
        offer = known.get(server.name)
        state = f"left out: {server.problem}"
        if server.server is not None and server.name not in known:
            state = "left out: no MCP server is started, as a notice says"
        elif server.server is not None:
            state = "its tools are known once it has started; START=1 starts it now"
        if offer is not None:
            pinned = server.server is not None and server.server.pinned is not None
            whose = "; those that you have trusted are below, mode by mode" if pinned else ""
            state = offer.problem or f"tools: {len(offer.tools)}{whose}"
        yield f"  {server.name:<{width}} {state}  ({server.source})"
        if server.server is not None and server.server.disabled_tools:
            names = to_one_line(", ".join(server.server.disabled_tools))
            yield f"    disabled: {names}"
