"""The recipe for an own tool in README.md, followed word for word in a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from graph.settings import ROOT
from modes.catalog import BUILT_IN
from tools import GROUPS

RECIPE: list[tuple[str, str]] = re.findall(
    r"<!-- recipe (\S+) -->\n```\w+\n(.*?)```\n<!-- /recipe -->",
    (ROOT / "README.md").read_text(encoding="utf-8"),
    re.DOTALL,
)
LIST = "tools/__init__.py"
COPIED = ("modes", "prompts", "tools", "graph", "doors", "tests")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with the recipe followed."""
    folder = tmp_path_factory.mktemp("recipe") / "copy"
    for part in COPIED:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part, folder / part, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, text in RECIPE:
        file = folder / name
        if name == LIST:
            context, added = text.splitlines(keepends=True)
            assert (context, added[0]) == (" TOOLS = (\n", "+")
            if added[1:] not in file.read_text():  # unless this clone has followed it already
                add_to_list(file, added[1:])
        else:
            file.write_text(text)
    return folder


def add_to_list(file: Path, line: str) -> None:
    before = file.read_text()
    assert before.count("TOOLS = (\n") == 1
    file.write_text(before.replace("TOOLS = (\n", f"TOOLS = (\n{line}"))


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "MODES_FOLDER"}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=copy,
        env=environment | {"WORKSPACE": str(copy.parent), "MODEL": "offline"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_takes_three_files_and_forty_lines() -> None:
    assert LIST in dict(RECIPE)
    assert len(dict(RECIPE)) == len(RECIPE) <= 3
    assert sum(len(text.splitlines()) for _, text in RECIPE) <= 40


@pytest.mark.slow
def test_the_recipe_works(copy: Path) -> None:
    done = run(copy, "pytest", "-q", "-p", "no:cacheprovider", "tests/project/research.py")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('    ("web", "tools.wbe:web_tools"),\n', "'tools.wbe:web_tools' cannot be loaded"),
        ('    ("read", "tools.read:read_tools"),\n', "two tools are called 'read_file', in"),
    ],
)
def test_a_list_that_does_not_hold_is_an_error_at_start(copy: Path, line: str, says: str) -> None:
    file = copy / LIST
    before = file.read_text()
    add_to_list(file, line)
    try:
        done = run(copy, "doors.commands", "modes")
    finally:
        file.write_text(before)
    assert done.returncode == 1
    assert says in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_every_group_has_a_mode() -> None:
    """Of the clone's own modes and tools: a group that no mode names is a tool for nobody."""
    named = set()
    for file in BUILT_IN.glob("*.yaml"):
        groups = yaml.safe_load(file.read_text(encoding="utf-8")).get("groups", [])
        named |= {group if isinstance(group, str) else group[0] for group in groups}
    unused = set(GROUPS) - named - {"mcp"}
    assert not unused, f"no file of modes/*.yaml has the groups {unused} of {LIST}: name them there"
