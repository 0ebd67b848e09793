"""The examples of docs/own/machine.md, followed word for word in a copy of the project."""

import re
from pathlib import Path

import pytest
from repository import ROOT, copy_project, has_clone
from test_loop_recipes import CHECKS, _apply

from tests.harness.programs import run_in_clone

BLOCKS: list[tuple[str, str, str, str]] = re.findall(
    r"<!-- machine (\w+) (\S+) -->\n```(\w+)\n(.*?)```\n<!-- /machine -->",
    (ROOT / "docs/own/machine.md").read_text(encoding="utf-8"),
    re.DOTALL,
)


def follow(example: str, clone: Path) -> None:
    """Do what the page says: a key of a mode's file takes the place of the one that is there."""
    for name, file, kind, text in BLOCKS:
        if name != example:
            continue
        path = clone / file
        if kind == "diff":
            for hunk in text.split("@@\n"):
                _apply(path, hunk.splitlines())
        else:
            key = text.partition(":")[0] + ":"
            before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            kept = [line for line in before if not line.startswith(key)]
            path.write_text("\n".join([*kept, text]), encoding="utf-8")


def draw(clone: Path) -> str:
    """The clone's diagram, without what may differ between examples."""
    return run_in_clone(clone, "modeshift", "diagram")


@pytest.mark.parametrize(
    ("example", "edge"),
    [
        ("plan", "m_1 --> m_2 : switch_mode [plan_written]"),
        ("prove", "m_2 --> m_0 : switch_mode [tests_passed or not files_changed]"),
    ],
)
def test_an_example_is_a_line_that_draws_its_edge(
    example: str, edge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    copy_project(clone, wanted=has_clone)
    monkeypatch.delenv("MODES_FOLDER", raising=False)
    monkeypatch.setenv("CONFIG_FOLDER", str(tmp_path))
    assert edge not in draw(clone)
    follow(example, clone)
    assert edge in draw(clone)
    modes = [text for name, file, _, text in BLOCKS if (name, file) == (example, "modes/code.yaml")]
    assert [len(text.splitlines()) for text in modes] == [1]


def test_a_fact_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = tmp_path / "clone"
    copy_project(clone, wanted=has_clone)
    follow("fact", clone)
    for check in CHECKS:
        run_in_clone(clone, *check, "graph", "tests/test_facts.py")
    assert "1 passed" in run_in_clone(
        clone, "pytest", "-q", "-p", "no:cacheprovider", "tests/test_facts.py"
    )
    monkeypatch.delenv("MODES_FOLDER", raising=False)
    code = clone / "modes/code.yaml"
    line = "enterFrom: [{from: architect, when: changelog_written}]\n"
    code.write_text(code.read_text() + line)
    assert "m_1 --> m_2 : switch_mode [changelog_written]" in draw(clone)
