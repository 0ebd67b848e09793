"""``Glob``: which files a listing or a search is for."""

import re
from dataclasses import dataclass

from modeshift.modes.errors import ToolFailedError
from modeshift.modes.rules.globs import check_glob, path_matches

MAX_ALTERNATIVES = 100
_BRACES = re.compile(r"\{([^{}]*)\}")
_PLAIN = re.compile(r"[\w.*?-]+")


@dataclass(frozen=True)
class Glob:
    """A pattern of ``*``, ``?``, ``**`` and ``{a,b}`` for paths in a folder.

    One without a slash is for names at any depth, as in ``.gitignore``.
    """

    alternatives: tuple[tuple[str, ...], ...]
    """What the braces stand for, each as the patterns of a path's names."""

    @classmethod
    def of(cls, text: str) -> "Glob":
        """Raises ``ToolFailedError`` for one that could match nothing, or not what it seems to."""
        try:
            check_glob(text)
        except ValueError as error:
            raise ToolFailedError(f"glob: {error}") from None
        given = _expand(text)
        paths = tuple(tuple(one.split("/")) for one in given)
        if text.startswith("!") or any({"", ".", ".."} & set(names) for names in paths):
            raise ToolFailedError(
                f"glob {text!r}: give a path below the folder with '*', '**', '?' or "
                "'{a,b}' in it, such as '*.py' or 'src/**/*.{ts,tsx}'"
            )
        return cls(tuple(names if len(names) > 1 else ("**", *names) for names in paths))

    @property
    def plain_names(self) -> list[str]:
        """Patterns of which the name of each match fits one; none if that cannot be told."""
        names = [alternative[-1] for alternative in self.alternatives]
        is_plain = all(_PLAIN.fullmatch(name) and name != "**" for name in names)
        return names if is_plain else []

    def matches(self, path: str) -> bool:
        """Whether a path in the folder matches."""
        names = path.split("/")
        return any(path_matches(alternative, names) for alternative in self.alternatives)


def _expand(text: str) -> list[str]:
    """The patterns that braces stand for."""
    waiting, found = [text], []
    while waiting:
        one = waiting.pop()
        braces = _BRACES.search(one)
        if braces is None:
            found.append(one)
        else:
            start, end = braces.span()
            waiting += [one[:start] + choice + one[end:] for choice in braces[1].split(",")]
        if len(waiting) + len(found) > MAX_ALTERNATIVES:
            raise ToolFailedError(
                f"glob {text!r} stands for more than {MAX_ALTERNATIVES} patterns; give a wider one"
            )
    return found


EVERY_FILE = Glob((("**",),))
