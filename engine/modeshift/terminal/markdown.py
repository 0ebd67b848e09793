"""``Markdown``: an answer as lines for a terminal, as it comes in."""

import re

from modeshift.terminal.screen import (
    BOLD,
    CODE,
    ITALIC,
    TAIL,
    colour,
    has_colours,
    paint,
    split_readable,
    wrap,
)

MAX_INCOMPLETE = 2_000
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*"
    r"|!?\[(?P<label>[^][]{1,200})\]\((?P<url>[^()\s]{1,2000})\)"
    r"|(?<![\w*])\*(?P<stressed>[^*\s]|[^*\s][^*]{0,500}[^*\s])\*(?![\w*])"
    r"|(?<!\w)_(?P<also>[^_\s]|[^_\s][^_]{0,500}[^_\s])_(?!\w)"
)
_LINE = re.compile(r"(\s*)((?:[-*+]|\d+[.)]|>)\s+|)(.*)")
_FENCE = re.compile(r"\s*(?:```+|~~~+)\s*([\w+-]*)")


class Markdown:
    """Makes lines of an answer as it comes in: each when it is complete, code when it ends."""

    def __init__(self) -> None:
        self._pending = ""
        self._code: list[str] | None = None
        self._language = ""

    def feed(self, text: str) -> list[str]:
        """The lines that are complete now."""
        first, *rest = split_readable(text)
        *whole, self._pending = [self._pending + first, *rest]
        return [shown for line in whole for shown in self._render(line)]

    @property
    def incomplete(self) -> list[str]:
        """The last lines of what has come, and is not complete."""
        rest = [self._pending[-MAX_INCOMPLETE:]] if self._pending else []
        return [*(self._code or [])[-TAIL:], *rest]

    def end(self) -> list[str]:
        """The lines of the rest."""
        rest, self._pending = self._pending, ""
        shown = self._render(rest) if rest else []
        return shown + self._end_code()

    def _end_code(self) -> list[str]:
        code, self._code = self._code or [], None
        return [f"    {line}" for line in colour(code, language=self._language)] if code else []

    def _render(self, line: str) -> list[str]:
        if fence := _FENCE.match(line):
            if self._code is not None:
                return self._end_code()
            self._code, self._language = [], fence[1]
            return []
        if self._code is not None:
            self._code.append(line)
            return []
        return _render_prose(line)


def _render_prose(line: str) -> list[str]:
    if line.startswith("#") and line.lstrip("#").startswith(" "):
        return [paint(part, BOLD) for part in wrap(line.lstrip("# "))]
    match = _LINE.fullmatch(line)
    assert match is not None
    return wrap(_INLINE.sub(_style, match[3]), match[1] + match[2])


def _style(match: re.Match[str]) -> str:
    """Code, or what stands out, painted word by word; of a link all of where it leads."""
    kind, text = match.lastgroup, match[str(match.lastgroup)]
    if kind == "url":
        label = match["label"]
        return label if label == text else f"{label} ({text})"
    style = {"code": CODE, "strong": BOLD}.get(str(kind), ITALIC)
    if style != BOLD and not has_colours():
        text = match[0]
    return " ".join(paint(word, style) for word in text.split(" "))
