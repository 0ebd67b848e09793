"""Commands without a sandbox: how they end, what they print, what they get."""

import asyncio
import subprocess
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from modes.errors import InvalidCallError, ToolFailedError
from tests.harness.modes import load_test_catalog
from tools.toolbox import build_toolbox
from tools.workspace.workspace import Workspace

Run = Callable[..., Coroutine[Any, Any, str]]


@pytest.fixture
def run(workspace: Path) -> Run:
    toolbox = build_toolbox(Workspace(workspace), load_test_catalog())
    tool = toolbox["execute_command"]

    async def run(command: str, **args: Any) -> str:
        args = toolbox.check(tool, {"command": command, **args})
        return str(await tool.runnable.ainvoke(args))

    return run


@pytest.fixture
def mark() -> str:
    """So many seconds to sleep: nobody else does."""
    return f"3{time.monotonic_ns() % 10**7}"


def find_sleepers(mark: str) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or [])[:2] == ["sleep", mark]
    ]


async def wait_for(found: bool, mark: str) -> None:
    async with asyncio.timeout(20):
        while bool(find_sleepers(mark)) is not found:
            await asyncio.sleep(0.05)


async def test_a_command(run: Run, workspace: Path) -> None:
    assert await run("echo out; echo err >&2; exit 3") == "out\nerr\n[exit code 3]"
    (workspace / "sub").mkdir()
    assert str(workspace / "sub") in await run("pwd", cwd="sub")
    with pytest.raises(InvalidCallError, match="outside"):
        await run("pwd", cwd="..")
    with pytest.raises(ToolFailedError, match="'missing' is not a folder"):
        await run("pwd", cwd="missing")
    with pytest.raises(ToolFailedError, match="cannot be started"):
        await run("echo \x00")


async def test_a_command_reads_no_input_and_no_keys(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hidden-1")
    monkeypatch.setenv("SOME_TOKEN", "hidden-2")
    assert await run("cat") == "[exit code 0]"
    text = await run("env")
    assert "PATH=" in text
    assert "hidden" not in text


async def test_output_is_bounded_with_head_and_tail(run: Run) -> None:
    text = await run("echo first; yes | head -c 3000000; echo last")
    assert text.startswith("first\n")
    assert text.endswith("last\n[exit code 0]")
    assert "bytes left out" in text
    assert len(text) < 25_000


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("sleep {mark} & echo done", "done\n[exit code 0]"),
        ("echo begun; sleep {mark} & sleep {mark}", "begun\n[ended after 1 s"),
        ("echo begun; setsid sleep {mark} & sleep {mark}", "begun\n[ended after 1 s"),
    ],
)
async def test_what_is_left_running_ends(run: Run, mark: str, command: str, shown: str) -> None:
    assert (await run(command.format(mark=mark), timeout=1)).startswith(shown)
    await wait_for(False, mark)


async def test_a_process_that_leaves_the_group_does_not_hang_the_call(run: Run, mark: str) -> None:
    assert await run(f"setsid sleep {mark} & echo done") == "done\n[exit code 0]"
    for process in find_sleepers(mark):  # without a sandbox nothing ends it
        process.kill()


async def test_a_cancelled_command_ends(run: Run, mark: str) -> None:
    task = asyncio.create_task(run(f"setsid sleep {mark} & sleep {mark}"))
    await wait_for(True, mark)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_for(False, mark)


@pytest.fixture
def watched(workspace: Path) -> Path:
    """What a program would write that a repository names, and a bare one in it."""
    monitor = "touch WATCHED; false"
    for command in (
        ["git", "init", "--quiet", "."],
        ["git", "config", "core.fsmonitor", monitor],
        ["git", "init", "--quiet", "--bare", "bare"],
        ["git", "--git-dir=bare", "config", "core.fsmonitor", monitor],
        ["git", "--git-dir=bare", "config", "core.bare", "false"],
        ["git", "--git-dir=bare", "config", "core.worktree", str(workspace)],
        ["git", "status", "--short"],
    ):
        subprocess.run(command, cwd=workspace, check=True, capture_output=True)
    watched = workspace / "WATCHED"
    assert watched.exists(), "git itself runs it"
    watched.unlink()
    return watched


async def test_git_runs_no_program_that_a_folder_names(run: Run, watched: Path) -> None:
    await run("git status")
    assert "cannot use bare repository" in await run("git status", cwd="bare")
    assert not watched.exists()
