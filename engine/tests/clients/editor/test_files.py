"""Files through the editor, which may have them open with unsaved changes."""

import asyncio
from pathlib import Path
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from acp import Client, RequestError, schema

from modeshift.editor import transport
from modeshift.editor.files import EditorFiles, Folder
from modeshift.modes.errors import ToolFailedError
from tests.clients.editor.editor import FILES, Editor, Talk, choosing, editing

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def editor(process_for_all: Editor) -> Editor:
    """One that reads and writes files, and whose user allows every call."""
    process_for_all.reset(choosing("once"))
    return process_for_all


async def say(editor: Editor, workspace: Path, text: str, mode: str = "code") -> Talk:
    talk = await editor.talk(workspace, mode)
    assert await talk.say(text) == "end_turn"
    return talk


def old_texts(talk: Talk) -> list[str | None]:
    """The old texts of the diffs that the questions show."""
    return [cast("Any", call.content)[0].old_text for call in talk.asked]


async def test_unsaved_changes_count(editor: Editor, workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text("on disk")
    editor.buffers[str(file)] = "in the editor"
    talk = await say(
        editor,
        workspace,
        "read a.txt\nreplace editor with window in a.txt\nwrite src/new/b.txt: b",
    )
    assert "in the editor" in talk.said
    assert file.read_text() == "in the window"
    new = workspace / "src/new/b.txt"
    assert editor.writes == [(str(file), "in the window"), (str(new), "b")]
    assert [(content[0].old_text, content[0].new_text) for content in talk.results[1:]] == [
        ("editor", "window"),
        (None, "b"),
    ]


async def test_what_is_typed_meanwhile_is_not_replaced(editor: Editor, workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text("on disk")
    editor.buffers[str(file)] = "one"

    async def answer(*_: Any) -> str:
        if len(editor.asked) == 1:
            editor.buffers[str(file)] = "two"
        return "once"

    editor.answer = answer
    talk = await say(editor, workspace, "write a.txt: mine")
    # The first answer was about another text; the model calls again.
    assert old_texts(talk) == ["one", "two"]
    assert [status for _, status in talk.ends] == ["failed", "completed"]
    assert editor.writes == [(str(file), "mine")]


async def test_line_ends_stay_and_other_encodings_are_left_to_the_disk(
    editor: Editor, workspace: Path
) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    await say(editor, workspace, r"write a.txt: three\nfour\n")
    assert editor.writes == [(str(workspace / "a.txt"), "three\r\nfour\r\n")]
    editor.reset(choosing("once"))
    (workspace / "a.txt").write_bytes("\ufeffone".encode("utf-16-le"))
    (workspace / "b.bin").write_bytes(b"\0\1")
    text = "read a.txt\nreplace one with two in a.txt\nread b.bin"
    assert "is binary" in (await say(editor, workspace, text)).said
    assert (workspace / "a.txt").read_bytes() == "\ufefftwo".encode("utf-16-le")
    assert not editor.reads + editor.writes


async def test_nothing_outside_is_asked_of_the_editor(editor: Editor, workspace: Path) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    secrets = [outside / "out.txt", workspace.parent / "out.txt"]
    for secret in secrets:
        secret.write_text("secret")
    (workspace / "link").symlink_to(secrets[0])
    (workspace / "folder").symlink_to(outside)
    (workspace / ".git").mkdir()
    (workspace / ".git/config").write_text("[core]")
    paths = ["/etc/passwd", "../out.txt", "link", "folder/out.txt", ".git/config"]
    for path in paths:
        talk = await say(editor, workspace, f"write {path}: gone\nreplace s with t in {path}")
        assert talk.said.count("refused") == 2, path
        assert "secret" not in (await say(editor, workspace, f"read {path}")).said
    await say(editor, workspace, "write ~/x: here")
    assert editor.writes == [(str(workspace / "~/x"), "here")]
    assert {read.removeprefix(str(workspace)) for read in editor.reads} <= {
        "/.git/config",
        "/~/x",
    }
    assert [secret.read_text() for secret in secrets] == ["secret", "secret"]


async def test_a_workspace_by_another_name(editor: Editor, workspace: Path) -> None:
    (workspace / "a.txt").write_text("on disk")
    named = workspace.parent / "link"
    named.symlink_to(workspace)
    file = named / "a.txt"
    editor.buffers[str(file)] = "in the editor"
    talk = await editor.talk(named, "code")
    link = schema.ResourceContentBlock(type="resource_link", uri=file.as_uri(), name="a")
    await talk.say("read ", link)
    assert "in the editor" in talk.said
    assert await talk.say("write a.txt: mine") == "end_turn"
    assert editor.writes == [(str(file), "mine")]
    assert (talk.asked[0].locations or [])[0].path == str(file)
    assert old_texts(talk) == ["in the editor"]
    (listed,) = await editor.list(cwd=str(named))
    assert (listed.session_id, listed.cwd) == (talk.id, str(named))
    # Once the link leads elsewhere, the editor gets the name that does not.
    elsewhere = workspace.parent / "elsewhere"
    elsewhere.mkdir()
    named.unlink()
    named.symlink_to(elsewhere)
    assert await talk.say("write a.txt: again") == "end_turn"
    assert editor.writes[-1] == (str(workspace / "a.txt"), "again")


async def test_what_the_editor_refuses_is_not_done_on_disk(editor: Editor, workspace: Path) -> None:
    (workspace / "a.txt").write_text("private")

    async def refuse() -> None:
        raise RequestError(-32603, "Internal error", {"details": "this file is private"})

    editor.before_reading = refuse
    text = "read a.txt\nreplace private with public in a.txt\nwrite a.txt: gone"
    talk = await say(editor, workspace, text)
    assert talk.said.count("this file is private") == 3
    assert "cannot be shown" in str(talk.asked[-1].content)
    assert (workspace / "a.txt").read_text() == "private"


async def test_a_diff_hides_nothing(editor: Editor, workspace: Path) -> None:
    (workspace / "a.txt").write_text("a\u202eb\n")
    talk = await say(editor, workspace, "write a.txt: c\u2066d")
    diff, words = cast("Any", talk.asked[0].content)
    assert (diff.old_text, diff.new_text) == ("a\\u202eb\n", r"c\u2066d")
    assert "invisible characters, here escaped" in str(words)
    assert (workspace / "a.txt").read_text() == "c\u2066d"


async def test_reads_without_an_answer_hold_up_no_other_session(code: Talk, editor: Editor) -> None:
    (code.cwd / "a.txt").write_text("text")

    async def wait() -> None:
        await asyncio.Event().wait()

    code.editor.before_reading = wait
    many = " & ".join(["read a.txt"] * 40)
    turn = await code.begin(many, lambda: len(code.editor.reads) == 8)
    code.editor.before_reading = None
    assert "text" in (await say(editor, code.cwd, "read a.txt")).said
    await code.cancel()
    assert await turn == "cancelled"


async def test_the_end_of_a_turn_ends_the_wait_for_an_answer(workspace: Path) -> None:
    asked = asyncio.Event()

    class Silent:
        async def read_text_file(self, **_: Any) -> None:
            asked.set()
            await asyncio.Event().wait()

    client = cast("Client", Silent())
    silent = transport.Editor(client, FILES, withdraw=AsyncMock())
    files = EditorFiles(silent, "1", Folder(workspace, workspace))
    reading = asyncio.create_task(asyncio.to_thread(files.read, workspace / "a.txt"))
    await asked.wait()
    await asyncio.sleep(0.2)  # by then the thread waits for the answer
    files.close()
    with pytest.raises(ToolFailedError, match="the turn has ended"):
        await reading
    with pytest.raises(ToolFailedError, match="the turn has ended"):
        await asyncio.to_thread(files.read, workspace / "a.txt")


@pytest.mark.parametrize("offered", ["read_text_file", "write_text_file"])
async def test_an_editor_that_offers_half(tmp_path: Path, workspace: Path, offered: str) -> None:
    half = schema.ClientCapabilities(fs=schema.FileSystemCapabilities(**{offered: True}))
    file = workspace / "a.txt"
    file.write_text("on disk")
    async with editing(tmp_path, answer=choosing("once"), offered=half) as editor:
        editor.buffers[str(file)] = "in the editor"
        text = "read a.txt\nreplace disk with file in a.txt\nreplace editor with x in a.txt"
        talk = await say(editor, workspace, text)
        if offered == "read_text_file":
            assert "in the editor" in talk.said
            assert "ask the user to save" in talk.said
            assert file.read_text() == "on disk"
        else:
            assert editor.writes == [(str(file), "on file")]
            assert not editor.reads
