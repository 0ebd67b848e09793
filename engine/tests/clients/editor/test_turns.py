"""Turns side by side, one after another, and cancelled."""

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest
from acp.schema import Cost

from modeshift.commands.usage import read_threads
from modeshift.storage.opening import open_database
from tests.clients.editor.editor import WAIT_FOR_GO, Editor, Talk, choosing
from tests.clients.editor.model import CLAUDE, GO_ON, GPT, MARK, STORY
from tests.harness.conversation import until
from tests.harness.sleepers import wait_for

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_messages_of_one_session_wait_for_each_other(code: Talk, tmp_path: Path) -> None:
    """And hold up no other session."""
    code.answer = choosing("once")
    first = await code.begin(f"run echo begun; {WAIT_FOR_GO}", code.has_printed)
    second = asyncio.create_task(code.say("write b.txt: b"))
    (tmp_path / "other").mkdir()
    quick = await code.editor.talk(
        tmp_path / "other", "code"
    )  # the second message has arrived by then
    assert await quick.say("write a.txt: a") == "end_turn"
    assert not first.done()
    assert len(code.of("session_info_update")) == 1  # a turn's first
    (code.cwd / "go").touch()
    assert [await first, await second] == ["end_turn", "end_turn"]
    assert (code.cwd / "b.txt").exists()


async def test_cancel_while_the_model_speaks(editor: Editor, workspace: Path) -> None:
    talk = await editor.talk(workspace, "code", model=GPT)
    turn = await talk.begin(STORY, lambda: talk.said)
    await talk.cancel()
    assert await turn == "cancelled"
    GO_ON.release()
    heard = talk.said
    assert heard != STORY
    assert await talk.say("hello") == "end_turn"
    assert talk.said == f"{heard}Here I am."
    assert (await talk.replayed()).said == "Here I am.", "nothing of the answer is kept"


@pytest.mark.parametrize("said", ["write a.txt: a", "switch to debug"])
async def test_cancel_while_a_person_is_asked(code: Talk, said: str) -> None:
    turns = [await code.begin_asking(said)]
    turns += [asyncio.create_task(code.say(f"write {name}: x")) for name in "bc"]  # these wait
    await code.editor.talk(code.cwd)
    await code.cancel()
    assert await asyncio.gather(*turns) == ["cancelled"] * 3
    assert [status for _, status in code.ends] == ["failed"]
    await code.cancel()  # with nothing to cancel
    shown = code.shown
    assert await code.stored() == shown == ("code", "manual")
    code.answer = choosing("once")
    assert await code.say("write d: x") == "end_turn"
    assert code.kinds_asked[1:] == ["edit"]  # the first is not asked again
    (_, statuses), _ = code.calls
    assert statuses.count("failed") == 1
    assert [path.name for path in code.cwd.iterdir()] == ["d"]


async def test_a_prompt_is_cancelled_by_its_request(code: Talk) -> None:
    turn = await code.begin_asking("write a.txt: a")
    id = int(code.editor.list_raw("session/prompt")[-1]["id"].split()[1])
    await code.send("$/cancel_request", requestId=id)
    assert await turn == "cancelled"


async def test_what_runs_in_the_background_ends_when_the_dialog_is_closed(
    editor: Editor, workspace: Path
) -> None:
    """Although the question stays open, it ends with the editor's turn."""
    asked: list[str] = []

    async def answer(*_: Any) -> str | None:
        asked.append("once")
        if len(asked) == 1:
            return "once"
        await wait_for(True, MARK)
        return None

    editor.answer = answer
    talk = await editor.talk(workspace, "code", model=GPT)
    await talk.say("background")
    assert len(asked) == 2
    await wait_for(False, MARK)


async def test_cancel_while_a_command_runs(code: Talk, workspace: Path) -> None:
    code.answer = choosing("once")
    turn = await code.begin("run echo begun; echo $$ > pid; sleep 600; true", code.has_printed)
    await until(lambda: (workspace / "pid").exists() and (workspace / "pid").read_text() != "")
    await code.cancel()
    assert await turn == "cancelled"
    pid = int((workspace / "pid").read_text())
    await until(lambda: not psutil.pid_exists(pid))
    assert [status for _, status in code.ends] == ["failed"]
    assert "it may have taken effect" in str(code.results)
    assert await code.say("write after.txt: well") == "end_turn"


async def test_cancel_at_any_moment(editor: Editor, workspace: Path) -> None:
    """What is shown to have ended has ended, and the next turn goes on from there."""
    talk = await editor.talk(workspace, "code", approvals="auto")
    for number in range(10):
        turn = asyncio.create_task(talk.say(f"write {number}: x\nwrite {number}: y"))
        await asyncio.sleep(number / 200)
        await talk.cancel()
        assert await turn in ("cancelled", "end_turn")
        await editor.talk(workspace)  # no lock on the file is left behind
    assert await talk.say("write last: x") == "end_turn"
    completed = [end for end in talk.ends if end[1] == "completed"]
    assert completed[-1] == ("Write file last", "completed")
    # What was cut off may have run to its end: the journal knows, and the next turn has its result.
    assert {*completed} <= {*(await talk.replayed()).ends}


async def test_how_full_the_window_is_and_what_it_cost(
    editor: Editor, workspace: Path, data: Path
) -> None:
    """A cost only with a price, and nothing at all for a model whose window nobody knows."""
    prices = data / "home" / "prices.yaml"
    offline, talk = await editor.talk(workspace), await editor.talk(workspace, model=CLAUDE)
    await offline.say("hello")
    await talk.say("list")
    (first,) = talk.of("usage_update")
    assert (first.size, first.cost) == (1_000_000, None)
    assert first.used > 0
    row = "{input: 1000000, output: 1000000, cache_read: 1000000, cache_write: 1000000}"
    prices.write_text(f"{CLAUDE}: {row}\n")
    await talk.say("hello")
    second = talk.of("usage_update")[-1]
    assert second.cost == Cost(amount=first.used + second.used, currency="USD")
    prices.write_text("a: b\n")
    await talk.say("hello")
    assert talk.said.count(f"> Notice: {prices}: a 'b': ") == 1
    prices.unlink()
    last = talk.of("usage_update")[-1]
    assert (last.cost, len(talk.of("usage_update"))) == (None, 3)
    assert last.used > first.used
    again = await talk.replayed()
    await editor.until(lambda: again.of("usage_update"))
    assert again.of("usage_update") == [last]
    assert offline.of("usage_update") == []
    counts = {
        thread.id: sum(model["answers"] for model in thread.taken.values())
        for thread in await read_threads(open_database("", data / "sessions.sqlite"))
    }
    assert (counts[talk.id], counts[offline.id]) == (3, 1)


async def test_a_sub_task_names_its_mode_and_its_card_stays_open(talk: Talk) -> None:
    talk.answer = choosing("manual", "once")
    assert await talk.say("task in code: write a.txt: a | read a.txt\nread a.txt") == "end_turn"
    assert [call.title for call in talk.asked] == [
        "Sub-task in Code mode",
        "Code: Write file a.txt",
    ]
    names = [option.name for option in talk.editor.asked[0][2]]
    assert (names[:2], names[-1][:22]) == (["Yes", "No"], "Yes, and auto-accept. ")
    assert talk.ends == [
        ("Sub-task in Code mode", "completed"),
        ("Code: Write file a.txt", "completed"),
        ("Code: Read file a.txt", "completed"),
        ("Read file a.txt", "completed"),
    ]
    assert talk.shown == ("ask", "manual")


async def test_cancel_ends_the_sub_task_and_the_parent_is_told(talk: Talk) -> None:
    talk.answer = choosing("manual", "none of them")
    assert await talk.say("task in code: write a.txt: a") == "cancelled"
    assert talk.shown == ("ask", "manual")
    assert await talk.stored() == ("ask", "manual")
    assert {status for _, status in talk.ends} == {"failed"}
    assert await talk.say("hello") == "end_turn"
    assert not (talk.cwd / "a.txt").exists()
