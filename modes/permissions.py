"""Permissions: what a mode, or its user, rules for single calls of a tool.

    execute_command:            # a tool
      "git *": ask              # a pattern, and what holds for the calls that match
      "git status": allow       # the last match wins
    write_file: deny            # short for {"*": deny}

A pattern for a command is words: ``*`` and ``?`` stand for characters within a word,
and a last word ``*`` for any words, or none. One for a file is read as in
``.gitignore``: without a slash it matches in every folder, a folder's name matches all
that is in it, ``*`` stops at a slash and ``**`` does not.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Any, Literal

from modes.command_line import command_words, mentioned_commands
from modes.file_regex import SlowPatternError, is_found
from modes.toolspec import Effect, ToolSpec

Kind = Literal["allow", "ask", "deny"]
Rules = Mapping[str, Mapping[str, Kind]]
"""Kinds by tool and pattern; the order of the patterns counts."""

EVERY = "*"
Match = Literal["yes", "no", "maybe"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the rules say of a call, and which one said it."""

    kind: Kind
    pattern: str


def ruling(
    rules: Rules, tool: ToolSpec, args: Mapping[str, Any] | None, *, deny_wins: bool = False
) -> Ruling | None:
    """What the last rule that matches says; None where none does.

    With ``deny_wins`` a ``deny`` that matches says it, wherever it stands.

    ``args`` as for ``verdict``: None asks what holds for every call of the tool.
    Where a rule may match and it cannot be told, an ``allow`` does not count and
    anything else asks: ``ask`` and ``deny`` are matched broadly, ``allow`` narrowly.
    """
    patterns = rules.get(tool.name, {})
    if deny_wins:
        denied = {pattern: kind for pattern, kind in patterns.items() if kind == "deny"}
        patterns = {**{p: kind for p, kind in patterns.items() if p not in denied}, **denied}
    if args is None:
        return _for_every_call(patterns)
    found = None
    for pattern, kind in patterns.items():
        match _match(tool, pattern, args, broad=kind != "allow"):
            case "yes":
                found = Ruling(kind, pattern)
            case "maybe" if kind != "allow" and (found is None or found.kind == "allow"):
                found = Ruling("ask", pattern)
    return found


def covers(tool: ToolSpec, pattern: str, args: Mapping[str, Any]) -> bool:
    """Whether an approval for ``pattern`` is one for this call."""
    return _match(tool, pattern, args, broad=False) == "yes"


def exact_pattern(tool: ToolSpec, args: Mapping[str, Any]) -> str | None:
    """The pattern that matches this call and no other command or file; None if there is none."""
    if tool.command is not None:
        words = command_words(args[tool.command])
        pattern = args[tool.command].strip(" ") if words else ""
    else:
        paths = [args[name] for name in tool.paths]
        pattern = f"/{paths[0]}" if len(paths) == 1 else ""
    is_literal = not any(character in pattern for character in "*?'\"")
    return pattern if pattern and is_literal else None


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
        tool = specs[name]
        for pattern, kind in patterns.items():
            if kind == "allow" and tool.effect in (Effect.SWITCH, Effect.QUESTION):
                raise ValueError(f"{name} cannot be allowed: it is a person who decides or answers")
            if pattern != EVERY and not tool.takes_patterns:
                raise ValueError(f"{name} takes no pattern but {EVERY!r} (got {pattern!r})")


def _for_every_call(patterns: Mapping[str, Kind]) -> Ruling | None:
    found = None
    for pattern, kind in patterns.items():
        if pattern == EVERY:
            found = Ruling(kind, pattern)
        elif found is not None and kind != "deny":
            found = Ruling("ask", pattern)
    return found


def _match(tool: ToolSpec, pattern: str, args: Mapping[str, Any], *, broad: bool) -> Match:
    if pattern == EVERY:
        return "yes"
    try:
        if tool.command is not None:
            return _match_command(pattern, args[tool.command], broad=broad)
        return _match_paths(tool, pattern, args, broad=broad)
    except SlowPatternError:
        return "maybe"


def _match_command(pattern: str, line: str, *, broad: bool) -> Match:
    words = command_words(line)
    if words is not None:
        commands = [words]
        if broad:
            commands.append((words[0].rpartition("/")[2], *words[1:]))
    else:
        commands = mentioned_commands(line) if broad else []
    if any(_words_match(pattern, command) for command in commands):
        return "yes"
    return "maybe" if words is None else "no"


def _words_match(pattern: str, words: tuple[str, ...]) -> bool:
    wanted = pattern.split()
    if wanted and wanted[-1] == EVERY:
        wanted.pop()
        words = words[: len(wanted)]
    return len(wanted) == len(words) and all(
        is_found(_word_regex(want), word) for want, word in zip(wanted, words, strict=True)
    )


@lru_cache(maxsize=1000)
def _word_regex(pattern: str) -> str:
    parts = {"*": ".*", "?": "."}
    return "^" + "".join(parts.get(part, re.escape(part)) for part in pattern) + "$"


def _match_paths(tool: ToolSpec, pattern: str, args: Mapping[str, Any], *, broad: bool) -> Match:
    """All of the paths for an ``allow``; for anything else any of them, in capitals or not."""
    paths = [args[name] for name in tool.paths]
    glob = _glob_regex(pattern)
    if broad:  # on some disks .ENV is .env
        glob = f"(?i){glob}"
    hits = [is_found(glob, path) for path in paths]
    if hits and (any(hits) if broad else all(hits)):
        return "yes"
    is_below = broad and tool.reads_below and any(_may_match_below(pattern, p) for p in paths)
    return "maybe" if is_below else "no"


def _may_match_below(pattern: str, folder: str) -> bool:
    """Whether something in the folder may match, as far as the names before a wildcard tell."""
    if not _is_anchored(pattern):
        return True
    wanted = takewhile(lambda name: not {"*", "?"} & set(name), pattern.strip("/").split("/"))
    given = [] if folder == "." else folder.split("/")
    return all(a.casefold() == b.casefold() for a, b in zip(wanted, given, strict=False))


def _is_anchored(pattern: str) -> bool:
    return "/" in pattern.rstrip("/")


@lru_cache(maxsize=1000)
def _glob_regex(pattern: str) -> str:
    body = pattern.strip("/").removesuffix("/**")
    anywhere = "" if _is_anchored(pattern) else "(?:.*/)?"
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.findall(r"\*\*/|\*\*|.", body, re.DOTALL)
    return f"^{anywhere}{''.join(parts.get(piece, re.escape(piece)) for piece in pieces)}(?:/.*)?$"
