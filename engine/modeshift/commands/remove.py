"""``make remove``: a mode of the clone and its files, and what else speaks of it."""

import re
from collections.abc import Iterator
from pathlib import Path

from modeshift.modes.errors import ConfigurationError
from modeshift.project import find_root

MAY_NAME_IT = ("modes/*.yaml", "prompts/*.md", "tests/*.py", "graph/*.py", ".env")


def main(mode: str | None = None) -> Iterator[str]:
    """What was removed, and the lines to look at; raises ``ConfigurationError`` for no mode.

    What is derived of the mode, such as rows of tables and recordings, goes with ``make renew``.
    """
    root = find_root()
    slugs = sorted(file.stem for file in root.glob("modes/*.yaml") if file.stem != "properties")
    if mode not in slugs:
        raise ConfigurationError(f"MODE={mode!r} has no file; there are: {', '.join(slugs)}")
    if len(slugs) == 1:
        raise ConfigurationError(f"{mode} is the only mode: add another one first")
    for name in (f"modes/{mode}.yaml", f"prompts/{mode}.md", f"tests/snapshots/modes/{mode}.md"):
        if (root / name).exists():
            (root / name).unlink()
            yield f"{name}: removed"
    named = re.compile(rf"\b{re.escape(mode)}\b", re.IGNORECASE)
    for file in (file for pattern in MAY_NAME_IT for file in sorted(root.glob(pattern))):
        yield from _list_lines(file, file.relative_to(root).as_posix(), named)


def _list_lines(file: Path, name: str, named: re.Pattern[str]) -> Iterator[str]:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if named.search(line):
            yield f"{name}:{number} names it: {line.strip()[:80]}"
