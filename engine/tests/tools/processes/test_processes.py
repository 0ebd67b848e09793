"""Commands without a sandbox: how they end, what they print, what they get."""

import asyncio
import gc
import os
import subprocess
from pathlib import Path

import pytest

from modeshift.modes.errors import InvalidCallError, ToolFailedError
from modeshift.tools.processes.process import (
    MAX_SEQUENCE,
    Output,
    PlainText,
    Program,
    start_program,
)
from tests.harness.conversation import SECONDS
from tests.harness.sleepers import find_sleepers, wait_for
from tests.tools.conftest import Run


@pytest.fixture
def shell(run: Run) -> Run:
    return lambda command, **args: run("execute_command", command=command, **args)


async def test_a_command(shell: Run, workspace: Path) -> None:
    assert await shell("echo out; echo err >&2; exit 3") == "out\nerr\n[exit code 3]"
    (workspace / "sub").mkdir()
    assert str(workspace / "sub") in await shell("pwd", cwd="sub")
    with pytest.raises(InvalidCallError, match="outside"):
        await shell("pwd", cwd="..")
    with pytest.raises(ToolFailedError, match="'missing' is not a folder"):
        await shell("pwd", cwd="missing")
    with pytest.raises(ToolFailedError, match="cannot be started"):
        await shell("echo \x00")


async def test_a_command_reads_no_input_and_no_keys(
    shell: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hidden-1")
    monkeypatch.setenv("SOME_TOKEN", "hidden-2")
    assert await shell("cat") == "[exit code 0]"
    text = await shell("env")
    assert "PATH=" in text
    assert "hidden" not in text


async def test_output_is_bounded_with_head_and_tail(shell: Run) -> None:
    text = await shell("echo first; yes | head -c 3000000; echo last")
    assert text.startswith("first\n")
    assert text.endswith("last\n[exit code 0]")
    assert "left out; narrow it down]" in text
    assert len(text) < 25_000


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("sleep {mark} & echo done", "done\n[exit code 0]"),
        ("echo begun; sleep {mark} & sleep {mark}", "begun\n[ended after 3 s"),
        ("echo begun; setsid sleep {mark} & sleep {mark}", "begun\n[ended after 3 s"),
    ],
)
async def test_what_is_left_running_ends(shell: Run, mark: str, command: str, shown: str) -> None:
    assert (await shell(command.format(mark=mark), timeout=3)).startswith(shown)
    await wait_for(False, mark)


async def test_a_process_that_leaves_the_group_does_not_hang_the_call(
    shell: Run, mark: str
) -> None:
    assert await shell(f"setsid sleep {mark} & echo done") == "done\n[exit code 0]"
    for process in find_sleepers(mark):  # without a sandbox nothing ends it
        process.kill()


async def test_a_loop_that_ends_as_a_program_starts_does_not_hang(mark: str) -> None:
    """All its tasks are cancelled, asyncio's own, too, which is about to connect the pipes."""
    before = asyncio.all_tasks()
    task = asyncio.create_task(start_program(Program(["sleep", mark], {})))
    while not any("_connect_pipes" in str(each) for each in asyncio.all_tasks()):
        await asyncio.sleep(0)
    for each in asyncio.all_tasks() - before:
        each.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, SECONDS)
    await wait_for(False, mark)
    # asyncio hears of the end in a thread; the test's loop must not close before.
    while any(each.returncode is None for each in find_started(mark)):
        await asyncio.sleep(0.01)


def find_started(mark: str) -> list[subprocess.Popen[bytes]]:
    """What this process started with the mark and still holds."""
    held = [each for each in gc.get_objects() if isinstance(each, subprocess.Popen)]
    return [each for each in held if str(each.args) == str(("sleep", mark))]


async def test_a_cancelled_command_ends(shell: Run, mark: str) -> None:
    task = asyncio.create_task(shell(f"setsid sleep {mark} & sleep {mark}"))
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


async def test_git_runs_no_program_that_a_folder_names(shell: Run, watched: Path) -> None:
    await shell("git status")
    assert "cannot use bare repository" in await shell("git status", cwd="bare")
    assert not watched.exists()


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m and \x1b[38;2;1;2;3mmore\x1b[K\n", "red and more\n"),
        ("\x1b]0;title\x07a \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ b", "a link b"),
        ("\x1b(B\x1b[mplain\x1b7\x1b=", "plain"),
        ("one\r\ntwo\r", "one\ntwo\n"),
        ("10%\r50%\r\x1b[K100%\n", "10%\n50%\n100%\n"),
        ("a\x1b", r"a\u001b"),
        ("a\x1b[31", r"a\u001b[31"),
        ("\x1b]0;never ends\nmore", "\\u001b]0;never ends\nmore"),
        ("\x1b]0;" + "x" * 2 * MAX_SEQUENCE, r"\u001b]0;" + "x" * 2 * MAX_SEQUENCE),
        ("\x1b\x1b[m[2J", r"\u001b[2J"),
        ("\x9b31mred \x08\x00", r"\u009b31mred \u0008\u0000"),
        *(
            (kept, kept)
            for kept in ("\ta \u00a0 \u0645\u200c\u062e", "\N{WOMAN}\u200d\N{GIRL} \u2764\ufe0f")
        ),
    ],
)
def test_what_is_for_a_terminal_is_left_out(printed: str, shown: str) -> None:
    """Also when it comes in two pieces."""
    for at in range(min(len(printed), 60)):
        text = PlainText()
        taken = text.take(printed[:at]) + text.take(printed[at:]) + text.take("", is_last=True)
        assert taken == shown


async def test_of_long_output_the_middle_is_left_out() -> None:
    """What a command prints takes no more memory than this, however much it is."""
    reading, writing = os.pipe()
    async with Output.of(reading, lambda _: None) as output:
        with os.fdopen(writing, "wb") as pipe:
            await asyncio.to_thread(pipe.write, b"0" * 3_000_000)
    ends = "0" * 200_000
    assert output.text() == f"{ends}\n[2600000 bytes left out]\n{ends}"


async def test_of_a_progress_bar_the_last_state_is_kept(shell: Run) -> None:
    said = await shell(r"printf 'a\r\n10%%\r50%%\r\033[K100%%\nb\r\rc\r'")
    assert said.startswith("a\n100%\nc\n")
