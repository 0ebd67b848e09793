"""Globs, depth and context of listing and searching, right and wrong, and against a reference."""

import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modeshift.testing.plugin import Snapshot
from modeshift.tools.workspace.ripgrep import Glob
from modeshift.tools.workspace.workspace import Workspace
from tests.tools.conftest import Run, run_wrongly

FILES = ("a.py", "b.ts", "src/a.py", "src/x.tsx", "src/deep/a.py", "src/deep/er/b.ts", ".env")


@pytest.fixture
def tree(workspace: Path) -> Path:
    for name in FILES:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("one\ntwo KEY\nthree\nfour\nfive KEY\n")
    (workspace / ".git").mkdir()
    (workspace / "loop").symlink_to(workspace)
    return workspace


@pytest.mark.parametrize(
    ("args", "shown"),
    [
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
    ],
)  # fmt: skip
async def test_what_is_listed(run: Run, tree: Path, args: dict[str, object], shown: str) -> None:
    assert (await run("list_files", **args)).replace("\n", " ") == shown


@pytest.mark.parametrize(
    ("args", "shown"),
    [
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
    ],
)
async def test_what_is_found(run: Run, tree: Path, args: dict[str, object], shown: str) -> None:
    lines = (await run("search_files", **{"regex": "KEY", **args})).splitlines()
    if args.get("context"):
        assert [re.sub(r"([:-])[a-z KEY]+$", r"\1", line) for line in lines] == shown.split(" ")
        assert lines[1].endswith("two KEY")
    else:
        assert (
            " ".join(line.removesuffix(":two KEY").removesuffix(":five KEY") for line in lines)
            == shown
        )


async def test_wrong_use(run: Run, tree: Path, snapshot: Snapshot) -> None:
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


NAMES = st.sampled_from(["a", "b", "ab", "a.py", "b.py", ".x"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
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
    root = tmp_path_factory.mktemp("tree")
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
