"""``Subject``: what the pattern of a rule is compared with: files, command, address or words."""

import json
import re
import shlex
from collections.abc import Sequence
from decimal import Decimal
from fnmatch import translate
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import dropwhile, islice, takewhile
from typing import Literal

from pydantic_core import to_jsonable_python

from modeshift.modes.effects import ToolSpec
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.rules import urls

MAX_GLOB = 300


def check_glob(pattern: str) -> str:
    """Return the pattern; raises ``ValueError`` for one that does not mean what it seems to."""
    if len(pattern) > MAX_GLOB:
        raise ValueError(f"a pattern of {len(pattern)} characters; {MAX_GLOB} are the limit")
    if not pattern.strip() or not pattern.isprintable():
        raise ValueError(f"the pattern {pattern!r} is blank or not printable")
    if any(character in pattern for character in "[]\\"):
        raise ValueError(f"the pattern {pattern!r} may have '*' and '?', and no '[', ']' or '\\'")
    return pattern


def word_matches(pattern: str, word: str) -> bool:
    """Whether the pattern matches the whole word."""
    return _compile(pattern).fullmatch(word) is not None


@lru_cache(maxsize=5000)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))  # atomic between its stars: no backtracking


def path_matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether the pattern matches a path, name by name; ``**`` stands for any names or none."""
    at, place = 0, 0
    star, retry = -1, 0
    while place < len(path):
        if at < len(pattern) and pattern[at] == "**":
            star, retry = at, place
            at += 1
        elif at < len(pattern) and word_matches(pattern[at], path[place]):
            at, place = at + 1, place + 1
        elif star >= 0:
            retry += 1
            at, place = star + 1, retry
        else:
            return False
    return all(name == "**" for name in pattern[at:])


# Quoted text is literal to every shell as long as it holds no quote of its kind, and in
# double quotes nothing that expands. No "~", "*", "?", "[", "{", "#", "!", "\" outside.
_QUOTED = r"""'([ !-&(-~]*)'|"([ #%-\[\]-_a-~]*)\""""
_WORD = rf"(?:[A-Za-z0-9_@%+=:,./-]|{_QUOTED})+"
_LINE = re.compile(rf" *{_WORD}(?: +{_WORD})* *")
_WORDS = re.compile(_WORD)
MAX_LINE = 10_000
MAX_COMMANDS = 100
_OPERATORS = re.compile(r"[;&|(){}<>`\r\n]|\$\(")


def command_words(line: str) -> tuple[str, ...] | None:
    """The words of a line that is one command; None if that is not certain.

    No operator, redirection, substitution, expansion, line break, or assignment before the
    command.
    """
    if len(line) > MAX_LINE or _LINE.fullmatch(line) is None:
        return None
    words = tuple(
        re.sub(_QUOTED, lambda quoted: quoted[1] or quoted[2] or "", word[0])
        for word in _WORDS.finditer(line)
    )
    return None if "=" in words[0] else words


def mentioned_commands(line: str) -> list[tuple[str, ...]]:
    """What may be the commands of a line: a guess, good for refusing and never for allowing.

    At most ``MAX_COMMANDS``, so that a line made to be long takes no time.
    """
    parts = (part.split() for part in _OPERATORS.split(line[:MAX_LINE]))
    plain = ([re.sub(r"[\\'\"]", "", word) for word in words] for words in parts)
    commands = (tuple(dropwhile(lambda word: "=" in word, words)) for words in plain)
    return [*islice(filter(None, commands), MAX_COMMANDS)]


PREFIX = "mcp__"
MAX_NAME = 64
"""The longest name of a tool that every provider takes."""
MAX_SERVER = 24
_TAKEN = re.compile(r"[^a-zA-Z0-9_-]+")
_LIKE_A_DIGEST = re.compile(r"-[0-9a-f]{8}$")
_PATTERN = re.compile(r"mcp__[a-zA-Z0-9_*?-]+")


def name_server_tool(server: str, tool: str) -> str:
    """The name under which models, rules and people know the tool."""
    plain = _LIKE_A_DIGEST.sub("", re.sub("_{2,}", "_", server).strip("_"))
    part = _shorten(server, MAX_SERVER, plain)
    return f"{PREFIX}{part}__{_shorten(tool, MAX_NAME - len(PREFIX) - len(part) - 2, tool)}"


def _shorten(text: str, limit: int, name: str) -> str:
    """``name`` in characters that are taken; with a digest of ``text`` if it is not that."""
    plain = _TAKEN.sub("-", name)
    if plain == text and len(plain) <= limit:
        return plain
    digest = sha256(text.encode()).hexdigest()[:8]
    return f"{plain[: limit - 9]}-{digest}"


def is_server_tool(name: str) -> bool:
    """Whether it is the name of a server's tool, or a pattern of such names."""
    return name.startswith(PREFIX)


def get_server_part(name: str) -> str:
    """What the names of all tools of one server begin with; empty for other tools."""
    return "__".join(name.split("__")[:2]) if is_server_tool(name) else ""


def check_name_pattern(pattern: str) -> None:
    """Raise ``ValueError`` for a pattern that no tool of a server can match."""
    check_glob(pattern)
    if _PATTERN.fullmatch(pattern) is None:
        raise ValueError(
            f"{pattern!r} names no tool of an MCP server: write mcp__server__tool, where "
            "'*' stands for any characters; other characters than letters, digits, '_' and '-' "
            "are '-' in it"
        )


EVERY = "*"
Match = Literal["yes", "no", "maybe"]
WILD = frozenset("*?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LIMIT = re.compile(rf"(<=|>)({_NUMBER.pattern})")
"""A word of a pattern that is a limit of a number."""


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
        urls.check_url_pattern(pattern)
        return
    check_glob(pattern)
    if tool.is_known_by_subject:
        _check_words(tool, pattern.split())
        return
    names = pattern.strip("/").split("/")
    if tool.command is None and (pattern.startswith("!") or {"", ".", ".."} & set(names)):
        raise ValueError(
            f"the pattern {pattern!r} can match no file: paths are relative to the workspace, "
            "without '.', '..' or '!'"
        )


def _check_words(tool: ToolSpec, words: list[str]) -> None:
    if len(words) != len(tool.subject):
        raise ValueError(
            f"the pattern {' '.join(words)!r} for {tool.name} needs one word for each of: "
            f"{', '.join(tool.subject)}"
        )
    for word in words:
        if word[0] in "<>" and not _LIMIT.fullmatch(word):
            raise ValueError(f"the limit {word!r} is none: write '<=50', or '>50'")


class Subject:
    """One call; its ``args`` have passed the schema and are resolved."""

    def __init__(self, tool: ToolSpec, args: JsonObject) -> None:
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
        commands = mentioned_commands(line) if self._words is None else [self._words]
        return [*commands, *((words[0].rpartition("/")[2], *words[1:]) for words in commands)]

    @cached_property
    def _others(self) -> dict[str, object]:
        """The other arguments of a command, such as its folder."""
        return {
            name: value
            for name, value in self._args.items()
            if name != self._tool.command and value is not None
        }

    @cached_property
    def _paths(self) -> list[str]:
        values = (self._args[name] for name in self._tool.paths)
        return [path for path in values if path is not None]

    @cached_property
    def _url(self) -> urls.Url | None:
        """The address; None where there is none, or none that can be fetched."""
        assert self._tool.url is not None
        try:
            return urls.parse_url(self._args[self._tool.url] or "")
        except ValueError:
            return None

    def certainly_matches(self, pattern: str) -> bool:
        """Whether an ``allow`` for the pattern applies to this call; if in doubt, it does not."""
        if self._is_named(pattern):
            return True
        if self._tool.command is not None:
            # In another folder the same words may mean something else.
            texts = [value for value in self._others.values() if isinstance(value, str)]
            if self._words is None or any(text != "." for text in texts):
                return False
            return _words_match(pattern, self._words)
        if self._tool.url is not None:
            return self._url is not None and urls.url_certainly_matches(pattern, self._url)
        if self._tool.is_known_by_subject:
            return self._match_words(pattern) == "yes"
        return bool(self._paths) and all(_covers(pattern, path) for path in self._paths)

    def may_match(self, pattern: str) -> Match:
        """Whether an ``ask`` or a ``deny`` for the pattern applies to this call."""
        if self._is_named(pattern):
            return "yes"
        if self._tool.command is not None:
            is_mentioned = any(_words_match(pattern, words) for words in self._mentioned)
            return "yes" if is_mentioned else "maybe" if self._words is None else "no"
        if self._tool.url is not None:
            return "maybe" if self._url is None else urls.url_may_match(pattern, self._url)
        if self._tool.is_known_by_subject:
            return self._match_words(pattern)
        # In any case, for on some disks .ENV is .env; a folder stands for all that is in it.
        names = [*_split_pattern(pattern.casefold()), "**"]
        if any(path_matches(names, path.casefold().split("/")) for path in self._paths):
            return "yes"
        is_below = self._tool.reads_below and any(
            _may_meet_below(pattern, path) for path in self._paths
        )
        return "maybe" if is_below else "no"

    def _is_named(self, pattern: str) -> bool:
        """Whether the pattern is for any call of the tool."""
        is_served = self._tool.served is not None
        return pattern == EVERY or (is_served and word_matches(pattern, self._tool.name))

    def _match_words(self, pattern: str) -> Match:
        values = [self._args.get(name) for name in self._tool.subject]
        matches = set(map(_match_value, pattern.split(), values))
        return "no" if "no" in matches else "maybe" if "maybe" in matches else "yes"

    @cached_property
    def exact(self) -> str | None:
        """What an approval of exactly this call remembers; None if it cannot be remembered.

        For a fetch that is the whole site, as a pattern; for a tool of an MCP server, the tool;
        for one that has neither files, command nor address, all its arguments.
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
        if self._tool.effect.stays_outside or self._tool.may_be_remembered:
            return ", ".join(
                f"{name}={json.dumps(value, ensure_ascii=False, default=str)}"
                for name, value in self._args.items()
            )
        return self._paths[0] if len(self._paths) == 1 and not self._tool.reads_below else None

    @property
    def pattern(self) -> str | None:
        """One that matches this call, for a person to widen; None where the tool takes none."""
        if not self._tool.is_known_by_subject:
            takes_patterns = self._tool.takes_patterns or self._tool.served is not None
            return self.exact if takes_patterns else None
        texts = (_to_text(self._args.get(name)) for name in self._tool.subject)
        pattern = " ".join(re.sub(r"\s+", EVERY, text) or EVERY for text in texts)
        return pattern if self.certainly_matches(pattern) else None


def list_samples(word: str) -> tuple[str | float, str | float]:
    """Two values for a word of a pattern: of a limit, the greatest within and one beyond."""
    limit = _LIMIT.fullmatch(word)
    text = re.sub(r"[*?]", "-", word)
    return (float(limit[2]), float(limit[2]) + 1) if limit else (text, text)


def _to_text(value: object) -> str:
    """The value as a model writes it: a date or a member of an enumeration without quotes."""
    if isinstance(value, str):
        return value
    plain = to_jsonable_python(value, fallback=str)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _read_number(value: object) -> Decimal | None:
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        return None
    number = Decimal(str(value))
    return number if number.is_finite() else None


def _match_value(word: str, value: object) -> Match:
    limit, number = _LIMIT.fullmatch(word), _read_number(value)
    if limit is None:  # 60 is 60.0, and 0 is -0.0
        is_same = number is not None and _NUMBER.fullmatch(word) and number == Decimal(word)
        return "yes" if is_same or word_matches(word, _to_text(value)) else "no"
    if number is None:
        return "maybe"
    return "yes" if (number <= Decimal(limit[2])) is (limit[1] == "<=") else "no"


def _words_match(pattern: str, words: tuple[str, ...]) -> bool:
    expected = pattern.split()
    if expected[-1] == EVERY:
        expected.pop()
        words = words[: len(expected)]
    return len(expected) == len(words) and all(map(word_matches, expected, words))


def _split_pattern(pattern: str) -> list[str]:
    """The names of a pattern; one without a slash matches in every folder."""
    names = pattern.strip("/").split("/")
    return names if "/" in pattern.rstrip("/") else ["**", *names]


def _covers(pattern: str, path: str) -> bool:
    names = _split_pattern(pattern)
    is_folder = pattern.endswith("/") or not WILD & set(names[-1])
    return path_matches([*names, "**"] if is_folder else names, path.split("/"))


def _may_meet_below(pattern: str, folder: str) -> bool:
    """Whether the pattern may match in the folder, going by the names before a wildcard."""
    names = takewhile(lambda name: not WILD & set(name), _split_pattern(pattern.casefold()))
    folders = [] if folder == "." else folder.casefold().split("/")
    return all(a == b for a, b in zip(names, folders, strict=False))
