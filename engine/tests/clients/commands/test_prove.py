"""``make prove``: what it prints of modes that hold, of those that do not, and of wrong input."""

import json
from pathlib import Path

import pytest

from modeshift.testing.plugin import Snapshot
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


def test_what_holds_is_named_and_what_does_not_is_shown_step_by_step(
    modes: Path, run: Run, snapshot: Snapshot
) -> None:
    properties = modes / "properties.yaml"
    properties.write_text(
        "- never: {mode: ask, bound: edit}\n- before: {gain: edit, must: asked_user}\n"
    )
    shown = run("prove", MODES_FOLDER=str(modes))
    assert shown.stderr.splitlines()[-1] == "1"
    data = json.loads(run("prove", "--json", MODES_FOLDER=str(modes)).stdout)
    broken = [result["name"] for result in data["results"] if result["problem"]]
    assert broken == ["before: {gain: edit, must: asked_user}"]
    texts = {"one of two does not hold": shown.stdout}
    for wrong in (
        "- never: {mode: akk, bound: edit}",
        "- never: {mode: ask, bound: edits}",
        "- before: {enter: code, must: todos_done}",
        "- before: {enter: code, must: a ==}",
        "- always_reachable: nowhere",
        "- sometimes: ask",
        "- never: {mode: ask}",
        "never: {mode: ask}",
        "- never: [",
    ):
        properties.write_text(wrong)
        texts[wrong] = run("prove", MODES_FOLDER=str(modes)).text
    properties.unlink()
    file = modes / "code.yaml"
    file.write_text(f"{file.read_text()}\nswitches: [{{to: ask, when: plan_writen}}]\n")
    texts["a mode that did not load"] = run("prove", MODES_FOLDER=str(modes)).text
    snapshot("prove.txt", texts)
