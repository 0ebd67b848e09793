"""``draw``: a terminal's screen as a picture, in the reader's palette, light or dark."""

from html import escape
from itertools import groupby

import pyte

WIDTH, HEIGHT = 8.4, 19
PALETTE = {
    "default": ("1f2328", "e6edf3"), "red": ("cf222e", "ff7b72"), "green": ("1a7f37", "3fb950"),
    "brown": ("9a6700", "d29922"), "blue": ("0969da", "58a6ff"), "cyan": ("1b7c83", "39c5cf"),
    "magenta": ("8250df", "bc8cff"), "brightblack": ("59636e", "9198a1"),
}  # fmt: skip
"""By colour as ``pyte`` names it: on light, and on dark."""


def draw(screen: pyte.Screen, first: str) -> str:
    """The screen from the line on that begins with ``first``, without empty lines at its end."""
    lines = [line.rstrip() for line in screen.display]
    begin = next(n for n, line in enumerate(lines) if line.startswith(first))
    end = max(n for n, line in enumerate(lines) if line) + 1
    width, height = round(screen.columns * WIDTH + 32), (end - begin) * HEIGHT + 32
    light, dark = (
        " ".join(f".{name} {{ fill: #{colours[at]} }}" for name, colours in PALETTE.items())
        for at in (0, 1)
    )
    style = "\n".join([
        "text { font: 14px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace }",
        f"svg {{ background: #fff }} {light}",
        f"@media (prefers-color-scheme: dark) {{ svg {{ background: #0d1117 }} {dark} }}",
    ])  # fmt: skip
    texts = [_draw_line(screen, n, (n - begin + 1) * HEIGHT + 10) for n in range(begin, end)]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<style>\n{style}\n</style>", *filter(None, texts), "</svg>\n",
    ])  # fmt: skip


def _draw_line(screen: pyte.Screen, line: int, y: int) -> str:
    cells = [(column, screen.buffer[line][column]) for column in range(screen.columns)]
    spans = []
    for look, run in groupby(cells, lambda each: (each[1].fg, each[1].bold, each[1].italics)):
        part = [*run]
        if text := "".join(cell.data for _, cell in part).rstrip():
            colour, is_bold, is_italic = look
            bold = ' font-weight="bold"' * is_bold + ' font-style="italic"' * is_italic
            x = 16 + part[0][0] * WIDTH
            spans.append(f'<tspan x="{x:.1f}" class="{colour}"{bold}>{escape(text)}</tspan>')
    return f'<text y="{y}" xml:space="preserve">{"".join(spans)}</text>' if spans else ""
