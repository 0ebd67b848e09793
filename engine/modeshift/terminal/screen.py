"""``Screen``: prints text of others so that it cannot act; ``Markdown``: an answer as lines."""

import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import zip_longest

from prompt_toolkit.utils import get_cwidth
from pygments import highlight
from pygments.formatters import TerminalFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Token
from pygments.util import ClassNotFound

from modeshift.calls.previews import FileChange
from modeshift.modes.plain_text import make_readable

# No yellow, blue or bright black: common palettes have one that can hardly be read.
BOLD, FAINT, ITALIC, REMOVED, ADDED, ALERT, CODE = "1", "2", "3", "31", "32", "35", "36"
STYLES = {"+": ADDED, "-": REMOVED, " ": FAINT}
MAX_WIDTH = 100
HEAD, TAIL = 4, 8
"""Lines that are shown at the beginning and the end of a long result."""
HALF = 30
"""Lines that are shown at each end of a long diff or plan."""
LANGUAGE_COLOURS = {
    Token: ("", ""),
    Token.Keyword: ("magenta", "magenta"),
    Token.String: ("green", "green"),
    Token.Comment: ("cyan", "cyan"),
    Token.Generic.Deleted: ("red", "red"),
    Token.Generic.Inserted: ("green", "green"),
}
"""The same colours for light and dark backgrounds, as nobody can tell these apart here."""
MAX_COLOURED = 100_000
"""Characters of code that are coloured; longer code has no colours."""
PAGED = "v shows all"
PAINT = re.compile(r"\x1b\[[\d;]+m")


@cache
def has_colours() -> bool:
    """Whether the person wants colours; see no-color.org."""
    return not os.environ.get("NO_COLOR") and has_cursor()


def has_cursor() -> bool:
    """Whether the terminal can do more than print lines."""
    return os.environ.get("TERM", "dumb") != "dumb"


def paint(text: str, style: str) -> str:
    """Text in a style; somebody else's must have been made readable before."""
    is_shown = style and (has_colours() or (style == BOLD and has_cursor()))
    return f"\x1b[{style}m{text}\x1b[0m" if is_shown and text else text


def get_width() -> int:
    """How many columns a line may take."""
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:
        columns = 80
    return max(min(columns - 1, MAX_WIDTH), 20)


def measure(text: str) -> int:
    """The columns that a text takes."""
    return len(text) if text.isascii() else get_cwidth(text)


def fit_to_width(line: str, width: int) -> str:
    """The line, cut to the width."""
    if measure(line) <= width:
        return line
    line = line[: width - 1]
    while measure(line) > width - 1:
        line = line[:-1]
    return f"{line}…"


def wrap(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """Lines that cut no word; the first begins with ``first``, the others with ``rest``.

    Painted text must be painted word by word.
    """
    rest = " " * measure(first) if rest is None else rest
    width, lines, line, used, gap = get_width(), list[str](), first, measure(first), ""
    for word in text.split(" "):
        size = measure(PAINT.sub("", word) if "\x1b" in word else word)
        if gap and used + 1 + size > width:
            lines.append(line)
            line, used, gap = rest, measure(rest), ""
        line, used, gap = f"{line}{gap}{word}", used + len(gap) + size, " "
    return [*lines, line]


def colour(lines: list[str], *, language: str = "", path: str = "") -> list[str]:
    """Readable lines of code, in the colours of the language if that is known."""
    code = "\n".join(lines)
    if not has_colours() or not (language or path) or len(code) > MAX_COLOURED:
        return lines
    try:
        find = get_lexer_for_filename if path else get_lexer_by_name
        lexer = find(path or language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return lines
    shown = str(highlight(code, lexer, TerminalFormatter(colorscheme=LANGUAGE_COLOURS))).split("\n")
    return shown if PAINT.sub("", "\n".join(shown)) == code else lines


class Screen:
    """Prints lines, and never changes what it has printed."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._is_after_gap = False
        self.folded = ""
        """All of what was shown in part, for the pager; cleared when the next call is shown."""

    def gap(self) -> None:
        """Print an empty line, unless there is one."""
        if not self._is_after_gap:
            self.ready([""])
            self._is_after_gap = True

    def line(self, text: str = "", style: str = "") -> None:
        """Print text on lines of its own, as long as they are."""
        self.ready([paint(line, style) for line in split_readable(text)])

    def words(self, text: str, style: str = "", indent: str = "  ") -> None:
        """Print prose, its lines wrapped and indented."""
        for line in split_readable(text) if text else ():
            self.ready([paint(part, style) for part in wrap(line, indent)])

    def ready(self, lines: Sequence[str]) -> None:
        """Print lines that are readable and painted already."""
        if lines:
            self._is_after_gap = False
            self._write("\n".join(lines) + "\n")

    def block(self, text: str, style: str = "", head: int = HALF, tail: int = HALF) -> None:
        """Print lines as they are, indented, and folded if they are many."""
        lines = split_readable(text.removesuffix("\n"))
        self._fold([paint(f"  {line}", style) for line in lines], head, tail)

    def result(self, text: str, style: str = "") -> None:
        """Print a call's result."""
        self.block(text, style, HEAD, TAIL)

    def text(self, file: FileChange) -> None:
        """Print a whole file: a plan, or one that cannot be compared."""
        lines = colour(split_readable(file["after"].removesuffix("\n")), path=file["path"])
        self._fold([f"  {line}" for line in lines])
        self.words(file.get("problem", ""), ALERT)

    def diff(self, change: FileChange) -> None:
        """Print what is being approved, with the numbers of the lines as they will be."""
        shown, number = [], 0
        after = colour(split_readable(change["after"]), path=change["path"])
        for sign, line in change["lines"]:
            if sign == "@":
                number = int(line.split()[-1]) if line.startswith("line ") else number
                shown += [paint(f"  {line}", FAINT)] if change["before"] is not None else []
                continue
            at, code = "", paint(split_readable(line)[0], REMOVED)
            if sign != "-":
                at, code = str(number), after[number - 1]
                number += 1
            mark = paint(f"{at:>{len(str(len(after)))}} {sign}", STYLES[sign])
            shown.append(f"  {mark}{code}")
        self._fold(shown)
        if "problem" in change:
            self.text(change)

    def _fold(self, lines: list[str], head: int = HALF, tail: int = HALF) -> None:
        if (more := len(lines) - head - tail) > 1 and has_cursor():
            self.folded += "\n".join(lines) + "\n"
            left_out = paint(f"  ... {more} more lines; {PAGED}", FAINT)
            lines = [*lines[:head], left_out, *lines[-tail:]]
        self.ready(lines)


def split_readable(text: str) -> list[str]:
    """The lines of somebody's text, without what could act on the terminal."""
    return make_readable(text).replace("\r", "").split("\n")


def count_lines(change: FileChange) -> str:
    """The file's path, and how many lines an edit adds and removes."""
    signs = [sign for sign, _ in change["lines"]]
    return f"{change['path']}  +{signs.count('+')} -{signs.count('-')}"


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
        fence = _FENCE.match(line)
        if self._code is not None:
            if fence:
                return self._end_code()
            self._code.append(line)
            return []
        if _ROW.fullmatch(line):
            self._rows.append(line)
            return self._end_table() if len(self._rows) == MAX_ROWS else []
        if fence:
            self._code, self._language = [], fence[1]
            return self._end_table()
        return self._end_table() + _render_prose(line)


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
