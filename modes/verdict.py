"""The verdict: may this mode make this tool call, and must a person be asked?

The same function binds a tool to the model (asked without arguments) and lets a
call run (asked with the arguments that are about to run). It is pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, assert_never

from modes.errors import FileRestrictionError, InvalidCallError, ModelError, NotAllowedError, told
from modes.mode import Grant, Mode
from modes.toolspec import Effect, ToolSpec


class Approvals(StrEnum):
    """A thread's approval policy."""

    MANUAL = "manual"
    """Every call that is not read-only asks."""
    AUTO = "auto"
    """Edits inside the workspace run; commands, questions and switches ask."""


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
    mode: Mode, tool: ToolSpec, args: Mapping[str, Any] | None, approvals: Approvals
) -> Verdict:
    """Judge one call of ``tool`` in ``mode``.

    ``args`` have been checked against the tool's schema, and those named by
    ``tool.paths`` are resolved: relative to the workspace, links followed. With
    None the question is whether the tool may be bound at all: any kind but
    ``deny`` says yes.
    """
    if tool.group is not None:
        grant = mode.grant(tool.group)
        if grant is None:
            return Verdict(
                "deny",
                f"{mode.name} mode has no {tool.group.value!r} tools, so {tool.name} did not run. "
                "Ask for a mode that has them with switch_mode.",
            )
        if refusal := _file_restriction(mode, grant, tool, args):
            return refusal
    return _by_effect(mode, tool, args, approvals)


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
    for path in () if args is None else (args[name] for name in tool.paths):
        if not grant.permits(path):
            rule = f" ({grant.description})" if grant.description else ""
            return Verdict(
                "deny",
                f"{mode.name} mode may use {tool.name} only on files that match "
                f"{grant.file_regex!r}{rule}; {path!r} does not match.",
                FileRestrictionError,
            )
    return None


def _by_effect(  # noqa: PLR0911  # a table
    mode: Mode, tool: ToolSpec, args: Mapping[str, Any] | None, approvals: Approvals
) -> Verdict:
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
            if args is not None and args["mode_slug"] == mode.slug:
                return Verdict("deny", f"Already in {mode.name} mode.", InvalidCallError)
            return Verdict("ask", "changes the mode")
        case _:
            assert_never(tool.effect)
