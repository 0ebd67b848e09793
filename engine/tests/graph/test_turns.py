"""Whole turns, in this process, with the offline model on a real folder."""

from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from modeshift.messages.repair import remove_marks
from modeshift.modes.catalog import Catalog
from modeshift.modes.edges.edges import SwitchEdge
from modeshift.testing.plugin import Snapshot
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit, run_script
from tests.harness.modes import load_catalog
from tests.harness.scripted import Call


def switch_to(slug: str) -> Call:
    return ("switch_mode", {"mode_slug": slug, "reason": "x"})


async def test_writing_from_ask_takes_a_switch_and_an_approval(
    talk: Conversation, workspace: Path, snapshot: Snapshot
) -> None:
    await talk.say("write notes.txt: hello")
    (switch,) = await talk.waiting()
    assert switch["name"] == "switch_mode"
    assert switch["args"]["mode_slug"] == "code"
    await talk.decide(APPROVE)
    assert await talk.mode() == "code"
    (write,) = await talk.waiting()
    assert write["name"] == "write_file"
    assert not (workspace / "notes.txt").exists()
    await talk.decide(APPROVE)
    assert (workspace / "notes.txt").read_text() == "hello"
    assert talk.nodes == ["intake", "ask", "review", "switch_mode", "code", "review", "act", "code"]
    answer = (await talk.messages())[-1].text
    texts = {"switch": switch["description"], "write": write["description"], "answer": answer}
    snapshot("questions.txt", texts)


async def test_a_message_instead_of_a_decision_means_not_run(talk: Conversation) -> None:
    """Agent Chat UI sends a made-up result along, which is replaced."""
    await talk.say("write notes.txt: hello")
    call_id = (await talk.waiting())[0]["id"]
    made_up = {"role": "tool", "content": "Successfully handled", "tool_call_id": call_id}
    await talk.send({"messages": [made_up, {"role": "user", "content": "list"}]})
    messages = await talk.messages()
    assert [message.type for message in messages[:4]] == ["human", "ai", "tool", "human"]
    result = (await talk.results())[call_id]
    assert result.status == "error"
    assert "Not run" in result.text
    assert (await talk.mode(), await talk.waiting()) == ("ask", [])


async def test_one_review_for_a_message_then_reads_side_by_side_and_the_switch_last(
    talk: Conversation, workspace: Path
) -> None:
    """Changes run one at a time, in their order."""
    (workspace / "a").write_text("first")
    await talk.say(
        "read a & list & write b: x & write c: y & read b & switch to debug", mode="code"
    )
    waiting = ["write_file", "write_file", "switch_mode"]
    assert [each["name"] for each in await talk.waiting()] == waiting
    await talk.decide(APPROVE, APPROVE, APPROVE)
    values = await talk.values()
    assert values["mode"] == "debug"
    tools = [message for message in values["messages"] if message.type == "tool"]
    names = ["read_file", "list_files", "write_file", "write_file", "read_file", "switch_mode"]
    assert [tool.name for tool in tools] == names
    assert remove_marks(tools[4].text).endswith("x"), "a read after a write sees what was written"
    steps = [
        [task.name for task in state.tasks]
        async for state in talk.agent.aget_state_history(talk.config)
    ]
    acts = [["act", "act"], ["act"], ["act"], ["act"]]
    nodes = [["__start__"], ["intake"], ["code"], ["review"], *acts, ["switch_mode"], ["debug"]]
    assert steps[::-1] == [*nodes, []]


B_INSTEAD = edit("write_file", path="b", content="3")


@pytest.mark.parametrize(
    ("line", "decisions", "ran", "void"),
    [
        ("write a: 1 & write b: 2 & read c", [REJECT, APPROVE], {"read_file"}, {"write_file"}),
        ("write a: 1 & write b: 2", [REJECT, B_INSTEAD], set(), {"write_file"}),
        ("write a: 1 & switch to debug & list", [REJECT, APPROVE], {"list_files"}, {"switch_mode"}),
        ("write a: 1 & switch to ask", [REJECT, REJECT], set(), set()),
        ("write a: 1 & write b: 2", [APPROVE, REJECT], {"write_file"}, set()),
        ("run true & write a: 1 & list", [REJECT], {"list_files"}, {"write_file"}),
        ("switch to ask & write a: 1 & read c", [REJECT], set(), {"write_file", "read_file"}),
        ("read c & switch to ask & list", [REJECT], {"read_file"}, {"list_files"}),
    ],
)
async def test_a_rejection_voids_what_changes_something_behind_it(
    talk: Conversation,
    workspace: Path,
    line: str,
    decisions: list[dict[str, Any]],
    ran: set[str],
    void: set[str],
) -> None:
    """Whatever was decided on it; and all that is behind a rejected switch."""
    (workspace / "c").write_text("x")
    approvals = "manual" if len(decisions) > 1 else "auto"
    await talk.say(line, mode="code", approvals=approvals)
    await talk.decide(*decisions)
    results = (await talk.results()).values()
    assert {result.name for result in results if result.status == "success"} == ran
    assert {result.name for result in results if "rejected a call before it" in result.text} == void
    values = await talk.values()
    assert (values["mode"], values["phase"], values.get("switch")) == ("code", "idle", None)
    assert values["refused"] == (["ask"] if "switch to ask" in line else [])
    written = {"c", "a"} if "write_file" in ran else {"c"}
    assert {file.name for file in workspace.iterdir()} == written


async def test_what_a_person_says_is_kept_behind_a_rejection(workspace: Path) -> None:
    question: Call = ("ask_followup_question", {"question": "Which?"})
    write: Call = ("write_file", {"path": "a", "content": "1"})
    talk = await run_script(workspace, [switch_to("ask"), question, write, write], mode="code")
    why = {**REJECT, "message": "never a"}
    await talk.decide(REJECT, {"type": "respond", "message": "the first"}, why, REJECT)
    texts = [result.text for result in (await talk.results()).values()]
    told = ["do not repeat it", "the first", "never a", "do not repeat it"]
    assert [part in text for part, text in zip(told, texts, strict=True)] == [True] * 4


async def test_the_same_switch_is_not_asked_for_twice_in_a_turn(workspace: Path) -> None:
    """Nor as a task or as an answer to a question; the person may want it after all."""
    task: Call = ("new_task", {"mode_slug": "code", "message": "x"})
    suggest = {"question": "May I?", "follow_up": [{"text": "Yes", "mode": "code"}]}
    again = [switch_to("code"), task, ("ask_followup_question", suggest)]
    steps = [[switch_to("code")], *([call] for call in again), [switch_to("debug")]]
    talk = await run_script(workspace, *steps)
    await talk.decide(REJECT)
    assert [each["args"]["mode_slug"] for each in await talk.waiting()] == ["debug"]
    results = await talk.results()
    for number in range(1, 4):
        assert "refused a switch to 'code'" in results[f"step{number}_0"].text
    await talk.decide(edit("switch_mode", mode_slug="code", reason="after all"))
    assert await talk.mode() == "code", "the person wants now what they refused before"
    await talk.say("go on")
    assert (await talk.values())["refused"] == []


async def test_a_switch_that_makes_no_sense_bothers_nobody(
    workspace: Path, snapshot: Snapshot
) -> None:
    wrong: list[dict[str, str]] = [{"reason": "x"}]
    wrong += [{"mode_slug": slug, "reason": "x"} for slug in ("kode", "ask")]
    talk = await run_script(workspace, [("switch_mode", args) for args in wrong])
    assert await talk.waiting() == []
    results = (await talk.results()).values()
    told = {str(args): result.text for args, result in zip(wrong, results, strict=True)}
    snapshot("switch-wrongly.txt", told)
    assert await talk.mode() == "ask"


async def test_one_switch_in_a_message(workspace: Path) -> None:
    talk = await run_script(workspace, [switch_to("code"), switch_to("debug")])
    assert len(await talk.waiting()) == 1
    await talk.decide({**APPROVE, "approvals": "auto"})
    values = await talk.values()
    assert (values["mode"], values["approvals"]) == ("code", "auto")
    assert (await talk.results())["call_1"].status == "error"


@pytest.mark.parametrize(
    ("answer", "mode"),
    [("Do it (switch to code)", "code"), ("Do it", "ask"), ("Later", "ask"), ("no", "ask")],
)
async def test_a_suggestion_switches_only_by_the_label_that_says_so(
    workspace: Path, answer: str, mode: str
) -> None:
    follow_up = [{"text": "Do it", "mode": "code"}, {"text": "Later"}]
    question = ("ask_followup_question", {"question": "And now?", "follow_up": follow_up})
    talk = await run_script(workspace, [question])
    (asked,) = await talk.waiting()
    assert asked["description"] == "And now?\n- Do it (switch to code)\n- Later"
    await talk.decide({"type": "respond", "message": answer})
    assert await talk.mode() == mode
    result = (await talk.results())["call_0"]
    said, *notice = result.text.splitlines()
    assert (said, result.status) == (answer, "success")
    assert bool(notice) == (mode == "code")


async def test_completion_is_called_alone(workspace: Path) -> None:
    completion = ("attempt_completion", {"result": "all done"})
    talk = await run_script(workspace, [completion, ("list_files", {})], [completion])
    assert "alone" in (await talk.results())["call_0"].text
    values = await talk.values()
    assert (values["messages"][-1].text, values["phase"]) == ("all done", "idle")


async def test_the_host_sets_the_mode_without_approval(talk: Conversation) -> None:
    await talk.send({"mode": "code"})
    assert talk.nodes == ["intake"], "nothing to answer, so no model is called"
    await talk.say("list", mode="debug")
    assert talk.nodes == ["intake", "intake", "debug", "act", "debug"]
    await talk.agent.aupdate_state(talk.config, {"mode": "ask"})
    await talk.say("list")
    changes = (await talk.values())["mode_changes"]
    assert [(each["target"], each["decided_by"]) for each in changes] == [
        ("code", "host"),
        ("debug", "host"),
        ("ask", "host"),
    ]


async def test_a_mode_that_the_host_sets_at_an_interrupt_voids_what_waited(
    talk: Conversation, workspace: Path
) -> None:
    """Nobody's approval counts for what was asked in another mode."""
    await talk.say("write a: 1", mode="code")
    await talk.agent.aupdate_state(talk.config, {"mode": "ask"})
    await talk.send(None)
    assert [request["name"] for request in await talk.waiting()] == ["switch_mode"]
    assert list(workspace.iterdir()) == []
    (result,) = (await talk.results()).values()
    assert result.text.startswith("Not run: the mode, its rules or the files have changed")
    assert result.text in (await talk.values())["notices"]
    (*_, change) = (await talk.values())["mode_changes"]
    assert (change["source"], change["target"], change["decided_by"]) == ("code", "ask", "host")
    await talk.decide(REJECT)


async def test_a_switch_does_not_happen_after_the_host_has_set_a_mode(talk: Conversation) -> None:
    """The person approved it, and the host was quicker than the node."""
    await talk.say("switch to code: x")
    await talk.send_until("review", Command(resume={"decisions": [APPROVE]}))
    await talk.agent.aupdate_state(talk.config, {"mode": "debug"})
    await talk.send(None)
    assert await talk.mode() == "debug"
    assert "have changed since the user was asked" in str(await talk.messages())


async def test_a_call_refused_in_one_mode_does_not_run_in_another(workspace: Path) -> None:
    talk = await run_script(
        workspace, [("write_file", {"path": "a", "content": "x"}), switch_to("code")]
    )
    await talk.agent.aupdate_state(talk.config, {"mode": "code", "approvals": "auto"})
    await talk.decide(APPROVE)
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_switch_that_was_asked_for_goes_before_a_suggestion(
    workspace: Path, is_first: bool
) -> None:
    arguments = {"question": "?", "follow_up": [{"text": "y", "mode": "code"}]}
    question = ("ask_followup_question", arguments)
    calls = [switch_to("debug"), question] if is_first else [question, switch_to("debug")]
    talk = await run_script(workspace, calls)
    answer = {"type": "respond", "message": "y (switch to code)"}
    await talk.decide(*([APPROVE, answer] if is_first else [answer, APPROVE]))
    assert await talk.mode() == "debug"


async def test_a_suggestion_of_the_mode_that_it_is_in_is_an_answer(workspace: Path) -> None:
    arguments = {"question": "?", "follow_up": [{"text": "y", "mode": "ask"}]}
    talk = await run_script(workspace, [("ask_followup_question", arguments)])
    for _ in await talk.waiting():
        await talk.decide({"type": "respond", "message": "y (switch to ask)"})
    assert (await talk.mode(), (await talk.values())["mode_changes"]) == ("ask", [])


async def test_a_turn_has_so_many_switches_and_then_nobody_is_asked(workspace: Path) -> None:
    there_and_back = [[switch_to("code")], [switch_to("ask")]] * 2
    answer: Call = (
        "ask_followup_question",
        {"question": "?", "follow_up": [{"text": "Yes", "mode": "code"}]},
    )
    steps = (*there_and_back, [answer], [("new_task", {"mode_slug": "code", "message": "x"})])
    talk = await run_script(workspace, *steps, max_switches=2)
    await talk.decide(APPROVE)
    await talk.decide(APPROVE)
    (request,) = await talk.waiting()
    assert request["name"] == "new_task", "a sub-task is no switch"
    results = [result.text for result in (await talk.results()).values()]
    for text in (results[2], results[4]):
        assert "switched 2 times in this turn, which is the most; go on in Ask mode" in text
    assert (len(results), await talk.mode()) == (5, "ask")
    await talk.say("go on", mode="ask")
    await talk.say("and by hand", mode="code")
    assert (await talk.mode(), (await talk.values())["switched"]) == ("code", 0)


async def test_a_loop_that_asks_nobody_ends(workspace: Path) -> None:
    """Another turn has as many again."""
    catalog, free = load_catalog(), (SwitchEdge(to="*", ask="never"),)
    same = {"permissions": {}, "switches": free, "groups": catalog["code"].groups}
    modes = [catalog[slug].model_copy(update=same) for slug in ("ask", "code")]
    steps = [[switch_to(slug)] for slug in ("code", "ask") * 3]
    talk = await run_script(
        workspace, *steps, "done", steps[1], "done", catalog=Catalog(modes, "ask"), max_switches=5
    )
    changes = (await talk.values())["mode_changes"]
    assert [change["how"] for change in changes] == ["by edge"] * 5
    assert await talk.waiting() == []
    await talk.say("go on")
    assert len((await talk.values())["mode_changes"]) == 6


async def test_the_last_question_is_answered_by_hand_whatever_the_number(workspace: Path) -> None:
    talk = await run_script(workspace, [switch_to("code")], [switch_to("ask")], max_switches=1)
    await talk.decide(edit("switch_mode", mode_slug="debug", reason="mine"))
    assert await talk.mode() == "debug"
    none = await run_script(workspace, [switch_to("code")], max_switches=0)
    assert (await none.waiting(), await none.mode()) == ([], "ask")
