"""``make stats``: how large the project is, and how its modules import each other.

IN=folder     another checkout of it
WRITE=1       write the last column of the table in docs/architecture.md, too
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

CODE = ("modes", "prompts", "tools", "graph", "doors")
LARGE = 260
PAGE = "docs/architecture.md"
Imports = Mapping[str, frozenset[str]]
"""The modules that each module imports, of the project's own."""


def measure(root: Path) -> Iterator[tuple[str, int]]:
    """The figures that take no run, with what they count."""
    files = {name_of(file, root): file for top in CODE for file in (root / top).rglob("*.py")}
    lines = {name: count_lines(file) for name, file in files.items()}
    plain = [count for name, count in lines.items() if files[name].stem != "__init__"]
    template = sum(lines[name] for name, file in files.items() if is_template(file, root))
    imports = {name: find_imports(file, frozenset(files)) for name, file in files.items()}
    graph = {name: found for name, found in imports.items() if name.partition(".")[0] == "graph"}
    tops = {name for name, file in files.items() if file.match("graph/[!_]*.py")}
    beside = {name: find_reachable(imports, name) & tops for name in tops}
    yield "lines of product code", sum(lines.values())
    yield "- of the template: `graph/*.py`, `tools/*.py`", template
    yield "- of the packages around it", sum(lines.values()) - template
    yield "modules, those of packages among them", len(files)
    yield "- side by side in `graph/`", len(beside)
    yield "- median of their lines", round(median(plain))
    yield "- lines of the largest", max(plain)
    yield f"- of more than {LARGE} lines", sum(count > LARGE for count in plain)
    yield "levels of imports", max(find_levels(imports).values())
    yield "- of those side by side in `graph/`", max(find_levels(beside).values())
    yield "- within `graph/` and its packages", max(find_levels(graph).values())
    yield (
        "- from `graph/act.py` down, the longest way of a tool call",
        find_levels(imports)["modeshift.graph.act"],
    )
    yield (
        "circles of imports",
        len({group for group in find_groups(imports).values() if len(group) > 1}),
    )
    yield "words of README.md", len((root / "README.md").read_text(encoding="utf-8").split())
    yield "lines of tests", sum(map(count_lines, (root / "tests").rglob("*.py")))


def name_of(file: Path, root: Path) -> str:
    """The module's name."""
    return ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def count_lines(file: Path) -> int:
    """As ``wc -l`` does."""
    return file.read_bytes().count(b"\n")


def is_template(file: Path, root: Path) -> bool:
    """Whether it is what a clone's owner reads first and edits."""
    return file.parent in (root / "graph", root / "tools")


def find_imports(file: Path, modules: frozenset[str]) -> frozenset[str]:
    """Which of ``modules`` a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & modules or {node.module}
    return frozenset(found) & modules


def find_reachable(imports: Imports, start: str) -> frozenset[str]:
    """All that a module imports, directly or not."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = imports.get(waiting.pop(), frozenset()) - found
        found |= new
        waiting += new
    return frozenset(found)


def find_groups(imports: Imports) -> dict[str, frozenset[str]]:
    """By module, those that import each other in a circle with it, itself among them."""
    reached = {name: find_reachable(imports, name) for name in imports}
    return {
        name: frozenset({name} | {other for other in found if name in reached.get(other, ())})
        for name, found in reached.items()
    }


def find_levels(imports: Imports) -> dict[str, int]:
    """By module, how many modules the longest chain of imports from it has; a circle is one."""
    groups = find_groups(imports)
    levels: dict[frozenset[str], int] = {}

    def level(group: frozenset[str]) -> int:
        if group not in levels:
            below = {groups[name] for one in group for name in imports[one] if name in groups}
            levels[group] = 1 + max(map(level, below - {group}), default=0)
        return levels[group]

    return {name: level(group) for name, group in groups.items()}


def count_tests(root: Path) -> int:
    """How many tests pytest finds."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    done = subprocess.run(  # noqa: S603  # pytest
        command, cwd=root, capture_output=True, text=True, check=False
    )
    found = re.search(r"^(\d+) tests collected", done.stdout, re.MULTILINE)
    if found is None:
        sys.exit(done.stdout + done.stderr)
    return int(found[1])


def with_figures(page: str, figures: Mapping[str, int]) -> str:
    """The page with the last column of its table made anew; other rows stay as they are."""
    for what, figure in figures.items():
        row = re.compile(rf"^(\| {re.escape(what)} \|.*\|) [\d,]* \|$", re.MULTILINE)
        page, count = row.subn(rf"\g<1> {figure:,} |", page)
        if count != 1:
            raise ValueError(f"{PAGE} has {count} rows for {what!r}; it needs one")
    return page


def main() -> None:
    """Print the figures."""
    root = Path(os.environ.get("IN", "")).absolute()
    figures = {**dict(measure(root)), "tests": count_tests(root)}
    for what, figure in figures.items():
        print(f"{what:<60} {figure:>7,}")
    if os.environ.get("WRITE") == "1":
        page = root / PAGE
        page.write_text(with_figures(page.read_text(encoding="utf-8"), figures), encoding="utf-8")


if __name__ == "__main__":
    main()
