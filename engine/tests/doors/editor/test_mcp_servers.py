"""MCP servers that an editor has: a real one, for its session alone."""

import json
import sys
from pathlib import Path

import pytest
from acp import schema

from tests.doors.editor.editor import Editor, Talk, choosing
from tests.tools.mcp.servers import RAW

pytestmark = pytest.mark.asyncio(loop_scope="session")


def make_server(name: str, *args: object, **environment: str) -> schema.McpServerStdio:
    env = [schema.EnvVariable(name=key, value=value) for key, value in environment.items()]
    return schema.McpServerStdio(
        name=name, command=sys.executable, args=[str(one) for one in args], env=env
    )


async def test_its_tools_are_in_its_session_alone(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once")
    for name in ("one", "two"):
        own = make_server("own", "-S", RAW, "environment", MINE=name)
        opened = await editor.agent.new_session(cwd=str(workspace), mcp_servers=[own])
        talk = Talk(editor, opened.session_id, workspace, opened)
        await talk.say("call mcp__own__do")
        assert [call.kind for call in talk.asked] == ["other"]
        assert f'"MINE": "{name}"' in str(talk.results)
    editor.answer = choosing("reject")
    other = await editor.talk(workspace)
    await other.say("call mcp__own__do")
    assert other.kinds_asked == ["switch_mode"], "no mode has the tool here"


async def test_all_tools_of_a_server_are_allowed_at_once(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("always-server", "reject")
    tools = json.dumps([{"name": "one"}, {"name": "two"}])
    servers = [make_server(name, "-S", RAW, "plain", tools) for name in ("a", "b")]
    opened = await editor.agent.new_session(cwd=str(workspace), mcp_servers=[*servers])
    talk = Talk(editor, opened.session_id, workspace, opened)
    for tool in ("a__one", "a__two", "b__one"):
        await talk.say(f"call mcp__{tool}")
    assert "Always in this session: all of mcp__a" in talk.options_asked[0]
    assert len(talk.asked) == 2
    assert str(talk.results).count("done with") == 2
