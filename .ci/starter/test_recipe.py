"""The recipe for an own tool in README.md, followed word for word in a copy of the project."""

import re
from pathlib import Path

import pytest
import yaml
from repository import ROOT, copy_project, has_clone
from tools import GROUPS
from vcr.request import Request

from tests.graph.replay.test_cassettes import dump_cassette
from tests.harness.clone import change
from tests.harness.programs import run_in_clone


def read_recipe(page: str) -> list[tuple[str, str]]:
    """The files of a page's recipe, with their text."""
    return re.findall(
        r"<!-- recipe (\S+) -->\n```\w+\n(.*?)```\n<!-- /recipe -->",
        (ROOT / page).read_text(encoding="utf-8"),
        re.DOTALL,
    )


RECIPE = read_recipe("README.md")
LIST = "tools/__init__.py"


def test_it_takes_three_files_and_forty_lines() -> None:
    assert LIST in dict(RECIPE)
    assert len(dict(RECIPE)) == len(RECIPE) <= 3
    assert sum(len(text.splitlines()) for _, text in RECIPE) <= 40


def follow(recipe: list[tuple[str, str]], clone: Path) -> None:
    for name, text in recipe:
        file = clone / name
        if name != LIST:
            file.write_text(text)
            continue
        added = "\n".join(line[1:] for line in text.splitlines() if line.startswith("+"))
        if added not in file.read_text():  # or this clone has it
            change(file, "TOOLS = (\n", f"TOOLS = (\n{added}\n")


QUIET = ("-q", "-p", "no:cacheprovider")
CONFIG = ("--config-file", "pyproject.toml", "--rootdir", "..")
PLAIN = """\
import httpx
import pytest


@pytest.mark.vcr
def test_weather() -> None:
    assert httpx.get("https://api.example.org/weather").text == "sunny"
"""


@pytest.mark.slow
def test_a_tool_and_its_recorded_test_follow_the_docs(tmp_path: Path) -> None:
    """The pages on tools and cassettes, in a clone that has a cassette of plain vcrpy, too."""
    copy_project(tmp_path, wanted=lambda name: has_clone(name) and "cassettes/" not in name)
    follow(read_recipe("docs/own/tools.md") + read_recipe("docs/own/cassettes.md"), tmp_path)
    run_in_clone(tmp_path, "modeshift.testing.record", T="words", SCRIPTED="1")
    (cassette,) = (tmp_path / "cassettes").rglob("*.yaml")
    assert cassette.name == "test_words_are_counted.yaml"
    assert "roll_dice" in cassette.read_text(), "the model has the clone's tools"
    real = cassette.read_text().replace("scripted provider", "cloudflare")
    cassette.write_text(real.replace("It has", "I make it, in /home and for any organisation,"))
    (tmp_path / "tests/test_plain.py").write_text(PLAIN)
    (tmp_path / "cassettes/test_plain").mkdir()
    headers = {"server": ["nginx"], "date": ["Mon, 23 Nov 2026 03:34:28 GMT"]}
    status = {"code": 200, "message": "OK"}
    answer = {"status": status, "headers": headers, "body": {"string": b"sunny"}}
    request = Request("GET", "https://api.example.org/weather", None, {})
    plain = tmp_path / "cassettes/test_plain/test_weather.yaml"
    plain.write_text(dump_cassette([request], [answer]))
    files = [f"tests/test_{name}.py" for name in ("words", "plain", "more")]
    assert "4 passed" in run_in_clone(tmp_path, "pytest", *QUIET, *files)


@pytest.mark.slow
def test_the_recipe_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_project(tmp_path, wanted=lambda name: not name.startswith("docs/"))
    for clone in (tmp_path, tmp_path / "engine/template"):  # the engine's tests have its tools
        follow(RECIPE, clone)
    monkeypatch.delenv("MODES_FOLDER", raising=False)
    tests = ("../.ci/starter/research.py", "tests/project/test_api_page.py")
    run_in_clone(tmp_path, "pytest", *QUIET, *CONFIG, *tests, folder="engine")


CHANGES = """
from pathlib import Path
from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.settings import Settings

Path("graph/.#nodes.py").symlink_to("somebody@somewhere")  # as Emacs has while one writes
loader = AgentLoader(Settings(workspace="docs", sandbox="off"))
print(loader.deps().notices)
for name in ("tools/__init__.py", "graph/nodes.py"):
    with Path(name).open("a") as file:
        file.write("# changed\\n")
print(loader.is_outdated(), loader.deps().notices)
"""


def test_changed_code_says_to_start_again(tmp_path: Path) -> None:
    copy_project(tmp_path, wanted=has_clone)
    (tmp_path / "changes.py").write_text(CHANGES)
    before, after = run_in_clone(tmp_path, "changes").splitlines()
    assert before == "()"
    for name in ("graph/nodes.py", "tools/__init__.py"):
        assert f"{name} has changed: start this again" in after


def test_every_group_has_a_mode() -> None:
    """Of the clone's own modes and tools: a group that no mode names is a tool for nobody."""
    named = set()
    for file in (ROOT / "modes").glob("*.yaml"):
        groups = yaml.safe_load(file.read_text(encoding="utf-8")).get("groups", [])
        named |= {group if isinstance(group, str) else group[0] for group in groups}
    unused = set(GROUPS) - named - {"mcp"}
    assert not unused, f"no file of modes/*.yaml has the groups {unused} of {LIST}: name them there"
