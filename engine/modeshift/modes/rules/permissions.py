"""Permissions: rules for single calls of a tool, by a mode or by the user.

    execute_command:            # a tool
      "git *": ask              # a pattern, and what applies to the calls that match
      "git status": allow       # the last match wins
    write_file: deny            # short for {"*": deny}
    mcp__github__get_*: allow   # tools of MCP servers by patterns of their names, and no others

A pattern for a command is a list of words: ``*`` and ``?`` stand for characters within a word, and
``*`` as the last word for any further words or none. A pattern for a file reads much like one in
``.gitignore``: without a slash it matches in every folder, a folder's name matches everything in
it, ``*`` stops at a slash and ``**`` does not. ``urls`` has those for URLs. For a tool that has
a ``subject`` and none of these, a pattern has a word for each argument there; ``<=50`` and ``>50``
are limits of a number.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from modeshift.modes.effects import ToolSpec
from modeshift.modes.rules.matching import (
    EVERY,
    Match,
    Subject,
    check_name_pattern,
    check_pattern,
    is_server_tool,
)

MAX_PATTERNS = 500
Kind = Literal["allow", "ask", "deny"]
Rules = Mapping[str, Mapping[str, Kind]]
"""Kinds by tool and pattern; the order of the patterns counts."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the rules say about a call, and the pattern that decided."""

    kind: Kind
    pattern: str
    is_certain: bool = True
    """False if it is not certain that the pattern matches the call."""


def find_ruling(rules: Rules, tool: ToolSpec, subject: Subject | None) -> Ruling | None:
    """What the last matching rule says; None if none matches.

    Without a subject, what applies to every call of the tool. Where a match is not certain, an
    ``allow`` does not count and anything else asks.
    """
    patterns = _list_patterns(rules, tool)
    if subject is None:
        return _rule_every_call(patterns)
    ruling = None
    for pattern, kind in patterns.items():
        if kind == "allow":
            if subject.certainly_matches(pattern):
                ruling = Ruling(kind, pattern)
            continue
        match subject.may_match(pattern):
            case "yes":
                ruling = Ruling(kind, pattern)
            case "maybe" if ruling is None or ruling.kind == "allow":
                ruling = Ruling("ask", pattern, is_certain=False)
    return ruling


def find_denial(rules: Rules, tool: ToolSpec, subject: Subject | None) -> tuple[Match, str]:
    """Whether a ``deny`` matches, wherever it stands in the list, and its pattern."""
    possible = ""
    for pattern, kind in _list_patterns(rules, tool).items():
        if kind == "deny":
            match = "no" if subject is None else subject.may_match(pattern)
            if match == "yes" or pattern == EVERY:
                return "yes", pattern
            possible = possible or (pattern if match == "maybe" else "")
    return ("maybe" if possible else "no"), possible


def _list_patterns(rules: Rules, tool: ToolSpec) -> Mapping[str, Kind]:
    """The rules for the tool; those for tools of MCP servers have patterns of their names."""
    if tool.served is None:
        return rules.get(tool.name, {})
    return {name: kinds[EVERY] for name, kinds in rules.items() if is_server_tool(name)}


def with_patterns(rules: object) -> object:
    """``rules`` with the short form (a kind instead of patterns) written out."""
    if not isinstance(rules, dict):
        return rules
    return {tool: {EVERY: kind} if isinstance(kind, str) else kind for tool, kind in rules.items()}


def check_permissions(rules: Rules, tools: Iterable[ToolSpec]) -> None:
    """Raise ``ValueError`` for an unknown tool, and for a rule that can never apply."""
    specs = {tool.name: tool for tool in tools}
    for name, patterns in rules.items():
        if is_server_tool(name):
            check_name_pattern(name)
            if list(patterns) != [EVERY]:
                raise ValueError(
                    f"{name} takes no patterns of arguments, as only its server knows what they "
                    "mean; write allow, ask or deny behind it"
                )
            continue
        if name not in specs:
            raise ValueError(f"unknown tool {name!r}; the tools are: {', '.join(specs)}")
        if len(patterns) > MAX_PATTERNS:
            raise ValueError(f"{len(patterns)} patterns for {name}; {MAX_PATTERNS} are the limit")
        tool = specs[name]
        for pattern, kind in patterns.items():
            if kind == "allow" and not tool.effect.can_be_allowed:
                raise ValueError(f"{name} cannot be allowed: it is a person who decides or answers")
            check_pattern(tool, pattern)


def _rule_every_call(patterns: Mapping[str, Kind]) -> Ruling | None:
    ruling = None
    for pattern, kind in patterns.items():
        if pattern == EVERY:
            ruling = Ruling(kind, pattern)
        elif ruling and (kind == "ask" or (kind == "allow" and ruling.kind == "deny")):
            ruling = Ruling("ask", pattern)
    return ruling
