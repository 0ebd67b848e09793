"""The engine's public names: all on one page, and the clone imports no others."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from modeshift.testing.check_clone import find_strangers
from tests.harness.root import ENGINE, TEMPLATE

PAGE = (ENGINE / "README.md").read_text(encoding="utf-8")
PARTS = re.split(r"^## `(modeshift[\w.]*)`$", PAGE, flags=re.M)
API = {
    module: re.findall(r"^\| `(\w+)` \| \S", text, re.M)
    for module, text in zip(PARTS[1::2], PARTS[2::2], strict=True)
}
"""Each public module with its names."""
MAX_NAMES = 55


def test_the_template_imports_what_is_on_the_page() -> None:
    assert find_strangers(TEMPLATE) == {}


def test_every_name_on_the_page_exists_and_every_public_one_is_there() -> None:
    for module, names in API.items():
        public = import_module(module)
        for name in names:
            assert hasattr(public, name), f"{module}.{name} is on the page and not there"
        assert sorted(names) == sorted(public.__all__), module
    assert 0 < len({name for names in API.values() for name in names}) <= MAX_NAMES


@pytest.mark.parametrize(
    ("line", "name"),
    [
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
