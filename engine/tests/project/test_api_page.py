"""The engine's names: the public ones on one page, each for one thing; first lines say what is."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from modeshift.testing.check_clone import find_strangers
from tests.harness.root import ENGINE, TEMPLATE
from tests.tables import rows

PAGE = (ENGINE / "README.md").read_text(encoding="utf-8")
PARTS = re.split(r"^## `(modeshift[\w.]*)`$", PAGE, flags=re.M)
API = {
    module: re.findall(r"^\| `(\w+)` \| \S", text, re.M)
    for module, text in zip(PARTS[1::2], PARTS[2::2], strict=True)
}
"""Each public module with its names."""
MAX_NAMES = 55


def test_the_page_has_every_public_name_and_the_template_no_other() -> None:
    assert find_strangers(TEMPLATE) == {}
    for module, names in API.items():
        public = import_module(module)
        for name in names:
            assert hasattr(public, name), f"{module}.{name} is on the page and not there"
        assert sorted(names) == sorted(public.__all__), module
    assert 0 < len({name for names in API.values() for name in names}) <= MAX_NAMES


@rows(
    "line name",
    ("from modeshift.turns.step import Step", "modeshift.turns.step.Step"),
    ("from modeshift import Stop", "modeshift.Stop"),
    ("from modeshift import *", "modeshift.*"),
    ("from modeshift.tools import toolbox as Tool", "modeshift.tools.toolbox"),
    ("import modeshift.turns.step", "modeshift.turns.step"),
    ("import modeshift.turns.step as step", "modeshift.turns.step"),
    ("from modeshift import tools as t\nt.toolbox", "modeshift.tools.toolbox"),
    ("import modeshift as m\nm.Stop", "modeshift.Stop"),
    ("import modeshift\nmodeshift.turns.step.Step", "modeshift.turns"),
    ("import modeshift.tools\nmodeshift.Stop", "modeshift.Stop"),
    ("def late():\n    from modeshift.project import find_root", "modeshift.project.find_root"),
)
def test_another_name_is_named_with_its_file(line: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "graph/own").mkdir(parents=True)
    (tmp_path / "graph/own/deep.py").write_text(f"{line}\n")
    (tmp_path / "graph/good.py").write_text(
        "import os\nimport modeshift\nfrom modeshift.tools import Tool\nmodeshift.Step.go\n"
    )
    assert name in find_strangers(tmp_path)["graph/own/deep.py"]
    assert len(find_strangers(tmp_path)) == 1


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
