"""Sessions that are listed, closed and opened again, in this process or another."""

import asyncio
from pathlib import Path
from typing import Any, cast
from unittest.mock import AsyncMock
from uuid import UUID

import pytest
from acp import RequestError, schema

from modeshift.configuration.databases import open_threads
from modeshift.configuration.loading import AgentCache
from modeshift.editor import transport
from modeshift.editor.agent import EditorAgent
from modeshift.editor.store import Sessions
from tests.clients.editor.editor import WAIT_FOR_GO, Editor, Talk, choosing, editing, never
from tests.harness.place import UserFolders, modes_file

pytestmark = pytest.mark.asyncio(loop_scope="session")


# The history.


async def test_a_session_is_loaded_in_another_process(
    editor: Editor, other: Editor, workspace: Path
) -> None:
    editor.answer = choosing("manual", "once")
    live = await editor.talk(workspace)
    await live.say(
        "list\nwrite a.txt: hello\nrun exit 3\ntodo: one; two\nread missing\ndone: Well."
    )
    await live.choose("approvals", "auto")
    loaded = await other.load(live)
    assert loaded.shown == ("code", "auto")
    assert live.said.endswith("Well.")
    assert (loaded.said, loaded.ends) == (live.said, live.ends)
    assert loaded.of("plan") == live.of("plan")
    calls = loaded.of("tool_call")
    assert [(call.kind, call.status) for call in calls] == [
        ("search", "completed"),
        ("switch_mode", "completed"),
        ("edit", "completed"),
        ("execute", "failed"),
        ("think", "completed"),
        ("read", "failed"),
        ("other", "completed"),
    ]
    (diff,) = calls[2].content
    assert (diff.old_text, diff.new_text) == (None, "hello")
    assert calls[3].content[0].content.text == "```\n[exit code 3]\n```"
    assert [entry.content for entry in loaded.of("plan")[0].entries] == ["one", "two"]
    other.updates.clear()
    resumed = await other.load(live, resume=True)
    await other.until(lambda: resumed.of("available_commands_update"))
    assert len(other.updates) == 1  # and no history
    await resumed.say("write b.txt: b")
    assert not resumed.asked
    assert (workspace / "b.txt").exists()


async def test_an_edit_is_replayed_as_it_was(code: Talk, workspace: Path) -> None:
    """Also after the file has changed; of a secret only what is new is stored."""
    (workspace / "big.txt").write_text("x" * 300_000)
    (workspace / "bytes.txt").write_bytes(b"\xff")
    (workspace / "b.txt").write_text("two\nthree")
    (workspace / ".env").write_text("KEY=old")
    code.answer = choosing("once")
    for step in (
        "write a.txt: one",
        "write a.txt: two",
        "replace three with four in b.txt",
        "write big.txt: small",
        "write bytes.txt: text",
        "write .env: KEY=new",
    ):
        assert await code.say(step) == "end_turn"
    live = code.results
    (workspace / "bytes.txt").unlink()
    (workspace / "bytes.txt").symlink_to("/etc/hosts")
    replayed = (await code.replayed()).of("tool_call")
    assert {call.status for call in replayed} == {"completed"}
    olds = [getattr(call.content[0], "old_text", "none") for call in replayed]
    assert olds == [None, "one", "three", "none", "none", "none"]
    assert [call.content for call in replayed[:3]] == live[:3]
    assert replayed[2].locations[0].line == 2
    assert "KEY=old" not in str(code.editor.updates)
    assert "KEY=new" in str(replayed[5].content)


async def test_a_session_is_loaded_while_it_works(code: Talk) -> None:
    code.answer = choosing("once")
    turn = await code.begin(f"read x & run echo begun; {WAIT_FOR_GO}", code.has_printed)
    code.editor.updates.clear()
    code = await code.editor.load(code)
    titles = [title for title, _ in code.ends]
    assert [statuses[-1] for _, statuses in code.calls] == ["failed", "in_progress"]
    (code.cwd / "go").touch()
    assert await turn == "end_turn"
    assert code.ends == list(zip(titles, ["failed", "completed"], strict=True))
    assert len(code.said) > 0


async def test_a_session_that_is_closed_at_once_asks_nothing(place: UserFolders) -> None:
    """In this process: over a pipe the question may come before the closing arrives."""
    settings = place.settings(sessions=place.root / "s.sqlite")
    async with (
        open_threads(settings, settings.sessions) as (database, saver, store),
        Sessions.open(settings.sessions, database) as sessions,
    ):
        editor, tasks_before = Editor(never), asyncio.all_tasks()
        agents = AgentCache(settings, saver, store)
        there = transport.Editor(cast("Any", editor), schema.ClientCapabilities(), AsyncMock())
        agent: Any = EditorAgent(there, agents, sessions)
        editor.agent = agent
        talk = await editor.talk(place.workspace, "code")
        turn = await talk.begin_asking("write a.txt: a")
        await agent.leave()
        assert await turn == "cancelled"
        editor.reset()
        for resume in (False, True):
            await editor.load(talk, resume=resume)
            await talk.close()
            while tasks := asyncio.all_tasks() - tasks_before:
                await asyncio.wait(tasks)
            assert not talk.asked
        await editor.load(talk)
        await editor.until(lambda: "is asked with your next message" in talk.said)
        await talk.close()


# Closing and listing.


async def test_closing_cancels_and_refuses_what_comes_then(code: Talk) -> None:
    code.answer = choosing("once")
    turn = await code.begin("run echo begun; sleep 600; touch late", code.has_printed)
    end = asyncio.create_task(code.close())
    await asyncio.sleep(0)
    with pytest.raises(RequestError) as refused:
        await code.say("write a.txt: a")
    assert refused.value.code == -32002
    await end
    assert await turn == "cancelled"
    assert not list(code.cwd.iterdir())
    await code.editor.load(code)
    assert await code.say("hello") == "end_turn"


async def test_sessions_are_listed(talk: Talk) -> None:
    second = talk.cwd / "second"
    second.mkdir()
    other = await talk.editor.talk(second)
    await talk.say("hello\nthere")
    listed = await talk.editor.list()
    assert [(session.session_id, session.cwd, session.title) for session in listed[:2]] == [
        (talk.id, str(talk.cwd), "hello there"),
        (other.id, str(second), None),
    ]
    assert listed[0].updated_at is not None
    assert [session.session_id for session in await talk.editor.list(cwd=str(second))] == [other.id]
    assert await talk.editor.list(cwd=str(talk.cwd.parent)) == []
    for wrong in ({"cwd": "here"}, {"cursor": "100"}):
        with pytest.raises(RequestError) as refused:
            await talk.editor.list(**wrong)
        assert refused.value.code == -32602


# What is refused.


async def test_a_workspace_is_an_existing_folder(talk: Talk, workspace: Path) -> None:
    (workspace / "file").touch()
    wrong = ("relative", "", "/no/such/folder", f"{workspace}/file", "/", f"/{'x' * 300}", "/a\0")
    for cwd in wrong:
        with pytest.raises(RequestError) as refused:
            await talk.editor.agent.new_session(cwd=cwd, mcp_servers=[])
        assert refused.value.code == -32602, cwd
    with pytest.raises(RequestError, match="additional directories"):
        await talk.editor.agent.new_session(
            cwd=str(workspace), mcp_servers=[], additional_directories=["/"]
        )
    workspace.rename(workspace.parent / "elsewhere")
    with pytest.raises(RequestError, match="is not an existing folder"):
        await talk.say("list")
    (workspace.parent / "elsewhere").rename(workspace)
    assert await talk.say("list") == "end_turn"
    for cwd in wrong:
        if cwd.startswith("/") and "\0" not in cwd:
            assert await talk.editor.list(cwd=cwd) == []


async def test_a_session_that_does_not_exist_is_not_found(
    editor: Editor, other: Editor, workspace: Path
) -> None:
    known = await editor.talk(workspace)
    for wrong in ("nobody", "", "../../etc", "00000000-0000-0000-0000-000000000000"):
        talk = Talk(editor, wrong, workspace, None)
        for asking in (
            editor.load(talk),
            editor.load(talk, resume=True),
            talk.close(),
            talk.choose("mode", "code"),
            talk.say("hello"),
        ):
            with pytest.raises(RequestError) as refused:
                await asking
            assert refused.value.code == -32002
        await talk.cancel()
    elsewhere = Talk(other, known.id, workspace.parent, None)
    with pytest.raises(RequestError, match="belongs to the folder"):
        await other.load(elsewhere)
    with pytest.raises(RequestError, match="no session"):
        await elsewhere.say("hello")


async def test_a_session_opens_whatever_mcp_servers_the_editor_has(
    editor: Editor, workspace: Path
) -> None:
    """Zed sends all that are configured to every agent. Opening starts none of them."""
    started = workspace / "started"
    stdio = schema.McpServerStdio(
        name="files", command="/usr/bin/touch", args=[str(started)], env=[]
    )
    sse = schema.SseMcpServer(type="sse", name="old", url="https://x.example/sse", headers=[])
    odd = schema.HttpMcpServer(type="http", name="o\u200bdd", url="https://x.example", headers=[])
    opened = await editor.agent.new_session(
        cwd=str(workspace), mcp_servers=[stdio, stdio, sse, odd]
    )
    said = (
        "> Notice: MCP servers of the editor that are left out: 'files' (its name is not one line "
        "of its own); 'old' (the transport 'sse' is not supported); 'o\\u200bdd' (its name is not"
    )
    talk = Talk(editor, opened.session_id, workspace, opened)
    await editor.until(lambda: talk.of("available_commands_update"))
    assert not talk.said, "there is no turn yet"
    await talk.say("/status")
    assert talk.said.startswith(said)
    assert not started.exists()


async def test_a_mode_without_its_model_cannot_be_chosen_and_one_that_follows_is_shown(
    place: UserFolders,
) -> None:
    rests = {"surgeon": "    model: openai:gpt-5.5\n", "first": "    then: second\n", "second": ""}
    modes = (modes_file(slug, rest=rest).partition("\n")[2] for slug, rest in rests.items())
    place.global_modes.write_text("customModes:\n" + "".join(modes))
    async with editing(place.root) as editor:
        talk = await editor.talk(place.workspace)
        for asking in (talk.choose("mode", "surgeon"), talk.say("/surgeon hello")):
            with pytest.raises(RequestError, match="OPENAI_API_KEY"):
                await asking
        assert await talk.say("hello") == "end_turn"
        assert not talk.of("current_mode_update")
        for said in ("/first hello", "hello", "/first hello"):
            assert await talk.say(said) == "end_turn"
            assert talk.shown == ("second", "manual")


async def test_a_missing_key_shows_the_login_card(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path, {"MODEL": "openai:gpt-5.5"}) as editor:
        for opening in (editor.talk(workspace), editor.agent.authenticate(method_id="key")):
            with pytest.raises(RequestError, match="OPENAI_API_KEY") as refused:
                await opening
            assert refused.value.code == -32000
            assert refused.value.data["authMethods"][0]["id"] == "key"  # type: ignore[index]
            assert refused.value.data["details"] == str(refused.value)  # type: ignore[index]
        assert await editor.list() == []


# Modes of the workspace's own.


async def test_a_trusted_workspaces_modes_come_and_go(place: UserFolders) -> None:
    place.project_modes.write_text(modes_file("surgeon", groups="read, edit"))
    async with editing(place.root) as editor:
        talk = await editor.talk(place.workspace)
        assert "surgeon" not in str(talk.opened)
        await talk.say("hello")
        before = len(talk.said)
        assert "rules of its own" in talk.said
        place.trust()
        await talk.say("hello")
        assert "Notice" not in talk.said[before:]
        for kind in ("config_option_update", "available_commands_update"):
            assert "surgeon" in str(talk.of(kind)[-1])
        assert await talk.say("/surgeon write a.txt: a") == "cancelled"
        assert talk.kinds_asked == ["edit"]
        place.project_modes.unlink()
        assert await talk.say("hello") == "end_turn"
        assert talk.shown == ("ask", "manual")


async def test_a_copy_goes_on_by_itself(code: Talk, editor: Editor, workspace: Path) -> None:
    """With the messages, what was chosen, and the question that waits."""
    await code.say("hello")
    turn = await code.begin_asking("write a.txt: a")
    await code.editor.agent.set_config_option(
        session_id=code.id, config_id="approvals", value="auto"
    )
    forked = await code.editor.agent.fork_session(session_id=code.id, cwd=str(workspace))
    copy = Talk(editor, forked.session_id, workspace, forked)
    assert copy.shown == ("code", "auto")
    await code.cancel()
    await turn
    code.answer = choosing("once")
    assert await copy.say("hello again") == "end_turn"
    assert copy.kinds_asked == ["edit"]
    assert (workspace / "a.txt").read_text() == "a"
    assert "hello again" not in str((await code.replayed()).of("user_message_chunk"))
    copied = str((await copy.replayed()).of("user_message_chunk"))
    assert "text='hello'" in copied
    assert "text='hello again'" in copied
    with pytest.raises(RequestError, match="belongs to the folder"):
        await code.editor.agent.fork_session(session_id=code.id, cwd=str(workspace.parent))
    for spelled in (UUID(code.id).hex, code.id.upper()):
        with pytest.raises(RequestError, match="there is no session"):
            await code.editor.agent.load_session(session_id=spelled, cwd=str(workspace))


async def test_a_deleted_session_is_gone(code: Talk, editor: Editor, other: Editor) -> None:
    async def delete(window: Editor) -> Any:
        return await window.agent._conn.send_request("session/delete", {"sessionId": code.id})

    turn = await code.begin_asking("write a.txt: a")
    with pytest.raises(RequestError, match="another process"):
        await delete(other)
    assert await delete(editor) == {}
    assert await turn == "cancelled"
    assert await delete(editor) == {}  # again: no error, says the protocol
    assert code.id not in [
        session.session_id for session in await code.editor.list(cwd=str(code.cwd))
    ]
    with pytest.raises(RequestError, match="there is no session"):
        await code.editor.load(code)
    assert not list(code.cwd.iterdir())
