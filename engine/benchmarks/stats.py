"""``make stats``: how large the engine is, and how its modules import each other.

IN=folder     another checkout of it
WRITE=1       write the last column of the table in docs/figures.md, too
"""

import ast
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ENGINE, CLONE = "modeshift", ("template/graph", "template/tools")
PAGE = "docs/figures.md"
Imports = Mapping[str, frozenset[str]]
"""The modules that each module imports, of the project's own."""


def measure(root: Path) -> Iterator[tuple[str, int]]:
    """The figures that take no run, with what they count, of the engine in the folder ``root``."""
    engine = {name_of(file, root): file for file in find_files(root / ENGINE)}
    clone = {name_of(file, root): file for top in CLONE for file in find_files(root / top)}
    of_engine, of_clone = (sum(map(count_lines, each.values())) for each in (engine, clone))
    names = {name for file in clone.values() for name in find_names(file, "modeshift")}
    tops = [Path(top).name for top in CLONE]
    back = [name for file in engine.values() for top in tops for name in find_names(file, top)]
    imports = {name: find_imports(file, frozenset(engine)) for name, file in engine.items()}
    yield "lines of product code", of_engine + of_clone
    yield "- of the clone: `graph/*.py` and `tools/*.py` of `template/`", of_clone
    yield "- of the engine", of_engine
    yield "names that the clone imports of the engine", len(names)
    yield "- from so many of its modules", len({module for module, _ in names})
    yield "names that the engine imports of the clone", len(back)
    yield "modules of the engine", len(engine)
    yield "- lines of the largest", max(map(count_lines, engine.values()))
    yield (
        "circles of imports",
        len({group for group in find_groups(imports).values() if len(group) > 1}),
    )
    yield "lines of tests", sum(map(count_lines, (root / "tests").rglob("*.py")))


def find_files(folder: Path) -> list[Path]:
    """The modules in it."""
    return sorted(folder.rglob("*.py"))


def find_names(file: Path, top: str) -> Iterator[tuple[str, str]]:
    """Module and name of what a file imports of a package."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == top:
            yield from ((str(node.module), alias.name) for alias in node.names)


def name_of(file: Path, root: Path) -> str:
    """The module's name."""
    return ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def count_lines(file: Path) -> int:
    """As ``wc -l`` does."""
    return file.read_bytes().count(b"\n")


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


def with_figures(page: str, figures: Mapping[str, int]) -> str:
    """The page with the last column of its table made anew; other rows stay as they are."""
    for what, figure in figures.items():
        row = re.compile(rf"^(\| {re.escape(what)} \|.*\|) [\d,]* \|$", re.MULTILINE)
        page, count = row.subn(rf"\g<1> {figure:,} |", page)
        if count != 1:
            raise ValueError(f"{PAGE} has {count} rows for {what!r}; it needs one")
    return page


def read_released(page: str, what: str) -> int:
    """The figure of the last release, which the page's table has beside the present one."""
    (row,) = (line for line in page.splitlines() if line.startswith(f"| {what} |"))
    return int(row.split(" | ")[-2].replace(",", ""))


def main() -> None:
    """Print the figures."""
    root = Path(os.environ.get("IN", ".")).absolute()
    figures, before = dict(measure(root)), Path(PAGE).read_text(encoding="utf-8")
    print(f"{'':<60} {'now':>7} {'last version':>13}")
    for what, figure in figures.items():
        print(f"{what:<60} {figure:>7,} {read_released(before, what):>13,}")
    if os.environ.get("WRITE") == "1":
        page = root / PAGE
        page.write_text(with_figures(page.read_text(encoding="utf-8"), figures), encoding="utf-8")


if __name__ == "__main__":
    main()
