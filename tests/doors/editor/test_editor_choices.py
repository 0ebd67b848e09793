"""What the user chooses while other things happen: none is lost, and what is shown counts."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from acp import RequestError
from acp.schema import PermissionOption, ToolCallUpdate

from tests.doors.editor.editor import Editor, begun, choosing, dismiss, editing, never, reopened

pytestmark = pytest.mark.asyncio(loop_scope="module")
THREE = "write a.txt: a\nrun while ! test -e go; do sleep 0.02; done\nwrite b.txt: b"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    async with editing(tmp_path_factory.mktemp("editor")) as editor:
        yield editor


@pytest.fixture
def editor(process: Editor) -> Editor:
    process.asked.clear()
    return process


def shown(editor: Editor, id: str) -> tuple[str, str, str]:
    """The mode, the mode among the options and the approvals, as an editor has them by now."""
    mode, options, requests = "", dict[str, str](), dict[str, Any]()
    for message in editor.messages:
        params, told = message.get("params", {}), message.get("result") or {}
        if "method" in message and "id" in message:
            requests[message["id"]] = params
        told = params.get("update") or told
        asked = requests.get(message.get("id", ""), {}).get("sessionId")
        if id not in (params.get("sessionId"), told.get("sessionId"), asked):
            continue
        mode = told.get("modes", told).get("currentModeId", mode)
        for option in told.get("configOptions") or ():
            options[option["id"]] = option["currentValue"]
    return mode, options["mode"], options["approvals"]


async def kept(editor: Editor, workspace: Path, id: str) -> tuple[str, str, str]:
    """The same, as the thread has it."""
    await editor.agent.close_session(session_id=id)
    await reopened(editor, workspace, id, resume=True)
    return shown(editor, id)


@pytest.mark.parametrize("is_asked", [False, True])
@pytest.mark.parametrize(
    ("option", "first", "last"),
    [("approvals", "auto", "manual"), ("mode", "debug", "code"), ("mode", "code", "ask")],
)
async def test_of_two_choices_in_a_row_the_last_one_counts(
    editor: Editor, workspace: Path, is_asked: bool, option: str, first: str, last: str
) -> None:
    editor.answer = never
    id = await begun(editor, workspace)
    turn = None
    if is_asked:
        turn = asyncio.create_task(editor.say(id, "write a.txt: a"))
        await editor.until(lambda: editor.asked)
    choose = editor.agent.set_config_option
    told = await asyncio.gather(
        *(choose(session_id=id, config_id=option, value=value) for value in (first, last))
    )
    assert {one.id: one.current_value for one in told[1].config_options}[option] == last
    if turn is not None:
        await editor.agent.cancel(session_id=id)
        await turn
    now = shown(editor, id)
    assert last in now
    editor.answer, asked = dismiss, len(editor.asked)
    assert await editor.say(id, "write a.txt: a") == "cancelled"
    assert len(editor.asked) == asked + 1
    assert shown(editor, id) == now


@pytest.mark.parametrize("milliseconds", [3, 5, 8])
@pytest.mark.parametrize(("option", "value"), [("mode", "ask"), ("approvals", "manual")])
async def test_a_choice_right_behind_an_approved_switch_counts(
    editor: Editor, workspace: Path, milliseconds: int, option: str, value: str
) -> None:
    """It is what the editor shows at that moment, and what the run is about to leave."""
    id = (await editor.new(workspace)).session_id
    choices = list[asyncio.Task[Any]]()

    async def choose() -> None:
        await asyncio.sleep(milliseconds / 1000)
        await editor.agent.set_config_option(session_id=id, config_id=option, value=value)
        (workspace / "go").touch()

    async def answer(call: ToolCallUpdate, options: list[PermissionOption]) -> str | None:
        if choices:
            return "once" if call.kind == "execute" else None
        choices.append(asyncio.create_task(choose()))
        return "auto"

    editor.answer = answer
    assert await editor.say(id, THREE) == "cancelled"
    await choices[0]
    assert not (workspace / "b.txt").exists()
    now = shown(editor, id)
    assert value in now
    assert await kept(editor, workspace, id) == now


async def test_the_stricter_of_two_answers_about_approvals_counts(
    editor: Editor, workspace: Path
) -> None:
    id = (await editor.new(workspace)).session_id

    async def answer(*_: Any) -> str:
        agent = editor.agent
        await agent.set_config_option(session_id=id, config_id="approvals", value="auto")
        editor.answer = dismiss
        return "manual"

    editor.answer = answer
    assert await editor.say(id, "write a.txt: a") == "cancelled"
    assert len(editor.asked) == 2
    assert shown(editor, id) == await kept(editor, workspace, id) == ("code", "code", "manual")


async def test_choices_right_behind_a_cancel_count(editor: Editor, workspace: Path) -> None:
    for number in range(30):
        id = (await editor.new(workspace)).session_id
        editor.answer, agent = choosing("auto", "once"), editor.agent
        editor.asked.clear()
        turn = asyncio.create_task(editor.say(id, THREE))
        await editor.until(lambda: editor.asked)
        await asyncio.sleep(number / 5000)
        await asyncio.gather(
            agent.cancel(session_id=id),
            agent.set_session_mode(session_id=id, mode_id="ask"),
            agent.set_config_option(session_id=id, config_id="approvals", value="manual"),
        )
        assert await turn == "cancelled"
        assert shown(editor, id) == ("ask", "ask", "manual"), number
        assert await kept(editor, workspace, id) == ("ask", "ask", "manual"), number


@pytest.mark.parametrize("is_first", [False, True])
async def test_nothing_runs_under_what_another_window_has_just_chosen(
    tmp_path: Path, workspace: Path, is_first: bool
) -> None:
    async with editing(tmp_path) as one, editing(tmp_path) as other:
        id = await begun(one, workspace)
        await one.say(id, "hello")
        await reopened(other, workspace, id, resume=True)
        await one.agent.set_config_option(session_id=id, config_id="approvals", value="auto")
        prompt = other.say(id, "write a.txt: a")
        choice = other.agent.set_session_mode(session_id=id, mode_id="debug")
        both = [choice, prompt] if is_first else [prompt, choice]
        found = await asyncio.gather(*both, return_exceptions=True)
        assert isinstance(found[is_first], RequestError)
        assert not (workspace / "a.txt").exists()
        assert shown(other, id) == ("debug", "debug", "auto")
        assert await other.say(id, "write a.txt: a") == "end_turn"


async def test_a_choice_does_not_undo_another_windows(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path) as one, editing(tmp_path) as other:
        id = await begun(one, workspace)
        await one.agent.set_config_option(session_id=id, config_id="approvals", value="auto")
        await one.say(id, "hello")
        await reopened(other, workspace, id, resume=True)
        await one.agent.set_config_option(session_id=id, config_id="approvals", value="manual")
        await other.agent.set_session_mode(session_id=id, mode_id="debug")
        assert shown(other, id) == ("debug", "debug", "manual")
        assert await other.say(id, "write a.txt: a") == "cancelled"
        assert await kept(one, workspace, id) == ("debug", "debug", "manual")
    assert not (workspace / "a.txt").exists()


async def test_a_window_that_is_refused_chooses_nothing(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path, answer=never) as one, editing(tmp_path) as other:
        id = await begun(one, workspace)
        turn = asyncio.create_task(one.say(id, "write a.txt: a"))
        await one.until(lambda: one.asked)
        await reopened(other, workspace, id, resume=True)
        found = await asyncio.gather(
            other.say(id, "list"),
            other.agent.set_config_option(session_id=id, config_id="approvals", value="auto"),
            return_exceptions=True,
        )
        assert all(isinstance(one, RequestError) for one in found)
        await one.agent.cancel(session_id=id)
        await turn
        assert await kept(one, workspace, id) == ("code", "code", "manual")


async def test_what_is_chosen_already_takes_no_question_back(
    editor: Editor, workspace: Path
) -> None:
    id = await begun(editor, workspace)

    async def answer(*_: Any) -> str:
        await editor.agent.set_session_mode(session_id=id, mode_id="code")
        return "once"

    editor.answer = answer
    assert await editor.say(id, "write a.txt: a") == "end_turn"
    assert len(editor.asked) == 1
    assert (workspace / "a.txt").exists()


@pytest.mark.parametrize("resume", [False, True])
async def test_opening_a_session_again_in_a_switch_shows_what_counts(
    editor: Editor, workspace: Path, resume: bool
) -> None:
    for number in range(12):
        (workspace / "go").unlink(missing_ok=True)
        id = (await editor.new(workspace)).session_id
        editor.answer = choosing("auto", "once")
        editor.asked.clear()
        turn = asyncio.create_task(editor.say(id, THREE))
        await editor.until(lambda: editor.asked)
        await asyncio.sleep(number / 2000)
        await reopened(editor, workspace, id, resume=resume)
        (workspace / "go").touch()
        assert await turn == "end_turn"
        assert shown(editor, id) == ("code", "code", "auto"), number
        assert await kept(editor, workspace, id) == ("code", "code", "auto")
