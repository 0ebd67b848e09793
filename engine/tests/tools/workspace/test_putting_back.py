"""``put_back``: a file as it was, where it is as it is expected, and nowhere else."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from modeshift.modes.errors import ToolFailedError
from modeshift.tools.workspace.workspace import Workspace


def put_link(folder: Path, outside: Path) -> None:
    shutil.rmtree(folder / "in")
    (folder / "in").symlink_to(outside)


WRONG: dict[str, Callable[[Path, Path], object]] = {
    "other contents": lambda folder, _: (folder / "in/a.txt").write_text("mine"),
    "other permissions": lambda folder, _: (folder / "in/a.txt").chmod(0o640),
    "nothing": lambda folder, _: (folder / "in/a.txt").unlink(),
    "no folder": lambda folder, _: shutil.rmtree(folder / "in"),
    "a folder that is a link, with the same file": put_link,
    "a file that an ignore file names": lambda folder, _: (folder / ".rooignore").write_text("in"),
}


@pytest.mark.parametrize("data", [b"old", None], ids=["written", "deleted"])
@pytest.mark.parametrize("wrong", [None, *WRONG])
def test_what_is_not_as_expected_stays(
    wrong: str | None, data: bytes | None, tmp_path: Path
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "in", outside):
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("new")
        (folder / "a.txt").chmod(0o600)
    workspace = Workspace(root, heeds_ignore_files=True)
    expected = workspace.find_held("in/a.txt")
    if wrong is None:
        workspace.put_back("in/a.txt", expected, data, 0o755)
        if data is not None:
            assert (root / "in/a.txt").read_bytes() == data
            assert os.stat(root / "in/a.txt").st_mode & 0o7777 == 0o755
        assert (root / "in/a.txt").exists() is (data is not None)
        return
    WRONG[wrong](root, outside)
    before = {file: file.read_bytes() for file in tmp_path.rglob("a.txt")}
    with pytest.raises(ToolFailedError):
        workspace.put_back("in/a.txt", expected, data, 0o755)
    assert {file: file.read_bytes() for file in tmp_path.rglob("a.txt")} == before
    assert (outside / "a.txt").read_text() == "new"
