"""Whether one mode's rights are at most another's; what cannot be decided counts as more."""

from collections.abc import Iterable

from modeshift.modes.effects import ToolSpec
from modeshift.modes.mode import Grant, Level, Mode
from modeshift.modes.policy import has_only_read_tools
from modeshift.modes.rules.matching import EVERY, PREFIX, is_server_tool
from modeshift.modes.rules.permissions import Kind


def find_growth(source: Mode, target: Mode, tools: Iterable[ToolSpec]) -> str | None:
    """What ``target`` may have more than ``source``; None if it certainly has nothing more."""
    for grant in target.groups:
        if not _is_grant_within(grant, source.grant(grant.group)):
            return f"the group {grant.group!r}"
    reads_only = has_only_read_tools(source) and not has_only_read_tools(target)
    if target.grant("mcp") is not None and reads_only:
        return "tools of MCP servers that do not only read"
    if missing := [rules.source for rules in source.denials if rules not in target.denials]:
        return f"what {missing[0]} denies"
    if source.defaults != target.defaults:
        return "other rules of the user"
    groups = {tool.name: tool.group for tool in tools}
    names = [*source.permissions, *target.permissions]
    for name in dict.fromkeys(PREFIX if is_server_tool(name) else name for name in names):
        if not _are_rules_within(source, target, name, groups.get(name)):
            return "other rules for " + ("tools of MCP servers" if name == PREFIX else name)
    return None


def _is_grant_within(grant: Grant, most: Grant | None) -> bool:
    if most is None or most.file_regex not in (None, grant.file_regex):
        return False
    if most.sandbox not in (None, grant.sandbox):
        return False
    return all(
        ours is None or theirs == ours or (theirs is not None and _are_plain(theirs, ours))
        for theirs, ours in ((grant.servers, most.servers), (grant.tools, most.tools))
    )


def _are_plain(names: Iterable[str], most: Iterable[str]) -> bool:
    """Whether they are names and no patterns, and each is among the others."""
    return all(not {*name} & {*"*?["} and name in most for name in names)


def _are_rules_within(source: Mode, target: Mode, name: str, group: str | None) -> bool:
    ours, theirs = (_list_rules(mode, name) for mode in (source, target))
    # An ``allow`` of the clone's own is for commands that change nothing; of others, for any.
    is_same_level = (
        Level.BUILT_IN not in (source.level, target.level) or source.level == target.level
    )
    if not is_same_level and any(kind == "allow" for _, kind in theirs):
        return False
    if source.is_closed_off(group) and target.grant(group or "") is None:
        return not theirs
    if target.is_closed_off(group) and not source.is_closed_off(group):
        # It is less than what the source may have done, without the source's rules that allow.
        ours = [rule for rule in ours if rule[1] != "allow" or rule in theirs]
    if theirs[: len(ours)] == ours and all(kind == "deny" for _, kind in theirs[len(ours) :]):
        return group is None or target.grant(group) is None or source.grant(group) is not None
    if group is None or target.grant(group) is not None:
        return False
    # Without the group, the rules are a list of commands that the clone's own modes may run.
    are_commands = all(kind == "allow" for _, kind in [*ours, *theirs])
    return not theirs or (are_commands and {*theirs} <= {*ours})


def _list_rules(mode: Mode, name: str) -> list[tuple[str, Kind]]:
    """For a tool; for those of MCP servers all, as each is for the names that it matches."""
    if name != PREFIX:
        return [*mode.permissions.get(name, {}).items()]
    rules = mode.permissions.items()
    return [(names, kinds[EVERY]) for names, kinds in rules if is_server_tool(names)]
