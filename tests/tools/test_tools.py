"""The tools on real files and real processes, called as ``act`` calls them."""

import asyncio
import os
import stat
import subprocess
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from modes.errors import ConfigurationError, InvalidCallError, ToolFailedError
from tests.harness.modes import load_test_catalog
from tools.toolbox import build_toolbox
from tools.workspace.workspace import Workspace

Run = Callable[..., Coroutine[Any, Any, str]]


@pytest.fixture
def run(workspace: Path) -> Run:
    """Run a tool by name."""
    toolbox = build_toolbox(Workspace(workspace), load_test_catalog())

    async def call(name: str, **args: Any) -> str:
        tool = toolbox[name]
        resolved = toolbox.check(tool, args)
        args = {**args, **{path: resolved[path] for path in tool.spec.paths}}
        return str(await tool.runnable.ainvoke(args))

    return call


async def test_read_file(run: Run, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\nthree\n")
    assert await run("read_file", path="a.txt") == "    1 one\n    2 two\n    3 three"
    assert await run("read_file", path="a.txt", offset=2, limit=1) == (
        "    2 two\n[a.txt goes on to line 3]"
    )
    assert "has 3 lines" in await run("read_file", path="a.txt", offset=9)


async def test_read_file_is_bounded(run: Run, workspace: Path) -> None:
    (workspace / "long.txt").write_text("x\n" * 5000)
    text = await run("read_file", path="long.txt", limit=999999)
    assert len(text.splitlines()) == 2001
    assert text.endswith("[long.txt goes on to line 5000]")


@pytest.mark.parametrize("make", ["folder", "fifo", "binary", "missing", "huge", "device"])
async def test_what_cannot_be_read(run: Run, workspace: Path, make: str) -> None:
    target = workspace / "it"
    if make == "folder":
        target.mkdir()
    elif make == "fifo":
        os.mkfifo(target)
    elif make == "binary":
        target.write_bytes(b"\xff\xfe\x00")
    elif make == "huge":
        with target.open("wb") as file:
            file.truncate(11_000_000)
    elif make == "device":
        target.symlink_to("/dev/zero")
    with pytest.raises((ToolFailedError, InvalidCallError), match="'it'"):
        await asyncio.wait_for(run("read_file", path="it"), 5)


async def test_reading_leaks_no_descriptor(run: Run, workspace: Path) -> None:
    async def used() -> int:
        for _ in range(20):
            with pytest.raises(ToolFailedError):
                await run("read_file", path=".")
        return len(list(Path("/dev/fd").iterdir()))

    assert await used() == await used()


async def test_list_files(run: Run, workspace: Path) -> None:
    (workspace / "b").mkdir()
    (workspace / "b" / "c.txt").write_text("")
    (workspace / ".git").mkdir()
    (workspace / "a.txt").write_text("")
    (workspace / "loop").symlink_to(workspace)
    assert await run("list_files") == "a.txt\nb/\nloop"
    assert await run("list_files", recursive=True) == "a.txt\nb/\nb/c.txt\nloop"
    assert await run("list_files", path="b") == "b/c.txt"
    with pytest.raises(ToolFailedError, match="'nothing'"):
        await run("list_files", path="nothing")


async def test_list_files_is_bounded(run: Run, workspace: Path) -> None:
    for number in range(1100):
        (workspace / f"{number}").touch()
    lines = (await run("list_files")).splitlines()
    assert len(lines) == 1001
    assert "more than 1000" in lines[-1]


async def test_search_files(run: Run, workspace: Path) -> None:
    (workspace / "a.py").write_text("import os\nprint(os)\n")
    (workspace / "b.txt").write_text("os\n")
    (workspace / "ignored.py").write_text("os\n")
    (workspace / ".gitignore").write_text("ignored.py\n")
    (workspace / ".git").mkdir()
    assert await run("search_files", regex=r"\bos$") == "a.py:1:import os\nb.txt:1:os"
    assert await run("search_files", regex="os", file_pattern="*.txt") == "b.txt:1:os"
    assert (
        await run("search_files", regex="os", path="a.py") == "a.py:1:import os\na.py:2:print(os)"
    )
    assert await run("search_files", regex="nowhere") == "No match for 'nowhere' in '.'."
    with pytest.raises(ToolFailedError, match="unclosed group"):
        await run("search_files", regex="(")


@pytest.mark.parametrize("text", ["--files", "-e", "--pre=id", "-f/etc/passwd", "--", "-"])
async def test_search_takes_no_options(run: Run, workspace: Path, text: str) -> None:
    (workspace / "a").write_text(f"{text}\n")
    assert await run("search_files", regex=text) == f"a:1:{text}"
    await run("search_files", regex="x", file_pattern=text)
    with pytest.raises(ToolFailedError, match="cannot be read: No such file"):
        await run("search_files", regex="x", path=text)


async def test_a_fifo_is_not_searched(run: Run, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    with pytest.raises(ToolFailedError, match="'pipe'"):
        await run("search_files", regex="x", path="pipe")
    assert "No match" in await run("search_files", regex="x")


async def test_a_pattern_that_backtracks_is_quick(run: Run, workspace: Path) -> None:
    (workspace / "a").write_text("a" * 5000 + "!\n")
    start = time.monotonic()
    await run("search_files", regex="(a+)+$")
    assert time.monotonic() - start < 5


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


async def test_a_link_inside_is_followed_and_kept(run: Run, workspace: Path) -> None:
    (workspace / "real").write_text("old")
    (workspace / "link").symlink_to("real")
    await run("write_file", path="link", content="new")
    assert (workspace / "link").is_symlink()
    assert (workspace / "real").read_text() == "new"


@pytest.mark.parametrize("link", ["folder", "file"])
@pytest.mark.parametrize("inside", [True, False])
def test_what_became_a_link_since_it_was_judged_is_refused(
    workspace: Path, tmp_path: Path, link: str, inside: bool
) -> None:
    target = (workspace if inside else tmp_path) / "other"
    target.mkdir()
    (target / "a").write_text("old")
    if link == "folder":
        (workspace / "src").symlink_to(target)
    else:
        (workspace / "src").mkdir()
        (workspace / "src/a").symlink_to(target / "a")
    opened = Workspace(workspace)
    with pytest.raises(ToolFailedError):
        opened.write("src/a", "new", is_real=True)
    with pytest.raises(ToolFailedError):
        opened.read("src/a", is_real=True)
    assert (target / "a").read_text() == "old"
    assert [file.name for file in target.iterdir()] == ["a"]


@pytest.mark.parametrize("path", ["../a", "src/../../a", "/etc/passwd", "", ".", "src//a", "./a"])
def test_a_real_path_is_plain(workspace: Path, path: str) -> None:
    (workspace / "src").mkdir()
    for attempt in (
        lambda: Workspace(workspace).write(path, "x", is_real=True),
        lambda: Workspace(workspace).read(path, is_real=True),
    ):
        with pytest.raises(ToolFailedError):
            attempt()
    assert [file.name for file in workspace.parent.iterdir()] == ["workspace"]


async def test_edit_file(run: Run, workspace: Path) -> None:
    file = workspace / "a"
    file.write_text("one two one")
    await run("edit_file", path="a", old="two", new="2")
    with pytest.raises(ToolFailedError, match="2 times; add lines around it"):
        await run("edit_file", path="a", old="one", new="1")
    with pytest.raises(ToolFailedError, match="is not in a; read the file again"):
        await run("edit_file", path="a", old="three", new="3")
    with pytest.raises(ToolFailedError, match="empty"):
        await run("edit_file", path="a", old="", new="3")
    assert file.read_text() == "one 2 one"
    await run("edit_file", path="a", old="one", new="1", replace_all=True)
    assert file.read_text() == "1 2 1"


async def test_an_edit_that_would_grow_without_end(run: Run, workspace: Path) -> None:
    (workspace / "a").write_text("x" * 5_000_000)
    start = time.monotonic()
    with pytest.raises(ToolFailedError, match="larger than 10000000 bytes"):
        await run("edit_file", path="a", old="x", new="y" * 3000, replace_all=True)
    assert time.monotonic() - start < 10
    assert (workspace / "a").stat().st_size == 5_000_000


def test_an_edit_of_what_somebody_else_has_changed(workspace: Path) -> None:
    (workspace / "a").write_text("theirs")
    with pytest.raises(ToolFailedError, match="has changed meanwhile"):
        Workspace(workspace).write("a", "new", instead_of="old")
    assert (workspace / "a").read_text() == "theirs"


async def test_edit_keeps_line_endings(run: Run, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"one\r\ntwo\r\n")
    await run("edit_file", path="a", old="two", new="2")
    assert (workspace / "a").read_bytes() == b"one\r\n2\r\n"


async def test_edit_of_several_lines_with_the_files_line_endings(run: Run, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    await run("edit_file", path="a", old="one\ntwo", new="1\n2")
    assert (workspace / "a").read_bytes() == b"1\r\n2\r\nthree\r\n"


async def test_edits_of_line_ends_and_of_other_encodings(run: Run, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"one\r\ntwo\r\n")
    await run("edit_file", path="a", old="two", new="2\r\n3\n4")
    assert (workspace / "a").read_bytes() == b"one\r\n2\r\n3\r\n4\r\n"
    (workspace / "b").write_bytes(b"caf\xe9 one")
    with pytest.raises(ToolFailedError, match="is not UTF-8; only ASCII"):
        await run("edit_file", path="b", old="one", new="\u00fc")
    await run("edit_file", path="b", old="one", new="two")
    assert (workspace / "b").read_bytes() == b"caf\xe9 two"


async def test_lines_are_numbered_as_search_numbers_them(run: Run, workspace: Path) -> None:
    (workspace / "a").write_text("one\fstill one\u2028still\ntwo\n")
    assert "    2 two" in await run("read_file", path="a")
    assert await run("search_files", regex="two") == "a:2:two"


async def test_a_long_line_is_cut(run: Run, workspace: Path) -> None:
    (workspace / "a").write_text("x" * 9_000_000)
    assert len(await run("read_file", path="a")) < 3000


async def test_a_command(run: Run, workspace: Path) -> None:
    assert await run("execute_command", command="echo out; echo err >&2; exit 3") == (
        "out\nerr\n[exit code 3]"
    )
    (workspace / "sub").mkdir()
    assert str(workspace / "sub") in await run("execute_command", command="pwd", cwd="sub")
    with pytest.raises(InvalidCallError, match="outside"):
        await run("execute_command", command="pwd", cwd="..")
    with pytest.raises(ToolFailedError, match="'missing' is not a folder"):
        await run("execute_command", command="pwd", cwd="missing")


async def test_a_command_reads_no_input_and_no_keys(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hidden-1")
    monkeypatch.setenv("SOME_TOKEN", "hidden-2")
    assert await run("execute_command", command="cat") == "[exit code 0]"
    text = await run("execute_command", command="env")
    assert "PATH=" in text
    assert "hidden" not in text


async def test_output_is_bounded_with_head_and_tail(run: Run) -> None:
    text = await run("execute_command", command="echo first; yes | head -c 3000000; echo last")
    assert text.startswith("first\n")
    assert text.endswith("last\n[exit code 0]")
    assert "bytes left out" in text
    assert len(text) < 25_000


async def test_a_command_that_takes_too_long(run: Run, workspace: Path) -> None:
    start = time.monotonic()
    text = await run("execute_command", command="echo begun; sleep 60 & sleep 60", timeout=1)
    assert text.startswith("begun\n[ended after 1 s")
    assert time.monotonic() - start < 20


async def test_nothing_is_left_running(run: Run, workspace: Path) -> None:
    start = time.monotonic()
    await run("execute_command", command="(sleep 2; touch late) & echo done")
    assert time.monotonic() - start < 2
    await asyncio.sleep(2.2)
    assert not (workspace / "late").exists()


async def test_a_process_that_leaves_the_group_does_not_hang_the_call(run: Run) -> None:
    start = time.monotonic()
    text = await run("execute_command", command="setsid sleep 8 & echo done")
    assert text == "done\n[exit code 0]"
    assert time.monotonic() - start < 6


async def test_a_cancelled_command_ends(run: Run, workspace: Path) -> None:
    task = asyncio.create_task(run("execute_command", command="sleep 1; touch late"))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(1.2)
    assert not (workspace / "late").exists()


async def test_a_command_with_a_nul(run: Run) -> None:
    with pytest.raises(ToolFailedError, match="cannot be started"):
        await run("execute_command", command="echo \x00")


def test_a_workspace_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="missing"):
        Workspace(tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="not a folder"):
        Workspace(tmp_path / "file")


@pytest.mark.parametrize("path", ["~", "$HOME", "~root", "${HOME}/x", "%USERPROFILE%"])
def test_nothing_is_expanded(workspace: Path, path: str) -> None:
    assert Workspace(workspace).resolve(path) == path


def test_a_sibling_with_the_same_beginning(tmp_path: Path) -> None:
    for name in ("ws", "ws-evil"):
        (tmp_path / name).mkdir()
    with pytest.raises(InvalidCallError):
        Workspace(tmp_path / "ws").resolve("../ws-evil/x")


def test_a_loop_of_links(workspace: Path) -> None:
    (workspace / "a").symlink_to("b")
    (workspace / "b").symlink_to("a")
    with pytest.raises(InvalidCallError, match="'a'"):
        Workspace(workspace).resolve("a")


@pytest.fixture
def hostile_git(workspace: Path) -> Path:
    """A repository, and a bare one in it, that name a program to run; what it would write."""
    monitor = "touch WATCHED; false"
    for command in (
        ["git", "init", "--quiet", "."],
        ["git", "config", "core.fsmonitor", monitor],
        ["git", "init", "--quiet", "--bare", "bare"],
        ["git", "--git-dir=bare", "config", "core.fsmonitor", monitor],
        ["git", "--git-dir=bare", "config", "core.bare", "false"],
        ["git", "--git-dir=bare", "config", "core.worktree", str(workspace)],
    ):
        subprocess.run(command, cwd=workspace, check=True)
    watched = workspace / "WATCHED"
    subprocess.run(["git", "status"], cwd=workspace, check=True, capture_output=True)
    assert watched.exists(), "git itself runs it"
    watched.unlink()
    return watched


async def test_git_runs_no_program_that_a_folder_names(run: Run, hostile_git: Path) -> None:
    await run("execute_command", command="git status")
    await run("execute_command", command="git status", cwd="bare")
    assert not hostile_git.exists()
