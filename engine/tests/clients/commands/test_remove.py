"""``make remove``: a mode with its files, and the mode where new threads start from then on."""

import shutil
from pathlib import Path

import pytest

from tests.harness.clone import change, copy_template
from tests.harness.place import environment
from tests.harness.programs import run_in_clone


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    copy_template(tmp_path / "clone")
    return tmp_path / "clone"


def remove(clone: Path, *slugs: str) -> list[str]:
    """The modes that are the default one then."""
    for slug in slugs:
        run_in_clone(clone, "modeshift", "remove", "--mode", slug, **environment(clone.parent))
    files = sorted(clone.glob("modes/*.yaml"))
    return [file.stem for file in files if "default: true" in file.read_text()]


def test_another_mode_is_the_default_where_none_is(clone: Path) -> None:
    assert remove(clone, "ask") == ["architect"]
    with (clone / "modes/debug.yaml").open("a") as other:
        other.write("default: true\n")
    assert remove(clone, "architect") == ["debug"], "not code, too: two are an error"


def test_a_file_that_holds_no_mode_is_left_alone(clone: Path) -> None:
    text = "tests: {command: make test}\n"
    (clone / "modes/project.yaml").write_text(text)
    shutil.copy(clone / "modes/debug.yaml", clone / "modes/z.yaml")
    change(clone / "modes/z.yaml", "slug: debug", "slug: z")
    assert remove(clone, "architect", "code", "debug", "ask") == ["z"]
    assert (clone / "modes/project.yaml").read_text() == text
