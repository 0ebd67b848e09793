"""Permissions: what a mode, or its user, rules for single calls of a tool.

    execute_command:            # a tool
      "git *": ask              # a pattern, and what holds for the calls that match
      "git status": allow       # the last match wins
    write_file: deny            # short for {"*": deny}

A pattern for a command is words: ``*`` and ``?`` stand for characters within a word,
and a last word ``*`` for any words, or none. One for a file is read much as in
``.gitignore``: without a slash it matches in every folder, a folder's name matches all
that is in it, ``*`` stops at a slash and ``**`` does not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from modes.rules.matching import EVERY, Match, Subject, check_pattern
from modes.toolspec import ToolSpec

MAX_PATTERNS = 500
Kind = Literal["allow", "ask", "deny"]
Rules = Mapping[str, Mapping[str, Kind]]
"""Kinds by tool and pattern; the order of the patterns counts."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the rules say of a call, and which one said it."""

    kind: Kind
    pattern: str
    is_certain: bool = True
    """False where it could not be told whether the rule is about the call."""


def ruling(rules: Rules, tool: ToolSpec, subject: Subject | None) -> Ruling | None:
    """What the last rule that matches says; None where none does.

    Without a subject, of every call of the tool. Where it cannot be told whether a
    rule matches, an ``allow`` does not count and anything else asks.
    """
    patterns = rules.get(tool.name, {})
    if subject is None:
        return _for_every_call(patterns)
    found = None
    for pattern, kind in patterns.items():
        if kind == "allow":
            if subject.is_covered_by(pattern):
                found = Ruling(kind, pattern)
            continue
        match subject.is_met_by(pattern):
            case "yes":
                found = Ruling(kind, pattern)
            case "maybe" if found is None or found.kind == "allow":
                found = Ruling("ask", pattern, is_certain=False)
    return found


def denial(rules: Rules, tool: ToolSpec, subject: Subject | None) -> tuple[Match, str]:
    """Whether a ``deny`` matches, wherever it stands, and its pattern."""
    possible = ""
    for pattern, kind in rules.get(tool.name, {}).items():
        if kind == "deny":
            match = "no" if subject is None else subject.is_met_by(pattern)
            if match == "yes" or pattern == EVERY:
                return "yes", pattern
            possible = possible or (pattern if match == "maybe" else "")
    return ("maybe" if possible else "no"), possible


def with_patterns(rules: Any) -> Any:
    """``rules`` with the short form, a kind for every call of a tool, written out."""
    if not isinstance(rules, dict):
        return rules
    return {tool: {EVERY: kind} if isinstance(kind, str) else kind for tool, kind in rules.items()}


def check_rules(rules: Rules, tools: Iterable[ToolSpec]) -> None:
    """Raise ``ValueError`` for an unknown tool, and for a rule that cannot be kept."""
    specs = {tool.name: tool for tool in tools}
    for name, patterns in rules.items():
        if name not in specs:
            raise ValueError(f"unknown tool {name!r}; the tools are: {', '.join(specs)}")
        if len(patterns) > MAX_PATTERNS:
            raise ValueError(f"{len(patterns)} patterns for {name}; {MAX_PATTERNS} are the limit")
        tool = specs[name]
        for pattern, kind in patterns.items():
            if kind == "allow" and not tool.effect.can_be_allowed:
                raise ValueError(f"{name} cannot be allowed: it is a person who decides or answers")
            check_pattern(tool, pattern)


def _for_every_call(patterns: Mapping[str, Kind]) -> Ruling | None:
    found = None
    for pattern, kind in patterns.items():
        if pattern == EVERY:
            found = Ruling(kind, pattern)
        elif found is not None and kind != "deny":
            found = Ruling("ask", pattern)
    return found
