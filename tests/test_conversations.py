"""Whole conversations in each mode, played as they were recorded: what the agent did.

The steps are what the scripted provider says when `make record` records it. Each test names the
modes that it needs, so that another mode changes no recording; see docs/own/cassettes.md.
"""

from pathlib import Path
from typing import Any

import pytest
from modeshift.testing import APPROVE, REJECT, Conversation, Recorded, edit, judge_call

ADD = "def add(a, b):\n    return a - b\n"
MEND = ("edit_file", {"path": "add.py", "edits": [{"old": "a - b", "new": "a + b"}]})
READ = ("read_file", {"path": "add.py"})


@pytest.fixture
def project(workspace: Path) -> Path:
    """A workspace with a bug."""
    (workspace / "add.py").write_text(ADD)
    return workspace


def to(mode: str, reason: str) -> tuple[str, dict[str, Any]]:
    return "switch_mode", {"mode_slug": mode, "reason": reason}


async def needs_switch(talk: Conversation, source: str, target: str) -> None:
    """Skip the test where the modes' edges do not lead there any more."""
    asked = {"mode_slug": target, "reason": "A test."}
    if (await judge_call(talk.agent, source, "switch_mode", asked)).kind == "deny":
        pytest.skip(f"{source} does not lead to {target} any more")


async def changes(talk: Conversation) -> list[tuple[str, str, str]]:
    """The modes that the thread has come to: from, to, and who decided."""
    records = (await talk.values())["mode_changes"]
    return [(record["source"], record["target"], record["decided_by"]) for record in records]


async def last_words(talk: Conversation) -> str:
    return (await talk.messages())[-1].text


async def test_ask_answers_from_the_files(recorded: Recorded, project: Path) -> None:
    talk = recorded([READ], "It subtracts: `return a - b`, in add.py:2.", modes=["ask"])
    await talk.say("What does add in add.py do?", mode="ask")
    assert await talk.waiting() == [], "reading asks nobody"
    assert "subtracts" in await last_words(talk)
    assert await changes(talk) == []


async def test_architect_writes_the_plan(recorded: Recorded, project: Path) -> None:
    plan = ("write_file", {"path": "PLAN.md", "content": "# Plan\n\nLet `add` add.\n"})
    talk = recorded([READ], [MEND], [plan], "The plan is in PLAN.md.", modes=["architect"])
    await talk.say("Plan the mending of add.py in PLAN.md.", mode="architect")
    assert await talk.approve_all() == ["write_file"]
    assert (await talk.files())["add.py"] == ADD, "it may change Markdown files only"
    assert "PLAN.md" in await talk.files()
    assert [result.status for result in (await talk.results()).values()] == [
        "success",
        "error",
        "success",
    ]


async def test_code_makes_the_change(recorded: Recorded, project: Path) -> None:
    run = ("execute_command", {"command": 'python3 -B -c "import add; print(add.add(2, 3))"'})
    talk = recorded([READ], [MEND], [run], "add.py adds now; add(2, 3) is 5.", modes=["code"])
    await talk.say("add in add.py subtracts. Mend it, and try it.", mode="code")
    assert await talk.approve_all() == ["edit_file", "execute_command"]
    assert "a + b" in (await talk.files())["add.py"]
    assert [result.text for result in (await talk.results()).values()][-1].count("\n5\n") == 1


async def test_debug_proves_the_cause(recorded: Recorded, project: Path) -> None:
    run = ("execute_command", {"command": 'python3 -B -c "import add; print(add.add(2, 3))"'})
    talk = recorded(
        [run], [READ], [MEND], [run], "It subtracted; add(2, 3) was -1 and is 5.", modes=["debug"]
    )
    await talk.say("add(2, 3) of add.py is wrong. Find out why, and mend it.", mode="debug")
    assert await talk.approve_all() == ["execute_command", "edit_file", "execute_command"]
    first, *_, last = [result.text for result in (await talk.results()).values()]
    assert ("\n-1\n" in first, "\n5\n" in last) == (True, True)


async def test_orchestrator_hands_out_a_subtask(recorded: Recorded, project: Path) -> None:
    task = ("new_task", {"mode_slug": "ask", "message": "Say what add in add.py does."})
    talk = recorded(
        [task],
        [READ],
        "add subtracts: add.py:2.",
        "It subtracts, in add.py:2.",
        modes=["orchestrator", "ask"],
    )
    await talk.say("Have somebody find out what add in add.py does.", mode="orchestrator")
    assert await talk.approve_all() == ["new_task"]
    (ended,) = (await talk.values())["subtasks"]
    assert (ended["mode"], ended["status"], ended["files"]) == ("ask", "completed", [])
    assert await talk.mode() == "orchestrator"


async def test_an_approved_switch(recorded: Recorded, project: Path) -> None:
    talk = recorded(
        [to("code", "add.py has to be changed.")], [MEND], "add.py adds now.", modes=["ask", "code"]
    )
    await needs_switch(talk, "ask", "code")
    await talk.say("add in add.py subtracts. Mend it.")
    assert [request["name"] for request in await talk.waiting()] == ["switch_mode"]
    assert await talk.mode() == "ask", "nobody has said yes"
    await talk.decide(APPROVE)
    assert await talk.approve_all() == ["edit_file"]
    assert await changes(talk) == [("ask", "code", "human")]
    assert "a + b" in (await talk.files())["add.py"]


async def test_a_redirected_switch(recorded: Recorded, project: Path) -> None:
    plan = ("write_file", {"path": "PLAN.md", "content": "Let `add` in add.py add.\n"})
    talk = recorded(
        [to("code", "add.py has to be changed.")],
        [plan],
        "The plan is in PLAN.md.",
        modes=["ask", "code", "architect"],
    )
    await needs_switch(talk, "ask", "code")
    await talk.say("add in add.py subtracts. Do something about it.")
    await talk.decide(edit("switch_mode", mode_slug="architect", reason="Write a PLAN.md first."))
    assert await talk.approve_all() == ["write_file"]
    assert await changes(talk) == [("ask", "architect", "human")]
    assert (await talk.files())["add.py"] == ADD


async def test_a_rejected_switch(recorded: Recorded, project: Path) -> None:
    talk = recorded(
        [to("code", "Writing needs Code mode.")],
        "Replace the minus by a plus.",
        modes=["ask", "code"],
    )
    await needs_switch(talk, "ask", "code")
    await talk.say("add in add.py subtracts. Mend it.")
    await talk.decide({**REJECT, "message": "No; only tell me how I would do it."})
    assert (await talk.mode(), await changes(talk)) == ("ask", [])
    (result,) = (await talk.results()).values()
    assert (result.status, "only tell me how" in result.text) == ("error", True)
    assert await talk.files() == {"add.py": ADD}


async def test_a_plan_and_then_the_change(recorded: Recorded, project: Path) -> None:
    plan = ("write_file", {"path": "PLAN.md", "content": "# Plan\n\n1. Let `add` add.\n"})
    talk = recorded(
        [READ],
        [plan],
        [to("code", "PLAN.md is written: let add add.")],
        [("read_file", {"path": "PLAN.md"})],
        [MEND],
        [("attempt_completion", {"result": "add.py adds now, as PLAN.md says."})],
        modes=["architect", "code"],
    )
    await talk.say("Plan the mending of add.py in PLAN.md; then do it.", mode="architect")
    assert await talk.approve_all() == ["write_file", "switch_mode", "edit_file"]
    assert (await changes(talk))[-1] == (
        "architect",
        "code",
        "human",
    )
    assert "a + b" in (await talk.files())["add.py"]
    assert "PLAN.md" in await talk.files()
