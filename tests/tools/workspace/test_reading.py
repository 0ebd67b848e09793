"""Reading, listing and searching: bounded whatever the files are, and clear about it."""

import asyncio
import ctypes
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from modes.errors import ToolFailedError
from modes.rules.protected_paths import is_secret
from tests.harness.modes import load_test_catalog
from tools.toolbox import build_toolbox
from tools.workspace import ripgrep
from tools.workspace.search import Query, search_folder
from tools.workspace.workspace import Workspace

Run = Callable[..., Coroutine[Any, Any, str]]
LIMIT = 100_000


@pytest.fixture
def run(workspace: Path) -> Run:
    """Run a tool by name, as ``act`` does; no result is longer than the model gets."""
    toolbox = build_toolbox(Workspace(workspace), load_test_catalog())

    async def call(name: str, **args: Any) -> str:
        resolved = toolbox.check(toolbox[name], args)
        args |= {path: resolved[path] for path in toolbox[name].spec.paths}
        text = str(await toolbox[name].runnable.ainvoke(args))
        assert len(text) < LIMIT
        return text

    return call


@pytest.mark.parametrize(
    ("offset", "limit", "shown"),
    [
        (None, None, "    1 a\n    2 b\n    3 c"),
        (2, 1, "    2 b\n[f goes on to line 3]"),
        (3, None, "    3 c"),
        (4, None, "f has 3 lines; nothing from line 4."),
        (-5, 1, "    1 a\n[f goes on to line 3]"),
        (10**18, 10**18, "f has 3 lines; nothing from line 1000000000000000000."),
        (1, 0, "    1 a\n[f goes on to line 3]"),
    ],
)
@pytest.mark.parametrize("end", ["", "\n"])
async def test_ranges(
    run: Run, workspace: Path, offset: int, limit: int, shown: str, end: str
) -> None:
    (workspace / "f").write_text(f"a\nb\nc{end}")
    assert await run("read_file", path="f", offset=offset, limit=limit) == shown


async def test_an_empty_file(run: Run, workspace: Path) -> None:
    (workspace / "f").touch()
    assert await run("read_file", path="f") == "f is empty."
    (workspace / "f").write_text("\n")
    assert await run("read_file", path="f") == "    1 "


async def test_lines_across_blocks(run: Run, workspace: Path) -> None:
    lines = [f"line {number} " + "x" * (number % 3000) for number in range(1, 3000)]
    (workspace / "f").write_text("\n".join(lines) + "\n")
    for start in (1, 700, 1400, 2990):
        shown = (await run("read_file", path="f", offset=start, limit=9)).splitlines()[:9]
        for number, line in enumerate(shown, start):
            assert line.startswith(f"{number:>5} line {number} "), number


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"caf\xe9\n", "    1 caf\\xe9"),
        ("\ufeffa\n".encode(), "    1 a"),
        ("a\nb\n".encode("utf-16"), "    1 a\n    2 b"),
        (b"\xff\xfe", "f is empty."),
        (b"a\r\nb\r\n", "    1 a\n    2 b"),
    ],
)
async def test_encodings(run: Run, workspace: Path, data: bytes, shown: str) -> None:
    (workspace / "f").write_bytes(data)
    assert await run("read_file", path="f") == shown


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x7fELF\0\0", "'f' is binary .6 bytes."),
        (b"text\n" * 400_000 + b"\0", "'f' is binary .2000001 bytes."),
        (b"\xff\xfea", "'f' is not utf-16-le text"),
    ],
)
async def test_what_is_no_text(run: Run, workspace: Path, data: bytes, why: str) -> None:
    (workspace / "f").write_bytes(data)
    with pytest.raises(ToolFailedError, match=why):
        await run("read_file", path="f")


async def test_a_huge_file_takes_no_memory_and_says_how_much_there_is(
    run: Run, workspace: Path
) -> None:
    with (workspace / "f").open("wb") as file:
        for number in range(30):
            file.write(b"some line of text\n" * 55_000 + f"block {number}\n".encode())
    tracemalloc.start()
    text = await run("read_file", path="f", limit=3)
    far = await run("read_file", path="f", offset=55_001, limit=1)
    beyond = await run("read_file", path="f", offset=10**9)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert text.endswith("[f goes on behind line 3; it has 29700260 bytes]")
    assert far.startswith("55001 block 0")
    assert beyond == "f has 1650030 lines; nothing from line 1000000000."
    assert peak < 20_000_000


async def test_one_endless_line(run: Run, workspace: Path) -> None:
    (workspace / "f").write_bytes(b"x" * 30_000_000)
    text = await run("read_file", path="f")
    assert text == f"    1 {'x' * 2000}[29998000 more bytes]"


async def test_many_long_lines_are_cut_where_it_is_said(run: Run, workspace: Path) -> None:
    (workspace / "f").write_text("\n".join("y" * 1500 for _ in range(1000)))
    lines = (await run("read_file", path="f")).splitlines()
    assert lines[-1] == "[f goes on to line 1000]"
    assert lines[-2].startswith(f"{len(lines) - 1:>5} y")


async def test_a_growing_file_ends(run: Run, workspace: Path) -> None:
    (workspace / "f").write_text("begun\n")
    stop = threading.Event()

    def grow() -> None:
        with (workspace / "f").open("a") as file:
            while not stop.is_set():
                file.write("more\n" * 1000)
                file.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        text = await asyncio.wait_for(run("read_file", path="f"), 20)
    finally:
        stop.set()
        writer.join()
    assert text.startswith("    1 begun")


async def test_a_listing_respects_gitignore(run: Run, workspace: Path) -> None:
    for name in (
        "src/a.py",
        "src/a.pyc",
        "build/x",
        "src/build",
        "node_modules/m/i.js",
        "keep.log",
    ):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).touch()
    for name in ("b.log", "src/c.log", "src/gen/x", "src/gen/keep"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).touch()
    (workspace / ".gitignore").write_text("*.pyc\n/build/\nnode_modules/\n*.log\n!keep.log\n")
    (workspace / "src/.gitignore").write_text("gen/*\n!gen/keep\n!c.log\n")
    assert await run("list_files") == ".gitignore\nkeep.log\nsrc/"
    below = "src/.gitignore\nsrc/a.py\nsrc/build\nsrc/c.log\nsrc/gen/\nsrc/gen/keep"
    assert await run("list_files", path="src", recursive=True) == below
    assert await run("list_files", recursive=True) == f".gitignore\nkeep.log\nsrc/\n{below}"
    assert await run("list_files", path="node_modules", recursive=True) == (
        "node_modules/m/\nnode_modules/m/i.js"
    )


@pytest.mark.parametrize("kind", ["folder", "bytes", "patterns"])
async def test_an_odd_gitignore(run: Run, workspace: Path, kind: str) -> None:
    (workspace / "a").touch()
    odd = workspace / ".gitignore"
    if kind == "folder":
        odd.mkdir()
    elif kind == "bytes":
        odd.write_bytes(b"\xff\xfe\n\0\n")
    else:
        odd.write_text("[\n\\\n!\n**/**/**/x\n" + "*a*" * 50 + "b\n")
    start = time.monotonic()
    assert "a" in (await run("list_files")).split("\n")
    assert time.monotonic() - start < 5


async def test_a_deep_and_a_wide_tree(run: Run, workspace: Path) -> None:
    folder = workspace
    for _ in range(200):
        folder /= "d"
        folder.mkdir()
    (folder / "bottom").touch()
    text = await run("list_files", recursive=True)
    assert len(text.splitlines()) == 201
    for number in range(3000):
        (workspace / f"f{number}").touch()
    lines = (await run("list_files", recursive=True)).splitlines()
    assert len(lines) == 1001
    assert lines[-1] == "[more than 1000 entries: list a folder below]"


async def test_names_that_are_no_text(run: Run, workspace: Path) -> None:
    (workspace / os.fsdecode(b"\xff\xfe.txt")).write_text("here\n")
    assert await run("list_files") == "\\xff\\xfe.txt"
    assert await run("search_files", regex="here") == "\\xff\\xfe.txt:1:here"


async def test_a_search_leaves_secrets_out(run: Run, workspace: Path) -> None:
    for name in (
        ".env",
        "sub/.env.local",
        "sub/key.pem",
        "sub/a.py",
        ".ssh/config",
        ".env.example",
    ):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text("KEY=1\n")
    assert await run("search_files", regex="KEY") == ".env.example:1:KEY=1\nsub/a.py:1:KEY=1"
    assert (
        await run("search_files", regex="KEY", file_pattern=".env") == "No match for 'KEY' in '.'."
    )
    assert await run("search_files", regex="KEY", path="sub") == "sub/a.py:1:KEY=1"
    # A person was asked about these.
    assert await run("search_files", regex="KEY", path=".env") == ".env:1:KEY=1"
    assert await run("search_files", regex="KEY", path=".ssh") == ".ssh/config:1:KEY=1"


async def test_a_search_is_bounded_and_says_so(run: Run, workspace: Path) -> None:
    for number in range(40):
        (workspace / f"{number:03}").write_text("match me\n" * 100)
    lines = (await run("search_files", regex="match")).splitlines()
    assert lines[-1] == "[more than 200 matches: search more narrowly]"
    assert lines[0] == "000:1:match me"
    (workspace / "long").write_text(("z" * 5000 + "\n") * 150)
    assert "more than" in await run("search_files", regex="z+")


async def test_a_search_of_a_folder_does_not_follow_links(
    run: Run, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/f").write_text("KEY\n")
    (workspace / "link").symlink_to(tmp_path / "outside")
    (workspace / "file").symlink_to(tmp_path / "outside/f")
    assert "No match" in await run("search_files", regex="KEY")


@pytest.fixture
def swapped(workspace: Path, tmp_path: Path) -> Iterator[None]:
    """Files that become links all the time: to a secret in the workspace, and to one outside."""
    (workspace / ".env").write_text("KEY=s3cret\n")
    (tmp_path / "id_rsa").write_text("KEY=s3cret\n")
    pairs = []
    for number in range(20):
        (workspace / f"f{number}").write_text("KEY=plain\n")
        target = workspace / ".env" if number % 2 else tmp_path / "id_rsa"
        (workspace / f"link{number}").symlink_to(target)
        pairs.append([os.fsencode(workspace / f"{kind}{number}") for kind in ("f", "link")])
    exchange = ctypes.CDLL(None).renameat2
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for file, link in pairs:
                exchange(-100, file, -100, link, 2)

    thread = threading.Thread(target=swap)
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="it swaps by a system call of Linux")
@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.usefixtures("swapped")
async def test_a_search_reads_no_link_that_is_swapped_in(workspace: Path, is_held: bool) -> None:
    place = Workspace(workspace)
    seen: set[str] = set()
    for _ in range(30):
        with place.searched(".") as (folder, _):
            found = search_folder(
                folder,
                Query("KEY", 201),
                lambda name: place.on_disk(name, is_real=True),
                is_left_out=is_secret,
                is_held=is_held,
            )
        seen |= {text for _, _, text in found.matches}
    assert seen == {"KEY=plain"}


@pytest.mark.skipif(not ripgrep.is_held(), reason="nothing holds rg to a folder here")
async def test_rg_reads_nothing_outside_of_the_folder(
    run: Run, workspace: Path, tmp_path: Path
) -> None:
    """It follows links to these, as it would one that is swapped in."""
    (tmp_path / "outside").write_text("*.py\n")
    (workspace / ".gitignore").symlink_to(tmp_path / "outside")
    (workspace / "a.py").write_text("KEY\n")
    assert await run("list_files") == ".gitignore\na.py"
    assert await run("search_files", regex="KEY") == "a.py:1:KEY"


async def test_ignore_files_above_the_folder_count(
    run: Run, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    (workspace / ".gitignore").write_text("*.log\n")
    (workspace / "sub").mkdir()
    for name in ("a.py", "a.pyc", "a.log"):
        (workspace / "sub" / name).write_text("KEY\n")
    assert await run("search_files", regex="KEY", path="sub") == "sub/a.py:1:KEY"
    assert await run("list_files", path="sub") == "sub/a.py"


async def test_a_name_with_a_line_break(run: Run, workspace: Path) -> None:
    (workspace / "one\ntwo").write_text("KEY\n")
    assert await run("search_files", regex="KEY") == "one\\u000atwo:1:KEY"


async def test_secrets_change_no_count(run: Run, workspace: Path) -> None:
    for number in range(60):
        (workspace / f"{number}.pem").write_text("KEY\n" * 150)
    (workspace / "a").write_text("KEY\n")
    assert await run("search_files", regex="KEY") == "a:1:KEY"


async def test_a_pattern_for_names_brings_nothing_back(run: Run, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    for name in (".git/config", "ignored.py", "a.py"):
        (workspace / name).write_text("KEY\n")
    (workspace / ".gitignore").write_text("ignored.py\n")
    for pattern in ("*", "*.py", "{a,ignored}.py", "**"):
        assert await run("search_files", regex="KEY", file_pattern=pattern) == "a.py:1:KEY"
    for pattern in ("../*", "/etc/*", "include:all", "!a.py", "[", "a:b"):
        with suppress(ToolFailedError):
            shown = await run("search_files", regex="KEY", file_pattern=pattern)
            assert "config" not in shown
            assert "ignored" not in shown


async def test_ignore_files_of_other_tools_count_for_nothing(run: Run, workspace: Path) -> None:
    (workspace / ".ignore").symlink_to("/dev/zero")
    with (workspace / ".rgignore").open("wb") as file:
        file.truncate(1 << 40)
    (workspace / "a").write_text("KEY\n")
    assert await run("search_files", regex="KEY", file_pattern="a") == "a:1:KEY"


async def test_a_folder_that_may_not_be_read_is_named(run: Run, workspace: Path) -> None:
    (workspace / "b").mkdir(mode=0o000 if os.geteuid() else 0o755)
    (workspace / "c").touch()
    assert await run("list_files", recursive=True) == "b/\nc"


async def test_the_last_pattern_that_matches_wins(run: Run, workspace: Path) -> None:
    for name in ("src/a.py", "src/a.txt", "b.py", "b.txt"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).touch()
    (workspace / ".gitignore").write_text("*\n!*/\n!*.py\n")
    assert await run("list_files", recursive=True) == "b.py\nsrc/\nsrc/a.py"


async def test_a_binary_file_among_others(run: Run, workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(b"KEY\n" + b"x\n" * 50_000 + b"\0")
    (workspace / "z.py").write_text("KEY\n")
    shown = (await run("search_files", regex="KEY")).splitlines()
    assert shown[-1] == "z.py:1:KEY"
    assert not any("WARNING" in line for line in shown)


async def test_line_ends_of_windows(run: Run, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"ab\r\ncd\r\n")
    assert await run("search_files", regex="ab$") == "a:1:ab"


async def test_the_last_line_of_a_large_file(run: Run, workspace: Path) -> None:
    (workspace / "f").write_bytes(b"0123456789\n" * 1_000_000)
    assert await run("read_file", path="f", offset=1_000_000, limit=1) == "1000000 0123456789"


@pytest.fixture
def deep(workspace: Path) -> Iterator[Workspace]:
    folder = os.open(workspace, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=folder)
        folder, above = os.open("d", os.O_RDONLY, dir_fd=folder), folder
        os.close(above)
    os.close(folder)
    yield Workspace(workspace)
    # Python's own way to remove a tree calls itself.
    subprocess.run(["rm", "-rf", str(workspace / "d")], check=True)


def test_a_tree_that_is_deeper_than_python_calls_itself(deep: Workspace) -> None:
    assert sum(1 for _ in deep.entries(".", recursive=True)) > 1000
