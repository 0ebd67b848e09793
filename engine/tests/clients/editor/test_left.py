"""What a process that was killed has left: questions that were open, a sub-task, a command."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from acp import RequestError
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from tests.clients.editor.editor import Editor, Talk, choosing, editing, never
from tests.harness.conversation import Conversation, edit, make_agent

pytestmark = pytest.mark.asyncio(loop_scope="session")
WRITE = "write a.txt: a"
LEFT = {
    "read and write": "read a.txt & write b.txt: b",
    "command": "run echo begun; sleep 60",
    "sub-task": "task in code: write a.txt: a",
    **dict.fromkeys(("cancelled", "edited", "defaults"), WRITE),
}
"""What was said in each session."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def left(
    data: Path, settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Talk]:
    """The sessions; the process of ``editor`` has the same database."""

    async def answer(call: Any, _: Any) -> str | None:
        answers = {"echo begun; sleep 60": "once", "Sub-task in Code mode": "manual"}
        return answers.get(call.title) or await never()

    async with editing(data, settings, answer) as editor:
        talks = {
            name: await editor.talk(tmp_path_factory.mktemp("workspace"), "code") for name in LEFT
        }
        (talks["read and write"].cwd / "a.txt").write_text("a")
        turns = [asyncio.create_task(talks[name].say(said)) for name, said in LEFT.items()]
        await editor.until(lambda: len(editor.asked) == len(LEFT) + 1)  # two of the sub-task
        await editor.until(talks["command"].has_printed)
        editor.process.kill()
        ends = await asyncio.gather(*turns, return_exceptions=True)
        assert {type(end) for end in ends} == {ConnectionError}
    return talks


async def test_an_open_question_outlives_the_process(left: dict[str, Talk], editor: Editor) -> None:
    talk = await editor.load(left["read and write"])
    talk.answer = choosing("once")
    assert "is asked with your next message" in talk.said, "before the response"
    assert not talk.asked
    assert ("Write file b.txt", "pending") in talk.ends
    assert await talk.say("list") == "end_turn"
    assert [call.title for call in talk.asked] == ["Write file b.txt"]
    assert talk.said.count("Here is how it went") == 2
    assert {status for _, status in talk.ends} == {"completed"}
    assert (talk.cwd / "b.txt").read_text() == "b"


async def test_a_session_that_is_in_a_sub_task(left: dict[str, Talk], editor: Editor) -> None:
    talk = await editor.load(left["sub-task"])
    outer, _, inner = talk.said.partition("\n\n> Sub-task in Code mode:\n\n")
    assert (outer, "is asked with your next message" in inner) == ("", True)
    users = [update.content.text for update in talk.of("user_message_chunk")]
    assert users == ["task in code: write a.txt: a", "write a.txt: a"]
    assert talk.ends == [
        ("Sub-task in Code mode", "in_progress"),
        ("Code: Write file a.txt", "pending"),
    ]


async def test_a_command_that_was_killed_may_have_taken_effect(
    left: dict[str, Talk], editor: Editor
) -> None:
    talk = await editor.load(left["command"])
    assert "may have taken effect" in str(talk.results)
    await editor.until(lambda: "was interrupted" in talk.said)
    assert await talk.say("go on") == "end_turn"
    await (await editor.load(left["command"])).say("list")
    assert talk.said.count("was interrupted") == 1


async def test_who_cancels_is_not_held_to_the_question(
    left: dict[str, Talk], editor: Editor
) -> None:
    talk = await editor.load(left["cancelled"], resume=True)
    with pytest.raises(RequestError, match="empty"):
        await talk.say(" ")
    assert await talk.say("/code") == "end_turn"  # the same mode: still asked
    talk.answer = never
    turn = await talk.begin("write b.txt: b", lambda: "a.txt" in str(talk.asked))
    await talk.cancel()
    assert await turn == "cancelled"
    assert not list(talk.cwd.iterdir())
    editor.asked.clear()
    await talk.replayed()
    assert "pending" not in str(talk.ends)
    assert await talk.say("hello") == "end_turn"
    assert not talk.asked


async def test_what_a_person_made_of_a_call_is_what_is_shown(
    left: dict[str, Talk], editor: Editor, data: Path
) -> None:
    """As another client of the same thread lets them."""
    before = left["edited"]
    async with AsyncSqliteSaver.from_conn_string(str(data / "sessions.sqlite")) as saver:
        elsewhere = Conversation(make_agent(before.cwd, saver=saver))
        elsewhere.config = {"configurable": {"thread_id": before.id}}
        await elsewhere.decide(edit("write_file", path="b.txt", content="b"))
    talk = await editor.load(before)
    assert talk.ends == [("Write file b.txt", "completed")]
    assert talk.results[-1][0].new_text == (talk.cwd / "b.txt").read_text() == "b"


async def test_what_an_editor_sets_by_itself_leaves_a_waiting_question_alone(
    left: dict[str, Talk], editor: Editor
) -> None:
    """Zed sets its defaults again in each session that it opens."""
    talk = await editor.load(left["defaults"])
    talk.answer = choosing("reject")
    await talk.choose("approvals", "auto")
    await talk.choose("mode", "ask")
    assert talk.shown == ("code", "manual")
    assert "Notice" not in talk.said, "not between two turns"
    assert talk.ends == [("Write file a.txt", "pending")]
    await talk.say("hello")
    assert "type /approvals auto if you want it" in talk.said
    assert len(talk.asked) == 1
    assert not list(talk.cwd.iterdir())
    await talk.choose("approvals", "auto")
    assert talk.shown == ("code", "auto")
