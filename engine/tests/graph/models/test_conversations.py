"""Whole conversations with each provider's own client: what the agent did, and what it was sent."""

from pathlib import Path

import pytest

from tests.graph.conftest import Serve
from tests.harness.conversation import Conversation, make_agent
from tests.harness.recording import MODELS
from tests.provider.script import call, say
from tests.tools.mcp.servers import managed, raw

ADD = "def add(a, b):\n    return a - b\n"
CHECK = (
    "from add import add\n\n"
    "found = add(2, 3)\n"
    "print('ok' if found == 5 else f'FAILED: add(2, 3) is {found}, not 5')\n"
    "raise SystemExit(found != 5)\n"
)
# Without -B the change, of the same length in the same second, would not be seen: Python
# would take the first run's bytecode for that of the changed file.
RUN = call("execute_command", command="python3 -B check.py")
MEND = call("edit_file", path="add.py", edits=[{"old": "return a - b", "new": "return a + b"}])


@pytest.mark.parametrize("name", MODELS)
async def test_plan_then_code(
    serve: Serve, workspace: Path, name: str, *, is_streamed: bool
) -> None:
    (workspace / "add.py").write_text(ADD)
    (workspace / "check.py").write_text(CHECK)
    plan = "# Plan\n\n1. Let `add` in `add.py` add.\n2. Run `check.py`.\n"
    steps = [
        call("switch_mode", mode_slug="architect", reason="A plan is wanted first."),
        call("read_file", text="I look at it first.", path="add.py"),
        call("write_file", path="plan.md", content=plan),
        call("switch_mode", mode_slug="code", reason="The plan is written."),
        *(MEND, RUN),
        call("attempt_completion", result="add.py adds now; check.py says ok."),
    ]
    with serve(steps, name):
        talk = Conversation(make_agent(workspace, MODELS[name]), is_streamed=is_streamed)
        await talk.say("check.py fails. Plan the mending of add.py, then mend it.")
        asked = await talk.approve_all()
    records = (await talk.values())["mode_changes"]
    changes = [(record["source"], record["target"], record["decided_by"]) for record in records]
    assert changes == [("ask", "architect", "human"), ("architect", "code", "human")]
    assert asked == [
        *["switch_mode", "write_file"],
        *["switch_mode", "edit_file"],
        "execute_command",
    ]
    results = [result.text for result in (await talk.results()).values()]
    assert any("\nok" in text for text in results), "the check was run"
    assert (await talk.messages())[-1].text == "add.py adds now; check.py says ok."


@pytest.mark.parametrize("name", MODELS)
async def test_a_call_of_an_mcp_server(serve: Serve, workspace: Path, name: str) -> None:
    with serve([call("mcp__raw__do", what="count"), say("It is done.")], name):
        async with managed(workspace, raw("plain")) as servers:
            talk = Conversation(make_agent(workspace, MODELS[name], servers=servers))
            await talk.say("Call the tool do of the server raw, with what=count.")
            assert await talk.approve_all() == ["mcp__raw__do"]
    (result,) = (await talk.results()).values()
    assert "done with {'what': 'count'}" in result.text
