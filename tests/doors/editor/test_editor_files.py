"""Files through the editor, which may have them open and not saved."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from acp import RequestError
from acp.schema import (
    FileEditToolCallContent,
    FileSystemCapabilities,
    ResourceContentBlock,
    TextContentBlock,
    ToolCallUpdate,
)

from tests.doors.editor.editor import Editor, choosing, editing

pytestmark = pytest.mark.asyncio(loop_scope="module")
BOTH = FileSystemCapabilities(read_text_file=True, write_text_file=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    async with editing(tmp_path_factory.mktemp("editor"), files=BOTH) as editor:
        yield editor


@pytest.fixture
def editor(process: Editor) -> Editor:
    process.answer = choosing("once")
    process.before_reading = None
    for seen in (process.asked, process.updates, process.reads, process.writes, process.buffers):
        seen.clear()
    return process


async def said(editor: Editor, workspace: Path, text: str, mode: str = "code") -> str:
    id = (await editor.new(workspace)).session_id
    await editor.agent.set_session_mode(session_id=id, mode_id=mode)
    assert await editor.say(id, text) == "end_turn"
    return editor.said(id)


async def test_what_is_not_saved_counts(editor: Editor, workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text("on disk")
    editor.buffers[str(file)] = "in the editor"
    assert "in the editor" in await said(editor, workspace, "read a.txt")
    await said(editor, workspace, "replace editor with window in a.txt")
    assert file.read_text() == "in the window"
    assert editor.writes == [(str(file), "in the window")]
    diffs = [one.content[0] for one in editor.of("tool_call_update") if one.status == "completed"]
    assert (diffs[-1].old_text, diffs[-1].new_text) == ("editor", "window")


async def test_the_old_text_of_a_diff_is_the_editors(editor: Editor, workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text("on disk")
    editor.buffers[str(file)] = "in the editor"
    await said(editor, workspace, "write a.txt: new")
    (_, call, _) = editor.asked[0]
    assert call.content is not None
    assert call.content[0].old_text == "in the editor"


async def test_a_new_file_is_written_by_the_editor(editor: Editor, workspace: Path) -> None:
    await said(editor, workspace, "write src/new/a.txt: a")
    assert editor.writes == [(str(workspace / "src/new/a.txt"), "a")]
    assert (workspace / "src/new/a.txt").read_text() == "a"


async def test_how_lines_end_stays(editor: Editor, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    await said(editor, workspace, r"write a.txt: three\nfour\n")
    assert editor.writes == [(str(workspace / "a.txt"), "three\r\nfour\r\n")]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../out.txt", "link", "folder/out.txt", ".git/config", "~/x"]
)
async def test_nothing_outside_is_asked_of_the_editor(
    editor: Editor, workspace: Path, path: str
) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "out.txt").write_text("secret")
    (workspace.parent / "out.txt").write_text("secret")
    (workspace / "link").symlink_to(outside / "out.txt")
    (workspace / "folder").symlink_to(outside)
    (workspace / ".git").mkdir()
    (workspace / ".git" / "config").write_text("[core]")
    answer = await said(editor, workspace, f"write {path}: gone\nreplace s with t in {path}")
    assert answer.count("refused") == 2 or path == "~/x"
    assert (outside / "out.txt").read_text() == "secret"
    assert all(Path(p).is_relative_to(workspace) for p, _ in editor.writes)
    if path != "~/x":
        assert not editor.writes
        answer = await said(editor, workspace, f"read {path}")
        assert not [read for read in editor.reads if not read.endswith(".git/config")]
        assert "secret" not in answer


async def test_a_mode_that_may_not_edit_a_file_does_not_through_the_editor(
    editor: Editor, workspace: Path
) -> None:
    editor.answer = choosing("reject")
    await said(editor, workspace, "write a.py: gone", "architect")
    await said(editor, workspace, "write a.py: gone", "ask")
    assert not editor.writes
    assert all(call.kind == "switch_mode" for _, call, _ in editor.asked)


async def test_a_secret_asks_before_the_editor_is_asked(editor: Editor, workspace: Path) -> None:
    (workspace / ".env").write_text("KEY=secret")
    editor.answer = choosing("reject")
    await said(editor, workspace, "read .env")
    assert len(editor.asked) == 1
    assert not editor.reads


async def test_what_is_no_plain_text_is_read_and_written_on_disk(
    editor: Editor, workspace: Path
) -> None:
    file = workspace / "a.txt"
    file.write_bytes("\ufeffone".encode("utf-16-le"))
    assert "one" in await said(editor, workspace, "read a.txt\nreplace one with two in a.txt")
    assert file.read_bytes() == "\ufefftwo".encode("utf-16-le")
    (workspace / "b.bin").write_bytes(b"\0\1")
    assert "is binary" in await said(editor, workspace, "read b.bin")
    assert not editor.reads + editor.writes


def old_text(call: ToolCallUpdate) -> str | None:
    assert call.content is not None
    diff = call.content[0]
    assert isinstance(diff, FileEditToolCallContent)
    return diff.old_text


async def test_what_is_typed_meanwhile_is_not_replaced(editor: Editor, workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text("on disk")
    editor.buffers[str(file)] = "one"

    async def answer(*_: Any) -> str:
        if len(editor.asked) == 1:
            editor.buffers[str(file)] = "two"
        return "once"

    editor.answer = answer
    await said(editor, workspace, "write a.txt: mine")
    # The first answer was about another text; the model calls again.
    assert [old_text(call) for _, call, _ in editor.asked] == ["one", "two"]
    statuses = [editor.statuses(call.tool_call_id)[-1] for _, call, _ in editor.asked]
    assert statuses == ["failed", "completed"]
    assert editor.writes == [(str(file), "mine")]


async def test_a_workspace_by_another_name(editor: Editor, workspace: Path) -> None:
    (workspace / "a.txt").write_text("on disk")
    named = workspace.parent / "link"
    named.symlink_to(workspace)
    editor.buffers[str(named / "a.txt")] = "in the editor"
    id = (await editor.new(named)).session_id
    await editor.agent.set_session_mode(session_id=id, mode_id="code")
    link = ResourceContentBlock(type="resource_link", uri=(named / "a.txt").as_uri(), name="a")
    await editor.agent.prompt(
        session_id=id, prompt=[TextContentBlock(type="text", text="read "), link]
    )
    assert "in the editor" in editor.said(id)
    assert await editor.say(id, "write a.txt: mine") == "end_turn"
    assert editor.writes == [(str(named / "a.txt"), "mine")]
    ((_, asked, _),) = editor.asked
    assert asked.locations is not None
    assert asked.locations[0].path == str(named / "a.txt")
    assert old_text(asked) == "in the editor"
    (listed,) = (await editor.agent.list_sessions(cwd=str(named))).sessions
    assert (listed.session_id, listed.cwd) == (id, str(named))
    # Where the link leads elsewhere by now, the editor gets the name that does not.
    elsewhere = workspace.parent / "elsewhere"
    elsewhere.mkdir()
    named.unlink()
    named.symlink_to(elsewhere)
    assert await editor.say(id, "write a.txt: again") == "end_turn"
    assert editor.writes[-1] == (str(workspace / "a.txt"), "again")


async def test_an_editor_that_refuses_is_not_gone_around(editor: Editor, workspace: Path) -> None:
    (workspace / "a.txt").write_text("private")

    async def refuse() -> None:
        raise RequestError(-32603, "this file is private")

    editor.before_reading = refuse
    answer = await said(editor, workspace, "read a.txt\nreplace private with public in a.txt")
    assert answer.count("this file is private") == 2
    assert (workspace / "a.txt").read_text() == "private"


# The last reading is that of the tool itself; before it there are those for the question.
@pytest.mark.parametrize(("text", "readings"), [("read d/a.txt", 1), ("write d/a.txt: PWNED", 5)])
async def test_a_link_that_comes_meanwhile_is_told_and_brings_nothing_in(
    editor: Editor, workspace: Path, text: str, readings: int
) -> None:
    """What the editor has written by then is written: it has a path, and no descriptor."""
    folder, outside = workspace / "d", workspace.parent / "outside"
    for one in (folder, outside):
        one.mkdir()
    (folder / "a.txt").write_text("inside")
    (outside / "a.txt").write_text("secret")

    async def swap() -> None:
        if len(editor.reads) == readings:
            folder.rename(workspace / "e")
            folder.symlink_to(outside)

    editor.before_reading = swap
    answer = await said(editor, workspace, text)
    assert "was moved while the editor had it" in answer
    assert "secret" not in answer
    assert (outside / "a.txt").read_text() == "secret"


async def test_what_the_editor_does_not_show_it_does_not_replace(
    editor: Editor, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("precious")

    async def refuse() -> None:
        raise RequestError(-32603, "this file is private")

    editor.before_reading = refuse
    answer = await said(editor, workspace, "write a.txt: gone")
    (_, call, _) = editor.asked[0]
    assert [one.type for one in call.content or []] == ["content", "content", "content"]
    assert "cannot be shown" in str(call.content)
    assert "this file is private" in answer
    assert (workspace / "a.txt").read_text() == "precious"


async def test_a_diff_hides_nothing(editor: Editor, workspace: Path) -> None:
    (workspace / "a.txt").write_text("a\u202eb\n")
    await said(editor, workspace, "write a.txt: c\u2066d")
    (_, call, _) = editor.asked[0]
    diff, note, _ = call.content or []
    assert isinstance(diff, FileEditToolCallContent)
    assert (diff.old_text, diff.new_text) == ("a\\u202eb\n", r"c\u2066d")
    assert "written out" in str(note)
    assert (workspace / "a.txt").read_text() == "c\u2066d"


async def test_a_mode_set_while_a_call_is_prepared_stops_it(
    editor: Editor, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("precious")
    id = (await editor.new(workspace)).session_id
    for option, value in (("mode", "code"), ("approvals", "auto")):
        await editor.agent.set_config_option(session_id=id, config_id=option, value=value)

    async def set_mode() -> None:
        editor.before_reading = None
        await editor.agent.set_session_mode(session_id=id, mode_id="ask")

    editor.before_reading = set_mode
    assert await editor.say(id, "write a.txt: gone") == "end_turn"
    assert (workspace / "a.txt").read_text() == "precious"
    assert "Ask mode has no 'edit' tools" in editor.said(id)


async def test_reads_that_are_not_answered_keep_no_other_session(
    editor: Editor, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("text")

    async def wait() -> None:
        await asyncio.sleep(1000)

    editor.before_reading = wait
    id = (await editor.new(workspace)).session_id
    turn = asyncio.create_task(editor.say(id, " & ".join(["read a.txt"] * 200)))
    await editor.until(lambda: len(editor.reads) == 8)
    editor.before_reading = None
    async with asyncio.timeout(10):
        assert "text" in await said(editor, workspace, "read a.txt")
    await editor.agent.cancel(session_id=id)
    assert await turn == "cancelled"


async def test_an_editor_that_does_not_answer_is_not_waited_for(
    editor: Editor, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("text")
    is_asked = asyncio.Event()

    async def wait() -> None:
        is_asked.set()
        await asyncio.sleep(1000)

    editor.before_reading = wait
    id = (await editor.new(workspace)).session_id
    turn = asyncio.create_task(editor.say(id, "read a.txt"))
    await is_asked.wait()
    await editor.agent.cancel(session_id=id)
    async with asyncio.timeout(10):
        assert await turn == "cancelled"
    editor.before_reading = None
    assert "text" in await said(editor, workspace, "read a.txt")


@pytest.mark.parametrize("offered", ["read_text_file", "write_text_file"])
async def test_an_editor_that_offers_half(tmp_path: Path, workspace: Path, offered: str) -> None:
    files = FileSystemCapabilities(**{offered: True})
    file = workspace / "a.txt"
    file.write_text("on disk")
    async with editing(tmp_path, answer=choosing("once"), files=files) as editor:
        editor.buffers[str(file)] = "in the editor"
        answer = await said(
            editor,
            workspace,
            "read a.txt\nreplace disk with file in a.txt\nreplace editor with x in a.txt",
        )
        if offered == "read_text_file":
            assert "in the editor" in answer
            assert "ask the user to save" in answer
            assert file.read_text() == "on disk"
        else:
            assert editor.writes == [(str(file), "on file")]
            assert not editor.reads
