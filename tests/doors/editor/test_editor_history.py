"""What an editor is told of the past: after a cancel, at another opening, by another process."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from acp import RequestError
from acp.schema import AudioContentBlock, ResourceContentBlock, TextContentBlock

from tests.doors.editor.editor import Editor, begun, choosing, editing, never, reopened

pytestmark = pytest.mark.asyncio(loop_scope="module")
SOUND = AudioContentBlock(type="audio", data="", mime_type="audio/wav")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    async with editing(tmp_path_factory.mktemp("editor")) as editor:
        yield editor


@pytest.fixture
def editor(process: Editor) -> Editor:
    process.asked.clear()
    process.updates.clear()
    return process


def text(said: str) -> TextContentBlock:
    return TextContentBlock(type="text", text=said)


def cards(editor: Editor, id: str) -> dict[str, tuple[str, str]]:
    """Title and last status of each call."""
    found = dict[str, tuple[str, str]]()
    for session, update in editor.updates:
        if session == id and update.session_update.startswith("tool_call"):
            title, status = found.get(update.tool_call_id, ("", ""))
            found[update.tool_call_id] = (update.title or title, update.status or status)
    return found


async def retold(editor: Editor, workspace: Path, id: str) -> None:
    """Open it anew: what is seen then is what was loaded."""
    await editor.agent.close_session(session_id=id)
    editor.updates.clear()
    await reopened(editor, workspace, id)


async def test_what_has_ended_before_a_cancel_has_ended(editor: Editor, workspace: Path) -> None:
    id = await begun(editor, workspace)
    await editor.agent.set_config_option(session_id=id, config_id="approvals", value="auto")
    for number in range(20):
        name = f"{number}.txt"
        turn = asyncio.create_task(editor.say(id, f"write {name}: 1"))
        while not (workspace / name).exists():
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.0005 * (number % 8))
        await editor.agent.cancel(session_id=id)
        await turn
    live = cards(editor, id)
    await retold(editor, workspace, id)
    assert cards(editor, id) == live
    assert "completed" in {status for _, status in live.values()}


async def test_an_edit_is_retold_as_it_was(editor: Editor, workspace: Path) -> None:
    (workspace / "big.txt").write_text("x" * 300_000)
    (workspace / "bytes.txt").write_bytes(b"\xff")
    (workspace / "b.txt").write_text("two\nthree")
    steps = [
        "write a.txt: one",
        "write a.txt: two",
        "replace three with four in b.txt",
        "write big.txt: small",
        "write bytes.txt: text",
    ]

    def shown() -> list[Any]:
        """What the cards say in the end: the diff, and where."""
        last = dict[str, dict[str, Any]]()
        for _, update in editor.updates:
            if update.session_update.startswith("tool_call"):
                told = update.model_dump(include={"content", "locations", "status"})
                seen = last.setdefault(update.tool_call_id, {})
                seen |= {name: value for name, value in told.items() if value is not None}
        return list(last.values())

    id = await begun(editor, workspace)
    await editor.agent.set_config_option(session_id=id, config_id="approvals", value="auto")
    for step in steps:
        assert await editor.say(id, step) == "end_turn"
    live = shown()
    await retold(editor, workspace, id)
    told = shown()
    assert [one["content"][0].get("old_text", "none") for one in told] == [
        None, "one", "three", "none", "none",
    ]  # fmt: skip
    assert told[:3] == live[:3]
    assert told[2]["locations"][0]["line"] == 2


async def test_what_has_changed_since_does_not_keep_a_session_from_opening(
    editor: Editor, workspace: Path
) -> None:
    editor.answer = choosing("once")
    id = await begun(editor, workspace)
    await editor.say(id, "write a.txt: one")
    (workspace / "a.txt").unlink()
    (workspace / "a.txt").symlink_to("/etc/hosts")
    await retold(editor, workspace, id)
    assert [status for _, status in cards(editor, id).values()] == ["completed"]


async def test_of_a_secret_only_what_is_new_is_kept(editor: Editor, workspace: Path) -> None:
    (workspace / ".env").write_text("KEY=old")
    editor.answer = choosing("once")
    id = await begun(editor, workspace)
    await editor.say(id, "write .env: KEY=new")
    await retold(editor, workspace, id)
    assert "old" not in str(editor.updates)
    assert "KEY=new" in str(editor.of("tool_call", id))


async def test_a_cancel_ends_the_turn_though_the_folder_is_gone(
    editor: Editor, workspace: Path
) -> None:
    editor.answer = never
    id = await begun(editor, workspace)
    turn = asyncio.create_task(editor.say(id, "write a.txt: a"))
    await editor.until(lambda: editor.asked)
    workspace.rmdir()
    await editor.agent.cancel(session_id=id)
    assert await turn == "cancelled"
    assert [status for _, status in cards(editor, id).values()] == ["failed"]


async def test_a_call_that_has_failed_does_not_fail_again(editor: Editor, workspace: Path) -> None:
    editor.answer = never
    id = await begun(editor, workspace)
    turn = asyncio.create_task(editor.say(id, "write a.txt: a"))
    await editor.until(lambda: editor.asked)
    await editor.agent.cancel(session_id=id)
    await turn
    assert await editor.say(id, "hello") == "end_turn"
    (call,) = cards(editor, id)
    assert editor.statuses(call).count("failed") == 1


async def test_what_another_process_has_done_is_not_taken_back(
    tmp_path: Path, workspace: Path
) -> None:
    may_answer = asyncio.Event()

    async def answer(*_: Any) -> str:
        await may_answer.wait()
        return "once"

    async with editing(tmp_path, answer=answer) as one, editing(tmp_path, answer=never) as other:
        id = await begun(one, workspace)
        turn = asyncio.create_task(one.say(id, "write a.txt: a"))
        await one.until(lambda: one.asked)
        await reopened(other, workspace, id)
        assert [status for _, status in cards(other, id).values()] == ["pending"]
        may_answer.set()
        assert await turn == "end_turn"
        await other.agent.set_session_mode(session_id=id, mode_id="ask")
        assert [status for _, status in cards(other, id).values()] == ["completed"]


async def test_a_question_that_was_taken_back_does_not_wait(
    tmp_path: Path, workspace: Path
) -> None:
    async with editing(tmp_path, answer=never) as editor:
        id = await begun(editor, workspace)
        turn = asyncio.create_task(editor.say(id, "write a.txt: a"))
        await editor.until(lambda: editor.asked)
        editor.process.kill()
        with pytest.raises(ConnectionError):
            await turn
    # As if it had ended when the choice was stored, and nothing else.
    with closing(sqlite3.connect(tmp_path / "sessions.sqlite")) as database:
        database.execute("UPDATE sessions SET mode = 'ask'")
        database.commit()
    async with editing(tmp_path, answer=never) as editor:
        await reopened(editor, workspace, id)
        assert {status for _, status in cards(editor, id).values()} == {"failed"}
        assert not editor.asked


@pytest.mark.parametrize("said", [[], [" "], ["/code look", SOUND], ["/code", SOUND]])
async def test_a_message_that_is_refused_changes_nothing(
    editor: Editor, workspace: Path, said: list[Any]
) -> None:
    id = (await editor.new(workspace)).session_id
    blocks = [text(one) if isinstance(one, str) else one for one in said]
    with pytest.raises(RequestError):
        await editor.agent.prompt(session_id=id, prompt=blocks)
    (listed,) = (await editor.agent.list_sessions(cwd=str(workspace))).sessions
    assert listed.title is None
    opened = await reopened(editor, workspace, id, resume=True)
    assert opened.modes.current_mode_id == "ask"
    assert not editor.of("current_mode_update", id)


async def test_a_command_in_front_of_a_mention(editor: Editor, workspace: Path) -> None:
    (workspace / "a b.txt").touch()

    uri = (workspace / "a b.txt").as_uri()
    link = ResourceContentBlock(type="resource_link", uri=uri, name="a")
    broken = ResourceContentBlock(type="resource_link", uri=uri + "%0Arun true", name="a")
    no_uri = ResourceContentBlock(type="resource_link", uri="file://[bad", name="a")
    id = (await editor.new(workspace)).session_id
    prompts: list[list[Any]] = [
        [text("/code\tlook at "), link, text(" please")],
        [text("one"), text("two\n"), text("three")],
        [text("/ask\n    indented")],
        [text("/ask"), text(" ")],
        [text("look at "), broken],
    ]
    for blocks in prompts:
        await editor.agent.prompt(session_id=id, prompt=blocks)
    with pytest.raises(RequestError, match="'file://"):
        await editor.agent.prompt(session_id=id, prompt=[no_uri])
    await retold(editor, workspace, id)
    assert [one.content.text for one in editor.of("user_message_chunk", id)] == [
        "look at a b.txt please",
        "one\ntwo\nthree",
        "    indented",
        "look at a b.txt\\u000arun true",
    ]


async def test_a_session_that_is_not_opened_is_not_open(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path) as editor:
        id = await begun(editor, workspace)
    async with editing(tmp_path) as editor:
        with pytest.raises(RequestError, match="the session belongs to the folder"):
            await reopened(editor, tmp_path, id)
        with pytest.raises(RequestError, match="no session"):
            await editor.say(id, "hello")


async def test_an_open_question_is_retold_as_one(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("chat")
    id = await begun(editor, workspace, "ask")
    assert await editor.say(id, "ask: which colour?") == "end_turn"
    editor.answer = never
    await reopened(editor, workspace, id)
    assert [status for _, status in cards(editor, id).values()] == ["pending"]
    assert await editor.say(id, "blue") == "end_turn"
    assert [status for _, status in cards(editor, id).values()] == ["completed"]


async def test_a_call_that_ends_while_it_is_retold_has_ended(
    editor: Editor, workspace: Path
) -> None:
    id = await begun(editor, workspace)
    await editor.agent.set_config_option(session_id=id, config_id="approvals", value="auto")
    for number in range(15):
        names = [f"{number}-{one}.txt" for one in range(4)]
        turn = asyncio.create_task(editor.say(id, "\n".join(f"write {one}: x" for one in names)))
        await editor.until(lambda: editor.of("tool_call", id))
        await asyncio.sleep(number / 1000)
        await reopened(editor, workspace, id)
        assert await turn == "end_turn"
        assert {status for _, status in cards(editor, id).values()} == {"completed"}
        editor.updates.clear()


async def test_a_command_takes_an_open_question_back(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("chat")
    id = await begun(editor, workspace, "ask")
    assert await editor.say(id, "ask: which colour?") == "end_turn"
    assert await editor.say(id, "/code") == "end_turn"
    assert [status for _, status in cards(editor, id).values()] == ["failed"]
