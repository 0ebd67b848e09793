"""Sub-tasks: their rights, what comes back, and what becomes of one that is cut off."""

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from modeshift.modes.errors import InvalidInputError, ProviderError
from modeshift.modes.policy import Approvals
from modeshift.threads.mailbox import Mailbox
from tests.graph.calls import ALWAYS, DONE, asks, read, result_of, suggest, task, to, write
from tests.harness.conversation import (
    APPROVE,
    REJECT,
    Conversation,
    Step,
    edit,
    make_agent,
    restart,
    run_script,
    script,
)
from tests.harness.modes import with_orchestrator
from tests.harness.scripted import Call
from tests.tables import cases, rows

WRITE = write("a.py")
PARTS = "task in ask: read a.txt\ntask in code: write b.txt: b | write c.txt: c\ntask in ask: list"


async def test_three_parts_and_a_crash_in_the_second(workspace: Path) -> None:
    """The orchestrator's, with the offline model; another process goes on."""
    (workspace / "a.txt").write_text("text")
    saver, catalog = InMemorySaver(), with_orchestrator()

    def new_process() -> Any:
        return make_agent(workspace, saver=saver, catalog=catalog)

    talk = Conversation(new_process())
    await talk.say(PARTS, mode="orchestrator")
    await talk.decide(APPROVE)  # ask
    await talk.decide(APPROVE)  # code
    (asked,) = await talk.waiting()
    assert asked["description"].startswith(
        "Code mode (in the sub-task 'write b.txt: b write c.txt: c') wants to use write_file"
    )
    await talk.send_until("act", Command(resume={"decisions": [APPROVE]}))
    assert await talk.mode() == "code"
    talk.agent = new_process()
    await talk.send(None)
    values = await talk.values()
    assert (values["subtask"]["mode"], len(values["parents"])) == ("code", 1)
    assert await talk.approve_all() == ["write_file", "new_task"]
    values = await talk.values()
    assert await talk.files() == {"a.txt": "text", "b.txt": "b", "c.txt": "c"}
    ended = [(each["mode"], each["status"], each["files"]) for each in values["subtasks"]]
    files: list[list[str]] = [[], ["b.txt", "c.txt"], []]
    modes = ("ask", "code", "ask")
    assert ended == [(mode, "completed", n) for mode, n in zip(modes, files, strict=True)]
    assert (values["mode"], values["subtask"], values["parents"]) == ("orchestrator", None, [])
    results = [result.text for result in (await talk.results()).values()]
    assert "text" in results[0]
    assert "Files written: b.txt, c.txt." in results[1]
    assert all("<data-" in result for result in results)
    assert values["usage"]["thread"]["modeshift-offline"]["answers"] == 11
    inner = [message for each in values["subtasks"] for message in each["messages"]]
    ids = [call["id"] for each in inner for call in getattr(each, "tool_calls", [])]
    ids += await talk.results()
    assert len(ids) == len(set(ids)), "clients tell calls apart by them"
    said = [message.text for message in values["subtasks"][1]["messages"]]
    assert said[0] == "write b.txt: b\nwrite c.txt: c", "readable afterwards"


async def test_it_sees_its_own_conversation_and_the_parent_its_result(workspace: Path) -> None:
    todos = [{"content": "first"}]
    talk = script(workspace, [task(todos=todos)], "All is done.", "I see.")
    await talk.say("the secret of the parent")
    (asked,) = await talk.waiting()
    assert asked["description"].endswith("It is told:\nDo it.\n- first (pending)")
    await talk.decide(APPROVE)
    parent, child, after = talk.model.asked
    assert "secret" not in str(child.messages[1:])
    assert [message.type for message in child.messages] == ["system", "human"]
    for words in ("Do it.", "You are in Code mode now.", "# A sub-task", "first (pending)"):
        assert words in child.messages[1].text
    assert parent.tools - child.tools == {"switch_mode", "new_task"}
    assert after.tools == parent.tools
    assert after.messages[: len(parent.messages)] == parent.messages, "nothing before it changes"
    assert "All is done." in after.messages[-1].text
    assert (await talk.values())["todos"] == []


@pytest.mark.parametrize("approvals", Approvals)
@rows(
    "mode call",
    ("ask", WRITE),
    ("architect", WRITE),
    ("ask", to("code")),
    ("ask", task("code")),
    ("ask", suggest("code")),
    ("code", to("debug")),
    ids=["its mode has no such tool", "its mode edits other files", "switch", "grandchild",
         "an answer that switches", "sideways"],
)  # fmt: skip
async def test_a_child_writes_nothing_that_its_mode_may_not(
    workspace: Path, mode: str, call: Call, approvals: Approvals
) -> None:
    """From a parent in code mode, whose rights do not count."""
    steps: list[Step] = [[task(mode)], [call], [WRITE], "end"]
    talk = await run_script(workspace, *steps, approvals=approvals, mode="code")
    assert await asks(talk) == ["new_task"]
    await talk.decide(APPROVE)
    if mode == "code":
        assert approvals == "auto" or await talk.approve_all() == ["write_file"]
        assert await talk.mode() == "code"
        return
    assert await talk.waiting() == [], "nobody is asked about what cannot be"
    assert not (workspace / "a.py").exists()
    (ended,) = (await talk.values())["subtasks"]
    assert {message.status for message in ended["messages"] if message.type == "tool"} == {"error"}


async def test_a_call_of_a_withheld_tool_is_refused_to_the_set_depth(workspace: Path) -> None:
    tasks: list[Step] = [[task("ask")], [task("code")], [task("code")]]
    talk = await run_script(workspace, *tasks, [WRITE], "inner", "outer", "end", subtask_depth=2)
    assert await talk.approve_all() == ["new_task", "new_task", "write_file"]
    inner, outer = (await talk.values())["subtasks"]
    assert (inner["mode"], inner["result"], inner["files"]) == ("code", "inner", ["a.py"])
    assert "There is no new_task in a sub-task at depth 2" in str(inner["messages"])
    assert (outer["mode"], outer["result"], outer["files"]) == ("ask", "outer", ["a.py"])
    none = await run_script(workspace, [task("code")], subtask_depth=0)
    assert await none.waiting() == []
    assert "new_task" not in none.model.asked[0].tools


async def test_what_is_remembered_holds_on_neither_side(workspace: Path) -> None:
    steps: list[Step] = [[WRITE], [task()], [WRITE], [WRITE], "end", [WRITE], "end"]
    always = {**APPROVE, "remember": "*.py"}
    talk = await run_script(workspace, *steps, mode="code")
    await talk.decide(always)
    await talk.decide(APPROVE)
    assert (await talk.values())["remembered"] == []
    assert await asks(talk) == ["write_file"], "the parent's is not"
    await talk.decide(ALWAYS)  # once more, unasked, then the parent
    assert await talk.waiting() == []
    (kept,) = (await talk.values())["remembered"]
    assert kept["pattern"] == "*.py"
    other = await run_script(workspace, [task()], [WRITE], "end", [WRITE], "end", mode="code")
    await other.decide(APPROVE)
    await other.decide(always)
    assert await asks(other) == ["write_file"], "nor the child's"


@pytest.mark.parametrize("way", ["a run", "beside it"])
async def test_forgetting_reaches_the_parent(workspace: Path, way: str) -> None:
    steps: list[Step] = [[WRITE], [task()], [WRITE], "end", [WRITE]]
    talk = await run_script(workspace, *steps, mode="code", store=InMemoryStore())
    await talk.decide({**APPROVE, "remember": "*.py"})
    await talk.decide(APPROVE)
    if way == "a run":
        await talk.send({"forget": "all"})
    else:
        (kept,) = (await talk.values())["parents"][-1]["remembered"]
        thread = talk.config["configurable"]["thread_id"]
        await Mailbox(talk.agent.store).put(thread, {"forget": [kept["id"]]})
    assert await asks(talk) == ["write_file"]
    await talk.decide(REJECT)
    assert await asks(talk) == ["write_file"]
    assert (await talk.values())["remembered"] == []


@pytest.mark.parametrize("policy", ["auto", "manual"])
async def test_approvals_of_the_child_end_with_it(workspace: Path, policy: str) -> None:
    before = Approvals.MANUAL if policy == "auto" else Approvals.AUTO
    steps: list[Step] = [[task()], [WRITE], "end", [WRITE], "end"]
    talk = await run_script(workspace, *steps, approvals=before, mode="code")
    await talk.decide({**APPROVE, "approvals": policy})
    assert len(await talk.waiting()) == 1, "of the parent where the child has auto, or the child"
    assert await talk.approve_all() == ["write_file"]
    assert (await talk.values())["approvals"] == before


async def test_what_the_host_sets_in_a_child_is_set_for_the_thread(workspace: Path) -> None:
    talk = await run_script(
        workspace, [task()], [WRITE], "end", [WRITE], "end", approvals=Approvals.AUTO, mode="code"
    )
    await talk.send_until("switch_mode", Command(resume={"decisions": [APPROVE]}))
    await talk.send({"mode": "ask", "approvals": "manual"})
    values = await talk.values()
    assert (values["mode"], values["approvals"]) == ("ask", "manual")
    assert await talk.waiting() == []
    assert not (workspace / "a.py").exists()
    store = InMemoryStore()
    steps: list[Step] = [[task("ask")], [("read_file", {"path": ".env"})], "end", [WRITE]]
    talk = await run_script(workspace, *steps, approvals=Approvals.AUTO, store=store, mode="code")
    await talk.decide({**APPROVE, "approvals": "manual"})
    thread = str(talk.config["configurable"]["thread_id"])
    await Mailbox(store).put(thread, {"mode": "ask", "approvals": "manual"})
    await talk.decide(REJECT)
    values = await talk.values()
    assert (values["mode"], values["approvals"], values["parents"]) == ("ask", "manual", [])
    assert talk.nodes.count("intake") == 1, "review has taken in what the host set"
    assert not (workspace / "a.py").exists()


async def test_a_task_that_is_edited_or_rejected_or_fails(workspace: Path) -> None:
    talk = await run_script(workspace, [task()], [WRITE], "end", [task()], "end")
    await talk.decide(edit("new_task", mode_slug="architect", message="Plan it."))
    (ended,) = (await talk.values())["subtasks"]
    assert (ended["mode"], ended["message"]) == ("architect", "Plan it.")
    assert not (workspace / "a.py").exists()
    await talk.decide({**REJECT, "message": "first the tests"})
    assert "first the tests" in await result_of(talk)
    assert len((await talk.values())["subtasks"]) == 1
    gone = ValueError("the model is gone")
    talk = await run_script(workspace, [task()], gone, "I see.", gone)
    await talk.decide(APPROVE)
    (result,) = (await talk.results()).values()
    assert (result.status, "was not finished: " in result.text) == ("error", True)
    assert (await talk.values())["subtasks"][0]["status"] == "failed"
    assert await talk.mode() == "ask"
    with pytest.raises(ProviderError):
        await talk.say("go on")


async def test_several_of_a_message_are_asked_together_and_done_in_order(workspace: Path) -> None:
    """One goes not beside a switch."""
    tasks = [task("code", "1"), task("ask", "2"), task("ask", "3")]
    talk = await run_script(
        workspace, [tasks[0], to("debug"), *tasks[1:]], [WRITE], "one", "two", "end"
    )
    waiting = await talk.waiting()
    assert [request["description"].splitlines()[-1] for request in waiting] == ["1", "2", "3"]
    named = [{**APPROVE, "id": request["id"]} for request in waiting]
    with pytest.raises(InvalidInputError, match="give one for each of: call_0, call_2, call_3"):
        await talk.decide(*named[1:], APPROVE)
    named[2] |= REJECT
    await talk.decide(*reversed(named))
    (asking,) = await talk.waiting()
    assert asking["description"].startswith("Code mode (in the sub-task '1') wants to use")
    await talk.send_until("end_subtask", Command(resume={"decisions": [APPROVE]}))
    assert "1" not in await talk.results(), "the parent goes on when all have ended"
    restart(talk, workspace)
    await talk.send(None)
    values = await talk.values()
    ended = [(subtask["message"], subtask["result"]) for subtask in values["subtasks"]]
    assert ended == [("1", "one"), ("2", "two")]
    assert (values["mode"], values["parents"], values["switch"]) == ("ask", [], None)
    for number, words in enumerate(("one", "not beside new_task", "two", "rejected")):
        assert words in await result_of(talk, f"call_{number}")
    assert [message.text for message in talk.model.asked[3].messages[2:]] == []


@pytest.mark.parametrize("decision", [APPROVE, REJECT])
@pytest.mark.parametrize("approvals", [Approvals.MANUAL, Approvals.AUTO])
async def test_a_write_behind_a_sub_task_does_not_run_before_it(
    workspace: Path, approvals: Approvals, decision: dict[str, Any]
) -> None:
    steps: list[Step] = [[write("before.py"), task("ask"), WRITE, read()], "part", [WRITE], "end"]
    talk = await run_script(workspace, *steps, mode="code", approvals=approvals)
    names = await asks(talk)
    assert names == [*["write_file"] * (approvals is Approvals.MANUAL), "new_task"]
    await talk.decide(*[APPROVE] * (len(names) - 1), decision)
    assert (workspace / "before.py").exists()
    assert not (workspace / "a.py").exists() or approvals is Approvals.AUTO
    refused = (await talk.results())["call_2"]
    says = "when the sub-task has ended" if decision is APPROVE else "rejected a call before it"
    assert (refused.status, says in refused.text) == ("error", True)


@pytest.mark.parametrize(
    "setting", [{"end_subtask": True}, {"mode": "ask"}, {"approvals": "manual"}, {"limit": "ask"}]
)
async def test_what_follows_heeds_the_host(workspace: Path, setting: dict[str, Any]) -> None:
    steps: list[Step] = [[task(), task(message="write")], [read("a")], "one", [WRITE], "end"]
    talk = await run_script(workspace, *steps, approvals=Approvals.AUTO, mode="code")
    both = {"decisions": [{**APPROVE, "approvals": "auto"}] * 2}
    await talk.send_until("switch_mode", Command(resume=both))
    assert (await talk.values())["parents"][0]["then"]
    await talk.send(setting)
    values = await talk.values()
    assert [subtask["message"] for subtask in values["subtasks"]] == ["Do it."]
    assert (await talk.results())["call_1"].status == "error"
    assert "write" not in [message.text for message in values["messages"]]


SEVERAL = [task("ask", "1"), task("code", "2"), task("ask", "3")]
EDITED = edit("new_task", mode_slug="code", message="x")
EDITED_SWITCH = edit("switch_mode", mode_slug="code", reason="x")


@cases(
    "steps decisions",
    {
        "child": ([[task("code")], "end"], []),
        "grandchild": ([[task("ask")], [task("code")], [WRITE], "end"], [APPROVE]),
        "remembered": ([[task("architect")], [WRITE], "end"], [APPROVE]),
        "edited switch": ([[to("ask")], [WRITE], "end"], [EDITED_SWITCH]),
        "edited task": ([[task("ask")], [WRITE], "end"], [EDITED]),
        "edited beside one that looks": ([SEVERAL, [WRITE], "end"], [APPROVE, EDITED]),
    },
)
async def test_under_the_hosts_limit_no_child_writes(
    workspace: Path, steps: list[Step], decisions: list[dict[str, Any]]
) -> None:
    """The attack on agents that hold only the conversation in front to the plan."""
    host: Any = {"mode": "architect", "limit": "architect", "approvals": Approvals.AUTO}
    talk = await run_script(workspace, *steps, subtask_depth=3, **host)
    assert len(await talk.waiting()) == len(decisions), "what is beyond it is not asked about"
    if decisions:
        await talk.decide(*decisions)
    assert await talk.waiting() == [], "nobody is asked about what cannot be"
    assert not (workspace / "a.py").exists()
    assert await talk.mode() in ("architect", "ask")


@pytest.mark.parametrize("words", [[], [{"role": "user", "content": "Leave it."}]])
async def test_the_host_ends_a_child_and_parents_know(workspace: Path, words: list[Any]) -> None:
    talk = await run_script(workspace, [task()], [WRITE], [WRITE], "I see.")
    await talk.decide(APPROVE)
    await talk.decide(APPROVE)
    await talk.send({"end_subtask": True, **({"messages": words} if words else {})})
    values = await talk.values()
    (result,) = (await talk.results()).values()
    assert (result.status, values["mode"], values["phase"]) == ("error", "ask", "idle")
    assert "the user stopped it" in result.text
    assert "Files written: a.py." in result.text
    texts = [message.text for message in values["messages"][3:]]
    assert texts == [*(word["content"] for word in words), "I see."]
    assert "Not run" in values["subtasks"][0]["messages"][-1].text
    await talk.send({"end_subtask": True})  # there is none
    assert len((await talk.values())["messages"]) == len(values["messages"])


async def test_a_message_is_for_the_child_and_a_rejection_is_data(workspace: Path) -> None:
    talk = await run_script(workspace, [task()], [WRITE], "Not done, as you said.", "end")
    await talk.decide(APPROVE)
    await talk.say("Do not write.")
    assert "Do not write." in talk.model.asked[2].messages[-1].text
    (ended,) = (await talk.values())["subtasks"]
    assert ended["result"] == "Not done, as you said."
    assert not (workspace / "a.py").exists()
    talk = await run_script(workspace, [task()], [WRITE], [DONE], "end")
    await talk.decide(APPROVE)
    await talk.decide({**REJECT, "message": "not that file"})
    (ended,) = (await talk.values())["subtasks"]
    assert "not that file" in ended["rejected"][0]
    head, mark, *_ = (await result_of(talk)).splitlines()
    assert head == "The sub-task in Code mode has ended. Its report:"
    assert mark.startswith("<data-")
    assert "a.py" in await result_of(talk)
    assert not (workspace / "a.py").exists()


async def test_a_child_in_the_parents_own_mode_and_one_that_is_compacted(workspace: Path) -> None:
    steps: list[Step] = [[WRITE], [task("code")], [WRITE], "A summary.", "end", "end"]
    talk = await run_script(workspace, *steps, mode="code")
    await talk.decide(APPROVE)
    await talk.decide(APPROVE)
    await talk.send({"compact": True, "messages": [{"role": "user", "content": "Shorter."}]})
    values = await talk.values()
    assert (values["mode"], values["parents"]) == ("code", [])
    types = [message.type for message in values["messages"]]
    assert types == ["human", "ai", "tool", "ai", "tool", "ai"]


async def test_a_thread_takes_room_once(workspace: Path, tmp_path: Path) -> None:
    """What is put aside is not stored again at every step."""
    database = tmp_path / "threads.sqlite"
    async with AsyncSqliteSaver.from_conn_string(str(database)) as saver:
        look: Step = [("list_files", {})]
        talk = script(workspace, [task("ask")], *[look] * 8, saver=saver)
        await talk.say("x" * 200_000)
        await talk.decide(APPROVE)
    assert database.stat().st_size < 2_000_000


async def test_a_limit_holds_in_a_child_and_nobody_takes_its_task_away(workspace: Path) -> None:
    steps: list[Step] = [[task("code")], [WRITE], [WRITE], "end"]
    talk = await run_script(workspace, *steps, approvals=Approvals.AUTO)
    await talk.agent.aupdate_state(talk.config, {"limit": "ask"})
    await talk.send(Command(resume={"decisions": [APPROVE]}))
    await talk.approve_all()
    assert not (workspace / "a.py").exists()
    assert (await talk.values()).get("subtasks", []) == []
    talk = await run_script(workspace, [task("code")], [WRITE], "end", "I see.")
    await talk.decide(APPROVE)
    before = await talk.values()
    for forged in (
        *({"subtask": None}, {"subtask": {**before["subtask"], "depth": 0}}),
        *({"parents": before["parents"]}, {"subtask": None, "phase": "idle"}),
    ):
        for node in (None, "intake", "review"):
            with pytest.raises(InvalidInputError, match="'subtask' and 'parents' belong together"):
                await talk.agent.aupdate_state(talk.config, forged, as_node=node)
        with pytest.raises(InvalidInputError, match="is not taken from a command"):
            await talk.send(Command(update=forged))
    assert await talk.values() == before
    await talk.decide(APPROVE)
    assert [subtask["status"] for subtask in (await talk.values())["subtasks"]] == ["completed"]
