"""The recipe for an own tool in README.md, followed word for word in a copy of the project."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from graph.settings import ROOT
from modes.catalog import BUILT_IN
from tests.harness.clone import change, copy_project
from tools import GROUPS

RECIPE: list[tuple[str, str]] = re.findall(
    r"<!-- recipe (\S+) -->\n```\w+\n(.*?)```\n<!-- /recipe -->",
    (ROOT / "README.md").read_text(encoding="utf-8"),
    re.DOTALL,
)
LIST = "tools/__init__.py"


def test_it_takes_three_files_and_forty_lines() -> None:
    assert LIST in dict(RECIPE)
    assert len(dict(RECIPE)) == len(RECIPE) <= 3
    assert sum(len(text.splitlines()) for _, text in RECIPE) <= 40


@pytest.mark.slow
def test_the_recipe_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_project(tmp_path, wanted=lambda name: not name.startswith(("cassettes/", "docs/")))
    for name, text in RECIPE:
        file = tmp_path / name
        if name != LIST:
            file.write_text(text)
        elif (added := text.partition("\n+")[2]) not in file.read_text():  # or this clone has it
            change(file, "TOOLS = (\n", f"TOOLS = (\n{added}")
    monkeypatch.delenv("MODES_FOLDER")
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/project/research.py")
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_group_has_a_mode() -> None:
    """Of the clone's own modes and tools: a group that no mode names is a tool for nobody."""
    named = set()
    for file in BUILT_IN.glob("*.yaml"):
        groups = yaml.safe_load(file.read_text(encoding="utf-8")).get("groups", [])
        named |= {group if isinstance(group, str) else group[0] for group in groups}
    unused = set(GROUPS) - named - {"mcp"}
    assert not unused, f"no file of modes/*.yaml has the groups {unused} of {LIST}: name them there"
