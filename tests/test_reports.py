"""``make modes``, ``make trust``, ``make diagram``: what they print, and what they refuse."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from doors import command_line, diagram, modes, trust
from graph.settings import ROOT
from tests.place import Place, modes_file

PERMISSIONS = "    permissions:\n      execute_command: {'make *': allow, 'rm *': deny}\n"


@dataclass
class Shown:
    stdout: str
    stderr: str


Run = Callable[..., Shown]
MAINS = {"modes": modes.main, "trust": trust.main, "diagram": diagram.main}


def environment(place: Place) -> dict[str, str]:
    return {
        "WORKSPACE": str(place.workspace),
        "CONFIG_FOLDER": str(place.home),
        "TRUST_FILE": str(place.root / "trusted.json"),
        "MODEL": "offline",
    }


@pytest.fixture
def run(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """What a target prints; how it ends is at the end of ``stderr``."""

    def run(target: str, **given: str) -> Shown:
        with monkeypatch.context() as patch:
            for name, value in {**environment(place), **given}.items():
                patch.setenv(name, value)
            code = None
            patch.setattr(sys, "argv", [target])
            try:
                command_line.run(MAINS[target], "")
            except SystemExit as exit:
                code = exit.code
        shown = capsys.readouterr()
        return Shown(shown.out, shown.err + (f"{code}" if code else ""))

    return run


def test_the_targets_of_make(place: Place) -> None:
    place.project_modes.write_text(modes_file("theirs"))
    for target, expected in (("trust", "mode theirs: read"), ("modes", "theirs  (project")):
        done = subprocess.run(
            ["make", target, f"WORKSPACE={place.workspace}"],
            cwd=ROOT,
            env={**os.environ, **environment(place), "WORKSPACE": "/nowhere"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert expected in done.stdout


def test_modes_says_what_holds_and_why(place: Place, run: Run) -> None:
    place.permissions.write_text("execute_command: {'git push *': deny}\n")
    place.global_modes.write_text(
        modes_file("mine", groups=r"read, [edit, {fileRegex: '\.md$'}], command", rest=PERMISSIONS)
    )
    place.project_modes.write_text(modes_file("theirs"))
    shown = run("modes").stdout
    assert "approvals  manual" in shown
    assert f"make trust WORKSPACE={place.workspace}" in shown
    assert "theirs  (" not in shown
    lines = shown[shown.index("mine  (") :].splitlines()
    assert lines[0] == f"mine  (global: {place.global_modes})"
    assert lines[1] == "  model offline"
    found = [line.split(maxsplit=2) for line in lines[2:12]]
    assert ["write_file", "ask", r"changes a file; only on '\\.md$'"] in found
    assert ["execute_command", "ask", "runs a command, not sandboxed"] in found
    rows = [" ".join(line.split()) for line in lines]
    assert f"git push * deny {place.permissions}" in rows
    assert f"make * allow {place.global_modes}" in rows
    assert f"rm * deny {place.global_modes}" in rows
    assert "ask  (built-in: modes/ask.yaml, the default)" in shown
    assert "write_file                 deny   no group 'edit'" in shown


def test_modes_follows_the_policy(place: Place, run: Run) -> None:
    shown = run("modes", APPROVALS="auto").stdout
    assert "write_file                 allow  edits inside the workspace" in shown


def test_trust_shows_and_records(place: Place, run: Run) -> None:
    place.project_modes.write_text(modes_file("theirs", groups="command", rest=PERMISSIONS))
    place.rule("AGENTS.md", "Be brief.")
    assert "theirs  (" not in run("modes").stdout
    shown = run("trust").stdout
    assert "mode theirs: command" in shown
    assert "allow execute_command 'make *'" in shown
    assert "AGENTS.md (9 characters)" in shown
    after = run("modes").stdout
    assert "theirs  (project: .kilocodemodes)" in after
    assert "notice" not in after
    assert "rules of the workspace: " in after
    assert "is trusted no more" in run("trust", REVOKE="1").stdout
    assert "theirs  (" not in run("modes").stdout
    assert "was not trusted" in run("trust", REVOKE="1").stdout


def test_trust_of_nothing(place: Place, run: Run) -> None:
    assert "there is nothing to trust" in run("trust").stdout
    assert not (place.root / "trusted.json").exists()
    failed = run("trust", WORKSPACE=str(place.root / "none"))
    assert "is not a folder" in failed.stderr
    (place.root / "trusted.json").write_text("[]")
    place.project_modes.write_text(": :")
    failed = run("trust")
    assert "mend the file or remove it" in failed.stderr
    assert (place.root / "trusted.json").read_text() == "[]"


def test_trust_of_a_broken_file_says_so(place: Place, run: Run) -> None:
    place.project_modes.write_text("customModes: 5")
    assert "does not load: .kilocodemodes: customModes is a list" in run("trust").stdout


def test_diagram_has_the_custom_modes(place: Place, run: Run, tmp_path: Path) -> None:
    place.global_modes.write_text(modes_file("mine"))
    place.project_modes.write_text(modes_file("theirs"))
    shown = run("diagram")
    assert shown.stdout.startswith("stateDiagram-v2\n")
    assert 'state "N Mine" as m_4' in shown.stdout
    assert "Theirs" not in shown.stdout
    assert "ignored until you trust" in shown.stderr
    out = tmp_path / "modes.mmd"
    assert run("diagram", OUT=str(out)).stdout == ""
    assert out.read_text() == shown.stdout
    failed = run("diagram", OUT=str(tmp_path))
    assert "cannot be written" in failed.stderr


@pytest.mark.parametrize("target", ["modes", "diagram"])
def test_what_stops_them(place: Place, run: Run, target: str) -> None:
    place.permissions.write_text("write_file: perhaps")
    failed = run(target)
    assert failed.stdout == ""
    assert failed.stderr.startswith(f"modeshift: {place.permissions}: ")
    assert "Traceback" not in failed.stderr
