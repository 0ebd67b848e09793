"""The verdict: may this mode make this tool call, and must a person be asked?

The same function binds a tool to the model (asked without arguments) and lets a
call run (asked with the arguments that are about to run). It is pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

from modes.errors import FileRestrictionError, InvalidCallError, ModelError, NotAllowedError, told
from modes.mode import Grant, Level, Mode
from modes.rights import commands_to_look
from modes.rules.file_regex import SECONDS, SlowPatternError
from modes.rules.matching import Subject
from modes.rules.permissions import Ruling, denial, ruling
from modes.rules.protected_paths import is_secret, protection
from modes.toolspec import ToolSpec


class Approvals(StrEnum):
    """A thread's approval policy."""

    MANUAL = "manual"
    """Every call that is not read-only asks."""
    AUTO = "auto"
    """Edits inside the workspace and commands in the sandbox run; the rest asks."""


NO_SANDBOX = "runs a command, not sandboxed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``kind``, and why, in words for a person or for the model."""

    kind: Literal["allow", "ask", "deny"]
    reason: str
    error: type[ModelError] = NotAllowedError
    """Of a ``deny``: what kind of error it is to the model."""
    firm: bool = False
    """Of an ``ask``: a person is asked every time."""
    only_looks: bool = False
    """Of an ``allow``: the call is taken to change nothing, and is held to it."""

    @property
    def refusal(self) -> str:
        """What the model is told of a ``deny``."""
        return told(self.error(self.reason))


def verdict(
    mode: Mode,
    tool: ToolSpec,
    args: Mapping[str, Any] | None,
    approvals: Approvals,
    remembered: Iterable[tuple[str, bool]] = (),
) -> Verdict:
    """Judge one call of ``tool`` in ``mode``.

    ``args`` have been checked against the tool's schema, and those named by
    ``tool.paths`` are resolved: relative to the workspace, links followed. With
    None the question is whether the tool may be bound at all: any kind but
    ``deny`` says yes. ``remembered`` are the patterns that a person always allows
    for the tool, each with whether it is one call, to be taken literally.
    """
    subject = None if args is None else Subject(tool, args)
    least = _least(mode, tool, args, subject)
    if least is not None and least.kind == "deny":
        return least
    found = _by_rule(mode, tool, subject) or _by_effect(tool, approvals)
    if found.kind == "deny":
        return found
    if tool.effect.switches_mode and args is not None and args["mode_slug"] == mode.slug:
        return Verdict("deny", f"Already in {mode.name} mode.", InvalidCallError)
    if least is not None:
        return least
    if found.kind == "ask" and subject is not None and tool.effect.can_be_remembered:
        for pattern, exact in remembered:
            if subject.exact == pattern if exact else subject.is_covered_by(pattern):
                return Verdict("allow", f"always allowed in this thread: {pattern!r}")
    return found


def _least(
    mode: Mode, tool: ToolSpec, args: Mapping[str, Any] | None, subject: Subject | None
) -> Verdict | None:
    """What nothing lifts, no rule and no memory: a ``deny``, or that a person is asked."""
    refused = _group_denies(mode, tool, args, subject)
    if refused is not None:
        return refused
    asked: Verdict | None = None
    for user in mode.denials:
        match, pattern = denial(user.rules, tool, subject)
        rule = f"rule {pattern!r} for {tool.name} in {user.origin}"
        if match == "yes":
            return Verdict("deny", f"{mode.name} mode must not do that: {rule}.")
        if match == "maybe":
            asked = Verdict("ask", f"it may be what is denied by {rule}", firm=True)
    if args is None:
        return asked
    if tool.effect.changes_files:
        return _guarded(tool, args) or _secret(tool, args) or asked
    if tool.effect.reads_files:
        return _secret(tool, args) or asked
    return asked


def _secret(tool: ToolSpec, args: Mapping[str, Any]) -> Verdict | None:
    for path in filter(is_secret, _paths(tool, args)):
        return Verdict("ask", f"{path!r} looks as if it held a secret", firm=True)
    return None


def _guarded(tool: ToolSpec, args: Mapping[str, Any]) -> Verdict | None:
    found = {path: protection(path) for path in _paths(tool, args)}
    for path, kind in found.items():
        if kind == "deny":
            return Verdict(
                "deny",
                f"{tool.name} does not write to {path!r}: what is in .git runs programs.",
                FileRestrictionError,
            )
    asked = [path for path, kind in found.items() if kind == "ask"]
    if not asked:
        return None
    return Verdict("ask", f"{asked[0]!r} steers people, tools or the agent", firm=True)


def _paths(tool: ToolSpec, args: Mapping[str, Any]) -> list[str]:
    return [args[name] for name in tool.paths if args[name] is not None]


def _group_denies(
    mode: Mode, tool: ToolSpec, args: Mapping[str, Any] | None, subject: Subject | None
) -> Verdict | None:
    if tool.group is None:
        return None
    grant = mode.grant(tool.group)
    if grant is not None:
        return _file_restriction(mode, grant, tool, args)
    lines = commands_to_look(mode, tool)
    if lines and (subject is None or any(map(subject.is_covered_by, lines))):
        return None
    but = f" but for {', '.join(map(repr, lines))}" if lines else ""
    return Verdict(
        "deny",
        f"{mode.name} mode has no {tool.group!r} tools{but}, so {tool.name} did not run. "
        "Ask for a mode that has them with switch_mode.",
    )


def _file_restriction(
    mode: Mode, grant: Grant, tool: ToolSpec, args: Mapping[str, Any] | None
) -> Verdict | None:
    if grant.file_regex is not None and not tool.paths:
        return Verdict(
            "deny",
            f"{tool.name} does not say which files it changes, and {mode.name} mode may "
            f"change only those that match '{grant.file_regex}'.",
            FileRestrictionError,
        )
    if grant.file_regex is None or args is None:
        return None
    rule = f" ({grant.description})" if grant.description else ""
    for path in _paths(tool, args):
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


def _by_rule(mode: Mode, tool: ToolSpec, subject: Subject | None) -> Verdict | None:
    """What the mode's own rules say, and where they say nothing, the user's."""
    for rules in (mode.own_rules, *mode.defaults):
        found = ruling(rules.rules, tool, subject)
        if found is not None:
            ruled = _ruled(mode, tool, found, rules.origin)
            is_own = rules == mode.own_rules and mode.origin.level is Level.BUILT_IN
            return replace(ruled, only_looks=is_own and tool.effect.runs_programs)
    return None


def _ruled(mode: Mode, tool: ToolSpec, found: Ruling, origin: str) -> Verdict:
    rule = f"rule {found.pattern!r} for {tool.name}" + (f" in {origin}" if origin else "")
    if found.kind == "deny":
        return Verdict("deny", f"{mode.name} mode must not do that: {rule}.")
    if found.kind == "allow" and tool.effect.runs_programs and not tool.sandboxed:
        return Verdict("ask", f"{NO_SANDBOX}; the {rule} holds in a sandbox only")
    if not found.is_certain:
        return Verdict("ask", f"it may be more than it seems, and there is the {rule}")
    return Verdict(found.kind, rule)


def _by_effect(tool: ToolSpec, approvals: Approvals) -> Verdict:
    effect = tool.effect
    if effect.runs_programs and not tool.sandboxed:
        return Verdict("ask", NO_SANDBOX)
    if effect.asks == "never":
        return Verdict("allow", effect.does)
    if effect.asks == "under manual" and approvals is Approvals.AUTO:
        return Verdict("allow", f"{effect.does}, approvals are 'auto'")
    return Verdict("ask", effect.does)
