"""The ways to install a clone: uv, make, another part of the engine."""

import os
from pathlib import Path

import pytest
from repository import copy_project
from test_wheel import FirstStart, make, plain

from tests.harness.programs import run, run_well

pytestmark = pytest.mark.slow
WHERE = "import graph, modeshift; print(graph.__file__, modeshift.__file__)"
# With the proxies and certificates that tests are fenced off from: what locks asks the registry for
# all parts of the engine, and no other install here needs those.
AS_STARTED = dict(os.environ)
MOST_PACKAGES, MOST_MIB = 110, 300


def test_a_lock_of_uvs_fits_in_another_folder(tmp_path: Path) -> None:
    """And what is installed is the clone's engine, where it is."""
    first, second = tmp_path / "first", tmp_path / "second"
    copy_project(first, wanted=lambda name: not name.startswith(("engine/tests/", ".ci/starter/")))
    env = {**AS_STARTED, "UV_LINK_MODE": "copy"}
    uv = Path(__file__).parents[2] / ".venv/bin/uv"
    run_well(uv, "lock", "--quiet", cwd=first, env=env)
    assert str(first) not in (first / "uv.lock").read_text()
    first.rename(second)
    run_well(uv, "sync", "--quiet", "--locked", "--no-dev", cwd=second, env=env)
    shown = run_well(second / ".venv/bin/python", "-c", WHERE, cwd=tmp_path, env=plain(tmp_path))
    assert [Path(file).parents[1] for file in shown.split()] == [second, second / "engine"]
    langgraph = second / ".venv/bin/langgraph"
    run_well(
        langgraph,
        "validate",
        cwd=second,
        env={**plain(tmp_path), "LANGGRAPH_CLI_NO_ANALYTICS": "1"},
    )


@pytest.mark.xdist_group("wheel")
def test_a_first_start_is_small_and_set_up_once(first_start: FirstStart) -> None:
    clone, packages, mib = first_start
    assert (len(packages) <= MOST_PACKAGES, mib <= MOST_MIB) == (True, True), (packages, mib)
    for name in ("requirements.lock", "pyproject.toml"):
        (clone / name).touch()
    assert make(clone, "venv") == ""


@pytest.mark.xdist_group("wheel")
def test_another_part_of_the_engine(clone: Path) -> None:
    project = clone / "pyproject.toml"
    known = project.read_text()
    assert "more:  editor, google-genai, mcp, metrics" in make(clone, "add")
    done = run("make", "add", "EXTRA=edtor", cwd=clone, env=plain(clone.parent))
    assert "EXTRA='edtor' is no part of the engine; there are: anthropic, editor" in done.stderr
    assert project.read_text() == known
    make(clone, "add", "EXTRA=metrics")
    assert "modeshift[server,terminal,anthropic,metrics] @" in project.read_text()
    assert "metrics is here already" in make(clone, "add", "EXTRA=metrics")
    project.write_text(known)
