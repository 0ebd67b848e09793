"""``IgnoreRules``: lines in the syntax of ``.gitignore``, which anybody may have written.

Own code, as libraries make regular expressions of the lines, with which a hostile file could take
forever: here each becomes one that hardly backtracks. In doubt a line names more, and
brings back less, than git would have it: these files only take away.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property, lru_cache

MAX_LINES = 500
MAX_CHARACTERS = 300
"""The longest line."""
MAX_FOLDERS = 100
"""The most folders above a path; one that is deeper counts as ignored."""
MAX_KNOWN = 10_000
_ANY = "**"
_FOLDERS = "(?:[^\n]+\n)"
_TRAILING = re.compile(r"(?<!\\) +$")
# A class of characters, in which "]" may come first.
_CLASS = re.compile(r"\[([!^]?)(\]?[^\]]*)\]")


@dataclass(frozen=True)
class IgnoreRule:
    """One line."""

    names: tuple[str, ...]
    """Patterns for the names of a path, as ``fnmatch`` reads them; ``**`` is any names or none."""
    ignores: bool
    """False for a line with "!", which brings back what one before it ignores."""
    only_folders: bool

    @cached_property
    def regex(self) -> str:
        """For a path with line breaks for slashes; in any case, for .ENV is .env on some disks."""
        regex, *chunks = "\n".join(map(_translate, self.names)).split("**\n")
        # What lies between two "**" is looked for once, as far to the left as it can be.
        for chunk in chunks[:-1]:
            regex += f"(?>{_FOLDERS}*?{chunk})"
        if chunks:
            regex += f"{_FOLDERS}*{chunks[-1]}"
        if not self.ignores:
            return regex
        # Of "[!a]" there is less in any case than in one.
        return f"(?i:{regex})|{regex}" if "[^" in regex else f"(?i:{regex})"


class IgnoreRules:
    """The lines of one file; nothing changes but what is kept of earlier answers."""

    def __init__(self, text: str) -> None:
        """Raises ``ValueError`` for a line that is too long, and for too many of them."""
        rules = tuple(_parse(text))
        if len(rules) > MAX_LINES:
            raise ValueError(f"it has {len(rules)} patterns; {MAX_LINES} are the limit")
        self._rules = rules
        words = dict.fromkeys(rule.regex for rule in rules if rule.ignores)
        # Of a path or a folder above it: spares most the look at each rule.
        self._some = re.compile(f"(?:{'|'.join(words) or '(?!)'})(?:\n|\\Z)")
        self._ignores_folder = lru_cache(maxsize=MAX_KNOWN)(
            lambda folder: self._ignores(folder, is_folder=True)
        )

    @property
    def patterns(self) -> list[str]:
        """What the lines ignore, as patterns with ``*`` and ``?``; lines with "!" do not count."""
        patterns = (_CLASS.sub("?", "/".join(rule.names)) for rule in self._rules if rule.ignores)
        return list(dict.fromkeys(patterns))

    def name(self, path: str, *, is_folder: bool | None) -> bool:
        """Whether the lines ignore the path or a folder above it; None where it may be a folder."""
        if path.count("/") > MAX_FOLDERS:
            return True
        # No "." of a regular expression matches a line break. No name has a NUL.
        text = path.replace("\n", "\0").replace("/", "\n")
        if self._some.match(text) is None:
            return False
        folders = (text[: end.start()] for end in re.finditer("\n", text))
        return any(map(self._ignores_folder, folders)) or self._ignores(text, is_folder=is_folder)

    def _ignores(self, text: str, *, is_folder: bool | None) -> bool:
        """Whether the last rule that matches the path itself ignores it."""
        for rule in reversed(self._rules):
            fits = not rule.only_folders or is_folder or (is_folder is None and rule.ignores)
            if fits and _compile(rule.regex).fullmatch(text):
                return rule.ignores
        return False


_compile = lru_cache(maxsize=5000)(re.compile)


@lru_cache(maxsize=5000)
def _translate(name: str) -> str:
    """As ``fnmatch``, which does not backtrack; but no part of it matches a line break."""
    if name == _ANY:
        return name
    return translate(name).removeprefix("(?s:").rpartition(")")[0].replace("[^", "[^\n")


def _parse(text: str) -> Iterator[IgnoreRule]:
    for raw_line in text.removeprefix("\ufeff").split("\n"):
        line = _TRAILING.sub("", raw_line.removesuffix("\r"))
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
        patterns = [word or "*" for word in words]
        if patterns[-1] == _ANY:
            patterns.append("*")  # what is in a folder, and not the folder
        is_anchored = "/" in path[:-1]
        yield IgnoreRule(
            tuple(patterns if is_anchored else [_ANY, *patterns]), ignores, path[-1] == "/"
        )


def _read_name(name: str) -> str | None:
    """A pattern of git's for a name as one of ``fnmatch``; None if that is not certain."""
    words: list[str] = []
    while name:
        match = _CLASS.match(name)
        if name[0] == "\\" and len(name) > 1:
            words.append(_take_literally(name[1]))
            name = name[2:]
        elif match is not None:
            if "\\" in match[2] or "[:" in match[0]:
                return None
            words.append(f"[{'!' if match[1] else ''}{match[2]}]")
            name = name[match.end() :]
        else:
            words.append(name[0] if name[0] != "[" else _take_literally(name[0]))
            name = name[1:]
    return "".join(words)


def _take_literally(character: str) -> str:
    return f"[{character}]" if character in "*?[" else character
