"""Ignore files: what they name is out of reach of every tool that opens, lists or searches."""

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from modeshift.modes.errors import InvalidCallError, ToolFailedError
from modeshift.modes.rules.ignore_rules import IgnoreRules
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_catalog
from tests.tools.conftest import Run, make_run

NAMES = ("a", "b", "ab", "a.b", ".env", "key.pem", "x y", "!b", "#c", "[d]")
WORDS = (
    *("a", "b", "*", "*.b", "a*", "?", "[ab]", "[!a]*", "[^b]", "**", "a**b", ".env", "*.pem"),
    *(r"\!b", r"\#c", r"\[d\]", "x y", r"x\ y", "k*.p*m", "[]d]", "**b", "[a-b]b"),
)


@pytest.fixture
def tree(workspace: Path) -> Path:
    for name in ("open.txt", "shut/in.txt", "deep/shut/in.txt", "deep/key.PEM", "shut/keep.txt"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("needle\n")
    (workspace / "link.txt").symlink_to("shut/in.txt")
    return workspace


@pytest.fixture
def run(tree: Path) -> Run:
    toolbox = build_toolbox(Workspace(tree, heeds_ignore_files=True), load_catalog())
    return make_run(toolbox)


def test_the_lines_mean_what_git_takes_them_for(tmp_path: Path) -> None:
    """Compared with git itself, on names in which it sees no capitals."""
    draw = random.Random(17)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for _ in range(60):
        folder = tmp_path.joinpath(*draw.choices(NAMES, k=draw.randint(1, 3)))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{draw.choice(NAMES)}.txt").touch()
    kinds = {str(path.relative_to(tmp_path)): path.is_dir() for path in tmp_path.rglob("*")}
    paths = {path: kind for path, kind in kinds.items() if not path.startswith(".git/")}
    paths.pop(".git")

    def write_line() -> str:
        words = "/".join(draw.choices(WORDS, k=draw.randint(1, 3)))
        return "".join([draw.choice(["", "", "", "!"]), draw.choice(["", "/"]), words,
                        draw.choice(["", "", "/"]), draw.choice(["", "", "  "])])  # fmt: skip

    for _ in range(80):
        text = "\n".join(write_line() for _ in range(draw.randint(1, 5)))
        (tmp_path / ".git/info/exclude").write_text(text)
        command = ["git", "check-ignore", "--no-index", "-z", "--stdin"]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            input="\0".join(paths),
            capture_output=True,
            text=True,
            check=False,
        )
        rules = IgnoreRules(text)
        named = {path for path, is_folder in paths.items() if rules.name(path, is_folder=is_folder)}
        assert named == set(done.stdout.split("\0")) - {""}, text


@pytest.mark.parametrize(
    ("text", "path", "named"),
    [
        ("Secrets/", "secrets/a", True),  # on some disks it is the same folder
        ("secret", "a/SECRET/b", True),
        ("*.txt\n!KEEP.txt", "keep.txt", True),  # what brings back is taken by the letter
        ("[[:alpha:]]", "7", True),  # what cannot be told names more
        ("*\n![[:digit:]]", "7", True),  # ... and brings back less
        ("./a", "a/b", True),
        ("a\r\n# b\r\n\r\n", "a", True),
        ("\ufeffa", "a", True),
        ("shut/", "shut", True),  # nobody knows yet whether it is a folder
        ("!shut/", "shut", False),
        ("../a\n/\n!\n", "a", False),
        ("", "a", False),
    ],
)
def test_in_doubt_they_name_more(text: str, path: str, named: bool) -> None:
    assert IgnoreRules(text).name(path, is_folder=None) is named


def test_a_hostile_file_takes_no_time() -> None:
    text = "\n".join(f"**/*a*a*a*a*a*a*a*a*a{n}/**/*a*a*a*a*a*a*b" for n in range(400))
    path = "/".join(["a" * 200] * 18)
    start = time.process_time()
    assert not IgnoreRules(text).name(path, is_folder=False)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("name", [".rooignore", ".kilocodeignore"])
async def test_what_they_name_is_out_of_reach(tree: Path, run: Run, name: str) -> None:
    (tree / name).write_text("/shut/\n*.pem\n!keep.txt\n")
    for path in ("shut", "shut/in.txt", "shut/keep.txt", "link.txt", "deep/../shut/in.txt",
                 "deep/key.PEM", "new.pem", "SHUT/x"):  # fmt: skip
        for tool, args in (
            ("read_file", {}),
            ("list_files", {}),
            ("search_files", {"regex": "x"}),
            ("write_file", {"content": ""}),
            ("edit_file", {"edits": [{"old": "needle", "new": ""}]}),
        ):
            with pytest.raises(InvalidCallError, match=f"is out of reach: {name} names it"):
                await run(tool, path=path, **args)
    assert (await run("list_files")).split() == [name, "deep/", "link.txt", "open.txt"]
    listed = await run("list_files", glob="**")
    assert "key.PEM" not in listed
    assert "deep/shut/in.txt" in listed
    matches = await run("search_files", regex="needle")
    assert matches == "deep/shut/in.txt:1:needle\nopen.txt:1:needle"
    assert "needle" in await run("read_file", path="deep/shut/in.txt")


def test_each_tool_looks_again_when_it_opens(tree: Path) -> None:
    """The call was judged before the file came."""
    place = Workspace(tree, heeds_ignore_files=True)
    path = place.resolve("shut/in.txt")
    (tree / ".rooignore").write_text("shut")
    for attempt in (
        lambda: place.read(path),
        lambda: place.write(path, ""),
        lambda: list(place.list_entries("shut", 1)),
        lambda: place.open_for_search("shut").__enter__(),
        lambda: place.open_for_search(path).__enter__(),
    ):
        with pytest.raises(ToolFailedError, match="out of reach"):
            attempt()
    with pytest.raises(InvalidCallError, match="out of reach"):
        place.resolve_at_once("shut/in.txt")
    (tree / ".rooignore").unlink()
    assert place.read(path) == "needle\n"


def _make_broken(file: Path, how: str) -> None:
    match how:
        case "a folder":
            file.mkdir()
        case "a FIFO":
            os.mkfifo(file)
        case "a link outside":
            file.symlink_to("/dev/zero")
        case "a link that leads nowhere":
            file.symlink_to("not-there")
        case _:
            file.write_bytes({"binary": b"\0\xff", "huge": b"a\n" * 60_000, "long": b"a" * 400,
                              "many": b"a\n" * 501}[how])  # fmt: skip


@pytest.mark.parametrize(
    "how",
    ["a folder", "a FIFO", "a link outside", "a link that leads nowhere", "binary", "huge", "long",
     "many"],
)  # fmt: skip
async def test_while_one_cannot_be_read_nothing_is(tree: Path, run: Run, how: str) -> None:
    file = tree / ".rooignore"
    _make_broken(file, how)
    for path in ("open.txt", ".", "new.txt"):
        with pytest.raises(InvalidCallError, match=r"^\.rooignore cannot be used, so nothing"):
            await run("read_file", path=path)
    file.rmdir() if file.is_dir() else file.unlink()
    assert "needle" in await run("read_file", path="open.txt")


async def test_a_link_inside_is_followed(tree: Path, run: Run) -> None:
    (tree / ".kilocodeignore").write_text("open.txt")
    (tree / ".rooignore").symlink_to(".kilocodeignore")
    with pytest.raises(InvalidCallError, match=r"\.rooignore names it"):
        await run("read_file", path="open.txt")
