"""Commands without a sandbox, also in the background: how they end, what they print and get."""

import asyncio
import gc
import os
import subprocess
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from modeshift.modes.errors import InvalidCallError, ToolFailedError
from modeshift.testing.plugin import Snapshot
from modeshift.tools.processes.background import MAX_KEPT, Calling, TurnCommands, current_calling
from modeshift.tools.processes.process import (
    MAX_SEQUENCE,
    Output,
    PlainText,
    Program,
    start_program,
)
from modeshift.tools.processes.sandboxes import Commands
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.conversation import SECONDS
from tests.harness.modes import load_catalog
from tests.harness.sleepers import find_sleepers, new_mark, wait_for
from tests.tables import rows
from tests.tools.conftest import Run, run_wrongly


@pytest.fixture
def shell(run: Run) -> Run:
    return lambda command, **args: run("execute_command", command=command, **args)


async def test_a_command(shell: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await shell("echo out; echo err >&2; exit 3") == "out\nerr\n[exit code 3]"
    (workspace / "sub").mkdir()
    assert str(workspace / "sub") in await shell("pwd", cwd="sub")
    with pytest.raises(InvalidCallError, match="outside"):
        await shell("pwd", cwd="..")
    with pytest.raises(ToolFailedError, match="'missing' is not a folder"):
        await shell("pwd", cwd="missing")
    with pytest.raises(ToolFailedError, match="cannot be started"):
        await shell("echo \x00")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hidden-1")
    monkeypatch.setenv("SOME_TOKEN", "hidden-2")
    assert await shell("cat") == "[exit code 0]"
    text = await shell("env")
    assert "PATH=" in text
    assert "hidden" not in text
    text = await shell("echo first; yes | head -c 3000000; echo last")
    assert text.startswith("first\n")
    assert text.endswith("last\n[exit code 0]")
    assert "left out; narrow it down]" in text
    assert len(text) < 25_000


@rows(
    "command shown",
    ("sleep {mark} & echo done", "done\n[exit code 0]"),
    ("echo begun; sleep {mark} & sleep {mark}", "begun\n[ended after 3 s"),
    ("echo begun; setsid sleep {mark} & sleep {mark}", "begun\n[ended after 3 s"),
)
async def test_what_is_left_running_ends(shell: Run, mark: str, command: str, shown: str) -> None:
    assert (await shell(command.format(mark=mark), timeout=3)).startswith(shown)
    await wait_for(False, mark)


async def test_a_process_that_leaves_the_group_hangs_no_call_and_cancelling_ends(
    shell: Run, mark: str
) -> None:
    assert await shell(f"setsid sleep {mark} & echo done") == "done\n[exit code 0]"
    for process in find_sleepers(mark):  # without a sandbox nothing ends it
        process.kill()
    task = asyncio.create_task(shell(f"setsid sleep {mark} & sleep {mark}"))
    await wait_for(True, mark)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_for(False, mark)


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


@rows(
    "printed shown",
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
)
def test_what_is_for_a_terminal_is_left_out(printed: str, shown: str) -> None:
    """Also when it comes in two pieces."""
    for at in range(min(len(printed), 60)):
        text = PlainText()
        taken = text.take(printed[:at]) + text.take(printed[at:]) + text.take("", is_last=True)
        assert taken == shown


async def test_what_of_long_output_and_a_progress_bar_is_kept(shell: Run) -> None:
    """What a command prints takes no more memory than this, however much it is."""
    reading, writing = os.pipe()
    async with Output.of(reading, lambda _: None) as output:
        with os.fdopen(writing, "wb") as pipe:
            await asyncio.to_thread(pipe.write, b"0" * 3_000_000)
    ends = "0" * 200_000
    assert output.text() == f"{ends}\n[2600000 bytes left out]\n{ends}"
    said = await shell(r"printf 'a\r\n10%%\r50%%\r\033[K100%%\nb\r\rc\r'")
    assert said.startswith("a\n100%\nc\n")


def name(number: int) -> str:
    """The id that a command has from its call."""
    return sha256(f"call_{number}".encode()).hexdigest()[:6]


def running(workspace: Path, turn: TurnCommands | None, commands: Commands, **more: Any) -> Run:
    """Runs tools in a turn; each call has an id of its own."""
    toolbox = build_toolbox(Workspace(workspace), load_catalog(), commands)
    count = iter(range(1000))

    async def run(tool: str, **args: Any) -> str:
        call = Calling(edits_freely=True, call_id=f"call_{next(count)}", commands=turn, **more)
        before = current_calling.set(call)
        try:
            toolbox.check(toolbox[tool], args)
            return str(await toolbox[tool].runnable.ainvoke(args))
        finally:
            current_calling.reset(before)

    return run


@pytest.fixture
async def turn() -> AsyncIterator[TurnCommands]:
    turn = TurnCommands()
    yield turn
    await turn.end()


@pytest.fixture
def in_turn(workspace: Path, turn: TurnCommands) -> Run:
    return running(workspace, turn, Commands())


async def test_a_command_goes_on_while_its_output_is_read(in_turn: Run, workspace: Path) -> None:
    command = "echo one; while ! test -e go; do sleep 0.05; done; echo two; exit 3"
    started = await in_turn("execute_command", command=command, background=True)
    assert (
        started == f"Started in the background; read its output with read_output, id={name(0)!r}."
    )
    while not (shown := await in_turn("read_output", id=name(0))).startswith("1\tone"):
        await asyncio.sleep(0.05)
    assert shown == f"1\tone\n[{name(0)} is still running]"
    (workspace / "go").touch()
    assert await in_turn("read_output", id=name(0), wait=30) == "1\tone\n2\ttwo\n3\t[exit code 3]"
    assert await in_turn("read_output", id=name(0), offset=3) == "3\t[exit code 3]"
    beyond = await in_turn("read_output", id=name(0), offset=9)
    assert beyond == f"the output of {name(0)} has 3 lines; nothing from line 9."


async def test_a_long_result_is_read_on(in_turn: Run) -> None:
    text = await in_turn("execute_command", command="seq 20000; exit 1")
    assert text.startswith("1\n2\n")
    assert text.endswith("\n20000\n[exit code 1]")
    assert len(text) < 21_000
    *_, first, last = "", *text.partition("[lines ")[2].split(" left out")[0].split(" to ")
    assert f"\n{int(first) - 1}\n[lines {first} to {last} left out; read_output with " in text
    assert f"id={name(0)!r} and offset={first} shows them]\n{int(last) + 1}\n" in text
    more = (await in_turn("read_output", id=name(0), offset=int(first))).splitlines()
    assert more[0] == f"{first}\t{first}"
    assert more[-1] == f"[the output of {name(0)} has 20001 lines; it goes on with offset=" + (
        f"{int(first) + 2000}]"
    )
    assert "left out" not in await in_turn("execute_command", command="seq 2000")


async def test_what_is_printed_without_end_is_bounded(in_turn: Run, turn: TurnCommands) -> None:
    await in_turn("execute_command", command="yes | head -c 9000000", background=True)
    text = await in_turn("read_output", id=name(0), wait=30, offset=99_999)
    assert "bytes left out]" in text
    for _ in range(2 * MAX_KEPT):
        await in_turn("execute_command", command="yes | head -c 30000")
    assert len(turn._kept) == MAX_KEPT
    with pytest.raises(ToolFailedError, match=f"no command '{name(0)}' to read"):
        await in_turn("read_output", id=name(0))


async def test_wrong_use(in_turn: Run, snapshot: Snapshot) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_output", {"id": "abcdef"}),
        ("read_output", {"id": "x", "wait": 601}),
        ("read_output", {"id": "x", "wait": -1}),
        ("read_output", {"id": "x", "kill": True}),
        ("execute_command", {"command": "x", "background": "when idle"}),
        ("execute_command", {"command": "x", "background": True, "cwd": ".."}),
    ]
    snapshot("background-wrongly.txt", await run_wrongly(in_turn, *calls))


async def test_what_cannot_be_started_is_said_when_it_is_read(in_turn: Run) -> None:
    await in_turn("execute_command", command="pwd", background=True, cwd="missing")
    with pytest.raises(ToolFailedError, match="'missing' is not a folder"):
        await in_turn("read_output", id=name(0), wait=30)


@pytest.mark.parametrize(
    ("has_turn", "is_read_only", "why"),
    [(False, False, "has no thread"), (True, True, "read-only")],
)
async def test_where_nothing_runs_in_the_background(
    workspace: Path, turn: TurnCommands, has_turn: bool, is_read_only: bool, why: str
) -> None:
    here = turn if has_turn else None
    in_turn = running(workspace, here, Commands(), is_read_only=is_read_only)
    with pytest.raises(ToolFailedError, match=f"'touch x' cannot run in the background.*{why}"):
        await in_turn("execute_command", command="touch x", background=True)
    assert "narrow it down]" in await in_turn("execute_command", command="seq 20000")
    assert not list(workspace.iterdir())


async def test_only_so_many_run_and_all_end_together(in_turn: Run, turn: TurnCommands) -> None:
    mark = new_mark()
    for _ in range(5):
        await in_turn(
            "execute_command", command=f"setsid sleep {mark} & sleep {mark}", background=True
        )
    with pytest.raises(ToolFailedError, match="5 commands run in the background already"):
        await in_turn("execute_command", command="true", background=True)
    assert "exit code 0" in await in_turn("execute_command", command="true"), (
        "in the foreground it may"
    )
    await wait_for(True, mark)
    await turn.end()
    await wait_for(False, mark)
    with pytest.raises(ToolFailedError, match="it has: none"):
        await in_turn("read_output", id=name(0))


def test_an_event_loop_that_closes_ends_it(workspace: Path) -> None:
    """As where every run has a loop of its own; what it had printed is not guessed."""
    turn, mark = TurnCommands(), new_mark()
    in_turn = running(workspace, turn, Commands())

    async def start() -> None:
        await in_turn("execute_command", command=f"sleep {mark}", background=True)
        await wait_for(True, mark)
        for _ in range(10):  # a loop that closes before it knows of the process ends it alone
            await asyncio.sleep(0)

    asyncio.run(start())
    asyncio.run(wait_for(False, mark))
    with pytest.raises(ToolFailedError, match="was ended before its own end"):
        asyncio.run(in_turn("read_output", id=name(0)))
    asyncio.run(turn.end())
