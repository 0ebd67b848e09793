"""Edges between modes: what the model may ask for, and what a person may do anyway."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from modeshift.models.offline import OfflineModel
from modeshift.modes.catalog import Catalog
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.facts import BUILT_IN, Done, Fact, ProjectTests
from modeshift.testing.plugin import Snapshot
from modeshift.threads.facts import digest_tests
from modeshift.threads.mailbox import Mailbox
from tests.graph.calls import (
    QUESTION,
    asks,
    read,
    replace_in,
    respond,
    result_of,
    run,
    suggest,
    task,
    to,
    todo,
    write,
)
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
from tests.tables import cases, rows

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


async def try_out(workspace: Path, *steps: Step, mode: str, **options: Any) -> Conversation:
    """All steps of a model, whose calls a person approves."""
    talk = await run_script(workspace, *steps, mode=mode, **options)
    await talk.approve_all()
    return talk


@pytest.fixture
def project(workspace: Path) -> Path:
    (workspace / "Makefile").write_text(PASS)
    (workspace / "tests").mkdir()
    (workspace / "tests/test_a.py").write_text("assert True\n")
    return workspace


PROVEN: dict[str, Any] = {"catalog": with_tables(code=PROVE_IT), "tests": TESTS}
PLANNED: dict[str, Any] = {"catalog": with_tables(code=PLAN_FIRST)}


async def test_code_is_not_left_before_tests_passed(project: Path, snapshot: Snapshot) -> None:
    talk = await run_script(
        project, [write("tests/new.py")], [to("ask")], [run("make test")], [to("ask")],
        mode="code", **PROVEN,
    )  # fmt: skip
    await talk.decide(APPROVE)
    told = (await talk.results())["step1_0"].text
    assert await asks(talk) == ["execute_command"]
    await talk.decide(APPROVE)
    (card,) = await talk.waiting()
    snapshot("edge-of-the-tests.txt", {"not open": told, "open": card["description"]})
    await talk.decide(APPROVE)
    assert await talk.mode() == "ask"
    assert "how" not in (await talk.values())["mode_changes"][-1]


UNCHANGED = {"to": "ask", "when": "not files_changed"}
TO_ASK = {"code": {"switches": [UNCHANGED, "debug"]}}
NEVER_ASKS = {"code": {"switches": [{**UNCHANGED, "ask": "never"}]}}
ENTRY = {"ask": {"enterFrom": [{"from": "code", "when": "not files_changed"}]}}
I_SAY_SO = edit("switch_mode", mode_slug="ask", reason="I say so")


@rows(
    "tables call decisions mode",
    (TO_ASK, to("ask"), [APPROVE], "code"),
    (TO_ASK, to("ask"), [I_SAY_SO], "code"),
    (TO_ASK, suggest("ask"), [respond("Yes (switch to ask)")], "code"),
    (NEVER_ASKS, to("ask"), [], "code"),
    (ENTRY, task("ask"), [APPROVE], "code"),
    (TO_ASK, to("debug"), [I_SAY_SO], "ask"),
    ids=["a switch", "in other words", "a suggestion", "by edge", "a sub-task", "by hand"],
)
async def test_the_condition_is_asked_again_when_the_switch_is_applied(
    there: Path, tables: dict[str, Any], call: Call, decisions: list[Any], mode: str
) -> None:
    """Whatever a person said before: the switch stays the model's, unless the mode is another."""
    options: dict[str, Any] = {"mode": "code", "catalog": with_tables(**tables)}
    talk = await run_script(there, [write("a.py"), call], "done", **options)
    assert len(await talk.waiting()) == 1 + len(decisions), "it is open, as long as nothing ran"
    await talk.decide(APPROVE, *decisions)
    assert (await talk.mode(), (there / "a.py").exists()) == (mode, True)
    if mode == "code":
        assert "not open from Code mode yet" in await result_of(talk, "call_1")
        assert (await talk.values())["phase"] == "idle"
        assert (await talk.messages())[-1].text == "done"


async def test_another_reason_leaves_the_switch_the_models(there: Path) -> None:
    talk = await run_script(there, [to("ask")], mode="code", catalog=with_tables())
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
TEST, IN_BACKGROUND = [run("make test")], [run("make test", background=True)]
FAKES: dict[str, Sequence[list[Call]]] = {
    "not at all": [],
    "another line": [step for line in LINES for step in ([run(line)], [to("ask")])],
    "another makefile": [[write("o.mk", PASS)], [run("make -f o.mk test")]],
    "another folder": [[write("sub/Makefile", PASS)], [run("make test", cwd="sub")]],
    "in the background": [IN_BACKGROUND],
    "in the background, read": [IN_BACKGROUND, [("read_output", {"id": "f4bd17", "wait": 5})]],
    "ended by a limit": [[write("Makefile", SLOW)], [run("make test", timeout=1)]],
    "failed": [[write("Makefile", FAIL)], TEST],
    "an edit behind": [TEST, [write("a.py", "y")]],
    "a write that fails behind": [TEST, [write("tests", "not a folder")]],
    "a command behind": [TEST, [run("ls")]],
    "a failed one behind": [TEST, [run("false")]],
    "a background command behind": [TEST, [run("sleep 0", background=True)]],
    "beside a background command": [[run("sleep 30", background=True)], TEST],
    "in the same message, before": [[*TEST, write("a.py", "y")]],
    "in the todo list": [[todo("make test", status="completed")]],
    "a file that says so": [[write("tests_passed", "yes")]],
    "a sub-task that breaks it": [TEST, [task("code")], [write("a.py", "z")]],
}
LAWFUL: dict[str, Sequence[list[Call]] | None] = {
    "at once": [TEST],
    "nothing to prove": None,
    "again": [[write("Makefile", FAIL)], TEST, [write("Makefile", PASS)], TEST],
    "reads behind it": [TEST, [read("a.py")]],
    "the folder by name": [[run("make test", cwd=".")]],
    "the folder in a roundabout way": [[run("make test", cwd="tests/..")]],
    "notes behind it": [TEST, [todo("x")]],
}


@cases("steps is_proven", {**{name: (steps, False) for name, steps in FAKES.items()},
                           **{name: (steps, True) for name, steps in LAWFUL.items()}})  # fmt: skip
async def test_the_edge_opens_once_the_tests_have_passed_and_for_nothing_else(
    project: Path, steps: list[Any] | None, *, is_proven: bool
) -> None:
    before = [] if steps is None else [[write("a.py")], *steps]
    talk = await run_script(project, *before, [to("ask")], mode="code", subtask_depth=1, **PROVEN)
    assert ("switch_mode" in await talk.approve_all()) is is_proven
    assert await talk.mode() == ("ask" if is_proven else "code")
    assert is_proven or "tests_passed" not in (await talk.values())["facts"]["workspace"]


PROVEN_UNCHANGED: dict[str, Any] = {
    "catalog": with_tables(
        code={"switches": [{"to": "ask", "when": "tests_passed and not tests_changed"}]}
    ),
    "tests": TESTS,
    "mode": "code",
}


@cases(
    "before steps says",
    {
        "a makefile that says true": (
            lambda project: (project / "Makefile").write_text(FAIL),
            [[write("Makefile", PASS)], TEST],
            "tests_passed: yes, tests_changed: yes",
        ),
        "a pipe, which holds nothing up": (
            lambda _: None, [[run("mkfifo tests/pipe")]], "tests_changed: cannot be determined"
        ),
        "how they were at first is not learned later": (
            lambda project: os.mkfifo(project / "tests/pipe"),
            [[run("rm tests/pipe")], [write("Makefile")], "done"],
            "tests_changed: cannot be determined",
        ),
    },
)  # fmt: skip
async def test_test_files_that_change_are_seen(
    project: Path, before: Callable[[Path], object], steps: list[Any], says: str
) -> None:
    before(project)
    talk = await try_out(project, *steps, [to("ask")], **PROVEN_UNCHANGED)
    await talk.say("go on")
    assert await talk.mode() == "code"
    assert says in await result_of(talk)


IMPORTED = f"test:\n\tcd tests && {sys.executable} -c 'import test_a'\n"
FORGED = """import py_compile
open("/{place}/fake.py", "w").write("pass")
unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
cached = importlib.util.cache_from_source("tests/test_a.py")
py_compile.compile("/{place}/fake.py", cached, invalidation_mode=unchecked)
"""


async def test_byte_code_counts_and_test_runs_write_none(project: Path, tmp_path: Path) -> None:
    """Python takes byte code that says so for the source's, whatever that is."""
    (project / "Makefile").write_text(IMPORTED)
    honest = TEST, [to("ask")]
    assert await (await try_out(project, *honest, **PROVEN_UNCHANGED)).mode() == "ask"
    assert not (project / "tests/__pycache__").exists()
    (project / "tests/test_a.py").write_text("assert False\n")
    forge = tmp_path / "forge.py"
    forge.write_text(f"import importlib.util\n{FORGED.replace('/{place}', str(tmp_path))}")
    talk = await try_out(project, [run(f"{sys.executable} {forge}")], *honest, **PROVEN_UNCHANGED)
    assert await talk.mode() == "code"
    assert "tests_passed: yes, tests_changed: yes" in await result_of(talk)


async def test_what_links_lead_to_counts_and_what_a_test_run_leaves_does_not(project: Path) -> None:
    deps = (await run_script(project, mode="code", **PROVEN)).agent.live.deps
    digests = [await digest_tests(deps)]
    (project / "tests/.pytest_cache").mkdir()
    (project / "tests/.pytest_cache/lastfailed").write_text("x")
    assert await digest_tests(deps) == digests[0]
    for name in ("real/a.py", "real/below/b.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("x")
    links = {
        "a.py": "../real/a.py",
        "below": "../real/below",
        "below/round": "..",
        "gone": "nowhere",
    }
    for name, target in links.items():
        (project / "tests" / name).symlink_to(target)
    digests.append(await digest_tests(deps))
    for name in ("real/a.py", "real/below/b.py"):
        (project / name).write_text("y")
        digests.append(await digest_tests(deps))
    assert len({*digests}) == 4


NO_PLANS: list[Call] = [
    *map(write, ("plan.txt", "plan.md.txt", "../plan.md", ".git/plan.md", "plan.MD", "plan.md ")),
    *(write("out.md"), write("plan.md/x.txt"), todo("plan.md"), replace_in("p.md", "a", "b")),
    *(run("touch plan.md"), read("there.md"), ("plan_written", {})),
    *(("write_file", {"path": "plan.md"}), ("write_file", {"content": "x"})),
    ("write_file", {"path": "p.md", "content": "x", "plan_written": True}),
    *(("list_files", {"path": "."}), ("search_files", {"regex": "plan"})),
    ("update_todo_list", {"todos": [], "facts": {"mode": ["x"]}}),
]


@pytest.mark.parametrize("way", [to("code"), task("code")])
async def test_a_plan_is_not_faked(there: Path, way: Call) -> None:
    (there / "there.md").write_text("a plan of others")
    (there / "out.md").symlink_to(there.parent / "out.md")
    talk = await try_out(there, *([call] for call in NO_PLANS), [way], mode="architect", **PLANNED)
    assert await talk.mode() == "architect"
    assert "not open from Architect mode yet" in await result_of(talk)


@rows(
    "mode steps",
    ("architect", [[write("plan.md")]]),
    ("ask", [[to("code")]]),
    ("debug", [[write("plan.md")], [to("code")]]),
    ("ask", [[task("code")]]),
    ("debug", [[write("plan.md")], [task("code")]]),
    ("architect", [[write("plan.md")], [to("ask")], [to("architect")]]),
    ("architect", [[suggest("code")]]),
    ("ask", [[suggest("code")]]),
    ids=["rejected", "from ask", "from debug", "a task from ask", "a task from debug",
         "a plan of an earlier visit", "a suggestion", "a suggestion from ask"],
)  # fmt: skip
async def test_no_way_around_the_plan(there: Path, mode: str, steps: list[Any]) -> None:
    talk = await run_script(there, *steps, [to("code")], mode=mode, **PLANNED)
    is_rejected = mode == "architect" and steps == [[write("plan.md")]]
    while waiting := await talk.waiting():
        assert "code" not in str(waiting[0]["args"].get("mode_slug")), waiting
        assert waiting[0]["name"] != "ask_followup_question"
        await talk.decide(REJECT if is_rejected else APPROVE)
    assert await talk.mode() != "code"
    assert all(change["target"] != "code" for change in (await talk.values())["mode_changes"][1:])


async def test_a_plan_opens_code_also_one_that_a_sub_task_writes(there: Path) -> None:
    talk = await try_out(there, [write("plan.md")], [to("code")], mode="architect", **PLANNED)
    assert await talk.mode() == "code"
    assert "plan_written" not in (await talk.values())["facts"]["mode"]
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
    steps: list[Any] = [[task("debug")], [write("a.txt")], "written", [to("code")]]
    talk = await try_out(
        there, *steps, mode="architect", catalog=with_notes(r"\.txt$", code=PLAN_FIRST)
    )
    assert (await talk.mode(), (there / "a.txt").exists()) == ("architect", True)
    assert "plan_written: no" in await result_of(talk)
    slow = with_notes("^(?:a|a)*$")
    steps = [[task("code")], [write("a" * 40 + "b")], "written", "done"]
    talk = await try_out(there, *steps, mode="debug", catalog=slow)
    assert (await talk.messages())[-1].text == "done"


async def test_a_person_is_above_the_edges_and_ends_what_a_plan_opened(there: Path) -> None:
    steps: list[Any] = [[write("plan.md")], [task("ask")], [QUESTION], "so be it"]
    talk = await run_script(there, *steps, mode="architect", **PLANNED)
    for _ in range(2):
        await talk.decide(APPROVE)
    assert (await talk.values())["parents"][0]["facts"]["mode"] == ["files_changed", "plan_written"]
    await talk.say("stop", mode="debug", end_subtask=True)
    assert (await talk.mode(), (await talk.values())["facts"]["mode"]) == ("debug", [])
    talk = await run_script(there, [to("debug")], mode="architect", **PLANNED)
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
async def test_what_was_true_ends_where_hosts_lead(there: Path, way: str, node: str | None) -> None:
    """Before or behind the call that makes it true, or in the next turn."""
    entered = {"enterFrom": [{"from": "debug", "when": "files_changed"}]}
    options: Any = {"catalog": with_tables(code=entered), "store": InMemoryStore()}
    steps: list[Step] = [[write("plan.md")], *(["written"] if node is None else [])]
    talk = script(there, *steps, *[[to("code")]] * 2, "done", **options)
    await talk.say("go", mode="architect")
    if node is None:
        await talk.decide(APPROVE)
    else:
        await talk.send_until(node, Command(resume={"decisions": [APPROVE]}))
    await LEAVES[way](talk)
    await (talk.say("go on") if node is None else talk.send(None))
    assert (await talk.mode(), await talk.waiting()) == ("debug", [])
    assert "not open from Debug mode yet" in await result_of(talk)
    texts = [each.text for each in (await talk.results()).values() if each.name == "switch_mode"]
    assert not any("since the user was asked" in text for text in texts), "nobody was to be asked"
    assert (await talk.values())["facts"]["mode"] == []


FREE = with_tables(code={"switches": [{"to": "ask", "ask": "never"}, "*"]})


async def test_nobody_is_asked_where_nothing_is_gained(there: Path) -> None:
    talk = await run_script(there, [to("ask")], [write("a.txt")], mode="code", catalog=FREE)
    assert (await talk.waiting(), await talk.mode()) == ([], "ask")
    record = (await talk.values())["mode_changes"][-1]
    assert (record["decided_by"], record["how"]) == ("nobody", "by edge")
    assert "no 'edit' tools" in (await talk.results())["step1_0"].text
    more = with_tables(ask={"switches": [{"to": "code", "ask": "never"}]})
    talk = await run_script(there, [to("code")], mode="ask", catalog=more)
    assert await talk.waiting()
    talk = await run_script(there, [to("ask")], mode="ask", catalog=FREE)
    kept = {"id": "a", "mode": "ask", "tool": "read_file", "pattern": ".env", "exact": True}
    digest = talk.agent.live.deps.seat("ask").environment
    remembered = [{**kept, "digest": digest, "when": "now"}]
    await talk.agent.aupdate_state(talk.config, {"remembered": remembered})
    restart(talk, there, catalog=FREE, model=OfflineModel())
    await talk.say("switch to ask: why", mode="code")
    assert await talk.waiting()
    other = FREE["ask"].model_copy(update={"model": "offline"})
    models = Catalog([other if slug == "ask" else FREE[slug] for slug in FREE], "ask")
    talk = await run_script(there, [to("ask")], mode="code", catalog=models)
    assert await talk.waiting()


@pytest.mark.parametrize("decision", [REJECT, APPROVE])
async def test_a_switch_by_edge_waits_for_what_a_person_decides(there: Path, decision: Any) -> None:
    talk = await run_script(there, [write("a.txt"), to("ask")], mode="code", catalog=FREE)
    assert await asks(talk) == ["write_file"]
    await talk.decide(decision)
    is_done = decision is APPROVE
    assert (await talk.mode() == "ask") is (there / "a.txt").exists() is is_done


async def test_a_switch_by_edge_asks_where_the_edge_does_not_say_so_any_more(there: Path) -> None:
    talk = await run_script(there, "hello", [to("ask")], "done", mode="code", catalog=FREE)
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


async def test_a_raising_fact_opens_nothing(there: Path, caplog: pytest.LogCaptureFixture) -> None:
    facts = {fact.name: fact for fact in (*BUILT_IN, Fact("odd", "Odd.", _raises))}
    for when in ("odd", "not odd"):
        catalog = with_tables(code={"switches": [{"to": "ask", "when": when}]})
        options: Any = {"mode": "code", "catalog": catalog, "facts": facts}
        talk = await try_out(there, [write("a")], [to("ask")], **options)
        assert await talk.mode() == "code"
        assert "(odd: cannot be determined)" in await result_of(talk)
    said = [record.message for record in caplog.records]
    assert said.count("the fact odd cannot be determined: KeyError: 'x'") == 1


def _raises_once(before: bool, done: Done) -> bool:
    if "odd" in done.written:
        raise KeyError("x")
    return before or "all" in done.written


@rows(
    "calls mode",
    ([run("true")], "code"),
    ([write("all")], "code"),
    ([to("ask"), to("code")], "debug"),
)
async def test_what_raised_stays_unknown_for_now(there: Path, calls: list[Call], mode: str) -> None:
    facts = {fact.name: fact for fact in (*BUILT_IN, Fact("mine", "Mine.", _raises_once))}
    catalog = with_tables(code={"switches": [{"to": "debug", "when": "not mine"}, "ask"]})
    steps = [[call] for call in (write("odd"), *calls, to("debug"))]
    talk = await try_out(there, *steps, mode="code", catalog=catalog, facts=facts)
    assert await talk.mode() == mode


async def test_an_answer_and_a_command_that_failed_are_known(there: Path) -> None:
    catalog = with_tables(ask={"switches": [{"to": "code", "when": "asked_user"}]})
    talk = await run_script(there, [to("code")], [QUESTION], "noted", [to("code")], catalog=catalog)
    assert "asked_user: no" in (await talk.results())["call_0"].text
    await talk.decide({"type": "respond", "message": "yes"})
    await talk.say("go", compact=True)
    assert (await talk.values())["facts"]["conversation"] == ["asked_user"]
    catalog = with_tables(code={"switches": [{"to": "debug", "when": "command_failed"}]})
    steps = run("sleep 30", background=True), to("debug"), run("false"), to("debug")
    talk = await try_out(there, *([step] for step in steps), mode="code", catalog=catalog)
    assert "command_failed: no" in await result_of(talk, "step1_0")
    assert await talk.mode() == "debug"
    assert (await talk.results())["step2_0"].artifact == {"exit_code": 1}


async def test_words_name_what_is_open_and_what_a_person_alone_enters(there: Path) -> None:
    deps = (await run_script(there, mode="ask", **PROVEN)).agent.live.deps
    words = deps.seat("code").words
    condition = "`tests_passed or not files_changed`"
    assert f"that you may ask for from here: once {condition}: ask, arch" in words
    assert "`tests_passed`: The test command ended with 0" in words
    assert "may ask for from here" not in deps.seat("ask").words
    plain = (await run_script(there, mode="ask", catalog=FREE)).agent.live.deps
    assert all("may ask for from here" not in plain.seat(slug).words for slug in plain.catalog)
    catalog = with_tables(code={"enterFrom": []}, ask={"switches": ["code", "debug"]})
    steps = [to("code")], [task("code")], [suggest("code")], [to("debug")]
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
    talk = await try_out(project, [write("a.py")], TEST, mode="code", **PROVEN)
    restart(talk, project, model=OfflineModel(), **PROVEN)
    await talk.say("switch to ask: why")
    assert await asks(talk) == ["switch_mode"]
