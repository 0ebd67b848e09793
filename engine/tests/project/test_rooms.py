"""Each package says what it guarantees and which modules are public; nobody imports the others."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.harness.root import ROOT

TREES = ("modes", "prompts", "tools", "graph", "doors")
SAME_NAME = {
    "graph/loading.py": "an agent is loaded from the settings, a chat model from its name",
}
"""Names of modules that a tree has more than once, and why."""


def find_problems(root: Path) -> Iterator[str]:
    """What breaks the rules of packages, with the file and what to do about it."""
    files = {
        file: ast.parse(file.read_text(encoding="utf-8"))
        for tree in TREES
        for file in sorted((root / tree).rglob("*.py"))
    }
    imports = {
        file: [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        for file, tree in files.items()
    }
    packages = [file.parent for file in files if file.name == "__init__.py"]
    for package in packages:
        if package.parent != root:
            yield from _problems_of_package(root, package, files[package / "__init__.py"], imports)
    yield from _same_names(root, [file for file in files if file.name != "__init__.py"])


Imports = list[ast.Import | ast.ImportFrom]


def _problems_of_package(
    root: Path, package: Path, start: ast.Module, imports: dict[Path, Imports]
) -> Iterator[str]:
    shown = (package / "__init__.py").relative_to(root)
    if not ast.get_docstring(start):
        yield f"{shown}: say in a docstring what it guarantees, and who may import it"
    public = _public(start)
    there = {file.stem for file in package.glob("*.py")}
    for name in sorted(public - there):
        yield f"{shown}: __all__ names {name!r}, and there is no such module; remove it"
    for file, nodes in imports.items():
        if file.is_relative_to(package):
            continue
        for name in sorted(_imported(nodes, ".".join(package.relative_to(root).parts)) - public):
            yield (
                f"{file.relative_to(root)} imports {name!r}, which is not public: use a module "
                f"that is, or name it in __all__ of {shown}"
            )


def _public(tree: ast.Module) -> set[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def _imported(nodes: Imports, package: str) -> set[str]:
    """What a file imports of a package: names of its modules."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == package:
            found |= {f"{package}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    inside = [name.split(".") for name in found if name.startswith(f"{package}.")]
    return {parts[package.count(".") + 1] for parts in inside}


def _same_names(root: Path, files: list[Path]) -> Iterator[str]:
    by_name = defaultdict(list)
    for file in files:
        shown = file.relative_to(root)
        by_name[f"{shown.parts[0]}/{file.name}"].append(str(shown))
    for name, found in by_name.items():
        if len(found) > 1 and name not in SAME_NAME:
            yield f"{' and '.join(found)} have one name: rename one, or give a reason in SAME_NAME"


def test_the_packages_of_this_project() -> None:
    assert list(find_problems(ROOT)) == []


def test_a_package_of_the_graph_says_what_it_imports() -> None:
    for start in (ROOT / "graph").glob("*/__init__.py"):
        text = ast.get_docstring(ast.parse(start.read_text())) or ""
        said = " ".join(text.split()).partition("Imports ")[2].partition(";")[0]
        code = "\n".join(file.read_text() for file in start.parent.glob("*.py"))
        found = set(re.findall(r"^ *from (graph\.\w+)\S* import", code, re.MULTILINE))
        found -= {f"graph.{start.parent.name}"}
        assert set(re.findall(r"``(graph\.\w+)``", said)) == found, start


def test_what_breaks_the_rules_is_named(tmp_path: Path) -> None:
    for name, text in {
        "graph/__init__.py": "",
        "graph/agent.py": "import graph.room.inner\nfrom graph.room import outer, hidden\n",
        "graph/room/__init__.py": '"""A room."""\n__all__ = ("outer", "gone")\n',
        "graph/room/outer.py": "from graph.room import inner\n",
        "graph/room/inner.py": "",
        "graph/room/hidden.py": "",
        "graph/other/__init__.py": "",
        "graph/other/inner.py": "from graph.room.inner import a\n",
        "doors/inner.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    behind = "which is not public: use a module that is, or name it in __all__ of"
    assert list(find_problems(tmp_path)) == [
        "graph/other/__init__.py: say in a docstring what it guarantees, and who may import it",
        "graph/room/__init__.py: __all__ names 'gone', and there is no such module; remove it",
        f"graph/agent.py imports 'hidden', {behind} graph/room/__init__.py",
        f"graph/agent.py imports 'inner', {behind} graph/room/__init__.py",
        f"graph/other/inner.py imports 'inner', {behind} graph/room/__init__.py",
        "graph/other/inner.py and graph/room/inner.py have one name: "
        "rename one, or give a reason in SAME_NAME",
    ]
