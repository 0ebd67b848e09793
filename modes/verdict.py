"""The verdict: may this mode make this tool call, and must a person be asked?

The same function binds a tool to the model (asked without arguments) and lets a
call run (asked with the arguments that are about to run). It is pure.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, assert_never

from modes.errors import FileRestrictionError, InvalidCallError, ModelError, NotAllowedError, told
from modes.file_regex import SECONDS, SlowPatternError
from modes.mode import Grant, Level, Mode
from modes.permissions import Ruling, covers, ruling
from modes.toolspec import Effect, ToolSpec


class Approvals(StrEnum):
    """A thread's approval policy."""

    MANUAL = "manual"
    """Every call that is not read-only asks."""
    AUTO = "auto"
    """Edits inside the workspace run; commands, questions and switches ask."""


REMEMBERED_EFFECTS = (Effect.READ, Effect.EDIT, Effect.COMMAND)
"""What a person can approve once for all: no switch, and no question."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``kind``, and why, in words for a person or for the model."""

    kind: Literal["allow", "ask", "deny"]
    reason: str
    error: type[ModelError] = NotAllowedError
    """Of a ``deny``: what kind of error it is to the model."""

    @property
    def refusal(self) -> str:
        """What the model is told of a ``deny``."""
        return told(self.error(self.reason))


def verdict(
    mode: Mode,
    tool: ToolSpec,
    args: Mapping[str, Any] | None,
    approvals: Approvals,
    remembered: Collection[str] = (),
) -> Verdict:
    """Judge one call of ``tool`` in ``mode``.

    ``args`` have been checked against the tool's schema, and those named by
    ``tool.paths`` are resolved: relative to the workspace, links followed. With
    None the question is whether the tool may be bound at all: any kind but
    ``deny`` says yes. ``remembered`` are the patterns for which a person has
    approved every call of this tool in this mode.
    """
    denied = _group_denies(mode, tool, args)
    if denied is not None:
        return denied
    found = _by_rule(mode, tool, args) or _by_effect(tool, approvals)
    if found.kind != "ask":
        return found
    if tool.effect is Effect.SWITCH and args is not None and args["mode_slug"] == mode.slug:
        return Verdict("deny", f"Already in {mode.name} mode.", InvalidCallError)
    if args is not None and tool.effect in REMEMBERED_EFFECTS:
        for pattern in remembered:
            if covers(tool, pattern, args):
                return Verdict("allow", f"always allowed in this thread: {pattern!r}")
    return found


def judges_paths(mode: Mode, tool: ToolSpec) -> bool:
    """Whether the verdict looks at the paths of a call, so that they must be resolved."""
    rules = (mode.permissions, *(above.rules for above in mode.standing))
    return bool(tool.paths) and (
        tool.effect is not Effect.READ or any(tool.name in ruled for ruled in rules)
    )


def _group_denies(mode: Mode, tool: ToolSpec, args: Mapping[str, Any] | None) -> Verdict | None:
    if tool.group is None:
        return None
    grant = mode.grant(tool.group)
    if grant is None:
        return Verdict(
            "deny",
            f"{mode.name} mode has no {tool.group.value!r} tools, so {tool.name} did not run. "
            "Ask for a mode that has them with switch_mode.",
        )
    return _file_restriction(mode, grant, tool, args)


def _file_restriction(
    mode: Mode, grant: Grant, tool: ToolSpec, args: Mapping[str, Any] | None
) -> Verdict | None:
    if grant.file_regex is not None and not tool.paths:
        return Verdict(
            "deny",
            f"{tool.name} does not say which files it changes, and {mode.name} mode may "
            f"change only those that match {grant.file_regex!r}.",
            FileRestrictionError,
        )
    if grant.file_regex is None or args is None:
        return None
    rule = f" ({grant.description})" if grant.description else ""
    for path in (args[name] for name in tool.paths):
        try:
            problem = None if grant.permits(path) else f"{path!r} does not match"
        except SlowPatternError:
            problem = f"whether {path!r} matches could not be told within {SECONDS} s"
        if problem is not None:
            return Verdict(
                "deny",
                f"{mode.name} mode may use {tool.name} only on files that match "
                f"{grant.file_regex!r}{rule}; {problem}.",
                FileRestrictionError,
            )
    return None


def _by_rule(mode: Mode, tool: ToolSpec, args: Mapping[str, Any] | None) -> Verdict | None:
    """What the rules say: a standing ``deny``, else the mode's own, else what stands."""
    standing = [(above, ruling(above.rules, tool, args, deny_wins=True)) for above in mode.standing]
    for above, found in standing:
        if found is not None and found.kind == "deny":
            return _ruled(mode, tool, found, above.origin)
    is_users = mode.origin.level is Level.GLOBAL
    own = ruling(mode.permissions, tool, args, deny_wins=is_users)
    if own is not None:
        return _ruled(mode, tool, own, mode.origin.file)
    for above, found in standing:
        if found is not None and not above.only_denies:
            return _ruled(mode, tool, found, above.origin)
    return None


def _ruled(mode: Mode, tool: ToolSpec, found: Ruling, origin: str) -> Verdict:
    rule = f"rule {found.pattern!r} for {tool.name}" + (f" in {origin}" if origin else "")
    if found.kind == "deny":
        return Verdict("deny", f"{mode.name} mode must not do that: {rule}.")
    return Verdict(found.kind, rule)


def _by_effect(tool: ToolSpec, approvals: Approvals) -> Verdict:  # noqa: PLR0911  # a table
    match tool.effect:
        case Effect.READ:
            return Verdict("allow", "reads only")
        case Effect.NOTE:
            return Verdict("allow", "changes only the agent's own notes")
        case Effect.EDIT if approvals is Approvals.AUTO:
            return Verdict("allow", "edits inside the workspace, approvals are 'auto'")
        case Effect.EDIT:
            return Verdict("ask", "changes a file")
        case Effect.COMMAND:
            return Verdict("ask", "runs a command, not sandboxed")
        case Effect.COMPLETE:
            return Verdict("allow", "ends the turn")
        case Effect.QUESTION:
            return Verdict("ask", "a person answers it")
        case Effect.SWITCH:
            return Verdict("ask", "changes the mode")
        case _:
            assert_never(tool.effect)
