"""Each public name stands for one thing, and a module's first line says what is in it."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.harness.root import ENGINE

SHARED = {"main", "log", "app", "auth"}
"""Names that entry points, logging and servers look for in each module."""
MOST = 0.4
"""What has so large a part of a module's definitions is what the module is for."""
MODULES = {
    str(file.relative_to(ENGINE)): ast.parse(file.read_text(encoding="utf-8"))
    for file in sorted((ENGINE / "modeshift").rglob("*.py"))
}
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def list_names(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def test_a_public_name_stands_for_one_thing() -> None:
    """But constants, which are a module's own."""
    places = defaultdict[str, list[str]](list)
    for file, module in MODULES.items():
        for name in (name for node in module.body for name in list_names(node)):
            if not name.startswith("_") and not name.isupper() and name not in SHARED:
                places[name].append(file)
    twice = {name: files for name, files in places.items() if len(files) > 1 and len(name) > 1}
    assert not twice


@pytest.mark.parametrize("file", MODULES)
def test_the_first_line_names_what_the_module_is_for(file: str) -> None:
    module = MODULES[file]
    first = (ast.get_docstring(module) or "").partition("\n")[0]
    defined = [node for node in module.body if isinstance(node, Definition)]
    sizes = {node.name: int(node.end_lineno or 0) - node.lineno + 1 for node in defined}
    for name, size in sizes.items():
        is_most = size >= MOST * sum(sizes.values())
        if is_most and not name.startswith("_") and name != "main":
            assert f"``{name}``" in first
    if begins := re.match(r"``([A-Za-z_]\w*)``", first):
        imports = [node for node in module.body if isinstance(node, ast.ImportFrom)]
        names = {name for node in module.body for name in list_names(node)}
        assert begins[1] in names | {alias.name for node in imports for alias in node.names}
