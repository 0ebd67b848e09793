"""``Screen``: what is printed; other people's text cannot act on the terminal."""

import os
import re
from collections.abc import Callable, Iterable, Sequence

from prompt_toolkit.utils import get_cwidth
from pygments import highlight
from pygments.formatters import TerminalFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from modeshift.calls.previews import FileChange
from modeshift.modes.plain_text import make_readable

FAINT, BOLD, ADDED, REMOVED, ALERT, CODE = "90", "1", "32", "31", "33", "36"
MAX_WIDTH = 100
HEAD, TAIL = 4, 8
"""Lines that are shown of a long result."""
MAX_SHOWN = 60
"""Lines of a diff or a plan that are shown; the pager has all."""
MAX_COLOURED = 100_000
"""Characters of code; more is shown without colours."""
MAX_INCOMPLETE = 2_000
PAGED = "Ctrl-O shows all"
_INLINE = re.compile(r"(`[^`]+`|\*\*[^*]+\*\*)")
_LINE = re.compile(r"(\s*)((?:[-*+]|\d+[.)]|>)\s+|)(.*)")
_FENCE = re.compile(r"\s*(?:```+|~~~+)\s*([\w+-]*)")
Pieces = Sequence[tuple[str, str]]
"""A style and a text, each."""


def has_colours() -> bool:
    """Whether the person wants them; see no-color.org."""
    return not os.environ.get("NO_COLOR") and has_cursor()


def has_cursor() -> bool:
    """Whether the terminal can do more than print lines."""
    return os.environ.get("TERM", "dumb") != "dumb"


def paint(text: str, style: str) -> str:
    """Our text, or somebody else's that is readable, in a style."""
    is_shown = style and (has_colours() or (style == BOLD and has_cursor()))
    return f"\x1b[{style}m{text}\x1b[0m" if is_shown and text else text


def get_width() -> int:
    """How wide text is printed."""
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:
        columns = 80
    return max(min(columns - 1, MAX_WIDTH), 20)


def measure(text: str) -> int:
    """The columns that a text takes."""
    return len(text) if text.isascii() else get_cwidth(text)


def wrap(pieces: Pieces, first: str = "", rest: str | None = None) -> list[str]:
    """Lines in which no word is cut, the first behind ``first``, the others behind ``rest``."""
    rest = " " * measure(first) if rest is None else rest
    width, lines, line = get_width(), list[str](), first
    text = "".join(part for _, part in pieces)
    if text.isascii():  # quick: answers are long
        at = 0
        while len(text) - at > (room := width - measure(line if not lines else rest)):
            end = text.rfind(" ", at + 1, at + room + 1)
            end = end if end > 0 else text.find(" ", at + room)
            if end < 0:
                break
            lines.append((rest if lines else first) + _cut_out(pieces, at, end).rstrip())
            at = end + 1
        return [*lines, (rest if lines else first) + _cut_out(pieces, at, len(text))]
    used, gap, is_empty = measure(first), "", True
    for word in _split_words(pieces):
        size = sum(measure(text) for _, text in word)
        if word[0][1][0] == " ":
            gap = word[0][1]
            continue
        if used + len(gap) + size > width and not is_empty:
            lines.append(line)
            line, used, gap = rest, measure(rest), ""
        line += gap + "".join(paint(text, style) for style, text in word)
        used, gap, is_empty = used + len(gap) + size, "", False
    return [*lines, line]


def _cut_out(pieces: Pieces, start: int, end: int) -> str:
    """A part of the text, in its styles."""
    parts, at = [], 0
    for style, text in pieces:
        if at < end and at + len(text) > start:
            parts.append(paint(text[max(start - at, 0) : end - at], style))
        at += len(text)
    return "".join(parts)


def _split_words(pieces: Pieces) -> list[list[tuple[str, str]]]:
    """Words of several styles, and the blanks between them."""
    words: list[list[tuple[str, str]]] = [[]]
    for style, text in pieces:
        for part in re.findall(" +|[^ ]+", text):
            if part[0] == " ":
                words += [[("", part)], []]
            else:
                words[-1].append((style, part))
    return [word for word in words if word]


def colour(code: str, *, language: str = "", path: str = "") -> list[str]:
    """The lines of code that is readable, in the colours of its language if that is known."""
    lines = code.split("\n")
    if not has_colours() or not (language or path) or len(code) > MAX_COLOURED:
        return lines
    try:
        find = get_lexer_for_filename if path else get_lexer_by_name
        lexer = find(path or language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return lines
    shown = str(highlight(code, lexer, TerminalFormatter())).split("\n")
    return shown if len(shown) == len(lines) else lines


class Markdown:
    """Makes lines of an answer as it comes in: each when it is complete, code when it ends."""

    def __init__(self) -> None:
        self._pending = ""
        self._code: list[str] | None = None
        self._language = ""

    def feed(self, text: str) -> list[str]:
        """The lines that are complete now."""
        *whole, self._pending = (self._pending + make_readable(text).replace("\r", "")).split("\n")
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
        return [f"    {line}" for line in colour("\n".join(code), language=self._language)][
            : len(code)
        ]

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
        return wrap([(BOLD, line.lstrip("# "))])
    is_short = len(line) < get_width() and line.isascii()
    if line.lstrip().startswith("|") or (is_short and "`" not in line and "**" not in line):
        return [line]
    match = _LINE.fullmatch(line)
    assert match is not None
    return wrap(list(_style(match[3])), match[1] + match[2])


def _style(text: str) -> Iterable[tuple[str, str]]:
    for part in _INLINE.split(text):
        if part[:1] == "`" and len(part) > 2:
            yield CODE, part.strip("`") if has_colours() else part
        elif part[:2] == "**" and len(part) > 4:
            yield BOLD, part[2:-2]
        elif part:
            yield "", part


class Screen:
    """What has been printed is not changed again."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._is_after_gap = False
        self.folded = ""
        """The whole of what was shown in part last, for the pager."""

    def gap(self) -> None:
        """Print an empty line, unless there is one."""
        if not self._is_after_gap:
            self.ready([""])
            self._is_after_gap = True

    def line(self, text: str = "", style: str = "") -> None:
        """Print text on lines of its own, as long as they are."""
        text = make_readable(text).replace("\r", "")
        self.ready([paint(line, style) for line in text.split("\n")])

    def words(self, text: str, style: str = "", indent: str = "  ") -> None:
        """Print prose, its lines wrapped and indented."""
        for line in make_readable(text).splitlines():
            self.ready(wrap([(style, line)], indent))

    def ready(self, lines: Sequence[str]) -> None:
        """Print lines that are readable, and painted."""
        if lines:
            self._is_after_gap = False
            self._write("\n".join(lines) + "\n")

    def lines(self, lines: Sequence[str], style: str = "") -> None:
        """Print lines as they are, indented."""
        for line in lines:
            self.line(f"  {line}", style)

    def result(self, text: str, style: str = "") -> None:
        """Print what a call has said, folded if it is long."""
        lines = text.removesuffix("\n").split("\n")
        self._fold([paint(f"  {make_readable(line)}", style) for line in lines], HEAD, TAIL)

    def text(self, file: FileChange) -> None:
        """Print a file that is handed over, or that cannot be compared."""
        lines = colour(file["after"].removesuffix("\n"), path=file["path"])
        self._fold([f"  {line}" for line in lines], MAX_SHOWN // 2, MAX_SHOWN // 2)
        if "problem" in file:
            self.words(file["problem"], ALERT)

    def diff(self, change: FileChange) -> None:
        """Print what is being approved, with the numbers of the lines as they will be."""
        shown, number = [], 0
        size = len(str(len(change["after"].splitlines())))
        for sign, line in change["lines"]:
            if sign == "@":
                number = int(line.split()[-1]) if line.startswith("line ") else number
                shown += [paint(f"  {line}", FAINT)] if change["before"] is not None else []
                continue
            at = "" if sign == "-" else str(number)
            number += sign != "-"
            style = {"+": ADDED, "-": REMOVED}.get(sign, FAINT)
            code = paint(line, REMOVED) if sign == "-" else colour(line, path=change["path"])[0]
            shown.append(f"  {paint(f'{at:>{size}} {sign}', style)}{code}")
        self._fold(shown, MAX_SHOWN // 2, MAX_SHOWN // 2)
        if "problem" in change:
            self.text(change)

    def _fold(self, lines: Sequence[str], head: int, tail: int) -> None:
        more = len(lines) - head - tail
        if more < 2:
            self.ready(lines)
            return
        self.folded = "\n".join(lines) + "\n"
        left_out = paint(f"  ... {more} more lines; {PAGED}", FAINT)
        self.ready([*lines[:head], left_out, *lines[-tail:]])


def resolve_returns(line: str) -> str:
    """A command's line as a terminal shows it: each carriage return begins it anew."""
    return line.replace(r"\u000d", "\r").rstrip("\r").rpartition("\r")[2]


def count_lines(change: FileChange) -> str:
    """How many lines an edit adds and removes."""
    signs = [sign for sign, _ in change["lines"]]
    return f"{change['path']}  +{signs.count('+')} -{signs.count('-')}"
