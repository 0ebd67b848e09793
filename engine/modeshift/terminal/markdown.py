"""``Markdown``: turns an answer into lines for a terminal while it comes in."""

import re
from itertools import zip_longest

from modeshift.terminal.screen import (
    BOLD,
    CODE,
    ITALIC,
    PAINT,
    TAIL,
    colour,
    get_width,
    has_colours,
    measure,
    paint,
    split_readable,
    wrap,
)

MAX_INCOMPLETE = 2_000
MAX_ROWS = 200
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*"
    r"|!?\[(?P<label>[^][]{1,200})\]\((?P<url>[^()\s]{1,2000})\)"
    r"|(?<![\w*])\*(?P<stressed>[^*\s]|[^*\s][^*]{0,500}[^*\s])\*(?![\w*])"
    r"|(?<!\w)_(?P<also>[^_\s]|[^_\s][^_]{0,500}[^_\s])_(?!\w)"
)
_ROW = re.compile(r"\s*\|.*\|\s*")
_RULE = re.compile(r"[\s|:]*-[\s|:-]*")
_BORDER = re.compile(r"(?<!\\)\|")
_LINE = re.compile(r"(\s*)((?:[-*+]|\d+[.)]|>)\s+|)(.*)")
_FENCE = re.compile(r"\s*(?:```+|~~~+)\s*([\w+-]*)")


class Markdown:
    """Returns each line of an answer when it is complete, and code when its block ends."""

    def __init__(self) -> None:
        self._pending = ""
        self._code: list[str] | None = None
        self._language = ""
        self._rows: list[str] = []
        """The rows of a table that has not ended."""

    def feed(self, text: str) -> list[str]:
        """Add a piece of the answer; returns the lines that are complete by now."""
        first, *rest = split_readable(text)
        *whole, self._pending = [self._pending + first, *rest]
        return [shown for line in whole for shown in self._render(line)]

    @property
    def incomplete(self) -> list[str]:
        """The last lines, which are not complete yet."""
        rest = [self._pending[-MAX_INCOMPLETE:]] if self._pending else []
        return [*(self._code or self._rows)[-TAIL:], *rest]

    def end(self) -> list[str]:
        """End the answer; returns its last lines."""
        rest, self._pending = self._pending, ""
        shown = self._render(rest) if rest else []
        return shown + self._end_table() + self._end_code()

    def _end_table(self) -> list[str]:
        rows, self._rows = self._rows, []
        return _render_table(rows) if rows else []

    def _end_code(self) -> list[str]:
        code, self._code = self._code or [], None
        return [f"    {line}" for line in colour(code, language=self._language)] if code else []

    def _render(self, line: str) -> list[str]:
        if self._code is None and _ROW.fullmatch(line):
            self._rows.append(line)
            return self._end_table() if len(self._rows) == MAX_ROWS else []
        return self._end_table() + self._render_other(line)

    def _render_other(self, line: str) -> list[str]:
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


def _render_table(rows: list[str]) -> list[str]:
    """A table in columns; where they do not fit, a line for each cell."""
    if len(rows) < 2 or not _RULE.fullmatch(rows[1]):
        return [part for row in rows for part in _render_prose(row)]
    cells = [
        [_INLINE.sub(_style, cell.strip().replace("\\|", "|")) for cell in _BORDER.split(row)]
        for row in (row.strip()[1:-1] for row in (rows[0], *rows[2:]))
    ]
    sizes = [[measure(PAINT.sub("", cell)) for cell in row] for row in cells]
    widths = [max(column) for column in zip_longest(*sizes, fillvalue=0)]
    if sum(widths) + 2 * len(widths) > get_width():
        return [
            part
            for row in cells[1:]
            for n, (head, cell) in enumerate(zip_longest(cells[0], row, fillvalue=""))
            if cell
            for part in wrap(f"{head}: {cell}" if head else cell, "  " if n else "- ", "  ")
        ]
    lines = [
        "  ".join(
            cell + " " * (width - size) for cell, size, width in zip(row, own, widths, strict=False)
        ).rstrip()
        for row, own in zip(cells, sizes, strict=True)
    ]
    return [paint(lines[0], BOLD), "  ".join("─" * width for width in widths), *lines[1:]]


def _style(match: re.Match[str]) -> str:
    """Code or emphasis, painted word by word; a link with its whole address."""
    kind, text = match.lastgroup, match[str(match.lastgroup)]
    if kind == "url":
        label = match["label"]
        return label if label == text else f"{label} ({text})"
    style = {"code": CODE, "strong": BOLD}.get(str(kind), ITALIC)
    if style != BOLD and not has_colours():
        text = match[0]
    return " ".join(paint(word, style) for word in text.split(" "))
