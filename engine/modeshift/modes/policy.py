"""``verdict``: whether a call is allowed, asks a person or is denied, by its mode and the rules."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from modeshift.modes.effects import Risk, ServerTool, ToolSpec
from modeshift.modes.errors import (
    FileRestrictionError,
    InvalidCallError,
    ModelError,
    NotAllowedError,
    SlowPatternError,
    describe_error,
)
from modeshift.modes.mode import Grant, Level, Mode, SourcedPermissions
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.rules.command_lines import split_line
from modeshift.modes.rules.files import SECONDS, get_protection, is_secret
from modeshift.modes.rules.matching import Subject
from modeshift.modes.rules.permissions import Kind, Ruling, find_denial, find_ruling


def list_free_commands(mode: Mode, tool: ToolSpec) -> list[str]:
    """The read-only commands that a mode may run although it lacks the tool's group.

    Only the clone's own modes have such rules, and they apply only in the sandbox.
    """
    if tool.group is None or mode.grant(tool.group) is not None:
        return []
    if not tool.sandboxed or mode.level is not Level.BUILT_IN:
        return []
    return [line for line, kind in mode.permissions.get(tool.name, {}).items() if kind == "allow"]


def only_looks(mode: Mode, tool: ToolSpec) -> bool:
    """Whether the tool can change nothing in the mode: it runs read-only commands alone."""
    return mode.is_closed_off(tool.group) or bool(list_free_commands(mode, tool))


def has_only_read_tools(mode: Mode) -> bool:
    """Whether the mode has only those tools of MCP servers that call themselves read-only.

    Such is a mode whose commands change nothing and that may not edit every file.
    """
    edit, has_commands = mode.grant("edit"), mode.grant("command") is not None
    is_held = not has_commands or mode.is_closed_off("command")
    return is_held and (edit is None or edit.file_regex is not None)


def find_risk(mode: Mode, tools: Iterable[ToolSpec]) -> tuple[Risk, str]:
    """The most that the mode can do with its tools: as a risk, and in words."""
    words: dict[Risk, dict[str, None]] = {
        "high": {},
        "middle": {},
        "low": {"changes nothing": None},
    }
    for tool in tools:
        if is_offered(mode, tool) and not only_looks(mode, tool) and tool.risk != "low":
            is_open = tool.effect.runs_programs and not tool.sandboxed
            words[tool.risk][NO_SANDBOX if is_open else tool.effect.does] = None
    risk = next(risk for risk, found in words.items() if found)
    return risk, ", ".join(words[risk])


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


class Approvals(StrEnum):
    """A thread's approval policy."""

    MANUAL = "manual"
    """Edits, commands, network calls, questions and switches ask; rules may allow some."""
    AUTO = "auto"
    """Edits inside the workspace and commands in the sandbox run without asking, too."""


NO_SANDBOX = "runs a command, not sandboxed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``allow``, ``ask`` or ``deny``, and the reason in words for a person or the model."""

    kind: Literal["allow", "ask", "deny"]
    reason: str
    error: type[ModelError] = NotAllowedError
    """For ``deny``: the kind of error that the model is told."""
    always_asks: bool = False
    """For ``ask``: a person is asked every time, whatever they allowed before."""
    is_read_only: bool = False
    """For ``allow``: the command should change nothing, and the sandbox enforces that."""
    is_closed_off: bool = False
    """Whether mode or limit has the command run in the read-only sandbox, asked about or not."""
    condition: str = ""
    """For ``ask``: the condition of the edge that a switch follows, which is met."""
    is_by_edge: bool = False
    """For ``ask``: the edge says that nobody is asked, and no rights are gained."""
    is_missing: bool = False
    """For ``deny``: the mode does not have the tool, and another may."""

    @property
    def changes_nothing(self) -> bool:
        """Whether the sandbox sees to it that the command changes nothing."""
        return self.is_read_only or self.is_closed_off

    @property
    def refusal(self) -> str:
        """What the model is told of a ``deny``."""
        return describe_error(self.error(self.reason))


def verdict(
    mode: Mode,
    tool: ToolSpec,
    args: JsonObject | None,
    approvals: Approvals,
    remembered: Collection[tuple[str, bool]] = (),
) -> Verdict:
    """Judge one call of ``tool`` in ``mode``.

    ``args`` have passed the tool's schema, and those in ``tool.resolved`` are resolved: paths
    relative to the workspace with links followed, URLs normalized. Without ``args``
    the question is whether the tool may be bound; anything but ``deny`` means yes.
    ``remembered`` are the patterns that a person always allows for the tool, each with whether
    it stands for one call and is compared literally.
    """
    # What is known of a tool of an MCP server is its name, whatever the arguments.
    subject = None if args is None and tool.served is None else Subject(tool, args or {})
    limit = _check_limits(mode, tool, args, subject)
    if limit is not None and limit.kind == "deny":
        return limit
    judgement = _apply_rules(mode, tool, subject) or _apply_effect(mode, tool, approvals)
    if judgement.kind == "deny":
        return judgement
    stays = args is not None and args.get("mode_slug") == mode.slug
    if tool.effect.switches_mode and not tool.effect.starts_subtask and stays:
        return Verdict("deny", f"Already in {mode.name} mode.", InvalidCallError)
    by_parts = None
    if (limit or judgement).kind == "ask" and tool.command and tool.sandboxed and args:
        by_parts = _judge_parts(mode, tool, args, tool.command, approvals, remembered)
    if (settled := by_parts or limit) is not None:
        return settled
    if judgement.kind == "ask" and subject is not None and tool.can_be_remembered:
        for pattern, exact in remembered:
            if subject.exact == pattern if exact else subject.certainly_matches(pattern):
                return Verdict("allow", f"always allowed in this thread: {pattern!r}")
    return judgement


def _judge_parts(  # what a verdict depends on
    mode: Mode, tool: ToolSpec, args: JsonObject, command: str, approvals: Approvals,
    remembered: Collection[tuple[str, bool]],
) -> Verdict | None:  # fmt: skip
    """Allows a line of several commands of which each is allowed; None if one is not."""
    lines = split_line(args[command])
    parts = [verdict(mode, tool, {**args, command: line}, approvals, remembered) for line in lines]
    if not parts or any(part.kind != "allow" for part in parts):
        return None
    is_read_only = all(part.is_read_only for part in parts)
    return Verdict("allow", "each of its commands is allowed", is_read_only=is_read_only)


def _check_limits(
    mode: Mode, tool: ToolSpec, args: JsonObject | None, subject: Subject | None
) -> Verdict | None:
    """Limits that no rule, policy or remembered approval lifts; ``deny`` wins over ``ask``."""
    limits = (
        _check_group(mode, tool, args, subject),
        _check_denials(mode, tool, subject),
        _check_files(tool, args),
    )
    verdicts = [limit for limit in limits if limit is not None]
    return min(verdicts, key=lambda limit: limit.kind != "deny", default=None)


def _check_group(
    mode: Mode, tool: ToolSpec, args: JsonObject | None, subject: Subject | None
) -> Verdict | None:
    """Denies tools of groups that the mode lacks, and files that its ``fileRegex`` excludes."""
    grant = None if tool.group is None else mode.grant(tool.group)
    is_open = not (tool.effect.runs_programs and tool.sandboxed)
    if tool.group is None:
        why = _find_left_out(mode, tool)
    elif grant is None:
        lines = list_free_commands(mode, tool)
        if lines and (subject is None or any(map(subject.certainly_matches, lines))):
            return None
        but = f" but for {', '.join(map(repr, lines))}" if lines else ""
        why = f"has no {tool.group!r} tools{but}"
    elif tool.served is not None:
        why = _find_foreign(mode, grant, tool.served)
    elif grant.sandbox is not None and is_open:
        where = f"only in a read-only sandbox, which there is not for {tool.name}"
        why = f"has its {tool.group!r} tools {where}"
    else:
        return _check_file_regex(mode, grant, tool, args)
    if why is None:
        return None
    why = f"{mode.name} mode {why}, so {tool.name} did not run."
    return Verdict("deny", why, is_missing=True)


def _find_left_out(mode: Mode, tool: ToolSpec) -> str | None:
    """Why a mode lacks one of the tools that modes have without a group."""
    if tool.effect.starts_subtask and mode.subtasks == ():
        return "begins no sub-tasks"
    if tool.effect.part and tool.effect.part not in mode.conversation:
        return f"has no {tool.effect.part!r} in its conversation"
    return None


def _find_foreign(mode: Mode, grant: Grant, served: ServerTool) -> str | None:
    """Why a mode lacks a tool of an MCP server, though it has some of these."""
    if not grant.has_server(served.server):
        return f"has no tools of the MCP server {served.server!r}"
    if not grant.has_tool(served.name):
        return f"does not have the tool {served.name!r} of the MCP server {served.server!r}"
    if has_only_read_tools(mode) and not served.is_read_only:
        return "has only those tools of MCP servers that say that they are read-only"
    return None


def _check_file_regex(
    mode: Mode, grant: Grant, tool: ToolSpec, args: JsonObject | None
) -> Verdict | None:
    if grant.file_regex is None:
        return None
    if not tool.paths:
        return Verdict(
            "deny",
            f"{tool.name} does not say which files it changes, and {mode.name} mode may "
            f"change only those that match '{grant.file_regex}'.",
            FileRestrictionError,
        )
    rule = f" ({grant.description})" if grant.description else ""
    for path in _list_paths(tool, args):
        try:
            problem = None if grant.permits(path) else f"{path!r} does not match"
        except SlowPatternError:
            problem = f"whether {path!r} matches could not be told within {SECONDS} s"
        if problem is not None:
            return Verdict(
                "deny",
                f"{mode.name} mode may use {tool.name} only on files that match "
                f"'{grant.file_regex}'{rule}; {problem}.",
                FileRestrictionError,
            )
    return None


def _check_denials(mode: Mode, tool: ToolSpec, subject: Subject | None) -> Verdict | None:
    """Denies what the user's rules always deny; asks if one of them might apply."""
    possible = None
    for user in mode.denials:
        match, pattern = find_denial(user.rules, tool, subject)
        rule = f"rule {pattern!r} for {tool.name} in {user.source}"
        if match == "yes":
            return Verdict("deny", f"{mode.name} mode must not do that: {rule}.")
        if match == "maybe":
            possible = Verdict("ask", f"it may be what is denied by {rule}", always_asks=True)
    return possible


def _check_files(tool: ToolSpec, args: JsonObject | None) -> Verdict | None:
    """Denies writes below ``.git``; asks for protected files, and files that look secret."""
    if not (tool.effect.reads_files or tool.effect.changes_files):
        return None
    paths = _list_paths(tool, args)
    protected = {path: get_protection(path) for path in paths if tool.effect.changes_files}
    for path, kind in protected.items():
        if kind == "deny":
            return Verdict(
                "deny",
                f"{tool.name} does not write to {path!r}: what is in .git runs programs.",
                FileRestrictionError,
            )
    for path in paths:
        if protected.get(path) == "ask":
            return Verdict("ask", f"{path!r} steers people, tools or the agent", always_asks=True)
        if is_secret(path):
            return Verdict("ask", f"{path!r} looks as if it held a secret", always_asks=True)
    return None


def _list_paths(tool: ToolSpec, args: JsonObject | None) -> list[str]:
    return [args[name] for name in tool.paths if args[name] is not None] if args else []


def _apply_rules(mode: Mode, tool: ToolSpec, subject: Subject | None) -> Verdict | None:
    """The mode's own rules win over the user's for every mode."""
    for rules in (mode.own_rules, *mode.defaults):
        ruling = find_ruling(rules.rules, tool, subject)
        if ruling is not None:
            is_own = rules == mode.own_rules and mode.level is Level.BUILT_IN
            by_rule = _apply_ruling(mode, tool, ruling, rules.source)
            return replace(by_rule, is_read_only=is_own and tool.effect.runs_programs)
    return None


def _apply_ruling(mode: Mode, tool: ToolSpec, ruling: Ruling, source: str) -> Verdict:
    rule = f"rule {ruling.pattern!r} for {tool.name}" + (f" in {source}" if source else "")
    if ruling.kind == "deny":
        return Verdict("deny", f"{mode.name} mode must not do that: {rule}.")
    if ruling.kind == "allow" and tool.effect.runs_programs and not tool.sandboxed:
        return Verdict("ask", f"{NO_SANDBOX}; the {rule} applies only in a sandbox")
    if ruling.kind == "allow" and tool.way_out is not None:
        return Verdict("ask", f"may show another repository: {tool.way_out!r} leads there")
    if not ruling.is_certain:
        return Verdict("ask", f"a part of it may fall under the {rule}")
    return Verdict(ruling.kind, rule)


def _apply_effect(mode: Mode, tool: ToolSpec, approvals: Approvals) -> Verdict:
    effect = tool.effect
    if effect.runs_programs and mode.is_closed_off(tool.group):
        return Verdict("allow", "runs a command in the sandbox, where it can change nothing")
    if effect.runs_programs and not tool.sandboxed:
        return Verdict("ask", NO_SANDBOX)
    if effect.asks == "never":
        return Verdict("allow", effect.does)
    if effect.asks == "under manual" and approvals is Approvals.AUTO:
        return Verdict("allow", f"{effect.does}, approvals are 'auto'")
    whose = f": {tool.served.server!r}" if tool.served is not None else ""
    return Verdict("ask", f"{effect.does}{whose}")


def is_offered(mode: Mode, tool: ToolSpec) -> bool:
    """Whether a model in this mode has the tool."""
    return verdict(mode, tool, None, Approvals.MANUAL).kind != "deny"
