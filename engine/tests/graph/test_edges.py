"""Edges between modes: what the model may ask for, and what a person may do anyway."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from modeshift.models.offline import OfflineModel
from modeshift.modes.catalog import Catalog
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.facts import BUILT_IN, Done, Fact, ProjectTests
from modeshift.testing.plugin import Snapshot
from modeshift.threads.facts import digest_tests
from modeshift.threads.mailbox import Mailbox
from tests.harness.conversation import (
    APPROVE,
    REJECT,
    Conversation,
    Step,
    edit,
    restart,
    run_script,
    script,
)
from tests.harness.modes import load_catalog
from tests.harness.scripted import Call

TESTS = ProjectTests(command="make test", files=("Makefile", "tests/"))
PASS, FAIL, SLOW = (f"test:\n\t{line}\n" for line in ("true", "false", "sleep 30"))
PROVE_IT = {"switches": [{"to": "*", "when": "tests_passed or not files_changed"}]}
PLAN_FIRST = {"enterFrom": [{"from": "architect", "when": "plan_written"}]}


def with_tables(**tables: dict[str, Any]) -> Catalog:
    """The modes of the tests, some with tables."""
    catalog = load_catalog()

    def change(slug: str) -> Any:
        mode = catalog[slug]
        keys = ("slug", "name", "switches", "enterFrom", "subtasks")
        table = {key: value for key, value in tables.get(slug, {}).items() if key in keys}
        parsed = type(mode).model_validate(
            {"slug": slug, "name": "x", "roleDefinition": "x", "groups": [], **table}
        )
        fields = ("switches", "enter_from", "subtasks")
        return mode.model_copy(update={name: getattr(parsed, name) for name in fields})

    return Catalog([change(slug) for slug in catalog], "ask")


def ask_for(slug: str) -> Call:
    return "switch_mode", {"mode_slug": slug, "reason": "why not"}


def write(path: str, content: str = "x") -> Call:
    return "write_file", {"path": path, "content": content}


def run(line: str, **more: Any) -> Call:
    return "execute_command", {"command": line, **more}


def todo(done: str) -> Call:
    return "update_todo_list", {"todos": [{"content": done, "status": "completed"}]}


def suggestion(slug: str) -> Call:
    follow_up = [{"text": "Yes", "mode": slug}]
    return "ask_followup_question", {"question": "?", "follow_up": follow_up}


def task(slug: str) -> Call:
    return "new_task", {"mode_slug": slug, "message": "do it"}


async def try_out(workspace: Path, *steps: Step, mode: str, **options: Any) -> Conversation:
    """All steps of a model, whose calls a person approves."""
    talk = await run_script(workspace, *steps, mode=mode, **options)
    await talk.approve_all()
    return talk


async def last_result(talk: Conversation) -> str:
    return list((await talk.results()).values())[-1].text


@pytest.fixture
def project(workspace: Path) -> Path:
    (workspace / "Makefile").write_text(PASS)
    (workspace / "tests").mkdir()
    (workspace / "tests/test_a.py").write_text("assert True\n")
    return workspace


PROVEN: dict[str, Any] = {"catalog": with_tables(code=PROVE_IT), "tests": TESTS}
PLANNED: dict[str, Any] = {"catalog": with_tables(code=PLAN_FIRST)}


async def test_code_is_not_left_before_the_tests_have_passed(
    project: Path, snapshot: Snapshot
) -> None:
    talk = await run_script(
        project, [write("tests/new.py")], [ask_for("ask")], [run("make test")], [ask_for("ask")],
        mode="code", **PROVEN,
    )  # fmt: skip
    await talk.decide(APPROVE)
    told = (await talk.results())["step1_0"].text
    assert [request["name"] for request in await talk.waiting()] == ["execute_command"]
    await talk.decide(APPROVE)
    (card,) = await talk.waiting()
    snapshot("edge-of-the-tests.txt", {"not open": told, "open": card["description"]})
    await talk.decide(APPROVE)
    assert await talk.mode() == "ask"
    assert "how" not in (await talk.values())["mode_changes"][-1]


async def test_what_is_written_between_the_yes_and_the_switch(project: Path) -> None:
    talk = await try_out(project, [write("a.py"), ask_for("ask")], mode="code", **PROVEN)
    assert await talk.mode() == "code"
    assert "not open from Code mode yet" in (await talk.results())["call_1"].text
    assert (await talk.messages())[-1].text == "done"


UNCHANGED = {"to": "ask", "when": "not files_changed"}
TO_ASK = {"code": {"switches": [UNCHANGED, "debug"]}}
SUGGEST_ASK: Call = (
    "ask_followup_question",
    {"question": "?", "follow_up": [{"text": "Yes", "mode": "ask"}]},
)
YES = {"type": "respond", "message": "Yes (switch to ask)"}
I_SAY_SO = edit("switch_mode", mode_slug="ask", reason="I say so")
DUE: dict[str, tuple[dict[str, Any], Call, list[dict[str, Any]], str]] = {
    "a switch": (TO_ASK, ask_for("ask"), [APPROVE], "code"),
    "in other words": (TO_ASK, ask_for("ask"), [I_SAY_SO], "code"),
    "a suggestion": (TO_ASK, SUGGEST_ASK, [YES], "code"),
    "by edge": (
        {"code": {"switches": [{**UNCHANGED, "ask": "never"}]}},
        ask_for("ask"),
        [],
        "code",
    ),
    "a sub-task": (
        {"ask": {"enterFrom": [{"from": "code", "when": "not files_changed"}]}},
        task("ask"),
        [APPROVE],
        "code",
    ),
    "by hand": (TO_ASK, ask_for("debug"), [I_SAY_SO], "ask"),
}
"""The tables, a call along an edge, what a person decides on it, and the mode then."""


@pytest.mark.parametrize("name", DUE)
async def test_the_condition_is_asked_again_when_the_switch_is_applied(
    there: Path, name: str
) -> None:
    """Whatever a person said before: the switch stays the model's, unless the mode is another."""
    tables, call, decisions, mode = DUE[name]
    options: dict[str, Any] = {"mode": "code", "catalog": with_tables(**tables)}
    talk = await run_script(there, [write("a.py"), call], "done", **options)
    assert len(await talk.waiting()) == 1 + len(decisions), "it is open, as long as nothing ran"
    await talk.decide(APPROVE, *decisions)
    assert (await talk.mode(), (there / "a.py").exists()) == (mode, True)
    if mode == "code":
        assert "not open from Code mode yet" in (await talk.results())["call_1"].text
        assert (await talk.values())["phase"] == "idle"


async def test_another_reason_leaves_the_switch_the_models(there: Path) -> None:
    talk = await run_script(there, [ask_for("ask")], mode="code", catalog=with_tables())
    await talk.decide(I_SAY_SO)
    record = (await talk.values())["mode_changes"][-1]
    assert (record["target"], record["reason"], "how" in record) == ("ask", "I say so", False)


LINES = [
    "echo '[exit code 0]'", "echo make test '[exit code 0]'", "make test || true",
    "make test; true", "make test && true", "true || make test", " make test", "make test ",
    "make  test", "make test\n", "make\u00a0test", "make test # now", "X=1 make test",
    "make test -n", "sh -c 'make test'", "exec make test", "make tests", "make test\ntrue",
    "cd . && make test", "MAKE TEST", "PATH=.:$PATH make test",
]  # fmt: skip
FAKES: dict[str, list[list[Call]]] = {
    "not at all": [],
    "another line": [step for line in LINES for step in ([run(line)], [ask_for("ask")])],
    "another makefile": [[write("o.mk", PASS)], [run("make -f o.mk test")]],
    "another folder": [[write("sub/Makefile", PASS)], [run("make test", cwd="sub")]],
    "in the background": [[run("make test", background=True)]],
    "in the background, read": [
        [run("make test", background=True)],
        [("read_output", {"id": "f4bd17", "wait": 5})],
    ],
    "ended by a limit": [[write("Makefile", SLOW)], [run("make test", timeout=1)]],
    "failed": [[write("Makefile", FAIL)], [run("make test")]],
    "an edit behind": [[run("make test")], [write("a.py", "y")]],
    "a write that fails behind": [[run("make test")], [write("tests", "not a folder")]],
    "a command behind": [[run("make test")], [run("ls")]],
    "a failed one behind": [[run("make test")], [run("false")]],
    "a background command behind": [[run("make test")], [run("sleep 0", background=True)]],
    "beside a background command": [[run("sleep 30", background=True)], [run("make test")]],
    "in the same message, before": [[run("make test"), write("a.py", "y")]],
    "in the todo list": [[todo("make test")]],
    "a file that says so": [[write("tests_passed", "yes")]],
    "a sub-task that breaks it": [[run("make test")], [task("code")], [write("a.py", "z")]],
}


@pytest.mark.parametrize("name", FAKES)
async def test_passed_tests_are_not_faked(project: Path, name: str) -> None:
    steps = [[write("a.py")], *FAKES[name], [ask_for("ask")]]
    talk = await run_script(project, *steps, mode="code", subtask_depth=1, **PROVEN)
    while waiting := await talk.waiting():
        assert waiting[0]["name"] != "switch_mode", name
        await talk.decide(*[APPROVE] * len(waiting))
    assert await talk.mode() == "code"
    assert "tests_passed" not in (await talk.values())["facts"]["workspace"]


LAWFUL: dict[str, list[list[Call]]] = {
    "at once": [[write("a.py")], [run("make test")]],
    "nothing to prove": [],
    "again": [[write("Makefile", FAIL)], [run("make test")], [write("Makefile", PASS)],
              [run("make test")]],
    "reads behind it": [[write("a.py")], [run("make test")], [("read_file", {"path": "a.py"})]],
    "the folder by name": [[write("a.py")], [run("make test", cwd=".")]],
    "the folder in a roundabout way": [[write("a.py")], [run("make test", cwd="tests/..")]],
    "notes behind it": [[write("a.py")], [run("make test")], [todo("x")]],
}  # fmt: skip


@pytest.mark.parametrize("name", LAWFUL)
async def test_tests_that_passed(project: Path, name: str) -> None:
    talk = await try_out(project, *LAWFUL[name], [ask_for("ask")], mode="code", **PROVEN)
    assert await talk.mode() == "ask"


async def test_a_makefile_that_says_true_is_seen(project: Path) -> None:
    when = "tests_passed and not tests_changed"
    catalog = with_tables(code={"switches": [{"to": "ask", "when": when}]})
    (project / "Makefile").write_text(FAIL)
    steps: list[list[Call]] = [[write("Makefile", PASS)], [run("make test")], [ask_for("ask")]]
    talk = await try_out(project, *steps, mode="code", catalog=catalog, tests=TESTS)
    assert await talk.mode() == "code"
    assert "tests_passed: yes, tests_changed: yes" in await last_result(talk)


async def test_what_a_test_run_leaves_does_not_count(project: Path) -> None:
    deps = (await run_script(project, mode="code", **PROVEN)).agent.live.deps
    before = await digest_tests(deps)
    (project / "tests/.pytest_cache").mkdir()
    (project / "tests/.pytest_cache/lastfailed").write_text("x")
    assert await digest_tests(deps) == before
    (project / "tests/link").symlink_to("test_a.py")
    assert await digest_tests(deps) != before


IMPORTED = f"test:\n\tcd tests && {sys.executable} -c 'import test_a'\n"
FORGED = """import py_compile
open("/{place}/fake.py", "w").write("pass")
unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
cached = importlib.util.cache_from_source("tests/test_a.py")
py_compile.compile("/{place}/fake.py", cached, invalidation_mode=unchecked)
"""


async def test_byte_code_among_the_tests_counts_and_test_runs_write_none(
    project: Path, tmp_path: Path
) -> None:
    """Python takes byte code that says so for the source's, whatever that is."""
    catalog = with_tables(
        code={"switches": [{"to": "ask", "when": "tests_passed and not tests_changed"}]}
    )
    options: Any = {"mode": "code", "catalog": catalog, "tests": TESTS}
    (project / "Makefile").write_text(IMPORTED)
    honest: list[list[Call]] = [[run("make test")], [ask_for("ask")]]
    assert await (await try_out(project, *honest, **options)).mode() == "ask"
    assert not (project / "tests/__pycache__").exists()
    (project / "tests/test_a.py").write_text("assert False\n")
    forge = tmp_path / "forge.py"
    forge.write_text(f"import importlib.util\n{FORGED.replace('/{place}', str(tmp_path))}")
    faked: list[list[Call]] = [[run(f"{sys.executable} {forge}")], *honest]
    talk = await try_out(project, *faked, **options)
    assert await talk.mode() == "code"
    assert "tests_passed: yes, tests_changed: yes" in await last_result(talk)


async def test_what_links_among_the_test_files_lead_to_counts(project: Path) -> None:
    for name in ("real/a.py", "real/below/b.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("x")
    (project / "tests/a.py").symlink_to("../real/a.py")
    (project / "tests/below").symlink_to("../real/below")
    (project / "tests/below/round").symlink_to("..")
    (project / "tests/gone").symlink_to("nowhere")
    deps = (await run_script(project, mode="code", **PROVEN)).agent.live.deps
    digests = [await digest_tests(deps)]
    for name in ("real/a.py", "real/below/b.py"):
        (project / name).write_text("y")
        digests.append(await digest_tests(deps))
    assert len({*digests}) == 3


async def test_a_pipe_among_the_test_files_holds_nothing_up(project: Path) -> None:
    catalog = with_tables(code={"switches": [{"to": "ask", "when": "not tests_changed"}]})
    steps: list[list[Call]] = [[run("mkfifo tests/pipe")], [ask_for("ask")]]
    talk = await try_out(project, *steps, mode="code", catalog=catalog, tests=TESTS)
    assert await talk.mode() == "code"
    assert "tests_changed: cannot be determined" in await last_result(talk)


async def test_how_test_files_were_at_first_is_not_learned_later(project: Path) -> None:
    catalog = with_tables(code={"switches": [{"to": "ask", "when": "not tests_changed"}]})
    os.mkfifo(project / "tests/pipe")
    steps: list[Any] = [[run("rm tests/pipe")], [write("Makefile")], "done", [ask_for("ask")]]
    talk = await try_out(project, *steps, mode="code", catalog=catalog, tests=TESTS)
    await talk.say("go on")
    assert await talk.mode() == "code"
    assert "tests_changed: cannot be determined" in await last_result(talk)


NO_PLANS: list[list[Call]] = [
    [todo("plan.md")],
    [write("plan.txt")],
    [write("plan.md.txt")],
    [write("../plan.md")],
    [write(".git/plan.md")],
    [("edit_file", {"path": "p.md", "edits": [{"old": "a", "new": "b"}]})],
    [run("touch plan.md")],
    [("read_file", {"path": "there.md"})],
    [("list_files", {"path": "."})],
    [("write_file", {"path": "plan.md"})],
    [("write_file", {"content": "x"})],
    [("write_file", {"path": "p.md", "content": "x", "plan_written": True})],
    [("plan_written", {})],
    [write("plan.MD")],
    [write("plan.md ")],
    [write("out.md")],
    [("search_files", {"regex": "plan"})],
    [("update_todo_list", {"todos": [], "facts": {"mode": ["x"]}})],
    [write("plan.md/x.txt")],
]


@pytest.mark.parametrize("way", [ask_for("code"), task("code")])
async def test_a_plan_is_not_faked(there: Path, way: Call) -> None:
    (there / "there.md").write_text("a plan of others")
    (there / "out.md").symlink_to(there.parent / "out.md")
    talk = await try_out(there, *NO_PLANS, [way], mode="architect", **PLANNED)
    assert await talk.mode() == "architect"
    assert "not open from Architect mode yet" in await last_result(talk)


SUGGEST: Call = (
    "ask_followup_question",
    {"question": "?", "follow_up": [{"text": "Yes", "mode": "code"}]},
)
NO_OTHERS: dict[str, tuple[str, list[list[Call]]]] = {
    "rejected": ("architect", [[write("plan.md")]]),
    "from ask": ("ask", [[ask_for("code")]]),
    "from debug": ("debug", [[write("plan.md")], [ask_for("code")]]),
    "a task from ask": ("ask", [[task("code")]]),
    "a task from debug": ("debug", [[write("plan.md")], [task("code")]]),
    "a plan of an earlier visit": (
        "architect",
        [[write("plan.md")], [ask_for("ask")], [ask_for("architect")]],
    ),
    "a suggestion": ("architect", [[SUGGEST]]),
    "a suggestion from ask": ("ask", [[SUGGEST]]),
}


@pytest.mark.parametrize("name", NO_OTHERS)
async def test_no_way_around_the_plan(there: Path, name: str) -> None:
    mode, steps = NO_OTHERS[name]
    talk = await run_script(there, *steps, [ask_for("code")], mode=mode, **PLANNED)
    while waiting := await talk.waiting():
        assert "code" not in str(waiting[0]["args"].get("mode_slug")), waiting
        assert waiting[0]["name"] != "ask_followup_question"
        await talk.decide(REJECT if name == "rejected" else APPROVE)
    assert await talk.mode() != "code"
    assert all(change["target"] != "code" for change in (await talk.values())["mode_changes"][1:])


async def test_a_plan_opens_code(there: Path) -> None:
    talk = await try_out(there, [write("plan.md")], [ask_for("code")], mode="architect", **PLANNED)
    assert await talk.mode() == "code"
    assert "plan_written" not in (await talk.values())["facts"]["mode"]


async def test_a_sub_task_writes_the_plan(there: Path) -> None:
    plan: list[Any] = [[task("architect")], [write("plan.md")], "written"]
    steps = [[task("ask")], "nothing", *plan, [task("code")]]
    talk = await run_script(there, *steps, mode="architect", subtask_depth=1, **PLANNED)
    for _ in range(3):
        await talk.decide(APPROVE)
    (card,) = await talk.waiting()
    assert "Start a sub-task in Code mode?" in card["description"]
    assert card["condition"] == "Met: plan_written (plan_written: yes)."
    assert card["condition"] in card["description"]


def with_notes(pattern: str, **tables: Any) -> Catalog:
    """With a mode ``debug`` that is as architect but for its edit limit."""
    catalog = with_tables(**tables)
    groups = [
        grant.model_copy(update={"file_regex": pattern}) if grant.group == "edit" else grant
        for grant in catalog["architect"].groups
    ]
    update = {"slug": "debug", "name": "Notes", "groups": tuple(groups)}
    notes = catalog["architect"].model_copy(update=update)
    return Catalog([notes if slug == "debug" else catalog[slug] for slug in catalog], "ask")


async def test_a_sub_task_in_a_mode_with_another_limit_writes_no_plan(there: Path) -> None:
    steps: list[Any] = [[task("debug")], [write("a.txt")], "written", [ask_for("code")]]
    talk = await try_out(
        there, *steps, mode="architect", catalog=with_notes(r"\.txt$", code=PLAN_FIRST)
    )
    assert (await talk.mode(), (there / "a.txt").exists()) == ("architect", True)
    assert "plan_written: no" in await last_result(talk)


async def test_a_sub_task_ends_whatever_its_files_are_called(there: Path) -> None:
    slow = with_notes("^(?:a|a)*$")
    steps: list[Any] = [[task("code")], [write("a" * 40 + "b")], "written", "done"]
    talk = await try_out(there, *steps, mode="debug", catalog=slow)
    assert (await talk.messages())[-1].text == "done"


QUESTION: Call = ("ask_followup_question", {"question": "?"})


async def test_a_plan_is_gone_where_a_person_leads_the_sub_task_elsewhere(there: Path) -> None:
    steps: list[Any] = [[write("plan.md")], [task("ask")], [QUESTION], "so be it"]
    talk = await run_script(there, *steps, mode="architect", **PLANNED)
    for _ in range(2):
        await talk.decide(APPROVE)
    assert (await talk.values())["parents"][0]["facts"]["mode"] == ["files_changed", "plan_written"]
    await talk.say("stop", mode="debug", end_subtask=True)
    assert (await talk.mode(), (await talk.values())["facts"]["mode"]) == ("debug", [])


async def test_sub_tasks_only_where_the_table_says(there: Path) -> None:
    catalog = with_tables(debug={"subtasks": ["ask"]})
    talk = await run_script(there, [task("code")], [task("ask")], mode="debug", catalog=catalog)
    assert (
        "A sub-task in 'code' is not open from Debug mode" in (await talk.results())["call_0"].text
    )
    assert [request["args"]["mode_slug"] for request in await talk.waiting()] == ["ask"]


async def test_a_person_is_above_the_edges(there: Path) -> None:
    talk = await run_script(there, [ask_for("debug")], mode="architect", **PLANNED)
    await talk.decide(edit("switch_mode", mode_slug="code", reason="I say so"))
    assert await talk.mode() == "code"
    assert (await talk.values())["mode_changes"][-1]["how"] == "by hand"
    await talk.say("and now", mode="architect")
    assert (await talk.values())["mode_changes"][-1]["how"] == "by hand"
    await talk.say("and now", mode="code")
    assert await talk.mode() == "code"


LEAVES: dict[str, Any] = {
    "a run's input": lambda talk: talk.send({"mode": "debug"}),
    "a command": lambda talk: talk.send(Command(update={"mode": "debug"})),
    "an update": lambda talk: talk.agent.aupdate_state(talk.config, {"mode": "debug"}),
    "beside the runs": lambda talk: Mailbox(talk.agent.store).put(
        talk.config["configurable"]["thread_id"], {"mode": "debug"}
    ),
}


@pytest.mark.parametrize("way", LEAVES)
@pytest.mark.parametrize("node", ["act", "review", None])
async def test_what_was_true_in_a_mode_is_not_where_the_host_leads(
    there: Path, way: str, node: str | None
) -> None:
    """Before or behind the call that makes it true, or in the next turn."""
    entered = {"enterFrom": [{"from": "debug", "when": "files_changed"}]}
    options: Any = {"catalog": with_tables(code=entered), "store": InMemoryStore()}
    steps: list[Step] = [[write("plan.md")], *(["written"] if node is None else [])]
    talk = script(there, *steps, *[[ask_for("code")]] * 2, "done", **options)
    await talk.say("go", mode="architect")
    if node is None:
        await talk.decide(APPROVE)
    else:
        await talk.send_until(node, Command(resume={"decisions": [APPROVE]}))
    await LEAVES[way](talk)
    await (talk.say("go on") if node is None else talk.send(None))
    assert (await talk.mode(), await talk.waiting()) == ("debug", [])
    assert "not open from Debug mode yet" in await last_result(talk)
    told = [each.text for each in (await talk.results()).values() if each.name == "switch_mode"]
    assert not any("since the user was asked" in text for text in told), "nobody was to be asked"
    assert (await talk.values())["facts"]["mode"] == []


FREE = with_tables(code={"switches": [{"to": "ask", "ask": "never"}, "*"]})


async def test_nobody_is_asked_where_nothing_is_gained(there: Path) -> None:
    talk = await run_script(there, [ask_for("ask")], [write("a.txt")], mode="code", catalog=FREE)
    assert (await talk.waiting(), await talk.mode()) == ([], "ask")
    record = (await talk.values())["mode_changes"][-1]
    assert (record["decided_by"], record["how"]) == ("nobody", "by edge")
    assert "no 'edit' tools" in (await talk.results())["step1_0"].text


async def test_a_switch_by_edge_waits_for_what_a_person_decides(there: Path) -> None:
    steps: list[Call] = [write("a.txt"), ask_for("ask")]
    talk = await run_script(there, steps, mode="code", catalog=FREE)
    assert [request["name"] for request in await talk.waiting()] == ["write_file"]
    await talk.decide(REJECT)
    assert await talk.mode() == "code"
    talk = await run_script(there, steps, mode="code", catalog=FREE)
    await talk.decide(APPROVE)
    assert (await talk.mode(), (there / "a.txt").read_text()) == ("ask", "x")


async def test_it_asks_where_something_may_be_gained(there: Path) -> None:
    more = with_tables(ask={"switches": [{"to": "code", "ask": "never"}]})
    talk = await run_script(there, [ask_for("code")], mode="ask", catalog=more)
    assert await talk.waiting()
    talk = await run_script(there, [ask_for("ask")], mode="ask", catalog=FREE)
    kept = {"id": "a", "mode": "ask", "tool": "read_file", "pattern": ".env", "exact": True}
    digest = talk.agent.live.deps.seat("ask").environment
    remembered = [{**kept, "digest": digest, "when": "now"}]
    await talk.agent.aupdate_state(talk.config, {"remembered": remembered})
    restart(talk, there, catalog=FREE, model=OfflineModel())
    await talk.say("switch to ask: why", mode="code")
    assert await talk.waiting()
    other = FREE["ask"].model_copy(update={"model": "offline"})
    models = Catalog([other if slug == "ask" else FREE[slug] for slug in FREE], "ask")
    talk = await run_script(there, [ask_for("ask")], mode="code", catalog=models)
    assert await talk.waiting()


async def test_a_switch_by_edge_asks_where_the_edge_does_not_say_so_any_more(there: Path) -> None:
    talk = await run_script(there, "hello", [ask_for("ask")], "done", mode="code", catalog=FREE)
    more = {"messages": [{"role": "user", "content": "more"}]}
    await talk.send_until("review", more)
    assert (await talk.values())["switch"]["how"] == "by edge"
    restart(talk, there)
    await talk.send(None)
    assert "A person has to say yes by now" in (await talk.results())["step1_0"].text
    assert await talk.mode() == "code"


async def test_nobody_writes_the_facts_from_outside(there: Path) -> None:
    talk = await run_script(there, "hello", mode="architect", **PLANNED)
    lie = {"facts": {"mode": ["plan_written"], "workspace": ["tests_passed"]}}
    with pytest.raises(InvalidInputError, match="unknown key 'facts'"):
        await talk.say("go", **lie)
    with pytest.raises(InvalidInputError, match="'facts' is not taken: code computes it"):
        await talk.agent.aupdate_state(talk.config, lie)
    with pytest.raises(InvalidInputError, match="'facts' is not taken"):
        await talk.agent.aupdate_state(talk.config, lie, as_node="act")
    busy = await run_script(there, [task("ask")], [QUESTION], mode="architect", **PLANNED)
    await busy.decide(APPROVE)
    state = await busy.values()
    task_of = {"subtask": state["subtask"], "parents": [{**state["parents"][0], **lie}]}
    with pytest.raises(InvalidInputError, match="'facts' is not taken"):
        await talk.agent.aupdate_state(talk.config, task_of)


def _raises(before: bool, done: Done) -> bool:
    raise KeyError("x")


async def test_a_fact_that_raises_opens_nothing(
    there: Path, caplog: pytest.LogCaptureFixture
) -> None:
    facts = {fact.name: fact for fact in (*BUILT_IN, Fact("odd", "Odd.", _raises))}
    for when in ("odd", "not odd"):
        catalog = with_tables(code={"switches": [{"to": "ask", "when": when}]})
        talk = await try_out(
            there, [write("a")], [ask_for("ask")], mode="code", catalog=catalog, facts=facts
        )
        assert await talk.mode() == "code"
        assert "(odd: cannot be determined)" in await last_result(talk)
    assert [record.message for record in caplog.records].count(
        "the fact odd cannot be determined: KeyError: 'x'"
    ) == 1


def _raises_once(before: bool, done: Done) -> bool:
    if "odd" in done.written:
        raise KeyError("x")
    return before or "all" in done.written


@pytest.mark.parametrize(
    ("calls", "is_open"),
    [
        ([run("true")], False),
        ([write("all")], False),
        ([ask_for("ask"), ask_for("code")], True),
    ],
)
async def test_what_raised_stays_unknown_until_it_is_certain(
    there: Path, calls: list[Call], is_open: bool
) -> None:
    facts = {fact.name: fact for fact in (*BUILT_IN, Fact("mine", "Mine.", _raises_once))}
    catalog = with_tables(code={"switches": [{"to": "debug", "when": "not mine"}, "ask"]})
    steps = [[call] for call in (write("odd"), *calls, ask_for("debug"))]
    talk = await try_out(there, *steps, mode="code", catalog=catalog, facts=facts)
    assert await talk.mode() == ("debug" if is_open else "code")


async def test_an_answer_is_known_after_the_history_is_summarized(there: Path) -> None:
    catalog = with_tables(ask={"switches": [{"to": "code", "when": "asked_user"}]})
    talk = await run_script(
        there, [ask_for("code")], [QUESTION], "noted", [ask_for("code")], catalog=catalog
    )
    assert "asked_user: no" in (await talk.results())["call_0"].text
    await talk.decide({"type": "respond", "message": "yes"})
    await talk.say("go", compact=True)
    assert (await talk.values())["facts"]["conversation"] == ["asked_user"]


async def test_a_command_that_failed_and_one_that_goes_on(there: Path) -> None:
    catalog = with_tables(code={"switches": [{"to": "debug", "when": "command_failed"}]})
    steps: list[list[Call]] = [
        [run("sleep 30", background=True)],
        [ask_for("debug")],
        [run("false")],
        [ask_for("debug")],
    ]
    talk = await try_out(there, *steps, mode="code", catalog=catalog)
    assert "command_failed: no" in (await talk.results())["step1_0"].text
    assert await talk.mode() == "debug"
    assert (await talk.results())["step2_0"].artifact == {"exit_code": 1}


async def test_words_name_what_is_open(there: Path) -> None:
    deps = (await run_script(there, mode="ask", **PROVEN)).agent.live.deps
    words = deps.seat("code").words
    condition = "`tests_passed or not files_changed`"
    assert f"that you may ask for from here: once {condition}: ask, arch" in words
    assert "`tests_passed`: The test command ended with 0" in words
    assert "may ask for from here" not in deps.seat("ask").words
    plain = (await run_script(there, mode="ask", catalog=FREE)).agent.live.deps
    assert all("may ask for from here" not in plain.seat(slug).words for slug in plain.catalog)


async def test_a_person_alone_enters_a_mode(there: Path) -> None:
    catalog = with_tables(code={"enterFrom": []}, ask={"switches": ["code", "debug"]})
    steps = [ask_for("code")], [task("code")], [suggestion("code")], [ask_for("debug")]
    talk = await run_script(there, *steps, mode="ask", catalog=catalog)
    (request,) = await talk.waiting()
    assert request["args"]["mode_slug"] == "debug", "the others asked nobody"
    refusals = [result.text for result in (await talk.results()).values()]
    assert len(refusals) == 3
    for text in refusals:
        assert "a person can still choose it. Open from here: " in text
    words = talk.agent.live.deps.seat("ask").words
    assert "ask for from here: debug. A person alone can choose: code." in words
    await talk.decide(edit("switch_mode", mode_slug="code", reason="mine"))
    assert await talk.mode() == "code"
    assert (await talk.values())["mode_changes"][-1]["how"] == "by hand"


async def test_the_state_of_a_thread_outlives_its_process(project: Path) -> None:
    saver = InMemorySaver()
    talk = await try_out(
        project, [write("a.py")], [run("make test")], mode="code", saver=saver, **PROVEN
    )
    restart(talk, project, model=OfflineModel(), **PROVEN)
    await talk.say("switch to ask: why")
    assert [request["name"] for request in await talk.waiting()] == ["switch_mode"]
