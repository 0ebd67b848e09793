"""The engine's public names: all on one page, and the clone imports no others."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.harness.root import ENGINE, ROOT

PAGE = (ENGINE / "README.md").read_text(encoding="utf-8")
PARTS = re.split(r"^## `(modeshift[\w.]*)`$", PAGE, flags=re.M)
API = {
    module: re.findall(r"^\| `(\w+)` \| \S", text, re.M)
    for module, text in zip(PARTS[1::2], PARTS[2::2], strict=True)
}
"""Each public module with its names."""
MAX_NAMES = 50


def list_imports(text: str) -> Iterator[str]:
    """What a module uses of the engine, as dotted names."""
    tree = ast.parse(text)
    modules: dict[str, str | None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and is_engine(node.module or ""):
            names = {
                alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names
            }
            modules |= {local: name for local, name in names.items() if name in API}
            yield from names.values()
        elif isinstance(node, ast.Import):
            named = [alias for alias in node.names if is_engine(alias.name)]
            modules |= {alias.asname or "modeshift": alias.asname and alias.name for alias in named}
            yield from (alias.name for alias in named)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := ast.unparse(node)).count(".") == 1:
            local, _, attribute = name.partition(".")
            if local in modules:
                yield f"{modules[local] or 'modeshift'}.{attribute}"


def is_engine(module: str) -> bool:
    return module.partition(".")[0] == "modeshift"


def find_strangers(clone: Path) -> dict[str, set[str]]:
    """The files of a clone that use of the engine what is not on the page, each with the names."""
    public = {f"{module}.{name}" for module, names in API.items() for name in names}
    # "import modeshift.tools" binds modeshift, of which tools is an attribute then.
    public |= API.keys()
    files = [
        file for folder in ("graph", "tools", "tests") for file in (clone / folder).rglob("*.py")
    ]
    used = {
        str(file.relative_to(clone)): {*list_imports(file.read_text(encoding="utf-8"))} - public
        for file in files
    }
    return {file: names for file, names in used.items() if names}


def test_the_clone_imports_what_is_on_the_page() -> None:
    strangers = find_strangers(ROOT)
    assert not strangers, f"not in engine/README.md, so it may change at any upgrade: {strangers}"
    agent = set(list_imports((ROOT / "graph/agent.py").read_text(encoding="utf-8")))
    assert {"modeshift.serve", "modeshift.AgentGraph"} <= agent, "so they are seen at all"


def test_every_name_on_the_page_exists_and_every_public_one_is_there() -> None:
    for module, names in API.items():
        public = import_module(module)
        for name in names:
            assert hasattr(public, name), f"{module}.{name} is on the page and not there"
        assert sorted(names) == sorted(public.__all__), module
    assert 0 < sum(map(len, API.values())) <= MAX_NAMES


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from modeshift.graph.step import Step", "modeshift.graph.step.Step"),
        ("from modeshift import Stop", "modeshift.Stop"),
        ("from modeshift import *", "modeshift.*"),
        ("from modeshift.tools import toolbox as Tool", "modeshift.tools.toolbox"),
        ("import modeshift.graph.step", "modeshift.graph.step"),
        ("import modeshift.graph.step as step", "modeshift.graph.step"),
        ("from modeshift import tools as t\nt.toolbox", "modeshift.tools.toolbox"),
        ("import modeshift as m\nm.Stop", "modeshift.Stop"),
        ("import modeshift\nmodeshift.graph.step.Step", "modeshift.graph"),
        ("import modeshift.tools\nmodeshift.Stop", "modeshift.Stop"),
        ("def late():\n    from modeshift.project import find_root", "modeshift.project.find_root"),
    ],
)
def test_another_name_is_named_with_its_file(line: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "graph/own").mkdir(parents=True)
    (tmp_path / "graph/own/deep.py").write_text(f"{line}\n")
    (tmp_path / "graph/good.py").write_text(
        "import os\nimport modeshift\nfrom modeshift.tools import Tool\nmodeshift.Step.go\n"
    )
    assert name in find_strangers(tmp_path)["graph/own/deep.py"]
    assert len(find_strangers(tmp_path)) == 1
