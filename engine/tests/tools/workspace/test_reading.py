"""Reading, listing and searching: bounded whatever the files are, and clear about it."""

import asyncio
import inspect
import os
import resource
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from modeshift.modes.errors import InvalidCallError, ToolFailedError
from modeshift.modes.rules.files import is_secret
from modeshift.tools.workspace import ripgrep
from modeshift.tools.workspace.search import MAX_BYTES, Query, search_file, search_folder
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.conversation import SECONDS
from tests.tables import rows
from tests.tools.conftest import Run
from tests.tools.racing import repeating, swapping

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="a system call of Linux")


def make(folder: Path, *names: str, text: str = "KEY\n") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@rows(
    "data offset limit shown",
    (b"a\nb\nc", None, None, "1\ta\n2\tb\n3\tc"),
    (b"a\nb\nc", 2, 1, "2\tb\n[f has 3 lines; it goes on with offset=3]"),
    (b"a\nb\nc\n", 4, None, "f has 3 lines; nothing from line 4."),
    (b"a\nb\nc", -5, 1, "1\ta\n[f has 3 lines; it goes on with offset=2]"),
    (b"a\nb\nc", 10**18, 10**18, "f has 3 lines; nothing from line 1000000000000000000."),
    (b"", None, None, "f is empty."),
    (b"caf\xe9\n", None, None, "1\tcaf\\xe9"),
    ("\ufeffa\n".encode(), None, None, "1\ta"),
    ("a\nb\n".encode("utf-16"), None, None, "1\ta\n2\tb"),
    ("a\fstill a\u2028still\nb\n".encode(), 2, None, "2\tb"),
    (b"x" * 30_000_000, None, None, f"1\t{'x' * 2000}[29998000 more bytes]"),
    (b"0123456789\n" * 1_000_000, 1_000_000, 1, "1000000\t0123456789"),
)
async def test_ranges(
    run: Run, workspace: Path, data: bytes, offset: int, limit: int, shown: str
) -> None:
    (workspace / "f").write_bytes(data)
    assert await run("read_file", path="f", offset=offset, limit=limit) == shown


async def test_lines_across_blocks_and_no_line(run: Run, workspace: Path) -> None:
    (workspace / "f").write_text("a")
    for limit in (0, -1):
        with pytest.raises(InvalidCallError, match=r"limit: .* greater than or equal to 1"):
            await run("read_file", path="f", limit=limit)
    lines = [f"line {number} " + "x" * (number % 3000) for number in range(1, 3000)]
    (workspace / "f").write_text("\n".join(lines) + "\n")
    for start in (1, 700, 1400, 2990):
        shown = (await run("read_file", path="f", offset=start, limit=9)).splitlines()[:9]
        for number, line in enumerate(shown, start):
            assert line.startswith(f"{number}\tline {number} "), number


@rows(
    "data why",
    (b"\x7fELF\0\0", "'f' is binary .6 bytes."),
    (b"text\n" * 400_000 + b"\0", "'f' is binary .2000001 bytes."),
    (b"\xff\xfea", "'f' is not utf-16-le text"),
    (b"\xff\xfe" + b"a\0" * 5_000_000, "is utf-16-le and has 10000002 bytes; 10000000 are"),
)
async def test_what_is_not_text(run: Run, workspace: Path, data: bytes, why: str) -> None:
    (workspace / "f").write_bytes(data)
    with pytest.raises(ToolFailedError, match=why):
        await run("read_file", path="f")


async def test_a_huge_file_takes_no_memory_and_says_its_size(run: Run, workspace: Path) -> None:
    with (workspace / "f").open("wb") as file:
        for number in range(30):
            file.write(b"some line of text\n" * 55_000 + f"block {number}\n".encode())
    tracemalloc.start()
    text = await run("read_file", path="f", limit=3)
    far = await run("read_file", path="f", offset=55_001, limit=1)
    beyond = await run("read_file", path="f", offset=10**9)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert text.endswith("[f has 29700260 bytes; it goes on with offset=4]")
    assert far.startswith("55001\tblock 0")
    assert beyond == "f has 1650030 lines; nothing from line 1000000000."
    assert peak < 20_000_000


@pytest.mark.parametrize(("width", "most"), [(1500, 54), (1, 2000)])
async def test_lines_left_out_are_counted(run: Run, workspace: Path, width: int, most: int) -> None:
    (workspace / "f").write_text("\n".join(["y" * width] * 5000))
    lines = (await run("read_file", path="f", limit=9999)).splitlines()
    assert len(lines) == most + 1
    assert lines[-1] == f"[f has 5000 lines; it goes on with offset={most + 1}]"


async def test_a_growing_file_ends(run: Run, workspace: Path) -> None:
    (workspace / "f").write_text("begun\n")
    with (workspace / "f").open("a") as file, repeating(lambda: file.write("more\n" * 9999)):
        text = await asyncio.wait_for(run("read_file", path="f"), SECONDS)
    assert text.startswith("1\tbegun")


async def test_a_listing_respects_gitignore(run: Run, workspace: Path) -> None:
    make(workspace, "src/a.py", "src/a.pyc", "build/x", "src/build", "node_modules/m/i.js")
    make(workspace, "keep.log", "b.log", "src/c.log", "src/gen/x", "src/gen/keep")
    (workspace / ".gitignore").write_text("*.pyc\n/build/\nnode_modules/\n*.log\n!keep.log\n")
    (workspace / "src/.gitignore").write_text("gen/*\n!gen/keep\n!c.log\n")
    assert await run("list_files") == ".gitignore\nkeep.log\nsrc/"
    below = "src/.gitignore\nsrc/a.py\nsrc/build\nsrc/c.log\nsrc/gen/\nsrc/gen/keep"
    assert await run("list_files", path="src", depth=999) == below
    assert await run("list_files", depth=999) == f".gitignore\nkeep.log\nsrc/\n{below}"
    assert await run("list_files", path="node_modules", depth=999) == (
        "node_modules/m/\nnode_modules/m/i.js"
    )
    (workspace.parent / ".gitignore").write_text("build\n")
    shown = await run("search_files", regex="KEY", path="src")
    assert shown == "src/a.py:1:KEY\nsrc/c.log:1:KEY\nsrc/gen/keep:1:KEY", "also of those above"
    shown = await run("search_files", regex="KEY", glob="*.log")
    assert shown == "keep.log:1:KEY\nsrc/c.log:1:KEY", "a glob brings nothing back"
    (workspace / ".gitignore").write_text("*\n!*/\n!*.py\n")
    (workspace / "src/.gitignore").unlink()
    assert await run("list_files", depth=99) == "src/\nsrc/a.py", "the last match wins"


async def test_ignore_files_of_other_tools_count_for_nothing(run: Run, workspace: Path) -> None:
    (workspace / ".ignore").symlink_to("/dev/zero")
    with (workspace / ".rgignore").open("wb") as file:
        file.truncate(1 << 40)
    make(workspace, "a")
    assert await run("search_files", regex="KEY", glob="a") == "a:1:KEY"


@pytest.mark.parametrize("text", [None, b"\xff\xfe\n\0\n", b"[\n\\\n!\n**/**/**/x\n*a*a*a*a*a*b\n"])
async def test_an_odd_gitignore(run: Run, workspace: Path, text: bytes | None) -> None:
    make(workspace, "a")
    odd = workspace / ".gitignore"
    odd.mkdir() if text is None else odd.write_bytes(text)
    start = time.process_time()
    assert "a" in (await run("list_files")).split("\n")
    assert time.process_time() - start < 5


async def test_a_deep_and_a_wide_tree(run: Run, workspace: Path) -> None:
    make(workspace, "d/" * 60 + "bottom")
    assert len((await run("list_files", depth=999)).splitlines()) == 61
    for number in range(3000):
        (workspace / f"f{number}").touch()
    lines = (await run("list_files", depth=999)).splitlines()
    assert len(lines) == 1001
    assert lines[-1] == "[more than 1000 entries: list a folder below, or give a glob]"


@pytest.mark.parametrize(
    ("name", "shown"), [(b"\xff\xfe.txt", "\\xff\\xfe.txt"), (b"one\ntwo", "one\\u000atwo")]
)
async def test_names_that_are_no_text(run: Run, workspace: Path, name: bytes, shown: str) -> None:
    make(workspace, os.fsdecode(name))
    assert await run("list_files") == shown
    assert await run("search_files", regex="KEY") == f"{shown}:1:KEY"


async def test_a_search_leaves_secrets_out(run: Run, workspace: Path) -> None:
    make(workspace, ".env", "sub/.env.local", "sub/key.pem", "sub/a.py", ".ssh/config")
    make(workspace, ".env.example")
    make(workspace, *(f"{number}.pem" for number in range(60)), text="KEY\n" * 150)
    assert await run("search_files", regex="KEY") == ".env.example:1:KEY\nsub/a.py:1:KEY"
    assert (await run("search_files", regex="KEY", glob=".env")).startswith("No match")
    assert await run("search_files", regex="KEY", path="sub") == "sub/a.py:1:KEY"
    # A person was asked about these.
    assert await run("search_files", regex="KEY", path=".env") == ".env:1:KEY"
    assert await run("search_files", regex="KEY", path=".ssh") == ".ssh/config:1:KEY"


async def test_what_is_in_files_of_windows_and_in_binary_ones(run: Run, workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(b"KEY\n" + b"x\n" * 50_000 + b"\0")
    (workspace / "z.py").write_bytes(b"a KEY\r\nb\r\n")
    shown = (await run("search_files", regex="KEY$")).splitlines()
    assert shown[-1] == "z.py:1:a KEY"
    assert not any("WARNING" in line for line in shown)


@pytest.fixture(params=["confined", "every file opened"])
def confined(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With Landlock, and as on a machine that has none."""
    ripgrep.can_confine.cache_clear()
    if request.param != "confined":
        monkeypatch.setattr(ripgrep, "_CREATE_RULESET", 0xFFFF)
        assert not ripgrep.can_confine()
    elif not ripgrep.can_confine():
        pytest.skip("nothing confines rg to a folder here")
    yield
    ripgrep.can_confine.cache_clear()


@on_linux
async def test_no_link_is_read(confined: None, run: Run, workspace: Path, tmp_path: Path) -> None:
    """Neither one that is there, nor one that is swapped in, nor where ``.gitignore`` is one."""
    make(workspace, ".env", text="KEY=s3cret\n")
    make(tmp_path, "outside/id_rsa", text="KEY=s3cret\n*.py\n")
    (workspace / ".gitignore").symlink_to(tmp_path / "outside/id_rsa")
    (workspace / "folder").symlink_to(tmp_path / "outside")
    pairs = []
    for number in range(20):
        pairs.append((workspace / f"f{number}.py", workspace / f"link{number}"))
        make(workspace, f"f{number}.py", text="KEY=plain\n")
        target = workspace / ".env" if number % 2 else tmp_path / "outside/id_rsa"
        pairs[-1][1].symlink_to(target)
    if ripgrep.can_confine():
        assert "f0.py" in await run("list_files"), "nothing of the link's is read"
    (workspace / ".gitignore").unlink()
    place, seen = Workspace(workspace), set()
    with swapping(*pairs):
        for _ in range(20):
            with place.open_for_search(".") as (folder, _):
                query = Query("KEY", 201)
                matches = search_folder(folder, query, place.opened_on_disk, is_secret)
            seen |= {line.text for line in matches.lines}
    assert seen == {"KEY=plain"}


def test_matches_are_bounded_in_bytes(workspace: Path) -> None:
    make(workspace, *map(str, range(40)), text=f"{'x' * 1999}\n" * 100)
    place = Workspace(workspace)
    with place.open_for_search(".") as (folder, _):
        matches = search_folder(folder, Query("x", 100_000), place.opened_on_disk)
    assert matches.stopped == "there are many more matches"
    assert sum(len(line.text) for line in matches.lines) < MAX_BYTES + 3000


@on_linux
def test_the_memory_of_rg_is_bounded() -> None:
    """Looked at while it waits for what it searches."""
    reading, writing = os.pipe()
    search = threading.Thread(target=search_file, args=(reading, Query("x", 1)))
    search.start()
    try:
        own = psutil.Process()
        while not (found := [child for child in own.children() if "rg" in child.name()]):
            time.sleep(0.01)
        while found[0].rlimit(resource.RLIMIT_AS)[0] != ripgrep.MAX_MEMORY:
            assert search.is_alive()
            time.sleep(0.01)
    finally:
        os.close(writing)
        search.join()
        os.close(reading)


def test_a_tree_that_is_deeper_than_python_calls_itself(workspace: Path) -> None:
    folder = os.open(workspace, os.O_RDONLY)
    for _ in range(250):
        os.mkdir("d", dir_fd=folder)
        folder, above = os.open("d", os.O_RDONLY, dir_fd=folder), folder
        os.close(above)
    os.close(folder)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        assert sum(1 for _ in Workspace(workspace).list_entries(".", 9999)) == 250
    finally:
        sys.setrecursionlimit(limit)
    # Python's own way to remove a tree calls itself.
    subprocess.run(["rm", "-rf", str(workspace / "d")], check=True)


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


async def test_a_fifo_and_backtracking_hold_nothing_up(run: Run, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    with pytest.raises(ToolFailedError, match="'pipe'"):
        await run("search_files", regex="x", path="pipe")
    assert "No match" in await run("search_files", regex="x")
    (workspace / "a").write_text("a" * 5000 + "!\n")
    start = time.process_time()
    await run("search_files", regex="(a+)+$")
    assert time.process_time() - start < 5
