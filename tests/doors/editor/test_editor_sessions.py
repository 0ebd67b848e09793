"""Sessions that outlive the process, and what an editor may ask for."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp.schema import McpServerStdio

from tests.doors.editor.editor import (
    SLEEP,
    Editor,
    begun,
    choosing,
    editing,
    environment,
    has_begun,
    never,
    reopened,
)
from tests.harness import prefork
from tests.harness.place import UserFolders, modes_file


def current(opened: Any) -> dict[str, str]:
    found = {option.id: option.current_value for option in opened.config_options}
    assert opened.modes is None or opened.modes.current_mode_id == found["mode"]
    return found


def kinds(editor: Editor) -> list[str]:
    """Of the updates, each once in a row; without those that come with every session."""
    found = [update.session_update for _, update in editor.updates]
    return [
        kind for kind, before in zip(found, [None, *found], strict=False)
        if kind not in (before, "available_commands_update", "session_info_update")
    ]  # fmt: skip


async def left_asking(folder: Path, workspace: Path, text: str = "write a.txt: a") -> str:
    """A session whose editor has gone while a person was asked."""
    async with editing(folder, answer=never) as editor:
        id = await begun(editor, workspace)
        turn = asyncio.create_task(editor.say(id, text))
        await editor.until(lambda: editor.asked)
    with pytest.raises(ConnectionError):
        await turn
    return id


# What is kept.


async def test_a_session_is_loaded_in_another_process(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path, answer=choosing("manual", "once")) as editor:
        id = (await editor.new(workspace)).session_id
        await editor.say(id, "write a.txt: hello\nrun exit 3\ntodo: one; two\nread missing")
        before = editor.said(id)
        lived = {
            c.tool_call_id: editor.statuses(c.tool_call_id)[-1] for c in editor.of("tool_call")
        }
        await editor.agent.set_config_option(session_id=id, config_id="approvals", value="auto")
    async with editing(tmp_path) as editor:
        opened = await reopened(editor, workspace, id)
        assert current(opened) == {"mode": "code", "model": "offline", "approvals": "auto"}
        assert kinds(editor) == ["user_message_chunk", "tool_call", "agent_message_chunk", "plan"]
        assert editor.said(id) == before
        cards = editor.of("tool_call", id)
        assert {card.tool_call_id: card.status for card in cards} == lived
        assert [(card.kind, card.status) for card in cards] == [
            ("switch_mode", "completed"),
            ("edit", "completed"),
            ("execute", "completed"),
            ("think", "completed"),
            ("read", "failed"),
        ]
        diff = cards[1].content[0]
        assert (diff.type, diff.old_text, diff.new_text) == ("diff", None, "hello")
        assert "[exit code 3]" in cards[2].content[0].content.text
        await editor.until(lambda: editor.of("available_commands_update", id))
        count = len(editor.updates)
        opened = await reopened(editor, workspace, id, resume=True)
        assert current(opened)["mode"] == "code"
        await asyncio.sleep(0.3)
        after = [update.session_update for _, update in editor.updates[count:]]
        assert after == ["available_commands_update"]
        await editor.say(id, "write b.txt: b")  # with approvals as they were
        assert not editor.asked
        assert (workspace / "b.txt").exists()


@pytest.mark.parametrize(("end", "resume"), [("kill", False), ("close", True)])
async def test_a_permission_that_waits_outlives_the_process(
    tmp_path: Path, workspace: Path, end: str, resume: bool
) -> None:
    async with editing(tmp_path, answer=never) as editor:
        id = await begun(editor, workspace)
        turn = asyncio.create_task(editor.say(id, "write a.txt: a"))
        await editor.until(lambda: editor.asked)
        if end == "kill":
            os.kill(editor.process.pid, signal.SIGKILL)
    with pytest.raises(ConnectionError):
        await turn
    async with editing(tmp_path, answer=choosing("once")) as editor:
        opened = await reopened(editor, workspace, id, resume=resume)
        assert current(opened)["mode"] == "code"
        await editor.until(lambda: "Here is how it went" in editor.said(id))
        (_, call, _) = editor.asked[0]
        assert (call.title, len(editor.asked)) == ("Write file a.txt", 1)
        assert (workspace / "a.txt").read_text() == "a"
        if not resume:
            assert editor.statuses(call.tool_call_id) == ["pending", "in_progress", "completed"]
        assert await editor.say(id, "hello") == "end_turn"


async def test_who_says_something_else_is_not_held_to_the_old_question(
    tmp_path: Path, workspace: Path
) -> None:
    id = await left_asking(tmp_path, workspace)
    async with editing(tmp_path, answer=never) as editor:
        await reopened(editor, workspace, id)
        await editor.until(lambda: editor.asked)
        editor.answer = choosing("once")
        assert await editor.say(id, "write b.txt: b") == "end_turn"
        assert [path.name for path in workspace.iterdir()] == ["b.txt"]
    async with editing(tmp_path, answer=choosing("once")) as editor:
        await reopened(editor, workspace, id)
        assert await editor.say(id, "hello") == "end_turn"
        assert not editor.asked


@pytest.mark.parametrize("pause", [0, 0.01])
async def test_nor_right_behind_the_loading(tmp_path: Path, workspace: Path, pause: float) -> None:
    id = await left_asking(tmp_path, workspace)
    async with editing(tmp_path, answer=never) as editor:
        await reopened(editor, workspace, id)
        await asyncio.sleep(pause)
        turn = asyncio.create_task(editor.say(id, "write b.txt: b"))
        await editor.until(lambda: "b.txt" in str(editor.asked))
        await editor.agent.cancel(session_id=id)
        assert await turn == "cancelled"
        assert editor.of("tool_call_update", id)[-1].status == "failed"
    async with editing(tmp_path, answer=choosing("once")) as editor:
        await reopened(editor, workspace, id)
        assert await editor.say(id, "hello") == "end_turn"
        assert not editor.asked
        assert not list(workspace.iterdir())


@pytest.mark.parametrize("resume", [True, False])
async def test_the_neighbours_of_a_call_that_waits_run_after_a_restart(
    tmp_path: Path, workspace: Path, resume: bool
) -> None:
    (workspace / "a.txt").write_text("a")
    id = await left_asking(tmp_path, workspace, "read a.txt & write b.txt: b")
    async with editing(tmp_path, answer=choosing("once")) as editor:
        await reopened(editor, workspace, id, resume=resume)
        await editor.until(lambda: "Here is how it went" in editor.said(id))
        ends = [one.tool_call_id for one in editor.of("tool_call_update", id) if one.status]
        assert {editor.statuses(call)[-1] for call in ends} == {"completed"}
        assert (workspace / "b.txt").read_text() == "b"


async def test_a_message_that_is_none_does_not_supersede_the_question(
    tmp_path: Path, workspace: Path
) -> None:
    id = await left_asking(tmp_path, workspace)
    may_answer = asyncio.Event()

    async def answer(*_: Any) -> str:
        await may_answer.wait()
        return "once"

    async with editing(tmp_path, {"MODELS": "openai:x"}, answer=answer) as editor:
        await reopened(editor, workspace, id)
        with pytest.raises(RequestError, match="empty"):
            await editor.say(id, " ")
        await editor.until(lambda: editor.asked)
        assert await editor.say(id, "/code") == "end_turn"  # where it is: nothing is said instead
        assert len(editor.asked) == 1
        may_answer.set()
        await editor.until(
            lambda: editor.statuses(editor.asked[0][1].tool_call_id)[-1] == "completed"
        )
        assert (workspace / "a.txt").exists()


@pytest.mark.parametrize("resume", [False, True])
async def test_a_session_that_is_closed_at_once_asks_nothing(
    tmp_path: Path, workspace: Path, resume: bool
) -> None:
    id = await left_asking(tmp_path, workspace)
    async with editing(tmp_path, answer=never) as editor:
        for _ in range(3):
            await reopened(editor, workspace, id, resume=resume)
            await editor.agent.close_session(session_id=id)
        await asyncio.sleep(0.3)
        editor.asked.clear()
        await reopened(editor, workspace, id, resume=resume)
        await editor.agent.set_session_mode(session_id=id, mode_id="ask")
        assert await editor.say(id, "hello") == "end_turn"


async def test_a_mode_that_was_set_outlives_the_process(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path, answer=never) as editor:
        fresh = await begun(editor, workspace, "debug")
        asking = await begun(editor, workspace)
        turn = asyncio.create_task(editor.say(asking, "write a.txt: a"))
        await editor.until(lambda: editor.asked)
        os.kill(editor.process.pid, signal.SIGKILL)
    with pytest.raises(ConnectionError):
        await turn
    async with editing(tmp_path, answer=choosing("once")) as editor:
        assert current(await reopened(editor, workspace, fresh))["mode"] == "debug"
        await editor.say(fresh, "write b.txt: b")
        assert [call.kind for _, call, _ in editor.asked] == ["edit"]
        # A mode that is set takes the question back that was asked in another.
        await reopened(editor, workspace, asking, resume=True)
        editor.answer = never
        await editor.until(lambda: len(editor.asked) == 2)
        await editor.agent.set_session_mode(session_id=asking, mode_id="ask")
        await editor.until(lambda: len(editor.asked) == 3)
        assert editor.asked[-1][1].kind == "switch_mode"
    assert not (workspace / "a.txt").exists()


async def test_an_answer_in_the_chat_is_one_after_a_restart_too(
    tmp_path: Path, workspace: Path
) -> None:
    async with editing(tmp_path) as editor:
        id = (await editor.new(workspace)).session_id
        assert await editor.say(id, "ask: Which colour?") == "end_turn"
        assert not editor.asked
    async with editing(tmp_path) as editor:
        await reopened(editor, workspace, id)
        assert editor.of("tool_call", id)[-1].status == "pending"
        await editor.until(lambda: editor.said(id).count("Which colour?") == 1)
        assert await editor.say(id, "green") == "end_turn"
        assert "- ask: Which colour?: green" in editor.said(id)
        assert editor.of("tool_call_update", id)[-1].status == "completed"


async def test_two_processes_see_each_others_choices(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path) as one, editing(tmp_path) as other:
        id = await begun(one, workspace)
        await one.agent.set_config_option(session_id=id, config_id="approvals", value="auto")
        await reopened(other, workspace, id, resume=True)
        await other.say(id, "hello")
        await other.agent.set_config_option(session_id=id, config_id="mode", value="ask")
        await other.agent.set_config_option(session_id=id, config_id="approvals", value="manual")
        await other.say(id, "hello")
        # Nothing runs under rights that this editor has not shown.
        with pytest.raises(RequestError, match="has been set to 'ask', 'offline' and"):
            await one.say(id, "write a.txt: a")
        assert not one.asked
        assert one.of("current_mode_update", id)[-1].current_mode_id == "ask"
        assert await one.say(id, "write a.txt: a") == "cancelled"
        assert [call.kind for _, call, _ in one.asked] == ["switch_mode"]
        # Neither chooses for the other while that is at work.
        one.answer = never
        turn = asyncio.create_task(one.say(id, "write a.txt: a"))
        await one.until(lambda: len(one.asked) == 2)
        with pytest.raises(RequestError, match="another process is working"):
            await other.agent.set_session_mode(session_id=id, mode_id="code")
        await one.agent.cancel(session_id=id)
        assert await turn == "cancelled"


async def test_a_prompt_that_comes_with_the_end_of_its_session_is_refused(
    tmp_path: Path, workspace: Path
) -> None:
    async with editing(tmp_path, answer=choosing("once")) as editor:
        id = await begun(editor, workspace)
        turn = asyncio.create_task(editor.say(id, SLEEP))
        await editor.until(lambda: has_begun(editor))
        closing = asyncio.create_task(editor.agent.close_session(session_id=id))
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as refused:
            await editor.say(id, "write a.txt: a")
        assert refused.value.code == -32002
        await closing
        assert await turn == "cancelled"
        assert not (workspace / "a.txt").exists()


def clean_data(folder: Path) -> str:
    """What it says."""
    done = prefork.run("doors.commands", "clean-data", env=environment(folder, {}))
    return done.stdout + done.stderr


async def test_clean_data_leaves_what_an_editor_has_open(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path) as editor:
        id = (await editor.new(workspace)).session_id
        assert "an editor is at work with" in await asyncio.to_thread(clean_data, tmp_path)
        assert await editor.say(id, "hello") == "end_turn"
    assert f"{tmp_path / 'sessions.sqlite'}: removed\n" in clean_data(tmp_path)
    assert not list(tmp_path.glob("sessions*"))


async def test_a_folder_that_is_gone_is_told(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path) as editor:
        id = (await editor.new(workspace)).session_id
        workspace.rename(tmp_path / "elsewhere")
        with pytest.raises(RequestError, match="is not an existing folder"):
            await editor.say(id, "list")
        (tmp_path / "elsewhere").rename(workspace)
        assert await editor.say(id, "list") == "end_turn"


async def test_a_mode_that_has_no_model_is_not_taken(place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("surgeon", rest="    model: openai:gpt-5.5\n"))
    async with editing(place.root) as editor:
        id = (await editor.new(place.workspace)).session_id
        with pytest.raises(RequestError, match="OPENAI_API_KEY"):
            await editor.agent.set_session_mode(session_id=id, mode_id="surgeon")
        assert await editor.say(id, "hello") == "end_turn"
        assert not editor.of("current_mode_update", id)


async def test_sessions_are_listed(tmp_path: Path, workspace: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with editing(tmp_path) as editor:
        first = await begun(editor, workspace)
        second = await begun(editor, other)
        await editor.say(first, "hello\nthere")
        listed = (await editor.agent.list_sessions()).sessions
        assert [(one.session_id, one.cwd, one.title) for one in listed] == [
            (first, str(workspace), "hello there"),
            (second, str(other), None),
        ]
        assert listed[0].updated_at is not None
        mine = await editor.agent.list_sessions(cwd=str(other))
        assert [one.session_id for one in mine.sessions] == [second]
        assert (await editor.agent.list_sessions(cwd=str(tmp_path))).sessions == []
        for wrong in ({"cwd": "here"}, {"cursor": "-1"}, {"cursor": "x"}):
            with pytest.raises(RequestError) as refused:
                await editor.agent.list_sessions(**wrong)
            assert refused.value.code == -32602


async def test_many_sessions_are_listed_in_pages(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path) as editor:
        ids = {(await editor.new(workspace)).session_id for _ in range(120)}
        page = await editor.agent.list_sessions(cwd=str(workspace))
        assert len(page.sessions) == 100
        await editor.say(page.sessions[50].session_id, "hello")  # the first one by now
        rest = await editor.agent.list_sessions(cwd=str(workspace), cursor=page.next_cursor)
        assert (len(rest.sessions), rest.next_cursor) == (20, None)
        assert {one.session_id for one in [*page.sessions, *rest.sessions]} == ids


async def test_a_closed_session_ends_what_it_does(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path, answer=choosing("once")) as editor:
        id = await begun(editor, workspace)
        turn = asyncio.create_task(editor.say(id, SLEEP))
        await editor.until(lambda: has_begun(editor))
        await editor.agent.close_session(session_id=id)
        assert await turn == "cancelled"
        with pytest.raises(RequestError) as refused:
            await editor.say(id, "hello")
        assert refused.value.code == -32002
        await reopened(editor, workspace, id)
        assert await editor.say(id, "hello") == "end_turn"


# What is refused.


async def test_a_workspace_is_a_folder_that_exists(tmp_path: Path, workspace: Path) -> None:
    (workspace / "file").touch()
    async with editing(tmp_path) as editor:
        for cwd in ("relative", "", "/no/such/folder", f"{workspace}/file", "/"):
            with pytest.raises(RequestError) as refused:
                await editor.agent.new_session(cwd=cwd, mcp_servers=[])
            assert refused.value.code == -32602
        assert (await editor.agent.list_sessions()).sessions == []


async def test_what_is_not_there_is_not_found(tmp_path: Path, workspace: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with editing(tmp_path) as editor:
        id = (await editor.new(workspace)).session_id
        agent = editor.agent
        unknown: list[Callable[[str], Any]] = [
            lambda it: reopened(editor, workspace, it),
            lambda it: reopened(editor, workspace, it, resume=True),
            lambda it: agent.close_session(session_id=it),
            lambda it: agent.set_session_mode(session_id=it, mode_id="code"),
            lambda it: editor.say(it, "hello"),
        ]
        for ask in unknown:
            for wrong in ("nobody", "", "../../etc", "00000000-0000-0000-0000-000000000000"):
                with pytest.raises(RequestError) as refused:
                    await ask(wrong)
                assert refused.value.code == -32002
        await agent.cancel(session_id="nobody")
        with pytest.raises(RequestError, match="belongs to the folder"):
            await agent.load_session(cwd=str(other), session_id=id, mcp_servers=[])
        with pytest.raises(RequestError):
            await agent.authenticate(method_id="password")
        assert len((await agent.list_sessions()).sessions) == 1


async def test_mcp_servers_and_other_folders_are_refused(tmp_path: Path, workspace: Path) -> None:
    server = McpServerStdio(name="files", command="/bin/false", args=[], env=[])
    async with editing(tmp_path) as editor:
        with pytest.raises(RequestError, match="not supported yet") as it:
            await editor.agent.new_session(cwd=str(workspace), mcp_servers=[server])
        assert it.value.code == -32602
        assert "'files'" in str(it.value)
        with pytest.raises(RequestError, match="additional directories"):
            await editor.agent.new_session(
                cwd=str(workspace), additional_directories=["/"], mcp_servers=[]
            )
        id = (await editor.new(workspace)).session_id
        with pytest.raises(RequestError, match="MCP"):
            await editor.agent.load_session(cwd=str(workspace), session_id=id, mcp_servers=[server])


async def test_a_session_is_one_processs_at_a_time(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path, answer=never) as one, editing(tmp_path) as other:
        id = await begun(one, workspace)
        turn = asyncio.create_task(one.say(id, "write a.txt: a"))
        await one.until(lambda: one.asked)
        await reopened(other, workspace, id, resume=True)
        with pytest.raises(RequestError, match="another process is working"):
            await other.say(id, "hello")
        await one.agent.cancel(session_id=id)
        assert await turn == "cancelled"
        assert await other.say(id, "hello") == "end_turn"


# Modes of the workspace's own.


async def test_modes_of_the_workspace_are_listed_when_it_is_trusted(place: UserFolders) -> None:
    place.project_modes.write_text(modes_file("surgeon", groups="read, edit"))
    async with editing(place.root) as editor:
        opened = await editor.new(place.workspace)
        assert opened.modes is not None
        assert "surgeon" not in [mode.id for mode in opened.modes.available_modes]
        await editor.say(opened.session_id, "hello")
        assert "rules of its own" in editor.said(opened.session_id)
        place.trust()
        assert "Notice" not in await said_anew(editor, opened.session_id, "hello")
        update = editor.of("config_option_update")[-1]
        assert "surgeon" in [option.value for option in update.config_options[0].options]
        commands = editor.of("available_commands_update")[-1].available_commands
        assert "surgeon" in [command.name for command in commands]
        assert await editor.say(opened.session_id, "/surgeon write a.txt: a") == "cancelled"
        assert [call.kind for _, call, _ in editor.asked] == ["edit"]
        # It is taken away again.
        place.project_modes.unlink()
        assert await editor.say(opened.session_id, "hello") == "end_turn"
        assert editor.of("current_mode_update")[-1].current_mode_id == "ask"


async def said_anew(editor: Editor, id: str, text: str) -> str:
    before = len(editor.said(id))
    await editor.say(id, text)
    return editor.said(id)[before:]


async def test_a_setting_that_is_wrong_is_told(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path, {"MODEL": "anthropic:claude"}) as editor:
        with pytest.raises(RequestError, match="ANTHROPIC_API_KEY"):
            await editor.new(workspace)
        assert (await editor.agent.list_sessions()).sessions == []
