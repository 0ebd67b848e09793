"""``/compact``: the conversation gives way to a summary, and the editor is shown what happened."""

from pathlib import Path
from typing import Any

import pytest

from modeshift.turns.compaction import HEADER
from tests.clients.editor.editor import Editor, Talk, choosing, editing
from tests.clients.editor.model import CLAUDE

pytestmark = pytest.mark.asyncio(loop_scope="session")
BEGUN = "> The conversation is being summarized."
DONE = "> Notice: A summary is in the place of the conversation's earlier messages: about"
FAILED = "> Notice: The conversation could not be summarized and stays as it is: "


async def test_it_is_shown_what_has_happened(editor: Editor, workspace: Path) -> None:
    talk = await editor.talk(workspace, model=CLAUDE)
    for times in (1, 2):
        assert await talk.say("/compact") == "end_turn"
        assert talk.said.count(f"{FAILED}there is nothing to summarize yet\n") == times
    await talk.say("hello " * 1000)
    await talk.say("hello")
    fills = len(talk.of("usage_update"))
    before = talk.said
    assert await talk.say("  /compact\n") == "end_turn"
    shown = talk.said.removeprefix(before).split("\n\n")
    assert shown[:3] == [BEGUN, HEADER, "Here I am."]
    assert shown[3].startswith(DONE)
    assert len(talk.of("usage_update")) == fills, "how full it is now, the next answer says"
    await talk.say("/compact think")
    assert talk.said.endswith("Done.")
    again = await talk.replayed()
    summary = f"{HEADER}\n\nHere I am."
    assert again.said == f"Here I am.Here I am.\n\n{summary}{summary}\n\nDone."
    said = [update.content.text for update in again.of("user_message_chunk")]
    assert said == ["hello " * 1000, "hello", "think"], "as before: the checkpoints have it"
    await talk.say("/undo")
    await talk.say(f"/undo {talk.said.split()[-3]}")
    again = await talk.replayed()
    said = [update.content.text for update in again.of("user_message_chunk")]
    assert said == ["hello " * 1000, "hello"], "and nothing of what was undone"


def list_updates(editor: Editor, kind: str) -> list[dict[str, Any]]:
    updates = [message["params"]["update"] for message in editor.list_raw("session/update")]
    return [each for each in updates if each["sessionUpdate"] == kind]


async def test_an_editor_that_knows_compactions_and_notices_is_shown_them(
    tmp_path: Path, workspace: Path, settings: dict[str, str]
) -> None:
    """And the name of a call's tool, as every editor is."""
    (workspace / "AGENTS.md").write_text("Obey me.")
    shows, kind = ("notices", "compaction"), "compaction_update"
    async with editing(tmp_path, settings, choosing("once"), shows=shows) as editor:
        talk = await editor.talk(workspace, model=CLAUDE)
        for said in ("/compact", "hello " * 1000, "hello", "/compact"):
            assert await talk.say(said) == "end_turn"
        notices = list_updates(editor, "notice")
        assert {each.pop("severity") for each in notices} == {"warning"}
        trust, why, about = (each["title"] for each in notices)
        assert "are ignored until you trust them" in trust
        assert "there is nothing to summarize yet" in why
        assert "tokens instead of" in about
        begun, failed, again, done = list_updates(editor, kind)
        statuses = [each["status"] for each in (begun, failed, again, done)]
        assert statuses == ["in_progress", "failed", "in_progress", "completed"]
        assert done["summary"] == [{"type": "text", "text": f"{HEADER}\n\nHere I am."}]
        ids = [each["compactionId"] for each in (begun, failed, again, done)]
        assert (ids[:2], ids[2:]) == ([ids[0]] * 2, [ids[3]] * 2)
        assert ids[0] != ids[3]
        assert talk.said == "Here I am." * 2
        editor.messages.clear()
        assert (await talk.replayed()).said == "Here I am." * 2
        (replayed,) = list_updates(editor, kind)
        assert (replayed["status"], replayed["summary"]) == ("completed", done["summary"])
        code = await editor.talk(workspace, "code")
        await code.say("write a.txt: a")
        assert {each["name"] for each in list_updates(editor, "tool_call")} == {"write_file"}


async def test_an_open_question_is_asked_again_and_comes_first(gpt: Talk) -> None:
    await gpt.say("hello " * 1000)
    await gpt.say("open question")
    assert await gpt.say("/compact") == "end_turn"
    assert gpt.said.count("Which colour?") == 2
    assert BEGUN not in gpt.said
    await gpt.say("Red")
    assert gpt.said.count(HEADER) == 1
    assert gpt.said.endswith("It says: Red")
