"""Commands in the background, and long results that are read on: right use, wrong use, the end."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from modeshift.modes.errors import ToolFailedError
from modeshift.testing.plugin import Snapshot
from modeshift.tools.processes.background import MAX_KEPT, Calling, TurnCommands, current_calling
from modeshift.tools.processes.sandboxes import Commands
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_catalog
from tests.harness.sleepers import new_mark, wait_for
from tests.tools.conftest import Run, run_wrongly


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
def run(workspace: Path, turn: TurnCommands) -> Run:
    return running(workspace, turn, Commands())


async def test_a_command_goes_on_while_its_output_is_read(run: Run, workspace: Path) -> None:
    command = "echo one; while ! test -e go; do sleep 0.05; done; echo two; exit 3"
    started = await run("execute_command", command=command, background=True)
    assert (
        started == f"Started in the background; read its output with read_output, id={name(0)!r}."
    )
    while not (shown := await run("read_output", id=name(0))).startswith("1\tone"):
        await asyncio.sleep(0.05)
    assert shown == f"1\tone\n[{name(0)} is still running]"
    (workspace / "go").touch()
    assert await run("read_output", id=name(0), wait=30) == "1\tone\n2\ttwo\n3\t[exit code 3]"
    assert await run("read_output", id=name(0), offset=3) == "3\t[exit code 3]"
    beyond = await run("read_output", id=name(0), offset=9)
    assert beyond == f"the output of {name(0)} has 3 lines; nothing from line 9."


async def test_a_long_result_is_read_on(run: Run) -> None:
    text = await run("execute_command", command="seq 20000; exit 1")
    assert text.startswith("1\n2\n")
    assert text.endswith("\n20000\n[exit code 1]")
    assert len(text) < 21_000
    *_, first, last = "", *text.partition("[lines ")[2].split(" left out")[0].split(" to ")
    assert f"\n{int(first) - 1}\n[lines {first} to {last} left out; read_output with " in text
    assert f"id={name(0)!r} and offset={first} shows them]\n{int(last) + 1}\n" in text
    more = (await run("read_output", id=name(0), offset=int(first))).splitlines()
    assert more[0] == f"{first}\t{first}"
    assert more[-1] == f"[the output of {name(0)} has 20001 lines; it goes on with offset=" + (
        f"{int(first) + 2000}]"
    )
    assert "left out" not in await run("execute_command", command="seq 2000")


async def test_what_is_printed_without_end_is_bounded(run: Run, turn: TurnCommands) -> None:
    await run("execute_command", command="yes | head -c 9000000", background=True)
    text = await run("read_output", id=name(0), wait=30, offset=99_999)
    assert "bytes left out]" in text
    for _ in range(2 * MAX_KEPT):
        await run("execute_command", command="yes | head -c 30000")
    assert len(turn._kept) == MAX_KEPT
    with pytest.raises(ToolFailedError, match=f"no command '{name(0)}' to read"):
        await run("read_output", id=name(0))


async def test_wrong_use(run: Run, snapshot: Snapshot) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_output", {"id": "abcdef"}),
        ("read_output", {"id": "x", "wait": 601}),
        ("read_output", {"id": "x", "wait": -1}),
        ("read_output", {"id": "x", "kill": True}),
        ("execute_command", {"command": "x", "background": "when idle"}),
        ("execute_command", {"command": "x", "background": True, "cwd": ".."}),
    ]
    snapshot("background-wrongly.txt", await run_wrongly(run, *calls))


async def test_what_cannot_be_started_is_said_when_it_is_read(run: Run) -> None:
    await run("execute_command", command="pwd", background=True, cwd="missing")
    with pytest.raises(ToolFailedError, match="'missing' is not a folder"):
        await run("read_output", id=name(0), wait=30)


@pytest.mark.parametrize(
    ("has_turn", "is_read_only", "why"),
    [(False, False, "has no thread"), (True, True, "read-only")],
)
async def test_where_nothing_runs_in_the_background(
    workspace: Path, turn: TurnCommands, has_turn: bool, is_read_only: bool, why: str
) -> None:
    here = turn if has_turn else None
    run = running(workspace, here, Commands(), is_read_only=is_read_only)
    with pytest.raises(ToolFailedError, match=f"'touch x' cannot run in the background.*{why}"):
        await run("execute_command", command="touch x", background=True)
    assert "narrow it down]" in await run("execute_command", command="seq 20000")
    assert not list(workspace.iterdir())


async def test_only_so_many_run_and_all_end_together(run: Run, turn: TurnCommands) -> None:
    mark = new_mark()
    for _ in range(5):
        await run("execute_command", command=f"setsid sleep {mark} & sleep {mark}", background=True)
    with pytest.raises(ToolFailedError, match="5 commands run in the background already"):
        await run("execute_command", command="true", background=True)
    assert "exit code 0" in await run("execute_command", command="true"), "in the foreground it may"
    await wait_for(True, mark)
    await turn.end()
    await wait_for(False, mark)
    with pytest.raises(ToolFailedError, match="it has: none"):
        await run("read_output", id=name(0))


def test_an_event_loop_that_closes_ends_it(workspace: Path) -> None:
    """As where every run has a loop of its own; what it had printed is not guessed."""
    turn, mark = TurnCommands(), new_mark()
    run = running(workspace, turn, Commands())

    async def start() -> None:
        await run("execute_command", command=f"sleep {mark}", background=True)
        await wait_for(True, mark)
        for _ in range(10):  # a loop that closes before it knows of the process ends it alone
            await asyncio.sleep(0)

    asyncio.run(start())
    asyncio.run(wait_for(False, mark))
    with pytest.raises(ToolFailedError, match="was ended before its own end"):
        asyncio.run(run("read_output", id=name(0)))
    asyncio.run(turn.end())
