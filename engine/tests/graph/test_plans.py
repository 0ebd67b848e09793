"""The right of an approved plan: what a mode may write behind the switch, and ways around it."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.types import Command

from modeshift.calls.outcome import Outcome
from modeshift.calls.plans import PlanLimit
from modeshift.calls.question import judge_question
from modeshift.modes.catalog import Catalog
from modeshift.modes.edges.edges import SwitchEdge
from modeshift.modes.effects import EFFECTS, ToolSpec
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.policy import Approvals
from modeshift.testing.agent import load_modes
from modeshift.testing.plugin import Snapshot
from modeshift.threads.checks import drop_invalid
from modeshift.threads.state import ApprovedPlan, State
from modeshift.tools.processes.sandboxes import Commands
from tests.graph.calls import replace_in, result_of, run, suggest, task, to, write
from tests.harness.conversation import (
    APPROVE,
    REJECT,
    Conversation,
    edit,
    make_toolbox,
    reload,
    script,
)
from tests.harness.modes import load_catalog, load_with
from tests.harness.scripted import Call
from tests.tables import cases, rows
from tests.tools.sandbox.commands import needs_sandbox, sandbox

PLAN = "# Plan\n\nDo it.\n\n## Files\n\n- `src/a.py`: the change\n  - `not this`\n- `docs/`\n"
TO_CODE, TO_DEBUG, AUTO = to("code", "r"), to("debug", "r"), Approvals.AUTO
Change = Callable[[Path], object]


@pytest.fixture
def place(workspace: Path) -> Path:
    for name in ("src/a.py", "src/b.py", "docs/x.md", "b.py"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text("old")
    return workspace


async def plan(place: Path, *steps: Any, text: str = PLAN, **options: Any) -> Conversation:
    """A thread that asks for code mode with this plan; edits run unasked."""
    options = {"approvals": AUTO, **options}
    talk = script(place, [write("PLAN.md", text)], [TO_CODE], *steps, **options)
    await talk.say("go", mode="architect")
    return talk


async def approve(place: Path, *steps: Any, mode: str = "code", **options: Any) -> Conversation:
    """The same, and a person has said yes; then it is in ``mode``."""
    talk = await plan(place, *steps, **options)
    await talk.decide(APPROVE)
    assert await talk.mode() == mode
    return talk


async def assert_asks(talk: Conversation, place: Path, said: str = "") -> None:
    """A person is asked, and not for always; without a yes nothing changes."""
    before = read_all(place)
    (request,) = await talk.waiting()
    assert "remember" not in request
    assert said in request["description"]
    with pytest.raises(InvalidInputError, match="decides on this every time"):
        await talk.decide({**APPROVE, "remember": True})
    await talk.decide(REJECT)
    assert read_all(place) == before


def read_all(place: Path) -> dict[str, bytes]:
    files = sorted(path for path in place.rglob("*") if path.is_file())
    return {str(path.relative_to(place)): path.read_bytes() for path in files}


async def test_the_card_and_what_runs(place: Path, snapshot: Snapshot) -> None:
    inside = [[write("src/a.py")], [write("docs/deep/new.md")]]
    talk = await plan(place, *inside, [write("b.py")])
    (request,) = await talk.waiting()
    assert request["plan"]["paths"] == ["src/a.py", "docs/"]
    assert request["plan"]["text"] == PLAN
    snapshot("plan-card.txt", request["description"] + "\n")
    await talk.decide(APPROVE)
    assert (place / "src/a.py").read_text() == (place / "docs/deep/new.md").read_text() == "x"
    await assert_asks(talk, place, "does not name 'b.py'")


async def test_under_manual_all_asks_and_a_plan_without_names_limits_nothing(place: Path) -> None:
    talk = await plan(place, [write("src/a.py")], approvals=Approvals.MANUAL)
    for _ in range(2):
        await talk.decide(APPROVE)
    assert (await talk.waiting())[0]["remember"] == "src/a.py"
    await approve(place, [write("b.py")], text="# Plan\n")
    assert (place / "b.py").read_text() == "x"
    talk = script(place, [TO_CODE], [write("src/b.py")], approvals=AUTO)
    await talk.say("go", mode="architect")
    assert "There is no plan" in (await talk.waiting())[0]["description"]
    await talk.decide(APPROVE)
    assert (place / "src/b.py").read_text() == "x"


def relink(path: Path, target: str) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(target)


@cases(
    "change path",
    {
        "a link": (lambda place: (place / "docs/out.md").symlink_to("../b.py"), "docs/out.md"),
        "a folder's": (lambda place: (place / "docs/up").symlink_to(".."), "docs/up/b.py"),
        "a file that becomes a link": (
            lambda place: relink(place / "src/a.py", "b.py"),
            "src/a.py",
        ),
        "a folder that becomes one": (lambda place: relink(place / "docs", "src"), "docs/b.py"),
    },
)
async def test_a_link_out_of_the_plan_always_asks(place: Path, change: Change, path: str) -> None:
    talk = await approve(place, "wait", [write(path)])
    change(place)
    await talk.say("go on")
    await assert_asks(talk, place)


OUTSIDE = "b.py ./b.py src/b.py src/a.pyx src/a.py.bak src/A.py docs/../b.py docs2/x.md Docs/x.md"


@rows("path", *OUTSIDE.split(), "src/docs/x.md", "not this", "docs/../docs/../src/b.py", "", "edit")
async def test_an_edit_outside_always_asks(place: Path, path: str) -> None:
    """Also by an absolute path, and by another tool."""
    calls = {"": write(str(place / "b.py")), "edit": replace_in("b.py", "old")}
    talk = await approve(place, [calls.get(path, write(path))])
    await assert_asks(talk, place, "" if path not in calls else "does not name 'b.py'")


@pytest.mark.parametrize("name", ["AGENTS.md", ".env", ".git/config", ".github/x.yml"])
async def test_what_is_protected_or_secret_gains_nothing(place: Path, name: str) -> None:
    text = f"## Files\n\n- `{name}`\n- `.git/`\n- `.github/`\n"
    talk = await approve(place, [write(name)], text=text)
    if name == ".git/config":
        assert (await talk.results())["step2_0"].status == "error"
    else:
        await assert_asks(talk, place)


def rewrite(text: str) -> Change:
    return lambda place: (place / "PLAN.md").write_text(text)


STALE: dict[str, Change] = {
    "more paths": rewrite(PLAN + "- `b.py`\n"),
    "a word": rewrite(PLAN.replace("it", "that")),
    "no section": rewrite("# Plan\n"),
    "gone": lambda place: (place / "PLAN.md").unlink(),
    "a link": lambda place: relink(place / "PLAN.md", "docs/x.md"),
    "a folder": lambda place: (place / "PLAN.md").rename(place / "o").with_name("PLAN.md").mkdir(),
}


@pytest.mark.parametrize("how", STALE)
async def test_a_plan_that_is_changed_afterwards_has_no_rights(place: Path, how: str) -> None:
    """Nor is one approved that was swapped between the card and the answer."""
    talk = await approve(place, "wait", [write("src/a.py")], [write("b.py")])
    STALE[how](place)
    await talk.say("go on")
    await assert_asks(talk, place, "is not as it was approved")
    await assert_asks(talk, place, "is not as it was approved")
    shutil.rmtree(place / "PLAN.md") if how == "a folder" else (place / "PLAN.md").unlink(True)
    talk = await plan(place, [write("b.py")])
    STALE[how](place)
    await talk.decide(APPROVE)
    assert (await talk.values()).get("approved_plan") is None
    assert await talk.mode() == "architect"
    assert (place / "b.py").read_text() == "old"


async def test_the_plan_is_what_a_person_has_seen(place: Path) -> None:
    talk = await plan(place, [write("src/a.py")])
    for text in (PLAN + "- `b.py`\n", PLAN):
        (place / "PLAN.md").write_text(text)
    await talk.decide(APPROVE)
    assert (await talk.values())["approved_plan"]["paths"] == ["src/a.py", "docs/"]
    more, hidden = PLAN + "- `b.py`\n", PLAN + "- `src/`\n" + "\n" * 30
    steps = [[write("PLAN.md", more)], [write("b.py")], "wait"]
    talk = await approve(place, *steps, [write("PLAN.md", hidden + "x")], [write("src/b.py")])
    (request,) = await talk.waiting()
    assert "remember" not in request
    assert request["plan"]["paths"] == ["src/a.py", "docs/", "b.py"]
    await talk.decide(APPROVE)
    assert (place / "b.py").read_text() == "x"
    (place / "PLAN.md").write_text(hidden)  # by somebody, and the edit is far from it
    await talk.say("go on")
    (request,) = await talk.waiting()
    assert request["plan"]["paths"] == ["src/a.py", "docs/", "src/"]
    await talk.decide(REJECT)
    await assert_asks(talk, place, "is not as it was approved")


async def test_an_edit_of_the_plan_asks_or_is_refused_where_it_would_break_it(place: Path) -> None:
    talk = await approve(place, [write("PLAN.md")], text=PLAN + "- `PLAN.md`\n")
    await assert_asks(talk, place, "what you approve takes its place")
    talk = await approve(place, [write("PLAN.md", PLAN + "- `../x`\n")], [write("src/a.py")])
    assert "section Files: '../x'" in await result_of(talk, "step2_0")
    assert (place / "src/a.py").read_text() == "x"


@rows(
    "item",
    *("`../x`", "`src/../../x`", "`..`", "`/etc/passwd`", "`/`", "`~/x`", "`.`", "`./`"),
    *("`*.py`", "`src/**`", "`src/?.py`", "`{a,b}.py`", "`src//a.py`", "`./a.py`"),
    *("`src\\a.py`", "``", "` b.py`", "src/a.py", "**`b.py`**", "[ ] `b.py`", "`\u202eyp.b`"),
    *("`src`", "`b.py/`", "`docs/out.md`", "`docs/up/`", "`docs/up/b.py`", "`far`"),
)
async def test_an_entry_that_is_no_path_is_invalid(place: Path, tmp_path: Path, item: str) -> None:
    (place / "docs/out.md").symlink_to("../b.py")
    (place / "docs/up").symlink_to("..")
    (place / "far").symlink_to(tmp_path / "far")
    talk = await plan(place, text=f"## Files\n\n- `b.py`\n- {item}\n")
    assert await talk.waiting() == []
    assert await talk.mode() == "architect"
    result = (await talk.results())["step1_0"]
    assert result.status == "error"
    assert "\n" not in result.text
    assert "PLAN.md" in result.text


@rows(
    "text paths",
    ("### files ##\n\n1. `b.py` x\n2) `a/`\n\n#### New\n\n* `c.py`\n\n# End\n\n- `d.py`", 3),
    ("# Files\n\n```\n- `a.py`\n```\n\n- `b.py`\n  - `c.py`\n\n  text\n\n- `b.py`", 1),
    ("# Plan\n\n- `b.py`\n", 0),
    ("```\n# Files\n- `b.py`\n```\n", 0),
    ("# Files\n\nnone\n", 0),
)
async def test_what_a_section_names(place: Path, text: str, paths: int) -> None:
    (request,) = await (await plan(place, text=text)).waiting()
    assert len(request["plan"]["paths"]) == paths
    assert ("limits nothing" in request["description"]) == (paths == 0)


async def test_the_plan_is_the_file_written_last_and_switches_with_its_card(place: Path) -> None:
    first, last = write("A.md", "## Files\n- `b.py`"), write("B.md", "## Files\n- `docs/`")
    for calls, path in (([first, last], "B.md"), ([first, last, first], "A.md")):
        talk = script(place, calls, [TO_CODE], approvals=AUTO)
        await talk.say("go", mode="architect")
        assert (await talk.waiting())[0]["plan"]["path"] == path
    talk = script(place, [write("PLAN.md", PLAN)], [suggest("code")], approvals=AUTO)
    await talk.say("go", mode="architect")
    assert await talk.waiting() == []
    assert "Ask for that mode with switch_mode" in await result_of(talk, "step1_0")


@rows("slug is_held", ("code", True), ("debug", False))
async def test_a_persons_edit_of_the_switch(place: Path, slug: str, *, is_held: bool) -> None:
    """With other words it has the plan; to another mode, by hand, it has none."""
    talk = await plan(place)
    await talk.decide(edit("switch_mode", mode_slug=slug, reason="other"))
    assert await talk.mode() == slug
    assert ((await talk.values())["approved_plan"] is not None) == is_held


async def test_a_plan_swapped_under_a_persons_edit_voids_it(place: Path) -> None:
    talk = await plan(place)
    deps, values = talk.agent.live.deps, cast("State", await talk.values())
    question = await judge_question(deps, values)
    assert question is not None
    (place / "PLAN.md").write_text(PLAN + "- `b.py`\n")
    outcome = Outcome(deps, question, "thread")
    args = {"mode_slug": "code", "reason": "other"}
    edited: Any = {"type": "edit", "edited_action": {"name": "switch_mode", "args": args}}
    await outcome.settle({"step1_0": edited})
    assert outcome.update()[1]["switch"] is None


@pytest.mark.parametrize("calls", [[write("src/a.py"), write("b.py")], [write("b.py")]])
async def test_what_was_remembered_before_does_not_count(place: Path, calls: list[Call]) -> None:
    steps = [[write("b.py", "1")], [to("architect")], [write("PLAN.md", PLAN)], [TO_CODE], calls]
    talk = script(place, *steps)
    await talk.say("go", mode="code")
    await talk.decide({**APPROVE, "remember": "*"})
    for _ in range(3):
        await talk.decide(APPROVE)
    assert await talk.mode() == "code"
    assert [one["pattern"] for one in (await talk.values())["remembered"]] == ["*"]
    (request,) = await talk.waiting()
    assert (request["args"]["path"], "remember" in request) == ("b.py", False)


async def test_a_sub_task_has_the_plan_of_its_conversation(place: Path) -> None:
    inside: list[Any] = [[task()], [write("b.py")], [write("src/a.py")], "done"]
    talk = await approve(place, *inside, [write("b.py")])
    await talk.decide(APPROVE)
    assert "does not name 'b.py'" in (await talk.waiting())[0]["description"]
    await talk.decide(REJECT)
    values = await talk.values()
    assert (place / "src/a.py").read_text() == "x"
    assert (values["subtask"], values["approved_plan"]["path"]) == (None, "PLAN.md")
    await assert_asks(talk, place, "does not name 'b.py'")
    talk = await approve(place, [task()], "done")
    await talk.send_until("switch_mode", Command(resume={"decisions": [APPROVE]}))
    await talk.agent.aupdate_state(talk.config, {"mode": "debug"})
    await talk.send(None)
    values = await talk.values()
    assert (values["mode"], values["subtask"]) == ("debug", None)
    assert values["approved_plan"] is None


@pytest.mark.parametrize("gone", ["code", "debug"])
async def test_a_mode_gone_when_a_sub_task_ends_lifts_nothing(place: Path, gone: str) -> None:
    modes = load_catalog()
    mine = modes["code"].model_copy(update={"slug": "mine", "name": "Mine"})
    full = Catalog([*modes.values(), mine], "mine")
    less = Catalog([mode for slug, mode in full.items() if slug != gone], "mine")
    talk = await approve(place, [task("debug")], "done", [write("b.py")], catalog=full)
    await talk.send_until("switch_mode", Command(resume={"decisions": [APPROVE]}))
    deps = talk.agent.live.deps
    reload(talk, replace(deps, catalog=less, toolbox=make_toolbox(deps.toolbox.workspace, less)))
    await talk.send(None)
    if not await talk.waiting():
        await talk.say("go on")
    values = await talk.values()
    assert (values["mode"], values["subtask"]) == ("mine", None)
    await assert_asks(talk, place, "does not name 'b.py'")


@pytest.mark.parametrize("host", [None, "ask", "debug"])
async def test_the_right_ends_with_the_mode(place: Path, host: str | None) -> None:
    """The card says so; the host ends it, too."""
    talk = await approve(place, *(["wait"] if host else [[TO_DEBUG], [write("b.py")]]))
    if host is None:
        (request,) = await talk.waiting()
        assert request["name"] == "switch_mode"
        assert "What the approved plan limits ends with it." in request["description"]
        await talk.decide(APPROVE)
        assert (place / "b.py").read_text() == "x"
    else:
        await talk.say("x", mode=host)
    assert (await talk.values())["approved_plan"] is None


async def test_what_nobody_was_asked_about_lifts_nothing(place: Path) -> None:
    free = load_with("code", switches=(SwitchEdge(to="debug", ask="never"),))
    talk = await approve(place, [TO_DEBUG], [write("b.py")], catalog=free, mode="debug")
    assert (await talk.values())["mode_changes"][-1]["how"] == "by edge"
    await assert_asks(talk, place, "does not name 'b.py'")


@pytest.mark.parametrize("limit", ["ask", "architect"])
async def test_a_limit_cuts_what_the_plan_names(place: Path, limit: str) -> None:
    talk = await approve(place, "wait", [write("src/a.py")])
    await talk.say("go on", limit=limit)
    assert await talk.waiting() == []
    assert (place / "src/a.py").read_text() == "old"


FORGED = {"path": "b.py", "digest": "", "text": "", "paths": ["b.py"]}
CALL = {"name": "switch_mode", "args": {}, "id": "x", "type": "tool_call"}
SWITCH = {"mode_slug": "code", "reason": "", "reply": "", "approvals": None, "digest": ""}


@rows(
    "update",
    *({"approved_plan": None}, {"approved_plan": FORGED}, {"approved_plan": []}),
    {"switch": {**SWITCH, "call": CALL, "approved_plan": FORGED}},
    {"mode": "code", "approved_plan": FORGED},
)
async def test_nobody_writes_a_plan_from_outside(place: Path, update: dict[str, Any]) -> None:
    talk = await approve(place, [write("b.py")])
    before = await talk.values()
    writes: list[Any] = [update, Command(update=update), Command(resume={}, update=update)]
    for given in writes:
        with pytest.raises(InvalidInputError):
            await talk.agent.ainvoke(given, talk.config)
        with pytest.raises(InvalidInputError):
            await talk.agent.aupdate_state(talk.config, given)
    assert await talk.values() == before
    await assert_asks(talk, place, "does not name 'b.py'")


async def test_a_fork_and_another_process_have_the_same_limit(place: Path) -> None:
    talk = await approve(place, "wait", *[[write("b.py")]] * 2)
    old = (await talk.agent.aget_state(talk.config)).config
    reload(talk, talk.agent.live.deps)
    await talk.say("go on")
    await assert_asks(talk, place, "does not name 'b.py'")
    talk.config = old  # a fork begins there
    said: Any = {"messages": [{"role": "user", "content": "go on"}]}
    await talk.agent.ainvoke(said, old)
    thread = talk.config["configurable"]["thread_id"]
    talk.config = {"configurable": {"thread_id": thread}}
    assert (await talk.values())["approved_plan"]["path"] == "PLAN.md"
    assert (place / "b.py").read_text() == "old"


async def test_what_a_plan_cannot_limit_asks(place: Path) -> None:
    old: Any = {"approved_plan": "PLAN.md"}
    state, dropped = drop_invalid(old)
    limit, deps = PlanLimit.of(state["approved_plan"]), script(place).agent.live.deps
    assert dropped == ["approved_plan"]
    assert limit is not None
    for known in (limit, await limit.look(deps), replace(limit, is_current=True)):
        assert known.find_problem(deps.toolbox["write_file"].spec, {"path": "src/a.py"})
    limit = PlanLimit(ApprovedPlan(path="p", digest="", text="", paths=["a"]), is_current=True)
    spec = ToolSpec("helper", EFFECTS["agent"])
    assert "cannot limit" in str(limit.find_problem(spec, {}))


@needs_sandbox
@rows(
    "line",
    *("echo x > b.py", "mv b.py c.py", "rm b.py", "rm -rf src", "mv src/a.py src/c.py"),
    *("mv src other", "ln src/b.py docs/b.py && echo x > docs/b.py", "mkdir new"),
    *("ln -s ../b.py docs/l && echo x > docs/l", "cp src/a.py src/c.py", "mv docs/x.md b.py"),
    *("rm docs/x.md docs/y.md && rmdir docs", "rm -rf docs; ln -s src docs", "git init -q ."),
    *("chmod +x b.py", "touch PLAN.md; echo x >> PLAN.md", "mount --bind docs src"),
    "python3 -c \"open('b.py','w').write('x')\"",
)
async def test_a_command_writes_nothing_that_the_plan_does_not_name(place: Path, line: str) -> None:
    os.link(place / "src/b.py", place / "docs/y.md")  # another name of a file outside
    before = {name: text for name, text in read_all(place).items() if not name.startswith("docs/")}
    line = f"{line}; echo x > docs/y.md; echo new > src/a.py; echo new > docs/new.md; cat b.py"
    talk = await approve(place, [run(line)], commands=Commands(sandbox()))
    text, after = await result_of(talk, "step2_0"), read_all(place)
    changed = {name for name, text in after.items() if before.get(name, text) != text}
    made = {name for name in after if name not in before and not name.startswith("docs/")}
    assert changed == {"src/a.py"}, text
    assert made == {"PLAN.md"}
    assert before.keys() <= after.keys()
    assert after["src/a.py"] == b"new\n"
    assert "by the plan this command could change only" in text


@needs_sandbox
@rows(
    "named line",
    (".git/", "echo x > .git/hooks/pre-commit"),
    (".git/hooks/", "echo x > .git/hooks/pre-commit"),
    (".git/config", "echo x > .git/config"),
    (".env", "echo x > .env; cat .env"),
    ("AGENTS.md", "echo x > AGENTS.md"),
    (".github/", "echo x > .github/a.yml"),
    (".github/a.yml", "echo x > .github/a.yml"),
    ("src/", "echo x > src/.env; echo x > src/AGENTS.md"),
    ("src/l.py", "echo x > src/l.py"),
    ("gone.py", "echo x > gone.py"),
    ("gone/", "mkdir gone"),
)
async def test_a_command_gains_nothing_protected(place: Path, named: str, line: str) -> None:
    for name in (".git/hooks/h", ".git/config", ".env", "src/.env", "AGENTS.md", "src/AGENTS.md"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("secret")
    (place / ".github").mkdir()
    os.link(place / "b.py", place / "src/l.py")
    (place / ".github/a.yml").write_text("old")
    text = f"## Files\n\n- `{named}`\n"
    talk = await approve(place, [run(line)], text=text, commands=Commands(sandbox()))
    before = read_all(place)
    assert {path for path, data in before.items() if b"x\n" in data} == set()
    assert "secret" not in (await talk.results())["step2_0"].text
    assert not (place / "gone").exists()


@needs_sandbox
async def test_commands_are_read_only_once_the_plan_is_changed_by_one(place: Path) -> None:
    steps = [[run("echo '- `b.py`' >> PLAN.md"), run("echo x > src/a.py")], [write("src/a.py")]]
    text = PLAN + "- `PLAN.md`\n"
    talk = await approve(place, *steps, text=text, commands=Commands(sandbox()))
    assert "could not change the workspace" in await result_of(talk, "step2_1")
    await assert_asks(talk, place, "is not as it was approved")


async def test_without_a_sandbox_a_remembered_command_asks_again(place: Path) -> None:
    talk = await approve(place, [run("make x")])
    await assert_asks(talk, place, "not sandboxed, which the plan 'PLAN.md' cannot limit")


def test_a_plan_that_nobody_would_read_does_not_load() -> None:
    edge = "{to: code, plan: true, ask: never}"
    text = f"customModes: [{{slug: a, name: A, roleDefinition: a, groups: [], switches: [{edge}]}}]"
    (notice,) = load_modes(text).notices
    assert "a person reads a plan" in notice


async def test_a_plan_turned_down_is_not_asked_about_and_a_switch_waits_for_it(place: Path) -> None:
    better = write("PLAN.md", PLAN.replace("Do it.", "Do it so."))
    talk = await plan(place, [TO_CODE], [better], [TO_CODE], [TO_CODE], "done")
    await talk.decide({"type": "reject", "message": "line 3: Do it. - Say how."})
    assert "Do it so." in (await talk.waiting())[0]["plan"]["text"]
    assert "turned this plan down" in str(await talk.messages())
    await talk.decide(REJECT)
    assert await talk.waiting() == []
    assert "refused a switch to 'code' in this turn" in str(await talk.messages())
    both = script(place, [write("PLAN.md", PLAN), TO_CODE], [TO_CODE], "done", approvals=AUTO)
    await both.say("go", mode="architect")
    assert (await both.waiting())[0]["plan"]["paths"] == ["src/a.py", "docs/"]
    assert "once the plan is written" in str(await both.messages())
