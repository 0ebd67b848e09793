"""What real editors showed to be missing: Toad, Zed, and clients that answer by a policy."""

from pathlib import Path
from typing import Any

import pytest
from acp import RequestError

from tests.doors.editor.editor import FILES, Editor, choosing, editing
from tests.doors.editor.model import GPT
from tests.doors.editor.test_sessions import left_asking

pytestmark = pytest.mark.asyncio(loop_scope="session")


def get_raw(editor: Editor, method: str) -> list[dict[str, Any]]:
    return [one for one in editor.messages if one.get("method") == method]


async def test_a_new_file_has_no_old_text_and_says_so(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once")
    talk = await editor.talk(workspace, "code")
    await talk.say("write new.txt: a")
    (asked,) = get_raw(editor, "session/request_permission")[-1:]
    diff = asked["params"]["toolCall"]["content"][0]
    assert diff["type"] == "diff"
    assert diff["oldText"] is None


async def test_what_is_chosen_by_typing(editor: Editor, workspace: Path) -> None:
    talk = await editor.talk(workspace, "code")
    assert await talk.say("/approvals auto") == "end_turn"
    assert talk.shown == ("code", "auto")
    await talk.say("/approvals")
    assert "Approvals: auto (Auto-accept). Edits, and commands" in talk.said
    await talk.say("/approvals manual")
    await talk.say(f"/model {GPT}")
    await talk.say("/status")
    for said in ("Code mode.\n\nApprovals: manual (Ask first).", f"\n\nModel: {GPT}. There are:"):
        assert said in talk.said
    with pytest.raises(RequestError, match="approvals 'some' is unknown"):
        await talk.say("/approvals some")
    names = [one.name for one in talk.of("available_commands_update")[-1].available_commands]
    assert names[-4:] == ["compact", "approvals", "model", "status"]


async def test_a_question_says_which_approvals_are_in_force(
    editor: Editor, workspace: Path
) -> None:
    editor.answer = choosing("reject")
    talk = await editor.talk(workspace, "code")
    await talk.say("run ls | cat")
    words: Any = (talk.asked[0].content or [])[-1]
    assert words.content.text.endswith("  \nApprovals: Ask first.")
    assert "```" not in words.content.text
    assert max(map(len, words.content.text.splitlines())) <= 82


async def test_a_command_that_fails_is_shown_as_failed(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once")
    talk = await editor.talk(workspace, "code")
    await talk.say("run false\nrun true")
    assert talk.ends == [("false", "failed"), ("true", "completed")]
    assert [end for _, end in (await talk.replayed()).ends] == ["failed", "completed"]


async def test_a_command_that_was_killed_may_have_taken_effect(
    tmp_path: Path, workspace: Path
) -> None:
    async with editing(tmp_path, answer=choosing("once")) as editor:
        left = await editor.talk(workspace, "code")
        turn = await left.begin("run echo begun; sleep 60", left.has_printed)
        editor.process.kill()
        with pytest.raises(ConnectionError):
            await turn
    async with editing(tmp_path) as editor:
        talk = await editor.load(left)
        assert "may have taken effect" in str(talk.results)


async def test_a_question_that_is_taken_back_is_withdrawn(editor: Editor, workspace: Path) -> None:
    talk = await editor.talk(workspace, "code")
    turn = await talk.begin_asking("write a.txt: a")
    asked = get_raw(editor, "session/request_permission")[-1]
    await talk.choose("mode", "ask")
    await editor.until(lambda: len(talk.asked) == 2)
    (withdrawn,) = get_raw(editor, "$/cancel_request")[-1:]
    assert f"agent {withdrawn['params']['requestId']}" == asked["id"]
    await talk.cancel()
    assert await turn == "cancelled"


async def test_a_prompt_is_cancelled_by_its_request(editor: Editor, workspace: Path) -> None:
    talk = await editor.talk(workspace, "code")
    turn = await talk.begin_asking("write a.txt: a")
    id = int(get_raw(editor, "session/prompt")[-1]["id"].split()[1])
    connection: Any = editor.agent
    await connection._conn.send_notification("$/cancel_request", {"requestId": id})
    assert await turn == "cancelled"


async def test_what_an_editor_sets_by_itself_leaves_a_waiting_question_alone(
    tmp_path: Path, workspace: Path
) -> None:
    """Zed sets its defaults again in each session that it opens."""
    left = await left_asking(tmp_path, workspace)
    async with editing(tmp_path, answer=choosing("reject")) as editor:
        talk = await editor.load(left)
        await talk.choose("approvals", "auto")
        await talk.choose("mode", "ask")
        assert talk.shown == ("code", "manual")
        assert "type /approvals auto if you want it" in talk.said
        assert talk.ends == [("Write file a.txt", "pending")]
        await talk.say("hello")
        assert len(talk.asked) == 1
        assert not list(workspace.iterdir())
        await talk.choose("approvals", "auto")
        assert talk.shown == ("code", "auto")


async def test_the_editors_own_words_reach_the_model(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path, answer=choosing("once"), offered=FILES) as editor:

        async def refuse() -> None:
            raise RequestError(-32603, "Internal error", {"details": "the buffer is locked"})

        (workspace / "a.txt").write_text("a")
        editor.before_reading = refuse
        talk = await editor.talk(workspace)
        await talk.say("read a.txt")
        assert "the buffer is locked" in str(talk.results)


async def test_a_missing_key_shows_the_login_card(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    async with editing(tmp_path, {"MODEL": "openai:gpt-5.5"}) as editor:
        for opening in (editor.talk(workspace), editor.agent.authenticate(method_id="key")):
            with pytest.raises(RequestError, match="OPENAI_API_KEY") as refused:
                await opening
            assert refused.value.code == -32000
            assert refused.value.data["authMethods"][0]["id"] == "key"  # type: ignore[index]
