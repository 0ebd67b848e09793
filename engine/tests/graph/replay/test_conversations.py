"""Whole conversations with each provider, replayed: what the agent did, not only what it said."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from modeshift import APPROVE
from modeshift.modes.catalog import Catalog
from modeshift.threads.deps import StartedCalls
from modeshift.threads.journal import Journal
from tests.graph.calls import asks
from tests.harness import prefork
from tests.harness.conversation import Conversation, make_agent, problems
from tests.harness.modes import load_catalog
from tests.harness.recording import MODELS, Begin, Tape
from tests.provider.script import Answer, Call, call, say
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

HAND = "You hand out sub-tasks, one after the other, and put the results together."
PARTS: list[tuple[str, list[str]]] = [("ask", []), ("code", ["add.py"]), ("debug", [])]


@pytest.fixture
def project(workspace: Path) -> Path:
    """A workspace with a bug, and a check that finds it."""
    (workspace / "add.py").write_text(ADD)
    (workspace / "check.py").write_text(CHECK)
    return workspace


def talk_of(tape: Tape, workspace: Path, **options: Any) -> Conversation:
    agent = make_agent(workspace, MODELS[tape.provider], **options)
    return Conversation(agent, is_streamed=tape.is_streamed)


async def went_well(talk: Conversation) -> list[str]:
    """Approve what waits; an answer stands at the end, and any provider takes the history.

    Gives the names of what was asked about.
    """
    asked = await talk.approve_all()
    messages = await talk.messages()
    assert isinstance(messages[-1], AIMessage)
    assert messages[-1].text
    assert problems(messages) == []
    return asked


async def changes(talk: Conversation) -> list[tuple[str, str, str]]:
    """The mode record."""
    return [
        (record["source"], record["target"], record["decided_by"])
        for record in (await talk.values())["mode_changes"]
    ]


async def test_plan_then_code(begin: Begin, project: Path) -> None:
    plan = "# Plan\n\n1. Let `add` in `add.py` add.\n2. Run `check.py`.\n"
    tape = begin(
        [
            call("switch_mode", mode_slug="architect", reason="A plan is wanted first."),
            call("read_file", text="I look at it first.", path="add.py"),
            call("write_file", path="plan.md", content=plan),
            call("switch_mode", mode_slug="code", reason="The plan is written."),
            MEND,
            RUN,
            call("attempt_completion", result="add.py adds now; check.py says ok."),
        ]
    )
    talk = talk_of(tape, project)
    await talk.say(
        "check.py fails. Plan the mending of add.py in architect mode and write the plan to "
        "plan.md, then switch to code mode, mend it, and run python3 -B check.py."
    )
    asked = await went_well(talk)
    assert (project / "plan.md").read_text().strip()
    assert "a + b" in (project / "add.py").read_text()
    assert await changes(talk) == [("ask", "architect", "human"), ("architect", "code", "human")]
    assert asked.count("switch_mode") == 2
    assert {"write_file", "execute_command"} <= set(asked), "nothing was done unasked"
    results = [result.text for result in (await talk.results()).values()]
    assert any("\nok" in text for text in results), "the check was run"


async def test_from_plan_to_change_and_back(begin: Begin, project: Path, tmp_path: Path) -> None:
    """The plan is turned down with a comment, changed, approved, kept to, and all is undone."""
    before = {file.name: file.read_text() for file in project.iterdir()}
    plan = "# Plan\n\n1. Let `add` add.\n\n## Files\n\n- `add.py`\n"
    wanted = [{"old": "Let `add` add.", "new": "Let `add` add; then run `check.py`."}]
    switch = call("switch_mode", mode_slug="code", reason="The plan is written.")
    tape = begin(
        [
            *(call("write_file", path="plan.md", content=plan), switch),
            *(call("edit_file", path="plan.md", edits=wanted), switch, MEND),
            call("write_file", path="check.py", content="print('ok')\n"),
            say("add.py adds now; check.py stays as it is."),
        ]
    )
    started_calls = StartedCalls(Journal(beside=tmp_path / "threads"), undo_days=1)
    talk = talk_of(tape, project, started_calls=started_calls)
    await talk.say(
        "add.py subtracts. Write the plan to mend it to plan.md, with a section Files that names "
        "add.py alone, then switch to code mode, mend it, and write check.py anew.",
        mode="architect",
    )
    await talk.decide(APPROVE)
    (asked,) = await talk.waiting()
    assert asked["plan"]["paths"] == ["add.py"]
    comment = "line 3: 1. Let `add` add. - Run the check, too."
    await talk.decide({"type": "reject", "message": comment})
    await talk.decide(APPROVE)
    (asked,) = await talk.waiting()
    assert "check.py" in asked["plan"]["text"]
    await talk.decide({"type": "approve", "approvals": "auto"})
    (asked,) = await talk.waiting()
    assert "a + b" in (project / "add.py").read_text(), "the plan names it, so nobody was asked"
    assert "'plan.md' does not name 'check.py'" in asked["description"]
    await talk.decide({"type": "reject"})
    assert await went_well(talk) == []
    assert comment in str(await talk.messages())
    preview = await talk.thread.undo()
    assert {*preview["files"]} == {"add.py", "plan.md"}
    await talk.thread.undo("last", preview["digest"])
    assert {file.name: file.read_text() for file in project.iterdir()} == before
    assert await talk.messages() == []
    values = await talk.values()
    assert (values["mode"], values["approvals"]) == ("ask", "manual"), "as before it began"


@pytest.mark.parametrize("provider", ["anthropic"])
async def test_thoughts_through_two_switches(begin: Begin, project: Path) -> None:
    """Each mode has a prompt and tools of its own: what was thought before it fits no more."""

    def thinking(text: str, name: str, **args: Any) -> Answer:
        return Answer(calls=(Call(name, args),), thinking=text)

    tape = begin(
        [
            thinking("I look at it.", "read_file", path="add.py"),
            thinking("A plan.", "switch_mode", mode_slug="architect", reason="A plan first."),
            thinking("It subtracts.", "write_file", path="plan.md", content="Let it add.\n"),
            thinking("Now do it.", "switch_mode", mode_slug="code", reason="It is planned."),
            Answer("I mend it.", MEND.calls, thinking="A plus."),
            Answer("add.py adds now.", thinking="Done."),
        ]
    )
    talk = talk_of(tape, project)
    await talk.say(
        "add.py subtracts. Look at it, plan the mending in plan.md in architect mode, then mend "
        "it in code mode."
    )
    await went_well(talk)
    assert "a + b" in (project / "add.py").read_text()
    assert await changes(talk) == [("ask", "architect", "human"), ("architect", "code", "human")]
    answers = [message for message in await talk.messages() if isinstance(message, AIMessage)]
    if not tape.is_streamed:  # LangChain drops what a stream says of it
        told = [answer.response_metadata["input_transformations"] for answer in answers]
        assert told == [[]] * len(answers), "nothing is sent that the service would have to drop"
    assert all(answer.content[0]["type"] == "thinking" for answer in answers), "all of it is kept"  # type: ignore[index]  # a list of blocks


async def test_three_parts_of_an_orchestrator(begin: Begin, project: Path) -> None:
    report = "add in add.py subtracts: `return a - b`."
    told = "Look at add.py in this folder and say what is wrong with add. Change nothing."
    mend = "In add.py, add returns a - b; let it return a + b. Change nothing else."
    check = "Run python3 -B check.py and report what it says."
    tape = begin(
        [
            *(call("new_task", mode_slug="ask", message=told), call("read_file", path="add.py")),
            *(say(report), call("new_task", mode_slug="code", message=mend), MEND),
            call("attempt_completion", result="add.py: add returns a + b now."),
            call("new_task", mode_slug="debug", message=check),
            RUN,
            say("check.py says ok."),
            say("add.py subtracted; it adds now, and check.py says ok."),
        ]
    )
    known = load_catalog()
    orchestrator = known["ask"].model_copy(
        update={"slug": "orchestrator", "name": "Orchestrator", "groups": (), "how_to_work": HAND}
    )
    catalog = Catalog([*(known[slug] for slug in known), orchestrator], "ask")
    talk = talk_of(tape, project, catalog=catalog)
    await talk.say(
        "check.py fails. Have it done in three sub-tasks: in ask mode, find what is wrong with "
        "add.py; in code mode, mend it; in debug mode, run python3 -B check.py.",
        mode="orchestrator",
    )
    asked = await went_well(talk)
    assert asked.count("new_task") == 3
    assert "a + b" in (project / "add.py").read_text()
    values = await talk.values()
    ended = [
        (subtask["mode"], subtask["status"], subtask["files"]) for subtask in values["subtasks"]
    ]
    assert ended == [(mode, "completed", files) for mode, files in PARTS]
    assert (values["mode"], values["parents"]) == ("orchestrator", [])
    assert problems(values["subtasks"][1]["messages"]) == []


async def test_parallel_reads(begin: Begin, project: Path) -> None:
    reads = (Call("read_file", {"path": "add.py"}), Call("read_file", {"path": "check.py"}))
    tape = begin([Answer("I read both.", reads), say("check.py tests add.py, which subtracts.")])
    talk = talk_of(tape, project)
    await talk.say("Read add.py and check.py, both at once, and say in a sentence what they do.")
    await went_well(talk)
    both = await talk.results()
    assert ["a - b" in both[id].text or "found == 5" in both[id].text for id in both] == [True] * 2
    assert [len(m.tool_calls) for m in await talk.messages() if isinstance(m, AIMessage)] == [2, 0]


async def test_a_call_of_an_mcp_server(begin: Begin, project: Path) -> None:
    tape = begin([call("mcp__raw__do", what="count"), say("It is done.")])
    async with managed(project, raw("plain")) as servers:
        talk = talk_of(tape, project, servers=servers)
        await talk.say("Call the tool do of the server raw, with what=count.")
        asked = await went_well(talk)
    assert asked == ["mcp__raw__do"]
    (result,) = (await talk.results()).values()
    assert "done with {'what': 'count'}" in result.text


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
        assert await asks(talk) == ["switch_mode"]
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
