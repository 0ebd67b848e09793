"""Whole turns, with a model offline or scripted; and where a thread goes at their end."""

from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from modeshift.messages.repair import remove_marks
from modeshift.modes.catalog import Catalog
from modeshift.modes.edges.edges import EntryEdge, SwitchEdge
from modeshift.testing.plugin import Snapshot
from tests.graph.calls import DONE, QUESTION, asks, respond, result_of, suggest, task, to, write
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit, restart, run_script
from tests.harness.modes import load_catalog, load_with
from tests.tables import cases, rows


async def test_writing_from_ask(talk: Conversation, workspace: Path, snapshot: Snapshot) -> None:
    await talk.say("write notes.txt: hello")
    (switch,) = await talk.waiting()
    assert (switch["name"], switch["args"]["mode_slug"]) == ("switch_mode", "code")
    await talk.decide(APPROVE)
    assert await talk.mode() == "code"
    (write,) = await talk.waiting()
    assert (write["name"], (workspace / "notes.txt").exists()) == ("write_file", False)
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


async def test_one_review_and_the_switch_last(talk: Conversation, workspace: Path) -> None:
    """Changes run one at a time, in their order."""
    (workspace / "a").write_text("first")
    line = "read a & list & write b: x & write c: y & read b & switch to debug"
    await talk.say(line, mode="code")
    assert await asks(talk) == ["write_file", "write_file", "switch_mode"]
    await talk.decide(APPROVE, APPROVE, APPROVE)
    assert await talk.mode() == "debug"
    tools = [message for message in await talk.messages() if message.type == "tool"]
    names = ["read_file", "list_files", "write_file", "write_file", "read_file", "switch_mode"]
    assert [tool.name for tool in tools] == names
    assert remove_marks(tools[4].text).endswith("x"), "a read after a write sees what was written"
    states = [state async for state in talk.agent.aget_state_history(talk.config)]
    acts = [["act", "act"], ["act"], ["act"], ["act"]]
    nodes = [["__start__"], ["intake"], ["code"], ["review"], *acts, ["switch_mode"], ["debug"], []]
    assert [[task.name for task in state.tasks] for state in states[::-1]] == nodes


B_INSTEAD = edit("write_file", path="b", content="3")


@rows(
    "line decisions ran void",
    ("write a: 1 & write b: 2 & read c", [REJECT, APPROVE], {"read_file"}, {"write_file"}),
    ("write a: 1 & write b: 2", [REJECT, B_INSTEAD], set(), {"write_file"}),
    ("write a: 1 & switch to debug & list", [REJECT, APPROVE], {"list_files"}, {"switch_mode"}),
    ("write a: 1 & switch to ask", [REJECT, REJECT], set(), set()),
    ("write a: 1 & write b: 2", [APPROVE, REJECT], {"write_file"}, set()),
    ("run true & write a: 1 & list", [REJECT], {"list_files"}, {"write_file"}),
    ("switch to ask & write a: 1 & read c", [REJECT], set(), {"write_file", "read_file"}),
    ("read c & switch to ask & list", [REJECT], {"read_file"}, {"list_files"}),
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


async def test_a_rejection_keeps_what_was_said_and_is_not_asked_again(workspace: Path) -> None:
    """Nor as a task or as an answer to a question; the person may want it after all."""
    talk = await run_script(workspace, [to("ask"), QUESTION, write(), write()], mode="code")
    await talk.decide(REJECT, respond("the first"), {**REJECT, "message": "never a"}, REJECT)
    texts = [result.text for result in (await talk.results()).values()]
    parts = ["do not repeat it", "the first", "never a", "do not repeat it"]
    assert [part in text for part, text in zip(parts, texts, strict=True)] == [True] * 4
    steps = to("code"), to("code"), task("code"), suggest("code"), to("debug")
    talk = await run_script(workspace, *([call] for call in steps))
    await talk.decide(REJECT)
    assert [each["args"]["mode_slug"] for each in await talk.waiting()] == ["debug"]
    for number in range(1, 4):
        assert "refused a switch to 'code'" in await result_of(talk, f"step{number}_0")
    await talk.decide(edit("switch_mode", mode_slug="code", reason="after all"))
    assert await talk.mode() == "code", "the person wants now what they refused before"
    await talk.say("go on")
    assert (await talk.values())["refused"] == []


async def test_a_switch_without_sense_bothers_nobody(workspace: Path, snapshot: Snapshot) -> None:
    wrong: list[dict[str, str]] = [{"reason": "x"}]
    wrong += [{"mode_slug": slug, "reason": "x"} for slug in ("kode", "ask")]
    talk = await run_script(workspace, [("switch_mode", args) for args in wrong])
    assert await talk.waiting() == []
    results = (await talk.results()).values()
    told = {str(args): result.text for args, result in zip(wrong, results, strict=True)}
    snapshot("switch-wrongly.txt", told)
    assert await talk.mode() == "ask"
    talk = await run_script(workspace, [to("code"), to("debug")])
    assert len(await talk.waiting()) == 1
    await talk.decide({**APPROVE, "approvals": "auto"})
    values = await talk.values()
    assert (values["mode"], values["approvals"]) == ("code", "auto")
    assert (await talk.results())["call_1"].status == "error"
    completion = ("attempt_completion", {"result": "all done"})
    talk = await run_script(workspace, [completion, ("list_files", {})], [completion])
    assert "alone" in await result_of(talk, "call_0")
    values = await talk.values()
    assert (values["messages"][-1].text, values["phase"]) == ("all done", "idle")


@rows(
    "answer mode",
    *(("Do it (switch to code)", "code"), ("Do it", "ask"), ("Later", "ask"), ("no", "ask")),
    ("Stay (switch to ask)", "ask"),
)
async def test_a_suggestion_switches_by_its_label(workspace: Path, answer: str, mode: str) -> None:
    """One of the mode that it is in is an answer."""
    follow_up = [{"text": "Do it", "mode": "code"}, {"text": "Later"}]
    follow_up += [{"text": "Stay", "mode": "ask"}]
    talk = await run_script(
        workspace, [("ask_followup_question", {"question": "And now?", "follow_up": follow_up})]
    )
    (request,) = await talk.waiting()
    assert request["description"].startswith("And now?\n- Do it (switch to code)\n- Later\n- Stay")
    await talk.decide(respond(answer))
    assert (await talk.mode(), len((await talk.values())["mode_changes"])) == (mode, mode == "code")
    said, *notice = (await result_of(talk)).splitlines()
    assert (said, bool(notice)) == (answer, mode == "code")


async def test_the_host_sets_the_mode_unapproved_and_over_a_switch(talk: Conversation) -> None:
    """The person approved it, and the host was quicker than the node."""
    await talk.send({"mode": "code"})
    assert talk.nodes == ["intake"], "nothing to answer, so no model is called"
    await talk.say("list", mode="debug")
    assert talk.nodes == ["intake", "intake", "debug", "act", "debug"]
    await talk.agent.aupdate_state(talk.config, {"mode": "ask"})
    await talk.say("list")
    changes = (await talk.values())["mode_changes"]
    assert [each["target"] for each in changes] == ["code", "debug", "ask"]
    assert {each["decided_by"] for each in changes} == {"host"}
    await talk.say("switch to code: x")
    await talk.send_until("review", Command(resume={"decisions": [APPROVE]}))
    await talk.agent.aupdate_state(talk.config, {"mode": "debug"})
    await talk.send(None)
    assert await talk.mode() == "debug"
    assert "have changed since the user was asked" in str(await talk.messages())


async def test_the_hosts_mode_voids_questions(talk: Conversation, workspace: Path) -> None:
    """Nobody's approval counts for what was asked in another mode."""
    await talk.say("write a: 1", mode="code")
    await talk.agent.aupdate_state(talk.config, {"mode": "ask"})
    await talk.send(None)
    assert await asks(talk) == ["switch_mode"]
    assert list(workspace.iterdir()) == []
    (result,) = (await talk.results()).values()
    assert result.text.startswith("Not run: the mode, its rules or the files have changed")
    assert result.text in (await talk.values())["notices"]
    (*_, change) = (await talk.values())["mode_changes"]
    assert (change["source"], change["target"], change["decided_by"]) == ("code", "ask", "host")
    await talk.decide(REJECT)
    talk = await run_script(workspace, [write("a"), to("code")])
    await talk.agent.aupdate_state(talk.config, {"mode": "code", "approvals": "auto"})
    await talk.decide(APPROVE)
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_switch_asked_for_goes_before_suggestions(workspace: Path, is_first: bool) -> None:
    order = 1 if is_first else -1
    talk = await run_script(workspace, [to("debug"), suggest("code")][::order])
    await talk.decide(*[APPROVE, respond("Yes (switch to code)")][::order])
    assert await talk.mode() == "debug"


async def test_a_turn_has_so_many_switches_and_then_nobody_is_asked(workspace: Path) -> None:
    calls = (*[to("code"), to("ask")] * 2, suggest("code"), task("code"))
    talk = await run_script(workspace, *([call] for call in calls), max_switches=2)
    await talk.decide(APPROVE)
    await talk.decide(APPROVE)
    assert await asks(talk) == ["new_task"], "a sub-task is no switch"
    results = [result.text for result in (await talk.results()).values()]
    for text in (results[2], results[4]):
        assert "switched 2 times in this turn, which is the most; go on in Ask mode" in text
    assert (len(results), await talk.mode()) == (5, "ask")
    await talk.say("go on", mode="ask")
    await talk.say("and by hand", mode="code")
    assert (await talk.mode(), (await talk.values())["switched"]) == ("code", 0)
    last = await run_script(workspace, [to("code")], [to("ask")], max_switches=1)
    await last.decide(edit("switch_mode", mode_slug="debug", reason="mine"))
    assert await last.mode() == "debug", "the last question is answered by hand"
    none = await run_script(workspace, [to("code")], max_switches=0)
    assert (await none.waiting(), await none.mode()) == ([], "ask")


async def test_a_loop_that_asks_nobody_ends(workspace: Path) -> None:
    """Another turn has as many again."""
    catalog, free = load_catalog(), (SwitchEdge(to="*", ask="never"),)
    same = {"permissions": {}, "switches": free, "groups": catalog["code"].groups}
    modes = Catalog([catalog[slug].model_copy(update=same) for slug in ("ask", "code")], "ask")
    steps = [[to(slug)] for slug in ("code", "ask") * 3]
    talk = await run_script(
        workspace, *steps, "done", steps[1], "done", catalog=modes, max_switches=5
    )
    changes = (await talk.values())["mode_changes"]
    assert [change["how"] for change in changes] == ["by edge"] * 5
    assert await talk.waiting() == []
    await talk.say("go on")
    assert len((await talk.values())["mode_changes"]) == 6


THEN_ASK = load_with("code", then="ask")


def with_modes(**changes: dict[str, Any]) -> Catalog:
    catalog = load_with("code")
    modes = (catalog[slug].model_copy(update=changes.get(slug, {})) for slug in catalog)
    return Catalog(modes, "ask")


async def last_change(talk: Conversation) -> dict[str, Any]:
    return dict((await talk.values())["mode_changes"][-1])


@pytest.mark.parametrize("end", ["hello", [DONE]])
async def test_the_next_turn_is_in_the_other_mode(workspace: Path, end: Any) -> None:
    talk = await run_script(workspace, end, [write()], "done", mode="code", catalog=THEN_ASK)
    change = await last_change(talk)
    assert (change["source"], change["target"], await talk.mode()) == ("code", "ask", "ask")
    assert (change["decided_by"], change["how"]) == ("nobody", "by edge")
    await talk.say("write it")
    assert "no 'edit' tools" in str(await talk.results())
    assert not (workspace / "a.txt").exists()
    await talk.say("go", mode="code")
    assert await talk.mode() == "ask", "by hand it is entered, and left again"


async def test_what_was_written_and_was_true_ends_with_the_mode(workspace: Path) -> None:
    talk = await run_script(workspace, [write()], "done", mode="code", catalog=THEN_ASK)
    await talk.decide(APPROVE)
    values = await talk.values()
    assert ((await last_change(talk))["written"], values["written"]) == (["a.txt"], [])
    assert values["facts"]["mode"] == []


async def test_no_mode_is_left_before_the_turn_ends(workspace: Path) -> None:
    """A summary is no end of it, and a sub-task ends where it began."""
    talk = await run_script(workspace, [write()], [write()], "done", mode="code", catalog=THEN_ASK)
    assert await talk.mode() == "code"
    await talk.say("never mind, do it so")
    assert (await talk.mode(), len(await talk.waiting())) == ("code", 1), "it was abandoned"
    await talk.decide(APPROVE)
    assert await talk.mode() == "ask"
    talk = await run_script(workspace, "hello", "short", mode="ask", catalog=THEN_ASK)
    await talk.send({"mode": "code", "compact": True})
    assert await talk.mode() == "code"
    talk = await run_script(workspace, [task()], "end", "done", mode="debug", catalog=THEN_ASK)
    await talk.decide(APPROVE)
    targets = [change["target"] for change in (await talk.values())["mode_changes"]]
    assert targets == ["debug", "code", "debug"]


FILES_CHANGED = EntryEdge(source="code", when="files_changed")


@cases(
    "changes mode",
    {
        "more rights": ({"ask": {"then": "code"}}, "ask"),
        "an own enterFrom": ({"code": {"then": "ask"}, "ask": {"enter_from": ()}}, "code"),
        "a condition": (
            {"code": {"then": "ask"}, "ask": {"enter_from": (FILES_CHANGED,)}}, "code"
        ),
        "a model that is not there": (
            {"code": {"then": "ask"}, "ask": {"model": "anthropic:claude-opus-5"}}, "code"
        ),
        "a mode that is not there": ({"code": {"then": "kode"}}, "code"),
    },
)  # fmt: skip
async def test_it_stays(
    workspace: Path, changes: dict[str, Any], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    talk = await run_script(workspace, "hello", mode=mode, catalog=with_modes(**changes))
    assert await talk.mode() == mode


@rows("limit after", (None, "debug"), ("code", "debug"), ("ask", "code"))
async def test_it_stays_within_the_limit(workspace: Path, limit: str | None, after: str) -> None:
    catalog = load_with("code", then="debug")
    talk = await run_script(workspace, "hello", mode="code", limit=limit, catalog=catalog)
    assert await talk.mode() == after


async def test_it_stays_where_something_is_remembered_there(workspace: Path) -> None:
    talk = await run_script(workspace, "hello", mode="ask", catalog=THEN_ASK)
    kept = {"id": "a", "mode": "ask", "tool": "read_file", "pattern": ".env", "exact": True}
    digest = talk.agent.live.deps.seat("ask").environment
    remembered = [{**kept, "digest": digest, "when": "now"}]
    await talk.agent.aupdate_state(talk.config, {"remembered": remembered})
    restart(talk, workspace, catalog=THEN_ASK, model="offline")
    await talk.say("hello", mode="code")
    assert await talk.mode() == "code"
