"""A thread that another process goes on with, with each provider, replayed."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from tests.graph.replay.test_conversations import changes, talk_of, went_well
from tests.harness import prefork
from tests.harness.recording import Begin
from tests.provider.script import call, say


async def test_a_resume_in_a_new_process(begin: Begin, workspace: Path, tmp_path: Path) -> None:
    tape = begin(
        [
            call("switch_mode", mode_slug="code", reason="Writing a file needs code mode."),
            call("write_file", path="hello.txt", content="hello\n"),
            say("hello.txt is written."),
        ]
    )
    database = tmp_path / "threads.sqlite"
    async with AsyncSqliteSaver.from_conn_string(str(database)) as saver:
        talk = talk_of(tape, workspace, saver=saver)
        await talk.say("Write hello to hello.txt.")
        assert [request["name"] for request in await talk.waiting()] == ["switch_mode"]
    if tape.replay is None:  # what is sent is the same in one process
        async with AsyncSqliteSaver.from_conn_string(str(database)) as saver:
            later = talk_of(tape, workspace, saver=saver)
            later.config = talk.config
            asked = await later.approve_all()
    else:
        handed_over = {
            "workspace": str(workspace),
            "database": str(database),
            "thread": talk.config["configurable"]["thread_id"],
            "cassette": str(tape.cassette.path),
            "played": tape.hand_over(),
            "provider": tape.provider,
            "streamed": tape.is_streamed,
            "replaced": tape.replaced,
        }
        arguments = ("tests.harness.resume", json.dumps(handed_over))
        done = await asyncio.to_thread(prefork.run, *arguments, env=os.environ)
        if done.returncode:
            pytest.fail(done.stderr, pytrace=False)
        asked = json.loads(done.stdout)
    assert asked == ["switch_mode", "write_file"]
    assert (workspace / "hello.txt").read_text().strip() == "hello"
    async with AsyncSqliteSaver.from_conn_string(str(database)) as saver:
        later = talk_of(tape, workspace, saver=saver)
        later.config = talk.config
        await went_well(later)
        assert (await later.mode(), await changes(later)) == ("code", [("ask", "code", "human")])
