"""The tools on real files and real processes, called as ``act`` calls them."""

import os
import stat
import time
from pathlib import Path

import pytest

from modeshift.modes.errors import InvalidCallError, ToolFailedError
from tests.tools.conftest import Run


async def test_reading_leaks_no_descriptor(run: Run, workspace: Path) -> None:
    async def used() -> int:
        for _ in range(20):
            with pytest.raises(ToolFailedError):
                await run("read_file", path=".")
        return len(list(Path("/dev/fd").iterdir()))

    assert await used() == await used()


@pytest.mark.parametrize("text", ["--files", "-e", "--pre=id", "-f/etc/passwd", "--", "-"])
async def test_search_takes_no_options(run: Run, workspace: Path, text: str) -> None:
    (workspace / "a").write_text(f"{text}\n")
    assert await run("search_files", regex=text) == f"a:1:{text}"
    await run("search_files", regex="x", glob=text)
    with pytest.raises(ToolFailedError, match="cannot be read: No such file"):
        await run("search_files", regex="x", path=text)


async def test_a_fifo_is_not_searched(run: Run, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    with pytest.raises(ToolFailedError, match="'pipe'"):
        await run("search_files", regex="x", path="pipe")
    assert "No match" in await run("search_files", regex="x")


async def test_a_pattern_that_backtracks_is_quick(run: Run, workspace: Path) -> None:
    (workspace / "a").write_text("a" * 5000 + "!\n")
    start = time.process_time()
    await run("search_files", regex="(a+)+$")
    assert time.process_time() - start < 5


async def test_write_file(run: Run, workspace: Path) -> None:
    assert "Created" in await run("write_file", path="a/b/c.sh", content="echo ü\n")
    file = workspace / "a" / "b" / "c.sh"
    assert file.read_bytes() == "echo ü\n".encode()
    file.chmod(0o755)
    assert "Replaced" in await run("write_file", path="a/b/c.sh", content="")
    assert stat.S_IMODE(file.stat().st_mode) == 0o755
    assert [each.name for each in file.parent.iterdir()] == ["c.sh"]


async def test_a_new_file_has_the_usual_permissions(run: Run, workspace: Path) -> None:
    await run("write_file", path="new", content="x")
    (workspace / "plain").touch()
    modes = {stat.S_IMODE((workspace / name).stat().st_mode) for name in ("new", "plain")}
    assert len(modes) == 1


@pytest.mark.parametrize("path", ["folder", "file/below", "fifo", "x" * 300])
async def test_what_cannot_be_written(run: Run, workspace: Path, path: str) -> None:
    (workspace / "folder").mkdir()
    (workspace / "file").touch()
    os.mkfifo(workspace / "fifo")
    with pytest.raises((ToolFailedError, InvalidCallError)):
        await run("write_file", path=path, content="x")
    with pytest.raises(InvalidCallError):
        await run("write_file", path="ok", content="bad \udcff")
    assert sorted(each.name for each in workspace.iterdir()) == ["fifo", "file", "folder"]
