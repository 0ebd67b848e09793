"""Attempts to get around the gates, and beyond the host's limit: each one has to fail."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.tool import invalid_tool_call
from langgraph.types import Command

from modeshift.models.loading import Models
from modeshift.modes.catalog import Catalog
from modeshift.modes.errors import InvalidInputError, UnknownModeError
from modeshift.modes.mode import Grant, Mode
from modeshift.modes.policy import Approvals
from modeshift.testing.plugin import Snapshot
from modeshift.threads.checks import check_settings
from modeshift.threads.deps import AgentDeps
from modeshift.tools.tool import Tool
from modeshift.tools.toolbox import Toolbox, build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.graph.calls import (
    ALWAYS,
    asks,
    read,
    replace_in,
    result_of,
    run,
    suggest,
    task,
    to,
    write,
)
from tests.harness.conversation import (
    APPROVE,
    Conversation,
    edit,
    make_agent,
    open_thread,
    reload,
    restart,
    run_script,
    script,
)
from tests.harness.modes import load_catalog, load_with
from tests.harness.scripted import Call, ScriptedModel, calling
from tests.tables import rows

WRITE, EDIT, RUN = write("made.txt"), replace_in("there.txt", "old"), run("touch made.txt")
CHANGES = (WRITE, EDIT, RUN)


def assert_untouched(workspace: Path) -> None:
    assert [file.name for file in workspace.iterdir()] == ["there.txt"]
    assert (workspace / "there.txt").read_text() == "old"


@rows(
    "name told",
    ("delete_everything", "delete_everything"),
    ("__class__", "__class__"),
    ("switch-mode", "switch-mode"),
    ("", "unknown_"),
    ("read_file ", "unknown_read_file_"),
    ("böse/../x" * 20, "unknown_b_se____xb_se____xb_se____xb_se____xb_se____xb_se_"),
)
async def test_a_call_of_no_tool_is_an_error(workspace: Path, name: str, told: str) -> None:
    """A name that no provider takes back is made anew, and never that of a tool."""
    talk = await run_script(workspace, [(name, {})], approvals=Approvals.AUTO, mode="code")
    result = (await talk.results())["call_0"]
    assert (result.status, result.name, f"'{told}'" in result.text) == ("error", told, True)


async def test_architect_writes_plans(workspace: Path, tmp_path: Path, snapshot: Snapshot) -> None:
    auto: Any = {"approvals": Approvals.AUTO, "mode": "architect"}
    allowed = ["plan.md", "docs/plan.md", "./other.md", "a/../last.md"]
    await run_script(workspace, [write(path, path) for path in allowed], **auto)
    for path in allowed:
        assert (workspace / path).resolve().read_text() == path
    (workspace / "plan.py").write_text("old")
    (workspace / "link.md").symlink_to("plan.py")
    (workspace / "out").symlink_to(tmp_path)
    before = {file: file.lstat().st_mtime_ns for file in tmp_path.rglob("*")}
    paths = ["plan.py", "plan.md/../plan.py", "PLAN.PY", "plan.MD", "plan.py\n", "plan.md\n"]
    paths += ["plan.md\n.py", "plan.py\x00.md", "plan.md ", ".md/plan.py", "link.md", "", "."]
    paths += ["../outside.md", "/outside.md", "~/outside.py", "out/plan.md"]
    calls = [*map(write, paths), *(replace_in(path, "old") for path in paths)]
    results = await (await run_script(workspace, calls, **auto)).results()
    assert [results[f"call_{index}"].status for index in range(len(calls))] == ["error"] * 34
    assert (workspace / "plan.py").read_text() == "old"
    assert {file: file.lstat().st_mtime_ns for file in tmp_path.rglob("*")} == before
    snapshot("edit-limit.txt", f"{results['call_0'].text}\n")


@rows(
    "change",
    *({"args": {"path": "b", "content": "x"}}, {"args": {"path": "a", "content": "y"}}),
    *({"digest": ""}, {"digest": "0" * 64}, {"contents": {}}, {"contents": {"b": "none"}}),
)
async def test_a_rewritten_approval_is_none(workspace: Path, change: dict[str, Any]) -> None:
    talk = await run_script(workspace, [write("a")], mode="code")
    await talk.send_until("review", Command(resume={"decisions": [APPROVE]}))
    ((planned,),) = (await talk.values())["due_calls"]
    planned["approved"].update(change)
    await talk.agent.aupdate_state(talk.config, {"due_calls": [[planned]]}, as_node="review")
    await talk.send(None)
    assert (await talk.results())["call_0"].status == "error"
    assert list(workspace.iterdir()) == []


async def test_what_is_planned_is_judged_again_before_it_runs(there: Path) -> None:
    """The mode's rules change between the plan and the run."""
    for name, args in CHANGES:
        talk = await run_script(there, [(name, args)], mode="code")
        call = {"name": name, "args": args, "id": "call_0"}
        ours = talk.agent.started_calls.journal.mark(talk.config["configurable"]["thread_id"])
        plan = [[{"call": call, "approved": None, "denied": None, "journal": ours}]]
        update = {"phase": "acting", "due_calls": plan}
        await talk.agent.aupdate_state(talk.config, update, as_node="code")
        await talk.send(None)
        assert "nobody has approved" in (await talk.results())["call_0"].text
        assert_untouched(there)
    talk = script(there, CHANGES[:2], approvals=Approvals.AUTO)
    await talk.send_until("code", {"messages": [HumanMessage("go")], "mode": "code"})
    rules = {"write_file": {"*": "deny"}, "edit_file": {"*": "deny"}}
    reload(talk, replace(talk.agent.live.deps, catalog=load_with("code", permissions=rules)))
    await talk.send(None)
    for result in (await talk.results()).values():
        assert "must not do that" in result.text
    assert_untouched(there)


@rows(
    "call edited problem",
    (write("a.md"), write("b.md", "y"), None),
    (write("a.md"), write("b", "y"), "'b' do"),
    (to("code"), to("architect"), "Already in Architect"),
)
async def test_edited_args(workspace: Path, call: Call, edited: Call, problem: str | None) -> None:
    talk = await run_script(workspace, [call], mode="architect")
    await talk.decide(edit(edited[0], **edited[1]))
    assert (problem or "The user changed the arguments") in await result_of(talk)
    assert [file.name for file in workspace.iterdir()] == ([] if problem else ["b.md"])
    assert await talk.mode() == "architect"


async def test_odd_arguments_are_answered_and_odd_ids_replace_nothing(workspace: Path) -> None:
    """A person was shown one text, and another was stored and run."""
    values: list[Any] = ["x\ud800y", 2**70, -(2**70), 10**5000, float("nan"), float("-inf")]
    answer = calling(*map(run, values), WRITE)
    answer.invalid_tool_calls = [invalid_tool_call(name="read_file", args="{", id="cut")]
    talk = Conversation(make_agent(workspace, ScriptedModel(answers=[answer])))
    await talk.say("go", mode="code")
    assert await asks(talk) == ["write_file"]
    await talk.decide(APPROVE)
    for index in range(len(values)):
        assert "did not run: its arguments hold" in await result_of(talk, f"call_{index}")
    assert "did not run: its arguments are no JSON" in await result_of(talk, "cut")
    assert (workspace / "made.txt").exists()
    look: Call = ("list_files", {})
    answers = [calling(look, look, look), calling(look), AIMessage("x")]
    answers[0].tool_calls[1]["id"] = "call_0"
    answers[0].tool_calls[2]["id"] = None
    for answer in answers:
        answer.id = "same"
    talk = Conversation(make_agent(workspace, ScriptedModel(answers=answers)))
    await talk.say("go")
    types = [message.type for message in await talk.messages()]
    assert types == ["human", "ai", "tool", "tool", "tool", "ai", "tool", "ai"]
    assert len(await talk.results()) == 4


async def test_what_a_client_writes_into_the_history_runs_nothing(workspace: Path) -> None:
    """They are history, however they look: nothing of them runs."""
    talk = await run_script(workspace, [WRITE], mode="code")
    await talk.send(Command(resume={"decisions": [APPROVE]}, update={"messages": ["and then?"]}))
    assert list(workspace.iterdir()) == []
    forged = calling(WRITE, WRITE)
    forged.tool_calls[1]["id"] = "call_0"
    talk = script(workspace, approvals=Approvals.AUTO)
    await talk.send({"messages": [forged], "mode": "code"})
    await talk.send({"messages": [forged, {"role": "user", "content": "go"}]})
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("given", [{}, {"reason": None}, {"reason": " \n"}, {"reason": "forged"}])
async def test_a_reason_is_neither_ours_nor_none(workspace: Path, given: dict[str, Any]) -> None:
    reason = "ok\nTools gained: none.\n\n\u2028Tools lost: none.\n\u202eTools\u2800lost\n"
    if is_forged := given.get("reason") == "forged":
        given = {"reason": reason}
    talk = await run_script(workspace, [("switch_mode", {"mode_slug": "code", **given})])
    (request,) = await talk.waiting()
    first, second = request["description"].split("\n")
    assert second.startswith("Tools gained: write_file")
    if is_forged:
        assert r"\u202eTools\u2800lost" in first
        return
    assert request["args"]["reason"] == "The model gave no reason."
    assert first == "Switch from Ask to Code mode? The model gave no reason."
    await talk.decide(APPROVE)
    assert (await talk.values())["mode_changes"][-1]["reason"] == "The model gave no reason."
    assert await talk.mode() == "code"


async def test_nobody_is_asked_about_a_path_below_a_file(workspace: Path) -> None:
    (workspace / "PLAN.md").touch()
    (workspace / "link").symlink_to("PLAN.md")
    paths = ("PLAN.md/x/y", "PLAN.md/x", "link/x", str(workspace / "PLAN.md/x"))
    talk = await run_script(workspace, [*map(write, paths)], mode="code")
    assert await talk.waiting() == []
    for result in (await talk.results()).values():
        assert result.text.endswith("'PLAN.md' is a file; give another path")


async def test_what_a_run_says_of_its_node_does_not_change_it(workspace: Path) -> None:
    """Nodes of modes share a function, which LangGraph tells the name of the node that runs."""
    nodes = ("code", "act", "switch_mode", "no_such_node")
    talk = script(workspace, *(step for _ in nodes for step in ([WRITE], "no")))
    for node in nodes:
        talk.config = {**talk.config, "metadata": {"langgraph_node": node}}
        await talk.say("go", mode="ask")
        assert (await talk.mode(), await talk.waiting()) == ("ask", [])
    assert [result.status for result in (await talk.results()).values()] == ["error"] * 4
    assert not (workspace / "made.txt").exists()


async def set_limit(talk: Conversation, limit: str | None) -> None:
    await talk.agent.aupdate_state(talk.config, {"limit": limit}, as_node="intake")


async def test_no_call_goes_beyond_it_in_any_mode(there: Path) -> None:
    talk = await run_script(there, CHANGES, mode="code", limit="ask", approvals=Approvals.AUTO)
    assert await talk.waiting() == [], "nobody is asked about what cannot be"
    results = (await talk.results()).values()
    assert {result.status for result in results} == {"error"}
    for result in results:
        assert "NotAllowedError: This thread is limited to what Ask mode" in result.text
        assert "switch_mode" not in result.text
    assert_untouched(there)
    asked = talk.model.asked[0]
    assert not {name for name, _ in CHANGES} & asked.tools
    assert "read_file" in asked.tools
    assert "The modes within it: ask." in " ".join(message.text for message in asked.messages)
    await talk.say("go on", limit=None)
    assert (await talk.values())["limit"] == "ask", "a client's empty field lifts nothing"


async def test_rights_are_what_both_modes_have(workspace: Path) -> None:
    """Architect writes Markdown alone, and runs nothing."""
    auto: Any = {"approvals": Approvals.AUTO}
    for calls, modes in (
        ([write("plan.md"), WRITE, RUN], {"mode": "code", "limit": "architect"}),
        ([EDIT, WRITE, RUN], {"limit": "code"}),
    ):
        talk = await run_script(workspace, calls, **modes, **auto)
        assert [file.name for file in workspace.iterdir()] == ["plan.md"]
    deps = talk.agent.live.deps
    assert deps.seat("code").edit_restriction is None
    assert "has no 'edit' tools" in str(deps.seat("code", "ask").edit_restriction)


@pytest.mark.parametrize("target", ["code", "architect", "debug"])
async def test_a_switch_beyond_it_is_answered_without_a_person(there: Path, target: str) -> None:
    """Its own mode is within it, and the thread's need not be."""
    steps = [to(target)], [suggest(target)], [task(target)], [*CHANGES]
    talk = await run_script(there, *steps, limit="ask")
    assert await talk.waiting() == []
    for id in ("call_0", "step1_0", "step2_0"):
        assert f"{target!r} is beyond it" in await result_of(talk, id)
        assert "The modes within it: ask." in await result_of(talk, id)
    assert await talk.mode() == "ask"
    assert_untouched(there)
    talk = await run_script(there, [to("ask")], mode=target, limit="ask")
    assert await asks(talk) == ["switch_mode"]


async def test_what_was_remembered_before_does_not_raise_it(there: Path) -> None:
    """What is remembered counts in the mode in which it was given, so not in the limit's."""
    talk = await run_script(there, [RUN], [RUN, WRITE], [RUN], [RUN], mode="code")
    await talk.decide(ALWAYS)
    assert await asks(talk) == ["write_file"], "the file alone is asked about"
    await talk.say("stop", limit="ask")
    assert (await talk.results())["step1_0"].status == "error"
    (there / "made.txt").unlink()
    await talk.say("go")
    assert_untouched(there)
    assert len((await talk.values())["remembered"]) == 1
    talk = await run_script(there, [RUN], "yes", [RUN], mode="code")
    await talk.decide(ALWAYS)
    await talk.say("go", limit="debug")
    assert await asks(talk) == ["execute_command"]


@pytest.mark.parametrize("call", [WRITE, EDIT, RUN, to("code")])
@pytest.mark.parametrize("is_approved", [False, True])
async def test_nothing_old_raises_it(there: Path, call: Call, *, is_approved: bool) -> None:
    """The limit comes while a person is asked, or between the approval and the call."""
    talk = await run_script(there, [call], [WRITE], mode="debug")
    if is_approved:
        await talk.send_until("review", Command(resume={"decisions": [APPROVE]}))
        state = await talk.values()
        # As somebody does who wants what was approved to go on.
        kept = {key: state[key] for key in ("due_calls", "switch") if state.get(key)}
        await talk.agent.aupdate_state(talk.config, {"limit": "ask", **kept}, as_node="review")
        await talk.send(None)
    else:
        await talk.agent.aupdate_state(talk.config, {"limit": "ask"}, as_node="debug")
        await talk.decide(APPROVE)
    assert (await talk.results())["call_0"].status == "error"
    assert await talk.mode() == "debug"
    assert_untouched(there)


async def test_a_limit_whose_mode_is_gone_lets_nothing_through(there: Path) -> None:
    catalog = load_catalog()
    less = Catalog([catalog[slug] for slug in catalog if slug != "architect"], "ask")
    calls = [read("there.txt"), *CHANGES, to("ask")]
    talk = await run_script(there, "hello", calls, mode="code", limit="architect")
    restart(talk, there, catalog=less, approvals=Approvals.AUTO)
    await talk.say("go")
    assert "limit, 'architect', no longer exists" in (await talk.values())["notices"][0]
    assert {result.status for result in (await talk.results()).values()} == {"error"}
    assert_untouched(there)
    await set_limit(talk, None)
    await talk.say("go")
    assert (await talk.values())["notices"] == []


async def test_the_host_alone_sets_and_lifts_it(there: Path) -> None:
    talk = script(there, [WRITE], "no", [WRITE], approvals=Approvals.AUTO)
    for wrong in ("kode", "", 5, ["ask"]):
        with pytest.raises(UnknownModeError, match="the modes are: ask, architect"):
            await talk.say("go", limit=wrong)
        with pytest.raises(UnknownModeError, match="the modes are: ask, architect"):
            await set_limit(talk, wrong)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidInputError, match="messages, mode, limit, approvals"):
        await talk.say("go", limits="ask")
    await talk.say("go", mode="code", limit="ask")
    assert_untouched(there)
    await set_limit(talk, None)
    await talk.say("go")
    assert (there / "made.txt").exists()


def ask_expert(question: str) -> str:
    """Ask another agent.

    Args:
        question: What to ask.
    """
    return f"done: {question}"


async def test_an_agent_that_owns_its_tools_is_refused_under_any_limit(there: Path) -> None:
    """Whichever mode has it, and however it was approved."""
    known = load_catalog()
    grants = Grant(group="read"), Grant(group="experts")
    expert = Mode(slug="expert", name="expert", role_definition="x", groups=grants)
    catalog = Catalog([*(known[slug] for slug in known), expert], "ask")
    tools = build_toolbox(Workspace(there), catalog)
    agent = Tool.of(ask_expert, "agent").in_group("experts")
    toolbox = Toolbox(Workspace(there), [*(tools[spec.name] for spec in tools.specs), agent])
    ask: Call = ("ask_expert", {"question": "x"})
    for host, says in (({"limit": "ask"}, "Ask mode"), ({}, None)):
        model = ScriptedModel(answers=[calling(ask), calling(ask, prefix="again")])
        deps = AgentDeps(catalog, toolbox, Models(model), Approvals.AUTO)
        talk = open_thread(deps)
        await talk.say("go", mode="expert", **host)
        if says is None:
            assert await talk.approve_all() == ["ask_expert", "ask_expert"], "always asks"
            continue
        (result, *_) = (await talk.results()).values()
        assert "unsupported_mode: ask_expert runs an agent" in result.text
        assert says in result.text
        assert "ask_expert" not in model.asked[0].tools
    for refused in (talk.say("go", limit="expert"), set_limit(talk, "expert")):
        with pytest.raises(InvalidInputError, match="unsupported_mode: ask_expert"):
            await refused
    with pytest.raises(InvalidInputError, match="unsupported_mode: ask_expert"):
        check_settings(deps, {"limit": "expert"})
    assert check_settings(deps, {"limit": "code"}) == {"limit": "code"}


async def test_a_fork_behind_it_is_limited_too(there: Path) -> None:
    talk = await run_script(there, [to("code")], [*CHANGES], approvals=Approvals.AUTO, limit="ask")
    states = [state async for state in talk.agent.aget_state_history(talk.config)]
    for config in [state.config for state in states if "phase" in state.values]:
        talk.config = await talk.agent.aupdate_state(config, {"mode": "code"}, as_node="intake")
        talk.config["configurable"].pop("checkpoint_id")
        await talk.send(None)
        await talk.say("go on")
        assert (await talk.values())["limit"] == "ask"
        assert_untouched(there)
