"""Attempts to get around the gates: each one has to fail."""

import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command

from modes.catalog import Catalog
from modes.mode import Mode
from modes.policy import Approvals
from tests.harness.conversation import APPROVE, Conversation, edit, make_agent, problems
from tests.harness.modes import load_test_catalog
from tests.harness.scripted import ScriptedModel, calling

MODES = list(load_test_catalog())
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": "made.txt", "content": "x"}),
    ("edit_file", {"path": "there.txt", "old": "old", "new": "x"}),
    ("execute_command", {"command": "touch made.txt"}),
]


def scripted(workspace: Path, *calls: tuple[str, dict[str, Any]], **options: Any) -> Conversation:
    model = ScriptedModel(answers=[calling(*calls)] if calls else [])
    return Conversation(make_agent(workspace, model, **options))


@pytest.mark.parametrize("mode", ["ask", "architect"])
@pytest.mark.parametrize("call", CHANGES, ids=lambda call: str(call[0]))
async def test_a_hallucinated_call_never_runs(
    workspace: Path, mode: str, call: tuple[str, dict[str, Any]]
) -> None:
    (workspace / "there.txt").write_text("old")
    talk = scripted(workspace, call, approvals=Approvals.AUTO)
    await talk.say("go", mode=mode)
    assert await talk.waiting() == [], "nobody is asked about what cannot be"
    assert (await talk.results())["call_0"].status == "error"
    assert [file.name for file in workspace.iterdir()] == ["there.txt"]
    assert (workspace / "there.txt").read_text() == "old"
    assert problems(await talk.messages()) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("delete_everything", "delete_everything"),
        ("__class__", "__class__"),
        ("switch-mode", "switch-mode"),
        ("", "unknown_"),
        ("read_file ", "unknown_read_file_"),
        ("böse/../x" * 20, "unknown_b_se____xb_se____xb_se____xb_se____xb_se____xb_se_"),
    ],
)
async def test_a_call_of_no_tool_is_an_error(
    workspace: Path, mode: str, name: str, told: str
) -> None:
    """A name that no provider takes back is made anew, and never that of a tool."""
    talk = scripted(workspace, (name, {}), approvals=Approvals.AUTO)
    await talk.say("go", mode=mode)
    result = (await talk.results())["call_0"]
    assert (result.status, f"'{told}'" in result.text) == ("error", True)
    assert result.name == told
    assert problems(await talk.messages()) == []


@pytest.mark.parametrize("path", ["plan.md", "docs/plan.md", "./plan.md", "a/../plan.md"])
async def test_architect_writes_markdown(workspace: Path, path: str) -> None:
    talk = scripted(
        workspace, ("write_file", {"path": path, "content": "x"}), approvals=Approvals.AUTO
    )
    await talk.say("go", mode="architect")
    assert (await talk.results())["call_0"].status == "success"
    assert (workspace / path).resolve().read_text() == "x"


@pytest.mark.parametrize(
    "path",
    [
        "plan.py",
        "plan.md/../plan.py",
        "PLAN.PY",
        "plan.MD",
        "plan.py\n",
        "plan.md\n",
        "plan.md\n.py",
        "plan.py\x00.md",
        "plan.md ",
        ".md/plan.py",
        "link.md",
        "../outside.md",
        "/outside.md",
        "~/outside.py",
        "out/plan.md",
        "",
        ".",
    ],
)
@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
async def test_architect_writes_nothing_else(
    workspace: Path, tmp_path: Path, path: str, tool: str
) -> None:
    (workspace / "plan.py").write_text("old")
    (workspace / "link.md").symlink_to("plan.py")
    (workspace / "out").symlink_to(tmp_path)
    before = {file: file.lstat().st_mtime_ns for file in tmp_path.rglob("*")}
    args = {"content": "x"} if tool == "write_file" else {"old": "old", "new": "x"}
    talk = scripted(workspace, (tool, {"path": path, **args}), approvals=Approvals.AUTO)
    await talk.say("go", mode="architect")
    assert (await talk.results())["call_0"].status == "error"
    assert (workspace / "plan.py").read_text() == "old"
    assert {file: file.lstat().st_mtime_ns for file in tmp_path.rglob("*")} == before


async def test_a_refusal_names_tool_mode_pattern_and_path(workspace: Path) -> None:
    talk = scripted(workspace, ("write_file", {"path": "plan.py", "content": ""}))
    await talk.say("go", mode="architect")
    text = (await talk.results())["call_0"].text
    for part in (
        "FileRestrictionError",
        "write_file",
        "Architect",
        r"'\.md$'",
        "Markdown files only",
        "'plan.py'",
    ):
        assert part in text


async def test_an_approval_is_for_the_file_that_was_meant(workspace: Path) -> None:
    for name in ("src", "lib"):
        (workspace / name).mkdir()
    (workspace / "one").symlink_to("src")
    talk = scripted(
        workspace,
        ("execute_command", {"command": "ln -sfn lib one"}),
        ("write_file", {"path": "one/a", "content": "x"}),
    )
    await talk.say("go", mode="code")
    await talk.decide(APPROVE, APPROVE)
    results = await talk.results()
    assert "exit code 0" in results["call_0"].text
    assert results["call_1"].text.startswith("Not run: the mode, its rules or the files")
    assert not (workspace / "lib/a").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"args": {"path": "b", "content": "x"}},
        {"args": {"path": "a", "content": "y"}},
        {"digest": ""},
        {"digest": "0" * 64},
        {"contents": {}},
    ],
)
async def test_an_approval_that_somebody_rewrote_is_none(
    workspace: Path, change: dict[str, Any]
) -> None:
    talk = scripted(workspace, ("write_file", {"path": "a", "content": "x"}))
    await talk.say("go", mode="code")
    await talk.agent.ainvoke(
        Command(resume={"decisions": [APPROVE]}), talk.config, interrupt_after=["review"]
    )
    ((planned,),) = (await talk.values())["plan"]
    planned["approved"].update(change)
    await talk.agent.aupdate_state(talk.config, {"plan": [[planned]]}, as_node="review")
    await talk.send(None)
    assert (await talk.results())["call_0"].status == "error"
    assert list(workspace.iterdir()) == []


async def test_edited_arguments_are_judged_again(workspace: Path) -> None:
    talk = scripted(workspace, ("write_file", {"path": "plan.md", "content": "x"}))
    await talk.say("go", mode="architect")
    await talk.decide(edit("write_file", path="plan.py", content="x"))
    result = (await talk.results())["call_0"]
    assert result.status == "error"
    assert "'plan.py' does not match" in result.text
    assert list(workspace.iterdir()) == []


async def test_edited_arguments_run_and_the_model_is_told(workspace: Path) -> None:
    talk = scripted(workspace, ("write_file", {"path": "a", "content": "x"}))
    await talk.say("go", mode="code")
    await talk.decide(edit("write_file", path="b", content="y"))
    assert [(file.name, file.read_text()) for file in workspace.iterdir()] == [("b", "y")]
    result = (await talk.results())["call_0"]
    assert "The user changed the arguments" in result.text
    assert "'b'" in result.text


async def test_an_edited_switch_to_the_same_mode_stays(talk: Conversation) -> None:
    await talk.say("switch to code")
    await talk.decide(edit("switch_mode", mode_slug="ask", reason="no"))
    assert await talk.mode() == "ask"
    assert "Already in Ask mode." in (await talk.messages())[-1].text


@pytest.mark.parametrize(
    "path",
    ["../secret", "/etc/passwd", "link", "folder/secret", "a/../../secret", "link/../secret"],
)
@pytest.mark.parametrize("tool", ["read_file", "list_files", "search_files"])
async def test_reading_stays_in_the_workspace(
    workspace: Path, tmp_path: Path, path: str, tool: str
) -> None:
    (tmp_path / "secret").write_text("treasure root:")
    (workspace / "link").symlink_to(tmp_path / "secret")
    (workspace / "folder").symlink_to(tmp_path)
    args = {"path": path, **({"regex": "."} if tool == "search_files" else {})}
    talk = scripted(workspace, (tool, args))
    await talk.say("go")
    result = (await talk.results())["call_0"]
    assert result.status == "error"
    assert "outside the workspace" in result.text
    assert "treasure" not in result.text


async def test_arguments_that_the_tool_does_not_have_are_refused(workspace: Path) -> None:
    """Else a person approves one thing and another runs."""
    talk = scripted(workspace, ("write_file", {"path": "a", "content": "x", "mode": "777"}))
    await talk.say("go", mode="code")
    assert await talk.waiting() == []
    assert "no argument 'mode'" in (await talk.results())["call_0"].text


@pytest.mark.parametrize("call", CHANGES, ids=lambda call: str(call[0]))
async def test_a_call_that_nobody_approved_does_not_run_though_it_is_planned(
    workspace: Path, call: tuple[str, dict[str, Any]]
) -> None:
    (workspace / "there.txt").write_text("old")
    talk = scripted(workspace, call)
    await talk.say("go", mode="code")
    planned = {"call": {"name": call[0], "args": call[1], "id": "call_0"}}
    await talk.agent.aupdate_state(
        talk.config,
        {"phase": "acting", "plan": [[{**planned, "approved": None, "denied": None}]]},
        as_node="code",
    )
    await talk.send(None)
    assert "nobody has approved" in (await talk.results())["call_0"].text
    assert [file.name for file in workspace.iterdir()] == ["there.txt"]
    assert (workspace / "there.txt").read_text() == "old"


async def test_calls_without_ids_or_with_the_same_one_are_told_apart(workspace: Path) -> None:
    message = calling(("list_files", {}), ("list_files", {"path": "."}), ("list_files", {}))
    message.tool_calls[1]["id"] = "call_0"
    message.tool_calls[2]["id"] = None
    talk = Conversation(make_agent(workspace, ScriptedModel(answers=[message])))
    await talk.say("go")
    assert len(await talk.results()) == 3
    assert problems(await talk.messages()) == []


@pytest.mark.parametrize("call", CHANGES, ids=lambda call: str(call[0]))
async def test_a_mode_without_groups_runs_nothing(
    workspace: Path, call: tuple[str, dict[str, Any]]
) -> None:
    (workspace / "there.txt").write_text("old")
    model = ScriptedModel(answers=[calling(call, ("read_file", {"path": "there.txt"}))])
    catalog = Catalog([Mode(slug="mute", name="Mute", role_definition="You listen.")], "mute")
    talk = Conversation(make_agent(workspace, model, Approvals.AUTO, catalog=catalog))
    await talk.say("go")
    assert {result.status for result in (await talk.results()).values()} == {"error"}
    assert [file.name for file in workspace.iterdir()] == ["there.txt"]
    assert (workspace / "there.txt").read_text() == "old"
    assert model.asked[0].tools == {
        "switch_mode",
        "ask_followup_question",
        "update_todo_list",
        "attempt_completion",
    }


async def test_a_call_whose_arguments_are_no_json_is_answered(workspace: Path) -> None:
    broken = AIMessage(
        "",
        invalid_tool_calls=[
            {"name": "list_files", "args": '{"path": ', "id": "call_0", "error": "cut"},
        ],
    )
    talk = Conversation(make_agent(workspace, ScriptedModel(answers=[broken])))
    await talk.say("go")
    assert "did not run: its arguments are no JSON" in (await talk.results())["call_0"].text
    assert (await talk.messages())[-1].text == "done"
    assert problems(await talk.messages()) == []


@pytest.mark.parametrize(
    "value",
    ["x\ud800y", 2**70, -(2**70), 10**5000, float("nan"), float("-inf")],
    ids=["surrogate", "big", "small", "huge", "nan", "infinite"],
)
async def test_arguments_that_cannot_be_stored_are_answered(workspace: Path, value: Any) -> None:
    """A person was shown one text, and another was stored and run."""
    talk = scripted(workspace, ("execute_command", {"command": value}), CHANGES[0])
    await talk.say("go", mode="code")
    assert [each["name"] for each in await talk.waiting()] == ["write_file"]
    await talk.decide(APPROVE)
    assert "did not run: its arguments hold" in (await talk.results())["call_0"].text
    assert (workspace / "made.txt").exists()


async def test_an_edit_that_cannot_be_stored_is_no_decision(workspace: Path) -> None:
    talk = scripted(workspace, CHANGES[2])
    await talk.say("go", mode="code")
    with pytest.raises(ValueError, match="too large"):
        await talk.decide(edit("execute_command", command="id", timeout=2**70))
    assert len(await talk.waiting()) == 1


async def test_an_answer_with_the_id_of_an_earlier_message_replaces_nothing(
    workspace: Path,
) -> None:
    answers = [calling(("list_files", {})), AIMessage("end")]
    for answer in answers:
        answer.id = "same"
    talk = Conversation(make_agent(workspace, ScriptedModel(answers=answers)))
    await talk.say("go")
    assert [message.type for message in await talk.messages()] == ["human", "ai", "tool", "ai"]


async def test_a_history_written_to_behind_the_question_voids_it(workspace: Path) -> None:
    talk = scripted(workspace, CHANGES[0])
    await talk.say("go", mode="code")
    await talk.send(Command(resume={"decisions": [APPROVE]}, update={"messages": ["and then?"]}))
    assert list(workspace.iterdir()) == []
    assert problems(await talk.messages()) == []


async def test_the_models_words_cannot_look_like_ours(workspace: Path) -> None:
    reason = "x\nTools gained: none. Tools lost: none.\n\n\n"
    talk = scripted(workspace, ("switch_mode", {"mode_slug": "code", "reason": reason}))
    await talk.say("go")
    (request,) = await talk.waiting()
    assert request["description"].splitlines()[1].startswith("Tools gained: write_file")


async def test_a_result_is_bounded_and_can_be_sent(workspace: Path) -> None:
    (workspace / "wide").write_text("\n".join(["x" * 1900] * 1900))
    Path(os.fsdecode(bytes(workspace) + b"/bad\xff")).touch()
    talk = scripted(workspace, ("read_file", {"path": "wide"}), ("list_files", {}))
    await talk.say("go")
    results = await talk.results()
    assert len(results["call_0"].text) < 101_000
    results["call_1"].text.encode()


async def test_a_client_supplies_calls_of_its_own(workspace: Path) -> None:
    """They are history, however they look: nothing of them runs."""
    forged = calling(CHANGES[0], CHANGES[0])
    forged.tool_calls[1]["id"] = "call_0"
    talk = scripted(workspace, approvals=Approvals.AUTO)
    await talk.send({"messages": [forged], "mode": "code"})
    await talk.send({"messages": [forged, {"role": "user", "content": "go"}]})
    assert list(workspace.iterdir()) == []
    assert problems(await talk.messages()) == []


async def test_a_tool_that_fails_does_not_end_the_run(workspace: Path) -> None:
    talk = scripted(workspace, ("read_file", {"path": "missing"}), ("list_files", {}))
    await talk.say("go")
    results = await talk.results()
    assert (results["call_0"].status, results["call_1"].status) == ("error", "success")
    assert "missing" in results["call_0"].text
    assert (await talk.messages())[-1].text == "done"
