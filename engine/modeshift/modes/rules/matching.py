"""``Subject``: a tool call as permission patterns see it."""

import shlex
from collections.abc import Mapping
from functools import cached_property
from itertools import takewhile
from typing import Any, Literal

from modeshift.modes.rules.globs import check_glob, path_matches, word_matches
from modeshift.modes.rules.server_tools import check_name_pattern
from modeshift.modes.rules.shell_words import command_words, mentioned_commands
from modeshift.modes.rules.urls import (
    Url,
    check_url_pattern,
    parse_url,
    url_certainly_matches,
    url_may_match,
)
from modeshift.modes.toolspec import ToolSpec

EVERY = "*"
Match = Literal["yes", "no", "maybe"]
WILD = frozenset("*?")


def check_pattern(tool: ToolSpec, pattern: str) -> None:
    """Raise ``ValueError`` for a pattern that can never match a call of the tool."""
    if pattern == EVERY:
        return
    if tool.served is not None:
        check_name_pattern(pattern)
        return
    if not tool.takes_patterns:
        raise ValueError(f"{tool.name} takes no pattern but {EVERY!r} (got {pattern!r})")
    if tool.url is not None:
        check_url_pattern(pattern)
        return
    check_glob(pattern)
    names = pattern.strip("/").split("/")
    if tool.command is None and (pattern.startswith("!") or {"", ".", ".."} & set(names)):
        raise ValueError(
            f"the pattern {pattern!r} can match no file: paths are relative to the workspace, "
            "without '.', '..' or '!'"
        )


class Subject:
    """One call; its ``args`` have passed the schema and are resolved."""

    def __init__(self, tool: ToolSpec, args: Mapping[str, Any]) -> None:
        self._tool = tool
        self._args = args

    @cached_property
    def _words(self) -> tuple[str, ...] | None:
        return command_words(self._args[self._tool.command]) if self._tool.command else None

    @cached_property
    def _mentioned(self) -> list[tuple[str, ...]]:
        """The commands that a ``deny`` or ``ask`` is compared with, by path and by name."""
        assert self._tool.command is not None
        line = self._args[self._tool.command]
        found = mentioned_commands(line) if self._words is None else [self._words]
        return [*found, *((words[0].rpartition("/")[2], *words[1:]) for words in found)]

    @cached_property
    def _others(self) -> dict[str, Any]:
        """The other arguments of a command, such as its folder."""
        return {
            name: value
            for name, value in self._args.items()
            if name != self._tool.command and value is not None
        }

    @cached_property
    def _paths(self) -> list[str]:
        given = (self._args[name] for name in self._tool.paths)
        return [path for path in given if path is not None]

    @cached_property
    def _url(self) -> Url | None:
        """The address; None where there is none, or none that can be fetched."""
        assert self._tool.url is not None
        try:
            return parse_url(self._args[self._tool.url] or "")
        except ValueError:
            return None

    def certainly_matches(self, pattern: str) -> bool:
        """Whether an ``allow`` for the pattern applies to this call; if in doubt, it does not."""
        if pattern == EVERY:
            return True
        if self._tool.served is not None:
            return word_matches(pattern, self._tool.name)
        if self._tool.command is not None:
            # In another folder the same words may mean something else.
            texts = [value for value in self._others.values() if isinstance(value, str)]
            if self._words is None or any(text != "." for text in texts):
                return False
            return _words_match(pattern, self._words)
        if self._tool.url is not None:
            return self._url is not None and url_certainly_matches(pattern, self._url)
        return bool(self._paths) and all(_covers(pattern, path) for path in self._paths)

    def may_match(self, pattern: str) -> Match:
        """Whether an ``ask`` or a ``deny`` for the pattern applies to this call."""
        is_named = self._tool.served is not None and word_matches(pattern, self._tool.name)
        if pattern == EVERY or is_named:
            return "yes"
        if self._tool.command is not None:
            if any(_words_match(pattern, words) for words in self._mentioned):
                return "yes"
            return "maybe" if self._words is None else "no"
        if self._tool.url is not None:
            return "maybe" if self._url is None else url_may_match(pattern, self._url)
        if any(_meets(pattern, path) for path in self._paths):
            return "yes"
        is_below = self._tool.reads_below and any(
            _may_meet_below(pattern, path) for path in self._paths
        )
        return "maybe" if is_below else "no"

    @cached_property
    def exact(self) -> str | None:
        """What an approval of exactly this call remembers; None if it cannot be remembered.

        For a fetch that is the whole site, as a pattern; for a tool of an MCP server, the tool.
        """
        if self._tool.served is not None:
            return self._tool.name
        if self._tool.command is not None:
            if self._words is None:
                return None
            others = "".join(f", {name}={value!r}" for name, value in self._others.items())
            return shlex.join(self._words) + others
        if self._tool.url is not None:
            return f"{self._url.origin}/*" if self._url is not None else None
        return self._paths[0] if len(self._paths) == 1 and not self._tool.reads_below else None


def _words_match(pattern: str, words: tuple[str, ...]) -> bool:
    wanted = pattern.split()
    if wanted[-1] == EVERY:
        wanted.pop()
        words = words[: len(wanted)]
    return len(wanted) == len(words) and all(map(word_matches, wanted, words))


def _split_pattern(pattern: str) -> list[str]:
    """The names of a pattern; one without a slash matches in every folder."""
    names = pattern.strip("/").split("/")
    return names if "/" in pattern.rstrip("/") else ["**", *names]


def _covers(pattern: str, path: str) -> bool:
    names = _split_pattern(pattern)
    is_folder = pattern.endswith("/") or not WILD & set(names[-1])
    return path_matches([*names, "**"] if is_folder else names, path.split("/"))


def _meets(pattern: str, path: str) -> bool:
    """Ignores case, for on some disks .ENV is .env; a folder stands for all that is in it."""
    return path_matches([*_split_pattern(pattern.casefold()), "**"], path.casefold().split("/"))


def _may_meet_below(pattern: str, folder: str) -> bool:
    """Whether the pattern may match in the folder, going by the names before a wildcard."""
    names = takewhile(lambda name: not WILD & set(name), _split_pattern(pattern.casefold()))
    given = [] if folder == "." else folder.casefold().split("/")
    return all(a == b for a, b in zip(names, given, strict=False))
