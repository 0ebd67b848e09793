"""Ignore files, which name what is out of reach of every tool; globs, depth and context."""

import os
import random
import re
import subprocess
import time
from pathlib import Path, PurePosixPath
from threading import current_thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modeshift.modes.errors import InvalidCallError, ToolFailedError
from modeshift.modes.rules.ignore_rules import IgnoreRules
from modeshift.testing.plugin import Snapshot
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.ripgrep import Glob
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_catalog
from tests.tables import rows
from tests.tools.conftest import Run, make_run, run_wrongly

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
def heeding(tree: Path) -> Run:
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


@rows(
    "text path named",
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
async def test_what_they_name_is_out_of_reach(tree: Path, heeding: Run, name: str) -> None:
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
                await heeding(tool, path=path, **args)
    assert (await heeding("list_files")).split() == [name, "deep/", "link.txt", "open.txt"]
    listed = await heeding("list_files", glob="**")
    assert "key.PEM" not in listed
    assert "deep/shut/in.txt" in listed
    matches = await heeding("search_files", regex="needle")
    assert matches == "deep/shut/in.txt:1:needle\nopen.txt:1:needle"
    assert "needle" in await heeding("read_file", path="deep/shut/in.txt")


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


@rows("how",
"a folder", "a FIFO", "a link outside", "a link that leads nowhere", "binary", "huge", "long",
     "many",
)  # fmt: skip
async def test_while_one_cannot_be_read_nothing_is(tree: Path, heeding: Run, how: str) -> None:
    file = tree / ".rooignore"
    _make_broken(file, how)
    for path in ("open.txt", ".", "new.txt"):
        with pytest.raises(InvalidCallError, match=r"^\.rooignore cannot be used, so nothing"):
            await heeding("read_file", path=path)
    file.rmdir() if file.is_dir() else file.unlink()
    assert "needle" in await heeding("read_file", path="open.txt")


async def test_a_link_inside_is_followed(tree: Path, heeding: Run) -> None:
    (tree / ".kilocodeignore").write_text("open.txt")
    (tree / ".rooignore").symlink_to(".kilocodeignore")
    with pytest.raises(InvalidCallError, match=r"\.rooignore names it"):
        await heeding("read_file", path="open.txt")


async def test_an_event_loop_reads_no_ignore_file_that_has_changed(tree: Path) -> None:
    """It may lead anywhere, and LangGraph's dev server forbids to follow a link in its loop."""
    place = Workspace(tree, heeds_ignore_files=True)
    changes = ("shut", "many\n" * 501, "open.txt")
    for text in changes:
        (tree / ".rooignore").write_text(text)
        assert place.resolve_at_once("open.txt") is None
        assert place.resolve_at_once("new.txt") is None
        assert await place.use("open.txt", current_thread) is not current_thread()
        place.ignored.refresh()
        assert await place.use("open.txt", current_thread) is current_thread()
    with pytest.raises(InvalidCallError, match="names it"):
        place.resolve_at_once("open.txt")


FILES = ("a.py", "b.ts", "src/a.py", "src/x.tsx", "src/deep/a.py", "src/deep/er/b.ts", ".env")


@pytest.fixture
def files(workspace: Path) -> Path:
    for name in FILES:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("one\ntwo KEY\nthree\nfour\nfive KEY\n")
    (workspace / ".git").mkdir()
    (workspace / "loop").symlink_to(workspace)
    return workspace


@rows("args shown",

        ({}, ".env a.py b.ts loop src/"),
        ({"depth": 2}, ".env a.py b.ts loop src/ src/a.py src/deep/ src/x.tsx"),
        ({"path": "src", "depth": 1}, "src/a.py src/deep/ src/x.tsx"),
        ({"glob": "*.py"}, "a.py src/a.py src/deep/a.py"),
        ({"glob": "*.py", "depth": 2}, "a.py src/a.py"),
        ({"glob": "src/*.py"}, "src/a.py"),
        ({"glob": "*.py", "path": "src"}, "src/a.py src/deep/a.py"),
        ({"glob": "er/**", "path": "src/deep"}, "src/deep/er/ src/deep/er/b.ts"),
        ({"glob": "**/deep/*.{py,ts}"}, "src/deep/a.py"),
        ({"glob": "{src/*.tsx,{b,c}.*}"}, "b.ts src/deep/er/b.ts src/x.tsx"),
        ({"glob": "d?ep"}, "src/deep/"),
        ({"glob": "*.rs"}, "Nothing in '.' is '*.rs'."),
)  # fmt: skip
async def test_what_is_listed(run: Run, files: Path, args: dict[str, object], shown: str) -> None:
    assert (await run("list_files", **args)).replace("\n", " ") == shown


@rows(
    "args shown",
    ({"glob": "*.py", "path": "src"}, "src/a.py:2 src/a.py:5 src/deep/a.py:2 src/deep/a.py:5"),
    ({"glob": "src/*.{tsx,rs}"}, "src/x.tsx:2 src/x.tsx:5"),
    ({"glob": "er/**", "path": "src/deep"}, "src/deep/er/b.ts:2 src/deep/er/b.ts:5"),
    ({"glob": "er/*.py"}, "No match for 'KEY' in '.' among 'er/*.py'."),
    ({"glob": ".env"}, "No match for 'KEY' in '.' among '.env'."),
    ({"path": "b.ts"}, "b.ts:2 b.ts:5"),
    ({"regex": "nowhere"}, "No match for 'nowhere' in '.'."),
    ({"path": "a.py", "regex": "two", "context": 1}, "a.py-1- a.py:2: a.py-3-"),
    ({"path": "a.py", "context": 1}, "a.py-1- a.py:2: a.py-3- a.py-4- a.py:5:"),
    ({"path": "a.py", "regex": "one|five", "context": 1}, "a.py:1: a.py-2- -- a.py-4- a.py:5:"),
    (
        {"regex": "two", "context": 1, "glob": "src/{a,x}.*"},
        "src/a.py-1- src/a.py:2: src/a.py-3- -- src/x.tsx-1- src/x.tsx:2: src/x.tsx-3-",
    ),
)
async def test_what_is_found(run: Run, files: Path, args: dict[str, object], shown: str) -> None:
    lines = (await run("search_files", **{"regex": "KEY", **args})).splitlines()
    if args.get("context"):
        assert [re.sub(r"([:-])[a-z KEY]+$", r"\1", line) for line in lines] == shown.split(" ")
        assert lines[1].endswith("two KEY")
    else:
        assert (
            " ".join(line.removesuffix(":two KEY").removesuffix(":five KEY") for line in lines)
            == shown
        )


async def test_wrong_use(run: Run, files: Path, snapshot: Snapshot) -> None:
    globs = ["", "x" * 301, "[ab].py", "{a,b}" * 7]
    globs += ["../*", "/etc/*", "src/", "./src/*", "!a.py", "{a,../b}"]
    listing: list[dict[str, Any]] = [
        *({"depth": 0}, {"depth": "deep"}, {"recursive": True}, {"path": "nothing"}),
        {"path": "a.py", "depth": 2},
        *({"glob": glob} for glob in globs),
    ]
    searching: list[dict[str, Any]] = [{"regex": "("}, {"regex": "KEY", "glob": "../*"}]
    searching += [{"regex": "KEY", "context": lines} for lines in (-1, 99)]
    searching += [{"regex": "KEY", "file_pattern": "*"}]
    calls = [("list_files", args) for args in listing]
    calls += [("search_files", args) for args in searching]
    snapshot("list-and-search-wrongly.txt", await run_wrongly(run, *calls))


async def test_context_is_bounded_too(run: Run, workspace: Path) -> None:
    (workspace / "a").write_text("match\n" + "x" * 1999 + "\n" + "y\n" * 60)
    (workspace / "b").write_text(("match\n" + ("x" * 1999 + "\n") * 5) * 300)
    lines = (await run("search_files", regex="match", context=5)).splitlines()
    assert lines[-1].startswith("[more than 9 matches: search more narrowly")
    (workspace / "b").write_text("match\n" * 300)
    lines = (await run("search_files", regex="match", path="b", context=1)).splitlines()
    assert lines[-1].startswith("[more than 200 matches")
    assert len(lines) == 201


PARTS_OF_PATHS = st.sampled_from(["a", "b", "ab", "a.py", "b.py", ".x"])
PATHS = st.lists(PARTS_OF_PATHS, min_size=1, max_size=4).map("/".join)
PARTS = st.sampled_from(["*", "**", "?", "a", "a*", "*.py", "{a,b}", "{a,.x}*", "?b", "b.{py,ts}"])


def reference(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression over the whole path, for one without a limit of time."""
    text = f"/{pattern}" if "/" in pattern else f"/**/{pattern}"
    signs = {"/**": "(/[^/]+)*", "*": "[^/]*", "?": "[^/]", "{": "(", "}": ")", ",": "|"}
    return re.compile(
        "".join(signs.get(part) or re.escape(part) for part in re.split(r"(/\*\*|[*?{},])", text))
    )


@given(st.lists(PARTS, min_size=1, max_size=4).map("/".join), PATHS)
@settings(max_examples=200)
def test_globs_are_like_the_reference(pattern: str, path: str) -> None:
    glob = Glob.of(pattern)
    expected = reference(pattern).fullmatch(f"/{path}") is not None
    assert glob.matches(path) is expected
    if expected and glob.plain_names:  # what rg is asked for leaves nothing out
        assert any(PurePosixPath(path).match(name) for name in glob.plain_names)


@given(paths=st.sets(PATHS, max_size=8), depth=st.integers(1, 5))
@settings(max_examples=50)
def test_depth_is_like_the_reference(
    tmp_path_factory: pytest.TempPathFactory, paths: set[str], depth: int
) -> None:
    root = tmp_path_factory.mktemp("files")
    for path in paths:
        (root / path).mkdir(parents=True, exist_ok=True)
    every = [each.relative_to(root) for each in root.rglob("*")]
    expected = sorted(f"{path}/" for path in every if len(path.parts) <= depth)
    assert sorted(Workspace(root).list_entries(".", depth)) == expected
    below = {path.parts[0] for path in every}
    for folder in below:
        listed = Workspace(root).list_entries(folder, depth)
        here = [p for p in every if p.parts[0] == folder and 1 < len(p.parts) <= depth + 1]
        assert sorted(listed) == sorted(f"{path}/" for path in here)
