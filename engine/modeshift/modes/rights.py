"""What a mode may do as a whole, beyond a single call."""

from collections.abc import Iterable

from modeshift.modes.mode import Level, Mode, SourcedPermissions
from modeshift.modes.rules.permissions import Kind
from modeshift.modes.toolspec import ToolSpec


def list_free_commands(mode: Mode, tool: ToolSpec) -> list[str]:
    """The read-only commands that a mode may run although it lacks the tool's group.

    Only the clone's own modes have such rules, and they apply only in the sandbox.
    """
    if tool.group is None or mode.grant(tool.group) is not None:
        return []
    if not tool.sandboxed or mode.level is not Level.BUILT_IN:
        return []
    return [line for line, kind in mode.permissions.get(tool.name, {}).items() if kind == "allow"]


def has_only_read_tools(mode: Mode) -> bool:
    """Whether of MCP servers it has only tools that say of themselves that they are read-only.

    Such is a mode that runs no commands and may not edit every file.
    """
    edit = mode.grant("edit")
    return mode.grant("command") is None and (edit is None or edit.file_regex is not None)


def find_edit_restriction(mode: Mode, tools: Iterable[ToolSpec]) -> str | None:
    """Why the mode may not change every file; None if it may.

    If there is a restriction, the mode's commands must not change the workspace either. Every
    rule that does not allow an edit outright counts as one.
    """
    grant = mode.grant("edit")
    if grant is None:
        return "the mode has no 'edit' tools"
    if grant.file_regex is not None:
        return f"the mode edits only files that match '{grant.file_regex}'"
    stricter: list[tuple[SourcedPermissions, tuple[Kind, ...]]] = [
        *((rules, ("ask", "deny")) for rules in (mode.own_rules, *mode.defaults)),
        # Only a ``deny`` of these counts.
        *((rules, ("deny",)) for rules in mode.denials),
    ]
    editing = [tool.name for tool in tools if tool.effect.changes_files]
    for rules, kinds in stricter:
        for tool in editing:
            for pattern, kind in rules.rules.get(tool, {}).items():
                if kind in kinds:
                    return f"there is the rule {pattern!r} for {tool} in {rules.source}"
    return None


def describe_edit_limit(mode: Mode) -> str:
    """The only files that the mode may change, in words; empty for no limit."""
    grant = mode.grant("edit")
    if grant is None or grant.file_regex is None:
        return ""
    words = f"{grant.description} " if grant.description else ""
    return f"{words}(paths that match `{grant.file_regex}`)"
