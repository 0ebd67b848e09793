"""``make prove``: what it prints of modes that hold, of those that do not, and of wrong input."""

import json
from pathlib import Path

import pytest

from tests.clients.commands.conftest import Run
from tests.harness.modes import MODES


@pytest.fixture
def modes(tmp_path: Path) -> Path:
    """A clone's folder of two modes."""
    folder = tmp_path / "clone/modes"
    folder.mkdir(parents=True)
    for slug in ("ask", "code"):
        (folder / f"{slug}.yaml").write_text((MODES / f"{slug}.yaml").read_text())
    return folder


def test_what_holds_is_named_and_what_does_not_is_shown_step_by_step(modes: Path, run: Run) -> None:
    holds = "never: {mode: ask, bound: edit}"
    (modes / "properties.yaml").write_text(
        f"- {holds}\n- before: {{gain: edit, must: asked_user}}\n"
    )
    shown = run("prove", MODES_FOLDER=str(modes))
    assert f"proved  {holds}" in shown.stdout
    assert shown.stderr.splitlines()[-1] == "1"
    lines = shown.stdout.splitlines()
    start = lines.index("BROKEN  before: {gain: edit, must: asked_user}")
    assert [line.split(". ")[-1] for line in lines[start + 2 :]] == [
        "a new thread in ask mode",
        "a person says something",
        "the model asks for what needs a person",
        "a person approves the switch to code",
        "the mode is now code",
    ]
    data = json.loads(run("prove", "--json", MODES_FOLDER=str(modes)).stdout)
    broken = [result["name"] for result in data["results"] if result["problem"]]
    assert broken == ["before: {gain: edit, must: asked_user}"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- never: {mode: akk, bound: edit}", "unknown mode 'akk'; there are: ask, code"),
        ("- never: {mode: ask, bound: edits}", "unknown bound 'edits'; there are: "),
        ("- before: {enter: code, must: todos_done}", "unknown must 'todos_done'; there are: "),
        ("- before: {enter: code, must: a ==}", "must"),
        ("- always_reachable: nowhere", "unknown mode 'nowhere'"),
        ("- sometimes: ask", "it is a list such as"),
        ("never: {mode: ask}", "it is a list such as"),
        ("- never: [", "properties.yaml"),
    ],
)
def test_a_property_that_is_none_is_named(modes: Path, run: Run, text: str, problem: str) -> None:
    (modes / "properties.yaml").write_text(text)
    shown = run("prove", MODES_FOLDER=str(modes))
    assert "modes/properties.yaml: " in shown.stderr
    assert problem in shown.stderr


def test_a_mode_that_did_not_load_is_not_left_out_of_the_proof(modes: Path, run: Run) -> None:
    file = modes / "code.yaml"
    file.write_text(f"{file.read_text()}\nswitches: [{{to: ask, when: plan_writen}}]\n")
    shown = run("prove", MODES_FOLDER=str(modes))
    assert "unknown fact 'plan_writen'" in shown.stderr
    assert "code.yaml: has no mode that could be loaded" in shown.stderr
    assert "proved" not in shown.stdout
