"""``write_file``, and ``edit_file``: edits right, wrong, or none, and against a reference."""

import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modeshift.modes.errors import InvalidCallError, ToolFailedError
from modeshift.testing.plugin import Snapshot
from modeshift.tools.workspace.text import Replacement, find_places, replace_pieces
from tests.tables import rows
from tests.tools.conftest import Run, run_wrongly

TEXT = "def f(a):\n    return a\n\ndef g(a):\n    return a\n"


def one(old: str, new: str, **more: Any) -> dict[str, Any]:
    return {"old": old, "new": new, **more}


@rows(
    "before edits after says",
    (b"one two one", [one("two", "2")], b"one 2 one", "1 place."),
    (b"one two one", [one("one", "1", replace_all=True)], b"1 two 1", "2 places."),
    (b"one two three", [one("two", "2"), one("one", "two")], b"two 2 three", "2 places."),
    (b"ab", [one("a", "b"), one("b", "a")], b"ba", "2 places."),
    (b"a b a", [one("a", "b", replace_all=True), one("b", "")], b"b  b", "3 places."),
    (b"aaaa", [one("aa", "b", replace_all=True)], b"bb", "2 places."),
    # The file's line ends, encoding and odd bytes stay.
    (b"one\r\ntwo\r\n", [one("two", "2")], b"one\r\n2\r\n", "1 place."),
    (b"1\r\n2\r\n3\r\n", [one("1\n2", "a\nb"), one("3", "c")], b"a\r\nb\r\nc\r\n", "2 places."),
    (b"one\r\ntwo\r\n", [one("two", "2\r\n3\n4")], b"one\r\n2\r\n3\r\n4\r\n", "1 place."),
    (b"caf\xe9 one", [one("one", "two")], b"caf\xe9 two", "1 place."),
    ("\u00fc".encode("utf-16"), [one("\u00fc", "u")], "u".encode("utf-16"), "1 place."),
)
async def test_right_use(
    run: Run, workspace: Path, before: bytes, edits: list[Any], after: bytes, says: str
) -> None:
    (workspace / "a").write_bytes(before)
    assert says in await run("edit_file", path="a", edits=edits)
    assert (workspace / "a").read_bytes() == after


MANY = "x\n" * 20


async def test_wrong_use(run: Run, workspace: Path, snapshot: Snapshot) -> None:
    rows: list[tuple[str | bytes, Any]] = [
        (TEXT, [one("return a", "pass")]),
        (MANY, [one("x", "y")]),
        ("aaa", [one("aa", "b")]),
        ("one", [one("two", "2")]),
        ("one", [one("", "2")]),
        ("one", [one("one", "one")]),
        (TEXT, [one("def f", "def h"), one("def i", "x")]),
        ("a b", [one("a b", "c"), one("b", "d")]),
        ("1\n2\n3", [one("2\n3", "c"), one("1\n2", "d")]),
        ("a b", [one("a", "c"), one("a", "c")]),
        ("a", [one("a", "b"), one("b", "c")]),
        (b"caf\xe9 one", [one("one", "\u00fc")]),
        ("x" * 200_000, [one("x", "y", replace_all=True)]),
        ("a", [one("z" * 9999, "y")]),
        ("one", []),
        ("one", [one("a", "b")] * 101),
        ("one", [{"old": "one"}]),
        ("one", [one("one", "2", all=True)]),
        ("one", '[{"old": "one", "new": "2"}]'),
    ]
    told: dict[str, str] = {}
    for before, edits in rows:
        data = before if isinstance(before, bytes) else before.encode()
        (workspace / "a").write_bytes(data)
        refusals = await run_wrongly(run, ("edit_file", {"path": "a", "edits": edits}))
        told |= {f"{before[:50]!r}: {call}": text for call, text in refusals.items()}
        assert (workspace / "a").read_bytes() == data, "nothing is half done"
    snapshot("edit-wrongly.txt", told)


@rows(
    "old nearest",
    ("def f(b):", "1\tdef f(a):"),
    ("def f(a):\n\treturn a", "1\tdef f(a):\n2\t    return a"),
    ("}\ndef g(a):\n    return b\n", "3\t\n4\tdef g(a):\n5\t    return a"),
    ("1\tdef f(a):", "1\tdef f(a):"),
    ("nothing like it at all", ""),
    ("\n\n\n\n", ""),
)
async def test_a_miss_shows_what_is_near(run: Run, workspace: Path, old: str, nearest: str) -> None:
    for text in (TEXT, f"{TEXT}\u00fc\n"):  # words of ASCII are found another way
        (workspace / "a").write_text(text)
        with pytest.raises(ToolFailedError) as failed:
            await run("edit_file", path="a", edits=[one(old, "x")])
        assert failed.value.data == nearest
        assert str(failed.value).endswith("nearest lines:") is bool(nearest)


@pytest.mark.parametrize(
    "text",
    ["ab " * 3_000_000, "ab\n" * 3_000_000, f"{'ab ' * 99}\n" * 30_000, f"{'a' * 200}\n" * 40_000],
)
def test_a_miss_in_a_large_file_is_quick(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ToolFailedError, match="is not in a") as failed:
        find_places("a", text, [Replacement("ab a" + "ab " * 2000 + "a" * 2000 + "?", "x")])
    assert time.process_time() - start < 5
    assert len(failed.value.data) < 5000


async def test_an_edit_that_would_grow_without_end(run: Run, workspace: Path) -> None:
    (workspace / "a").write_text("x" * 5_000_000)
    start = time.process_time()
    with pytest.raises(ToolFailedError, match="larger than 10000000 bytes"):
        await run("edit_file", path="a", edits=[one("x", "y" * 3000, replace_all=True)])
    assert time.process_time() - start < 10
    assert (workspace / "a").stat().st_size == 5_000_000


def refer(text: str, edits: list[Replacement]) -> str | None:
    """The edits, one character after the other; None where one cannot be made."""
    owner: dict[int, int] = {}
    starts: dict[int, Replacement] = {}
    for number, edit in enumerate(edits):
        if not edit.old or edit.old == edit.new:
            return None
        at = [i for i in range(len(text)) if text.startswith(edit.old, i)]
        if not at or (len(at) > 1 and not edit.replace_all):
            return None
        free = 0
        for start in at:
            if start < free:
                continue
            free = start + len(edit.old)
            for character in range(start, free):
                if owner.setdefault(character, number) != number:
                    return None
            starts[start] = edit
    pieces = (
        starts[i].new if i in starts else "" if i in owner else text[i] for i in range(len(text))
    )
    return "".join(pieces)


WORDS = st.text("ab\n", max_size=3)


@given(
    st.text("ab\n", max_size=12),
    st.lists(st.builds(Replacement, WORDS, WORDS, st.booleans()), min_size=1, max_size=4),
)
@settings(max_examples=300)
def test_edits_are_like_the_reference(text: str, edits: list[Replacement]) -> None:
    try:
        found: str | None = replace_pieces(text, find_places("a", text, edits))
    except ToolFailedError:
        found = None
    assert found == refer(text, edits)


async def test_write_file(run: Run, workspace: Path) -> None:
    assert "Created" in await run("write_file", path="a/b/c.sh", content="echo ü\n")
    file = workspace / "a" / "b" / "c.sh"
    assert file.read_bytes() == "echo ü\n".encode()
    file.chmod(0o755)
    assert "Replaced" in await run("write_file", path="a/b/c.sh", content="")
    assert stat.S_IMODE(file.stat().st_mode) == 0o755
    assert [each.name for each in file.parent.iterdir()] == ["c.sh"]
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
