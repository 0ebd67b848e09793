"""What a command in the sandbox can reach, and how it ends with all that it started."""

import asyncio
import os
import platform
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from modeshift.modes.errors import ToolFailedError
from modeshift.sandbox.bubblewrap import find_bubblewrap
from modeshift.tools.processes.background import TurnCommands
from modeshift.tools.processes.process import Limits, run_program
from modeshift.tools.processes.sandboxes import Commands, SandboxService
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.harness import prefork
from tests.harness.conversation import until
from tests.harness.modes import load_catalog
from tests.harness.root import TEMPLATE
from tests.harness.sleepers import new_mark, wait_for
from tests.tools.processes.test_processes import name, running
from tests.tools.sandbox.commands import (
    READ_ONLY,
    REPOSITORY,
    Run,
    list_descriptors,
    needs_sandbox,
    read_tree,
    runner,
    sandbox,
    write,
)

pytestmark = needs_sandbox


async def test_common_tools(run: Run, workspace: Path) -> None:
    (workspace / "p.py").write_text(
        "import multiprocessing, sqlite3, subprocess, tempfile, threading, asyncio, socket\n"
        "if __name__ == '__main__':\n"
        "    print(multiprocessing.Pool(2).map(abs, [-1, -2]))\n"
        "    sqlite3.connect('db').execute('create table t (x)')\n"
        "    tempfile.TemporaryFile().write(b'x')\n"
        "    asyncio.run(asyncio.sleep(0))\n"
        "    server = socket.create_server(('127.0.0.1', 0))\n"
        "    socket.create_connection(server.getsockname())\n"
        "    print(subprocess.check_output(['git', '--version'])[:3])\n"
    )
    assert (await run("python3 p.py")) == "[1, 2]\nb'git'\n[exit code 0]"
    assert "exit code 0" in await run("printf 'a:\\n\\ttouch made\\n' > Makefile; make a; ls made")
    assert "exit code 0" in await run("mkdir -p a/b; mv p.py a/b; cp a/b/p.py .; > $TMPDIR/private")
    assert (workspace / "a/b/p.py").exists()
    assert not Path("/tmp/private").exists()  # noqa: S108
    assert "[made .git, .git/config:" in await run(REPOSITORY)
    assert (await run("python3 -c 'import p'")) == "[exit code 0]"
    assert not (workspace / "__pycache__").exists()
    shown = await run(
        "git add p.py; git commit -qm one; git status --short p.py; git log --format=%s"
    )
    assert shown == "one\n[exit code 0]"


async def test_the_workspace_unless_told_and_the_machines_settings_are_read_only(
    workspace: Path, run: Run
) -> None:
    toolbox = build_toolbox(Workspace(workspace), load_catalog(), Commands(sandbox()))
    tool = toolbox["execute_command"].runnable
    assert READ_ONLY in str(await tool.ainvoke({"command": "touch x"}))
    assert read_tree(workspace) == {}
    file = Path("/proc/sys/kernel/core_pattern")
    before = file.read_text()
    shown = await run(f"cat {file} > /tmp/same; cat /tmp/same > {file} && echo WRITTEN")
    assert "WRITTEN" not in shown
    assert "Read-only file system" in shown or "ermission denied" in shown
    assert file.read_text() == before


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
async def test_no_network(run: Run, workspace: Path, family: int) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.socket(family) as server:
        server.bind((host, 0))
        server.listen()
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(({host!r}, {port}), 3); print('in')"
        (workspace / "s.py").write_text(script)
        assert "in\n" not in await run("python3 s.py")
        assert "in\n" in await runner(workspace, has_network=True)("python3 s.py")
    for number in (socket.AF_UNIX, socket.AF_VSOCK):  # which need none
        (workspace / "s.py").write_text(f"import socket; socket.socket({number:d}, 1)")
        assert "PermissionError" in await run("python3 s.py")
    pair = "python3 -c 'import socket; socket.socketpair(); print(1)'"
    assert (await run(pair)).startswith("1")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")
async def test_system_calls_that_are_for_an_attack(run: Run, workspace: Path) -> None:
    """Of the kernel's keyrings, memory without a name, io_uring; and a user namespace."""
    numbers = (250, 248, 319, 425, 426, 427, 308, 321, 323, 298, 29, 68)
    (workspace / "s.py").write_text(
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "def errno(*call):\n    libc.syscall(*call)\n    return ctypes.get_errno()\n"
        f"print({{errno(n, 0, 0, 0, 0, 0) for n in {numbers}}} | {{errno(272, 0x10000000)}})"
    )
    assert "{1}" in await run("python3 s.py"), "EPERM"


@pytest.mark.slow
async def test_no_room_that_nobody_counts(run: Run, workspace: Path) -> None:
    (workspace / "x.env").mkdir()
    shown = await run("for d in /dev /run x.env; do touch $d/x && echo made in $d; done; true")
    assert "made in" not in shown
    if find_bubblewrap().can_bound_tmp:
        assert "No space left" in await run("head -c 1200000000 /dev/zero > /tmp/full")


async def test_one_command_at_a_time(run: Run, workspace: Path) -> None:
    line = "test ! -e busy || echo both; touch busy; sleep 0.1; rm busy"
    shown = await asyncio.gather(*(run(line) for _ in range(4)))
    assert set(shown) == {"[exit code 0]"}
    heard: list[str] = []

    def emit(text: str) -> None:
        heard.append(text)
        (workspace / "go").touch()

    await asyncio.gather(run("until test -e go; do sleep 0.02; done"), run("true", emit=emit))
    assert heard == ["[waits for another command in this workspace]\n"]
    other = workspace.with_name("other")
    other.mkdir()
    begun = asyncio.Event()
    first = asyncio.create_task(
        run("echo begun; until test -e met; do sleep 0.02; done", emit=lambda _: begun.set())
    )
    await begun.wait()
    assert "exit code 0" in await runner(other)("true"), "another workspace waits for nobody"
    (workspace / "met").touch()
    await first


@pytest.mark.parametrize("with_all", [False, True])
async def test_a_call_cut_while_prepared(run: Run, workspace: Path, *, with_all: bool) -> None:
    """Alone, or with every task that it has begun, as a loop does that ends."""
    write(workspace, "AGENTS.md")
    await run("true")
    before, others = len(list_descriptors()), asyncio.all_tasks()
    problems = list[Any]()
    asyncio.get_running_loop().set_exception_handler(lambda _, problem: problems.append(problem))
    for number in range(30):
        task = asyncio.create_task(run("true"))
        await asyncio.sleep(0.0003 * number)
        for each in asyncio.all_tasks() - others if with_all else [task]:
            each.cancel()
        with suppress(asyncio.CancelledError):
            await task
    await until(lambda: len(list_descriptors()) <= before + 2)
    asyncio.get_running_loop().set_exception_handler(None)
    assert not problems


@pytest.mark.parametrize("closed", [False, True])
async def test_what_is_left_ends_and_what_is_shown_is_plain_and_bounded(
    run: Run, mark: str, closed: bool
) -> None:
    leaving = (
        *("sleep {0} &", "nohup sleep {0} >/dev/null 2>&1 &", "(setsid sleep {0} &)"),
        "(setsid sh -c '(setsid sleep {0} &) &' &)",
        "python3 -c 'import os\nif not os.fork():\n os.setsid()\n if not os.fork():\n"
        '  os.execvp("sleep", ["sleep", "{0}"])\'',
    )
    lines = "\n".join(line.format(mark) for line in leaving)
    shown = await run(f"{lines}\nsleep 0.3; echo done", closed=closed)
    assert shown.startswith("done\n[exit code 0]")
    await wait_for(False, mark)
    heard: list[str] = []
    text = await run("yes 0123456789 | head -c 30000000", emit=heard.append, closed=closed)
    assert len(text) < 25_000
    assert sum(map(len, heard)) < 250_000
    assert "not shown as it comes" in heard[-1]
    assert len(heard) < 60
    odd = "printf '\\033]0;title\\007\\033[31mred\\033[2Jx\\n'"
    shown = await run(odd, closed=closed, edits=not closed)
    assert shown == "redx\n[exit code 0]" + f"\n{READ_ONLY}" * closed


async def test_the_end_of_the_agent_ends_them(workspace: Path, tmp_path: Path, mark: str) -> None:
    (tmp_path / "agent.py").write_text(
        "import asyncio; from pathlib import Path; from modeshift.project import use_root\n"
        f"use_root(Path({str(TEMPLATE)!r}))\n"
        "from tests.tools.sandbox.commands import runner\n"
        f"asyncio.run(runner(Path({str(workspace)!r}))('(setsid sleep {mark} &); sleep {mark}'))"
    )
    agent = prefork.start("agent", env=os.environ, streams=(0, 1, 2), cwd=tmp_path)
    await wait_for(True, mark)
    agent.kill()
    agent.wait()
    await wait_for(False, mark)


@pytest.mark.slow
@pytest.mark.parametrize("closed", [False, True])
async def test_the_limits_end_it(workspace: Path, mark: str, *, closed: bool) -> None:
    how: Any = {"closed": closed, "timeout": 120}
    line = "echo begun; trap '' TERM INT; sleep 60"
    assert (await runner(workspace)(line, **{**how, "timeout": 1})).startswith(
        "begun\n[ended after 1 s"
    )
    # Not one that doubles: on a machine with two cores it outruns the count, which is polled.
    bomb = f"for n in $(seq 200); do sleep {mark} & done; wait"
    shown = await runner(workspace, Limits(processes=50))(bomb, **how)
    assert "[ended: it had more than 50 processes]" in shown
    await wait_for(False, mark)
    hog = 'python3 -c "import time; x = bytearray(80_000_000); time.sleep(30)"'
    shown = await runner(workspace, Limits(memory=200))(f"{hog} & {hog} & {hog} & wait", **how)
    assert "[ended: it used more than 200 MiB of memory]" in shown


async def test_in_the_sandbox_as_in_the_foreground(workspace: Path) -> None:
    """The same borders, one command at a time, and all of its processes end."""
    turn, mark = TurnCommands(), new_mark()
    run = running(workspace, turn, Commands(sandbox()))
    await run("execute_command", command="touch in ../out /usr/x", background=True)
    shown = await run("read_output", id=name(0), wait=30)
    assert "Read-only file system" in shown
    assert [each.name for each in workspace.parent.iterdir()] == [workspace.name]
    assert (workspace / "in").exists()
    await run("execute_command", command=f"setsid sleep {mark} & sleep {mark}", background=True)
    await wait_for(True, mark)
    for background in (True, False):
        with pytest.raises(ToolFailedError, match=rf"one command runs at a time.*{name(2)} \('set"):
            await run("execute_command", command="true", background=background)
    await turn.end()
    await wait_for(False, mark)
    assert "exit code 0" in await run("execute_command", command="true")


async def test_nothing_stays_of_a_start_that_is_cancelled(workspace: Path) -> None:
    """Not even where the event loop is busy, and bubblewrap has long been making its sandbox."""
    mark, loop = new_mark(), asyncio.get_running_loop()
    service = SandboxService(("sleep", mark), workspace, {}, False, False)

    def cut(after: int, milliseconds: int) -> None:
        """Cancel so many turns of the event loop later; each takes its time."""
        time.sleep(milliseconds / 1000)
        loop.call_soon(cut, after - 1, milliseconds) if after else starting.cancel()

    for number in range(80):
        program = await asyncio.to_thread(sandbox().build_program, Workspace(workspace), service)
        starting = asyncio.create_task(run_program(program, 60, Limits(), print))
        loop.call_soon(cut, number % 8, number // 8 % 5)
        await asyncio.wait({starting})
        assert starting.cancelled()
    await until(lambda: not find_marked(mark))


def find_marked(mark: str) -> list[psutil.Process]:
    """Those that would sleep, or have been started for it."""
    listed = psutil.process_iter(["cmdline"])
    return [process for process in listed if mark in " ".join(process.info["cmdline"] or [])]
