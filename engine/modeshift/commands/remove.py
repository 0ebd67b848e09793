"""``make remove``: removes a mode of the clone with its files, and lists what else names it."""

import re
from collections.abc import Iterator
from pathlib import Path

from modeshift.modes.errors import ConfigurationError
from modeshift.modes.files import NO_MODES
from modeshift.project import find_root

_DEFAULT = re.compile(r"(?m)^default: *true\b")
MAY_NAME_IT = {
    "modes/*.yaml": r"\b{slug}\b",
    "prompts/*.md": r"\b{name} mode\b|\b[Tt]o {name}\b|`{slug}`",
    "tests/*.py": r"[\"']{slug}[\"']",
    "graph/*.py": r"[\"']{slug}[\"']",
    ".env": r"={slug}\b",
}
"""Patterns by which the files of a clone name a mode."""


def main(mode: str | None = None) -> Iterator[str]:
    """Remove the mode, and list the lines to look at; raises ``ConfigurationError`` for no mode.

    What is made from the mode, such as rows of tables and recordings, goes with ``make renew``.
    """
    root = find_root()
    slugs = sorted(file.stem for file in root.glob("modes/*.yaml") if file.name not in NO_MODES)
    if mode not in slugs:
        problem = (
            "say which: make remove MODE=slug" if mode is None else f"MODE={mode!r} has no file"
        )
        raise ConfigurationError(f"{problem}; there are: {', '.join(slugs)}")
    if len(slugs) == 1:
        raise ConfigurationError(f"{mode} is the only mode: add another one first")
    file = root / f"modes/{mode}.yaml"
    text = file.read_text(encoding="utf-8")
    found = re.search(r"(?m)^name: *['\"]?(.*?)['\"]? *$", text)
    name = found[1] if found else mode
    for removed in (file, root / f"prompts/{mode}.md", root / f"tests/snapshots/modes/{mode}.md"):
        if removed.exists():
            removed.unlink()
            yield f"{removed.relative_to(root)}: removed"
    others = [slug for slug in slugs if slug != mode]
    rest = "\n".join((root / f"modes/{slug}.yaml").read_text("utf-8") for slug in others)
    if _DEFAULT.search(text) and not _DEFAULT.search(rest):
        heir = others[0]
        with (root / f"modes/{heir}.yaml").open("a", encoding="utf-8") as modes:
            modes.write("default: true\n")
        yield f"modes/{heir}.yaml: is the default mode now"
    edge = re.compile(rf"(?m)^ *- *\{{(?:to|from): *{re.escape(mode)}\b.*\}}.*\n")
    for other in sorted(root.glob("modes/*.yaml")):
        text = other.read_text(encoding="utf-8")
        if edge.search(text):
            other.write_text(edge.sub("", text), encoding="utf-8")
            yield f"{other.relative_to(root)}: its edge to {mode} is removed"
    for pattern, words in MAY_NAME_IT.items():
        named = re.compile(words.format(slug=re.escape(mode), name=re.escape(name)))
        for other in sorted(root.glob(pattern)):
            yield from _list_lines(other, other.relative_to(root).as_posix(), named)


def _list_lines(file: Path, name: str, named: re.Pattern[str]) -> Iterator[str]:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if named.search(line):
            yield f"{name}:{number} names it: {line.strip()[:80]}"
