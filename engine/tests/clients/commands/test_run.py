"""``make run``: a message without a terminal, where rules answer and all else is denied."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from modeshift.calls.requests import ActionRequest
from modeshift.commands.run import EXIT_CODES
from modeshift.commands.run_rules import RunRule, decide_by
from tests.clients.commands.conftest import Run, Shown
from tests.harness.conversation import APPROVE, REJECT, Conversation, make_agent
from tests.harness.place import UserFolders
from tests.harness.server import Server

DENIED = str(EXIT_CODES["denied"])
RULES = """
- {mode: ask, tool: switch_mode, pattern: code}
- {mode: code, tool: write_file, pattern: "*.txt"}
- {mode: code, tool: edit_file, pattern: "src/*"}
- {mode: code, tool: execute_command, pattern: "printf *"}
- {mode: code, tool: new_task, pattern: ask}
"""
Say = Callable[..., Shown]


@pytest.fixture
def say(run: Run, tmp_path: Path) -> Say:
    def say(message: str, *options: str, rules: str = RULES, **given: str) -> Shown:
        (tmp_path / "rules.yaml").write_text(rules)
        file = ("--rules", str(tmp_path / "rules.yaml"))
        return run("run", "--message", message, *file, *options, **given)

    return say


def read_events(shown: Shown) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shown.stdout.splitlines()]


def test_without_rules_all_that_would_ask_is_denied(place: UserFolders, run: Run) -> None:
    shown = run("run", "--message", "write notes.txt: hello")
    assert not any(place.workspace.iterdir())
    assert "Denied: Switch to Code mode" in shown.stderr
    assert shown.stderr.endswith(DENIED)
    assert "Here is how it went" in shown.stdout


def test_what_a_rule_names_is_allowed_and_answers_alone_are_printed(
    place: UserFolders, say: Say
) -> None:
    shown = say("write notes.txt: hello")
    assert (place.workspace / "notes.txt").read_text() == "hello"
    assert shown.stdout == (
        "Here is how it went:\n- write notes.txt: hello: Created notes.txt (5 characters).\n"
    )
    assert "Allowed by a rule: Switch to Code mode" in shown.stderr
    assert "Allowed by a rule: Write file notes.txt" in shown.stderr
    assert "done; to go on with it: make chat THREAD=" in shown.stderr


def test_each_event_is_an_object_on_a_line(say: Say) -> None:
    events = read_events(say("write notes.txt: hello", "--json"))
    assert [event["type"] for event in events] == [
        *("answer", "decision", "mode", "result"),
        *("answer", "decision", "result", "answer", "end"),
    ]
    assert events[0]["calls"][0]["name"] == "switch_mode"
    assert events[1]["decision"] == "approve"
    assert events[2]["mode"] == "code"
    assert events[-1]["status"] == "done"
    assert events[-1]["taken"]["offline"]["answers"] == 3


def test_a_thread_goes_on_and_one_that_waits_is_refused(place: UserFolders, say: Say) -> None:
    first = read_events(say("hello", "--json"))[-1]["thread"]
    again = read_events(say("printf 1", "--json", "--thread", first))[-1]
    assert again["thread"] == first
    last = read_events(say("run printf 2", "--json", "--thread", "last", "--mode", "code"))
    assert last[-1]["thread"] == first
    assert last[-1]["status"] == "done"


def test_a_limit_holds_against_every_rule(place: UserFolders, say: Say) -> None:
    shown = say("write notes.txt: hello", "--mode", "code", "--limit", "ask", rules=RULES)
    assert not any(place.workspace.iterdir())
    assert "Allowed by a rule: Write" not in shown.stderr


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        ("write notes.md: x", None),
        ("write src/a.txt.sh: x", None),
        ("write ../out.txt: x", None),
        ("write link/out.txt: x", None),
        ("write .env: x", "- {mode: code, tool: write_file, pattern: '*'}"),
        ("write .git/config: x", "- {mode: code, tool: write_file, pattern: '**'}"),
        ("write AGENTS.md: x", "- {mode: code, tool: write_file, pattern: '*'}"),
        ("write a.txt: x", "- {mode: debug, tool: write_file, pattern: '*'}"),
        ("write a.txt: x", "- {mode: code, tool: edit_file, pattern: '*'}"),
        ("write a.txt: x", "- {mode: code, tool: write_file, pattern: 'A.TXT'}"),
        ("write a.txt: x", "- {mode: code, tool: write_file, pattern: 'a.txt/b'}"),
        ("run touch out", None),
        ("run printf 1; touch out", None),
        ("run printf 1 && touch out", None),
        ("run printf 1 > out", None),
        ("run printf $(touch out)", None),
        ("run printf `touch out`", None),
        ("run A=1 printf 1", None),
        ("run printf 1 | tee out", None),
        ("run printf\ttouch out", "- {mode: code, tool: execute_command, pattern: 'printf'}"),
        ("switch to debug", None),
        ("switch to debug", "- {mode: code, tool: switch_mode, pattern: ask}"),
        ("task in debug: read a.txt", None),
        ("ask: may I?", None),
    ],
)
def test_what_no_rule_certainly_names_is_denied(
    place: UserFolders, say: Say, message: str, rule: str | None
) -> None:
    outside = place.root / "outside"
    outside.mkdir()
    (place.workspace / "link").symlink_to(outside)
    before = sorted(place.workspace.rglob("*"))
    shown = say(message, "--mode", "code", rules=rule or RULES, SANDBOX="off")
    assert sorted(place.workspace.rglob("*")) == before
    assert not any(outside.iterdir())
    assert not (place.root / "out.txt").exists()
    assert "Allowed by a rule" not in shown.stderr
    assert "Denied" in shown.stderr or "refused" in shown.stdout


async def test_a_path_that_leads_elsewhere_by_now_is_denied(workspace: Path) -> None:
    """As in the workspace of a server's thread, which is not the one that is seen here."""
    (workspace / "src").mkdir()
    (workspace / "src" / "a.txt").symlink_to(workspace / "other.txt")
    agent = make_agent(workspace)
    talk = Conversation(agent)
    await talk.say("write src/a.txt: x", mode="code")
    (request,) = await talk.waiting()
    rules = [RunRule(mode="code", tool="write_file", pattern="src/*")]
    deps, action = agent.live.deps, cast("ActionRequest", request)
    assert (await decide_by(rules, deps, action, "code"))["type"] == "reject"
    (workspace / "src" / "a.txt").unlink()
    assert (await decide_by(rules, deps, action, "code"))["type"] == "reject"
    await talk.decide(REJECT)
    await talk.say("write src/a.txt: x")
    (action,) = cast("list[ActionRequest]", await talk.waiting())
    assert await decide_by(rules, deps, action, "code") == APPROVE


def test_a_rule_of_a_sub_tasks_mode_is_not_its_parents(place: UserFolders, say: Say) -> None:
    say("task in ask: write a.txt: x", "--mode", "code", SANDBOX="off")
    assert not (place.workspace / "a.txt").exists()


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("- {mode: nope, tool: read_file, pattern: '*'}", "no mode 'nope'; the modes are: ask"),
        ("- {mode: code, tool: nope, pattern: '*'}", "no tool 'nope'; the tools are: read_file"),
        ("- {mode: code, tool: write_file, pattern: '../x'}", "can match no file"),
        ("- {mode: code, tool: switch_mode, pattern: zz}", "no mode matches 'zz'"),
        ("- {mode: code, tool: update_todo_list, pattern: x}", "takes no pattern"),
        ("- {mode: code, tool: ask_followup_question, pattern: '*'}", "may not be remembered"),
        ("- {mode: code}", "Field required"),
        ("- {mode: code, tool: write_file, pattern: '*', allow: yes}", "rule"),
        ("mode: code", "give a list of rules"),
        ("- [", "neither YAML nor JSON"),
    ],
)
def test_a_wrong_rule_is_refused_before_anything_runs(say: Say, rules: str, problem: str) -> None:
    shown = say("hello", rules=rules)
    assert shown.stdout == ""
    assert "rules.yaml" in shown.stderr
    assert problem in shown.stderr


def test_rules_are_never_the_workspaces_own(place: UserFolders, run: Run) -> None:
    inside = place.workspace / "rules.yaml"
    inside.write_text(RULES)
    (place.root / "link.yaml").symlink_to(inside)
    (place.root / "outside.yaml").write_text(RULES)
    (place.workspace / "outside.yaml").symlink_to(place.root / "outside.yaml")
    (place.workspace / "folder").symlink_to(place.root)
    for file in (
        inside,
        place.workspace / "outside.yaml",
        place.workspace / "folder" / "outside.yaml",
        place.root / "link.yaml",
        place.workspace / ".." / "workspace" / "rules.yaml",
    ):
        shown = run("run", "--message", "hello", "--rules", str(file))
        assert shown.stdout == ""
        assert "in the workspace, where the agent may write" in shown.stderr
    assert "there is no file" in run("run", "--message", "hi", "--rules", "nope.yaml").stderr


def test_a_budget_ends_the_run_before_what_would_follow(place: UserFolders, say: Say) -> None:
    shown = say("write notes.txt: hello", "--max-cost", "300 tokens")
    assert shown.stderr.endswith(str(EXIT_CODES["out of budget"]))
    assert "stopped at 300 tokens" in shown.stderr
    assert not any(place.workspace.iterdir())
    done = say("hello", "--max-cost", "300 tokens")  # its answer is all there is to it
    assert not done.stderr[-1].isdigit()
    unknown = say("write notes.txt: hello", "--max-cost", "2.50")
    assert "needs a price for offline" in unknown.stderr
    assert unknown.stderr.endswith(str(EXIT_CODES["failed"]))
    (place.home / "prices.yaml").write_text(
        "offline: {input: 10, output: 10, cache_read: 1, cache_write: 1}"
    )
    cheap = say("write notes.txt: hello", "--max-cost", "0.001")
    assert "stopped at 0.001 US dollars" in cheap.stderr
    assert not any(place.workspace.iterdir())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--max-cost", "0"), "'0' is no amount"),
        (("--max-cost", "nan"), "'nan' is no amount"),
        (("--max-cost", "5 apples"), "'5 apples' is no amount"),
        (("--mode", "nope"), "unknown mode 'nope'"),
        (("--limit", "nope"), "unknown mode 'nope'"),
        (("--thread", "nope"), "'nope' is no thread's id"),
        (("--thread", "last"), "there is no thread yet"),
    ],
)
def test_a_wrong_option_is_named(run: Run, options: tuple[str, str], problem: str) -> None:
    shown = run("run", "--message", "hello", *options)
    assert shown.stdout == ""
    assert problem in shown.stderr


def test_a_message_comes_from_standard_input(run: Run) -> None:
    assert "offline model" in run("run", answers=["hello"]).stdout
    assert "there is no message" in run("run").stderr
    assert "there is no message" in run("run", "--message", " ").stderr


def test_a_thread_of_this_process_goes_on_with_a_server_that_starts_later(
    say: Say, run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {
        "CHECKPOINTS": str(server.folder / "checkpoints.sqlite"),
        "WORKSPACE": str(server.workspace),
    }
    first = read_events(say("hello", "--json", **data))[-1]["thread"]
    monkeypatch.setattr("modeshift.commands.run.find_server", lambda _: server.url)
    events = read_events(say("hello again", "--json", "--thread", first, **data))
    assert events[-1]["thread"] == first
    assert events[-1]["status"] == "done"
    wrong = say("hello", "--mode", "nope", **data)
    assert "unknown mode 'nope'" in wrong.stderr
    unknown = say("hello", "--thread", f"{first[:-4]}0000", **data)
    assert "there is no thread" in unknown.stderr
