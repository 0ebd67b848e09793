"""``IgnoreRules``: lines in the syntax of ``.gitignore``, which anybody may have written.

Own code, as libraries make regular expressions of the lines, with which a hostile file could take
forever: here a path is matched name by name, each line once. In doubt a line names more, and
brings back less, than git would have it: these files only take away.
"""

import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple

MAX_LINES = 500
MAX_CHARACTERS = 300
"""Of a line."""
MAX_KNOWN = 10_000
_ANY = "**"
_TRAILING = re.compile(r"(?<!\\) +$")
# A class of characters, in which "]" may come first.
_CLASS = re.compile(r"\[([!^]?)(\]?[^\]]*)\]")


class Rule(NamedTuple):
    """A line."""

    names: tuple[str, ...]
    """Patterns for the names of a path, as ``fnmatch`` reads them; ``**`` is any names or none."""
    ignores: bool
    """False for a line with "!", which brings back what one before it ignores."""
    only_folders: bool


class IgnoreRules:
    """Immutable, but for what it has looked up."""

    def __init__(self, text: str) -> None:
        """Raises ``ValueError`` for a line that is too long, and for too many of them."""
        rules = tuple(_parse(text))
        if len(rules) > MAX_LINES:
            raise ValueError(f"it has {len(rules)} patterns; {MAX_LINES} are the limit")
        self._rules = rules
        self._top = _Folder(rules, frozenset((rule, 0) for rule in range(len(rules))), {})

    @property
    def patterns(self) -> list[str]:
        """What they ignore, with ``*`` and ``?``; more than that, for a later line counts not."""
        found = (_CLASS.sub("?", "/".join(rule.names)) for rule in self._rules if rule.ignores)
        return list(dict.fromkeys(found))

    def name(self, path: str, *, is_folder: bool | None) -> bool:
        """Whether they name the path, or a folder above it; None where it may be a folder."""
        folder: _Folder | None = self._top
        *above, name = path.split("/")
        for one in above:
            folder = folder and folder.enter(one)
        return folder is None or folder.ignores(name, is_folder=is_folder)


_Places = frozenset[tuple[int, int]]
"""Numbers of rules, each with the place among its names that is due in a folder."""


class _Folder:
    """A folder that is not ignored, as the rules see it; one for all that they see alike."""

    def __init__(
        self, rules: Sequence[Rule], places: _Places, alike: dict[_Places, "_Folder"]
    ) -> None:
        self._rules, self._places, self._alike = rules, places, alike
        # "**" may stand for no name, so what follows it is due, too.
        self._due = {
            (rule, next_at) for rule, at in places for next_at in _list_due(rules[rule].names, at)
        }
        last = {rule for rule, at in self._due if at + 1 == len(rules[rule].names)}
        self._last = [rules[rule] for rule in sorted(last, reverse=True)]
        words = (_translate(rule.names[-1]) for rule in self._last if rule.ignores)
        self._some = re.compile("|".join(dict.fromkeys(words)) or "(?!)")
        self._known: dict[str, _Folder | None] = {}

    def ignores(self, name: str, *, is_folder: bool | None) -> bool:
        """Whether the last rule that matches a name in the folder ignores it."""
        if self._some.fullmatch(name) is None:
            return False
        for rule in self._last:
            fits = not rule.only_folders or is_folder or (is_folder is None and rule.ignores)
            if fits and _matches(rule, -1, name):
                return rule.ignores
        return False

    def enter(self, name: str) -> "_Folder | None":
        """The folder of this name in it; None where that is ignored."""
        if name not in self._known:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[name] = None if self.ignores(name, is_folder=True) else self._go_on(name)
        return self._known[name]

    def _go_on(self, name: str) -> "_Folder":
        places = frozenset(self._find_next(name))
        if places not in self._alike:
            if len(self._alike) >= MAX_KNOWN:
                self._alike.clear()
            self._alike[places] = _Folder(self._rules, places, self._alike)
        return self._alike[places]

    def _find_next(self, name: str) -> Iterator[tuple[int, int]]:
        for number, at in self._due:
            rule = self._rules[number]
            if rule.names[at] == _ANY:
                yield number, at
            elif at + 1 < len(rule.names) and _matches(rule, at, name):
                yield number, at + 1


def _list_due(names: Sequence[str], at: int) -> Iterator[int]:
    yield at
    while names[at] == _ANY and at + 1 < len(names):
        at += 1
        yield at


def _matches(rule: Rule, at: int, name: str) -> bool:
    pattern = rule.names[at]
    regex = _translate(pattern) if rule.ignores else translate(pattern)
    return _compile(regex).fullmatch(name) is not None


@lru_cache(maxsize=5000)
def _translate(pattern: str) -> str:
    """As ``fnmatch``, which does not backtrack; in any case, for .ENV is .env on some disks."""
    regex = translate(pattern)
    # Of "[!a]" there is less in any case than in one.
    return f"(?i:{regex})|{regex}" if "[!" in pattern else f"(?i:{regex})"


_compile = lru_cache(maxsize=5000)(re.compile)


def _parse(text: str) -> Iterator[Rule]:
    for given in text.removeprefix("\ufeff").split("\n"):
        line = _TRAILING.sub("", given.removesuffix("\r"))
        if not line or line.startswith("#"):
            continue
        if len(line) > MAX_CHARACTERS:
            raise ValueError(
                f"it has a line of {len(line)} characters; {MAX_CHARACTERS} is the limit"
            )
        ignores = not line.startswith("!")
        path = line.removeprefix("!")
        names = [name for name in path.split("/") if name not in ("", ".")]
        words = [_read_name(name) for name in names]
        if not words or ".." in names or (not ignores and None in words):
            continue
        found = [word or "*" for word in words]
        is_anchored = "/" in path[:-1]
        yield Rule(tuple(found if is_anchored else [_ANY, *found]), ignores, path[-1] == "/")


def _read_name(name: str) -> str | None:
    """A pattern of git's for a name as one of ``fnmatch``; None if that cannot be told."""
    words: list[str] = []
    while name:
        found = _CLASS.match(name)
        if name[0] == "\\" and len(name) > 1:
            words.append(_take_literally(name[1]))
            name = name[2:]
        elif found is not None:
            if "\\" in found[2] or "[:" in found[0]:
                return None
            words.append(f"[{'!' if found[1] else ''}{found[2]}]")
            name = name[found.end() :]
        else:
            words.append(name[0] if name[0] != "[" else _take_literally(name[0]))
            name = name[1:]
    return "".join(words)


def _take_literally(character: str) -> str:
    return f"[{character}]" if character in "*?[" else character
