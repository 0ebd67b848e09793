"""``/compact``: the conversation gives way to a summary, and the editor is shown what happened."""

from pathlib import Path

import pytest

from modeshift.turns.compaction import HEADER
from tests.clients.editor.editor import Editor, Talk
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


async def test_an_open_question_is_asked_again_and_comes_first(gpt: Talk) -> None:
    await gpt.say("hello " * 1000)
    await gpt.say("open question")
    assert await gpt.say("/compact") == "end_turn"
    assert gpt.said.count("Which colour?") == 2
    assert BEGUN not in gpt.said
    await gpt.say("Red")
    assert gpt.said.count(HEADER) == 1
    assert gpt.said.endswith("It says: Red")
