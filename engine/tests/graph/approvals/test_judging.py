"""How calls are judged, and what follows from each decision on them, without a graph."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolCall

from modeshift.calls.contents import digest_contents, get_key
from modeshift.calls.judging import CallContext, Judged, judge, judge_all
from modeshift.calls.outcome import JudgedQuestion, Outcome
from modeshift.calls.question import digest_question, judge_question
from modeshift.models.loading import Models
from modeshift.models.offline import OfflineModel
from modeshift.modes.catalog import Catalog
from modeshift.modes.edges.edge_table import MAX_TRIED
from modeshift.modes.effects import ServerTool
from modeshift.modes.facts import Done
from modeshift.modes.mode import Mode
from modeshift.modes.policy import Approvals, Verdict
from modeshift.testing.plugin import Snapshot
from modeshift.threads.deps import AgentDeps
from modeshift.threads.state import Remembered
from modeshift.tools.tool import Tool
from modeshift.tools.toolbox import Toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.conversation import make_toolbox
from tests.harness.scripted import Call
from tests.tables import rows

SWITCHES = [
    {"to": "free", "ask": "never"},
    {"to": "later", "when": "plan_written", "otherwise": "Write one."},
    {"to": "met", "when": "not plan_written"},
    "work",
]
ENTRY = [{"from": "work", "when": "plan_written"}]


def mode(slug: str, *groups: Any, **keys: Any) -> Mode:
    words = {"name": slug.title(), "role_definition": "x", "groups": list(groups)}
    return Mode.model_validate({"slug": slug} | words | keys)


MODES = (
    mode("start", "read", switches=SWITCHES, subtasks=["work"]),
    *(mode("free", "read"), mode("later", "read", "edit"), mode("met", "read", "edit")),
    mode("work", "read", "edit", "command", "mcp"),
    mode("texts", "read", ["edit", {"fileRegex": r"\.md$"}]),
    mode("strict", "read", permissions={"switch_mode": {"*": "ask"}}),
    mode("shut", "read", "edit", enter_from=ENTRY),
    mode("unheard", "read", model="nobody:x"),
)


@pytest.fixture
def deps(workspace: Path) -> AgentDeps:
    (workspace / "there").write_text("old")
    catalog = Catalog(MODES, "start")
    toolbox = make_toolbox(Workspace(workspace), catalog)
    tool = Tool.of(mcp__git__log, "mcp")
    served = replace(tool, spec=replace(tool.spec, group="mcp", served=ServerTool("git", "log")))
    toolbox = Toolbox(toolbox.workspace, [*(toolbox[spec.name] for spec in toolbox.specs), served])
    return AgentDeps(catalog, toolbox, Models(OfflineModel()), subtask_depth=2)


def mcp__git__log() -> str:
    """List commits."""
    return ""


def to(slug: str) -> Call:
    return "switch_mode", {"mode_slug": slug, "reason": f"to\nbe in {slug}"}


def task(slug: str, **more: Any) -> Call:
    return "new_task", {"mode_slug": slug, "message": f"in {slug}", **more}


def ask(*slugs: str | None) -> Call:
    texts = [{"text": f"Go {slug}", **({"mode": slug} if slug else {})} for slug in slugs]
    return "ask_followup_question", {"question": "?", "follow_up": texts}


READ: Call = ("read_file", {"path": "a"})
WRITE: Call = ("write_file", {"path": "there", "content": "new"})
RUN: Call = ("execute_command", {"command": "make"})
DONE: Call = ("attempt_completion", {"result": "x"})
NOTE: Call = ("update_todo_list", {"todos": []})
CALLS = (
    *(READ, WRITE, RUN, DONE, NOTE, ("gone", {}), ("read_file", {}), ("write_file", {"path": "a"})),
    *(to(each.slug) for each in MODES),
    *(task(slug) for slug in ("start", "work", "free")),
    *(ask(*slugs) for slugs in ((None,), ("free", "work"), ("shut",), ("start",), ("later",))),
)


def calls(*given: Call) -> list[ToolCall]:
    return [
        ToolCall(name=name, args=args, id=f"call{place}", type="tool_call")
        for place, (name, args) in enumerate(given)
    ]


def describe(judged: Judged) -> str:
    """All that follows from the call and the verdict, as far as it is not as for most calls."""
    said = judged.verdict
    flags = ("always_asks", "is_read_only", "is_by_edge", "is_missing")
    more = [name for name in flags if getattr(said, name)]
    more += [name for name in ("can_be_remembered", "runs_beside_others", "needs_person")
             if getattr(judged, name)]  # fmt: skip
    reason = said.reason.partition("cannot be loaded")[0]
    parts = [said.kind.upper(), reason, said.condition, " ".join(more)]
    if said.kind != "deny":
        parts += [judged.effect.name, str(dict(judged.resolved)), ",".join(judged.edited_paths)]
        parts += ["/".join(judged.allowed_decisions)]
    return " | ".join(part for part in parts if part)


def show(call: Any) -> str:
    return f"{call['name']} {json.dumps(call['args'])[:90]}"


async def test_verdicts_in_context(deps: AgentDeps, snapshot: Snapshot) -> None:
    """In all but the first context those that are not as in the first."""
    manual = Approvals.MANUAL
    first = CallContext(deps.seat("start"), manual)
    contexts = {
        "first": first,
        "beside others": replace(first, is_only_call=False),
        "refused": replace(first, refused=["met", "work"]),
        "planned": replace(
            first, facts={"mode": ["plan_written"], "conversation": ["plan_written"]}
        ),
        "by hand": replace(first, is_by_hand=True),
        "limited to free": replace(first, seat=deps.seat("start", "free")),
        "limited to strict": replace(first, seat=deps.seat("start", "strict")),
        "limited to itself": replace(first, seat=deps.seat("start", "start")),
        "in a sub-task": replace(first, seat=deps.seat("start", None, 1)),
        "deep in sub-tasks": replace(first, seat=deps.seat("start", None, 2)),
        "auto, in work": CallContext(deps.seat("work"), Approvals.AUTO),
        "in work, limited to met": CallContext(deps.seat("work", "met"), manual),
        "in work, limited to texts": CallContext(deps.seat("work", "texts"), Approvals.AUTO),
        "in free": CallContext(deps.seat("free"), manual),
    }
    said: dict[str, str] = {}
    known: dict[str, str] = {}
    for name, context in contexts.items():
        judged = [await judge(deps, context, call) for call in calls(*CALLS)]
        now = {show(each.call): describe(each) for each in judged}
        said[name] = "\n".join(f"{c}: {text}" for c, text in now.items() if known.get(c) != text)
        known = known or now
    snapshot("judged.txt", said)


FREE, LIMITED = ["edit"], [["edit", {"fileRegex": "no such"}]]


@rows(
    "groups end",
    ([FREE] * 10, "Ask for one of these with switch_mode: m0, m1, m2, m3, m4, m5, m6, m7, m8, m9."),
    ([FREE] * 11, "m9, or another."),
    ([*[LIMITED] * 200, FREE], "Ask for one of these with switch_mode: m200, or another."),
    ([LIMITED] * 200, "none of the modes that were tried allows this call."),
    ([LIMITED] * MAX_TRIED, "there is no mode to ask for that allows this call."),
)
async def test_how_many_modes_are_tried_and_named(
    workspace: Path, groups: list[list[Any]], end: str
) -> None:
    own = (mode(f"m{number}", *each) for number, each in enumerate(groups))
    catalog = Catalog([mode("start", "read"), *own], "start")
    deps = AgentDeps(catalog, make_toolbox(Workspace(workspace), catalog), Models(OfflineModel()))
    context = CallContext(deps.seat("start"), Approvals.MANUAL)
    (call,) = calls(WRITE)
    assert (await judge(deps, context, call)).verdict.reason.endswith(end)


MESSAGES = (
    (to("work"), to("met")),
    (to("work"), task("work")),
    (task("work"), to("met"), task("work"), WRITE, READ),
    (READ, to("free"), READ, RUN, ask(None)),
    (to("shut"), to("work")),
    (ask("free", "work"), ask("work")),
)


async def test_calls_of_one_message_and_their_outcomes(deps: AgentDeps, snapshot: Snapshot) -> None:
    said = {}
    for message in MESSAGES:
        context = CallContext(deps.seat("start"), Approvals.MANUAL, is_only_call=False)
        judged = await judge_all(deps, context, calls(*message))
        said[" & ".join(show(each.call) for each in judged)] = "\n".join(map(describe, judged))
    snapshot("judged-together.txt", said)
    said = {}
    for given, decisions in DECIDED:
        names = " & ".join(f"{name} {args.get('mode_slug', '')}" for name, args in given)
        said[f"{names}: {decisions}"] = await settle(deps, given, decisions, "work")
    said["by edge"] = await settle(deps, [to("free"), READ], [], "start")
    snapshot("outcomes.txt", said)


async def test_what_is_remembered(deps: AgentDeps) -> None:
    """For its tool, in its mode as it is."""
    (call,) = calls(WRITE)
    seat = deps.seat("work")
    good = Remembered(
        id="1", mode="work", tool="write_file", pattern="there", exact=True,
        digest=seat.environment, when="",
    )  # fmt: skip
    for changes, kind in (
        ({}, "allow"),
        ({"tool": "edit_file"}, "ask"),
        ({"tool": "mcp__a__b"}, "ask"),
        ({"digest": "x"}, "ask"),
        ({"pattern": "other"}, "ask"),
    ):
        remembered: Any = [{**good, **changes}]
        context = CallContext(seat, Approvals.MANUAL, remembered=remembered)
        assert (await judge(deps, context, call)).verdict.kind == kind, changes
    (call,) = calls(("mcp__git__log", {}))
    for tool, kind in (("mcp__git__push", "allow"), ("mcp__other__log", "ask"), ("log", "ask")):
        remembered = [{**good, "tool": tool, "pattern": "mcp__*", "exact": False}]
        context = CallContext(seat, Approvals.MANUAL, remembered=remembered)
        assert (await judge(deps, context, call)).verdict.kind == kind, tool


async def test_what_a_decision_depends_on(deps: AgentDeps) -> None:
    context = CallContext(deps.seat("work"), Approvals.MANUAL)
    one, same, other_id, other_args = calls(
        WRITE, WRITE, WRITE, ("write_file", {"path": "b", "content": ""})
    )
    same["id"] = one["id"]
    judged = [await judge(deps, context, call) for call in (one, same, other_id, other_args)]
    limited = replace(context, seat=deps.seat("work", "met"))
    judged.append(await judge(deps, limited, one))
    digests = [each.digest("thread", "message") for each in judged]
    assert digests[0] == digests[1]
    assert len({*digests[1:], judged[0].digest("other", "message"), judged[0].digest()}) == 6
    to_work, to_met = [await judge(deps, context, call) for call in calls(to("free"), to("met"))]
    assert to_work.environment == deps.seat("work").environment + deps.catalog["free"].digest
    assert len({digest_question(each) for each in ([], judged[:1], judged[:2], [to_met])}) == 4
    context = CallContext(deps.seat("work"), Approvals.MANUAL)
    one, other = calls(WRITE, WRITE)
    other |= {"id": one["id"], "args": dict(reversed(one["args"].items()))}
    assert (await judge(deps, context, one)).digest() == (
        await judge(deps, context, other)
    ).digest()
    days = [Judged(one, Verdict("deny", ""), args={"day": date(2026, 1, day)}) for day in (1, 1, 2)]
    assert days[0].digest() == days[1].digest() != days[2].digest(), "what JSON lacks"


def test_the_key_of_a_planned_call_is_of_its_thread() -> None:
    planned: Any = {"approved": {"digest": "d"}, "key": "k"}
    assert get_key(planned, "t") == "d"
    planned["approved"] = None
    assert get_key(planned, "t") == get_key(planned, "t") != get_key(planned, "u")
    assert get_key({"approved": None}, "t") is None  # type: ignore[typeddict-item]  # old calls


async def test_the_open_question(deps: AgentDeps) -> None:
    state: Any = {
        "mode": "work",
        "approvals": "auto",
        "refused": ["met"],
        "messages": [AIMessage("", tool_calls=calls(WRITE, RUN), id="m")],
    }
    assert await judge_question(deps, state) is None
    context = CallContext(deps.seat("work"), Approvals.MANUAL, is_only_call=False, refused=["met"])
    digest = digest_question(await judge_all(deps, context, calls(WRITE, RUN)))
    state["asked"] = {"digest": digest, "contents": {}, "approvals": "manual"}
    question = await judge_question(deps, state)
    assert question is not None
    assert (question.id, question.context) == (f"m {digest}", replace(context, remembered=()))
    assert [each.verdict.kind for each in question.judged] == ["ask", "ask"]
    state["asked"]["approvals"] = "auto"
    assert await judge_question(deps, state) is None, "the edit would not be asked about"
    state["asked"]["approvals"] = "manual"
    state["messages"] = [AIMessage("done")]
    assert await judge_question(deps, state) is None


APPROVE, REJECT = {"type": "approve"}, {"type": "reject", "message": "Not now."}


def edit(**args: Any) -> Any:
    return {"type": "edit", "edited_action": {"name": "", "args": args}}


def say(message: str) -> Any:
    return {"type": "respond", "message": message}


TODOS = {"todos": ["a", {"content": "b", "status": "completed"}]}
DECIDED: Sequence[tuple[Sequence[Call], Sequence[Any]]] = (
    ([WRITE, RUN, READ, READ], [APPROVE, APPROVE]),
    ([WRITE, RUN, READ], [REJECT, APPROVE]),
    ([RUN, WRITE, ask(None), READ], [{"type": "reject"}, APPROVE, say("ok")]),
    ([WRITE], [{"type": "approve", "remember": True}]),
    ([WRITE], [{"type": "approve", "remember": "t*"}]),
    ([WRITE], [edit(path="b", content="x")]),
    ([WRITE], [edit(path=".git/b", content="x")]),
    ([to("free")], [{"type": "approve", "approvals": "auto"}]),
    ([("switch_mode", {"mode_slug": "free", "reason": "x" * 1001})], [APPROVE]),
    ([to("free")], [edit(mode_slug="met", reason="x")]),
    ([to("free")], [edit(mode_slug="free", reason="another")]),
    ([to("free"), READ, WRITE], [REJECT, APPROVE]),
    ([task("met"), task("free", **TODOS), READ], [APPROVE, APPROVE]),
    ([task("met"), task("free")], [REJECT, APPROVE]),
    (
        [ask("met"), ask("free")],
        [say(" Go met (switch to met)\n"), say("Go free (switch to free)")],
    ),
    ([ask("met"), to("free")], [say("Go met (switch to met)"), APPROVE]),
    ([ask("work", None)], [say("Go work (switch to work)")]),
)


async def settle(
    deps: AgentDeps, given: Sequence[Call], decisions: Sequence[Any], slug: str
) -> str:
    context = CallContext(deps.seat(slug), Approvals.MANUAL, is_only_call=False, refused=["shut"])
    judged = await judge_all(deps, context, calls(*given))
    asked: Any = {"digest": "", "contents": await digest_contents(deps, ("there",))}
    outcome = Outcome(deps, JudgedQuestion("message", asked, context, judged), "thread")
    asking = [each.id for each in judged if each.needs_person]
    await outcome.settle(dict(zip(asking, decisions, strict=True)))
    event, update = outcome.update()
    texts = (json.dumps({key: value}, default=repr) for key, value in update.items() if value)
    text = "\n".join([event, *texts]).replace(deps.started_calls.journal.id, "JOURNAL")
    return re.sub(r"[0-9a-f]{64}|[0-9a-f]{12}(?=\")", "DIGEST", text)


async def test_a_file_that_the_call_itself_has_changed_voids_no_approval(
    deps: AgentDeps, workspace: Path
) -> None:
    context = CallContext(deps.seat("work"), Approvals.MANUAL)
    judged = await judge_all(deps, context, calls(WRITE))
    asked: Any = {"digest": "", "contents": await digest_contents(deps, ("there",))}
    (workspace / "there").write_text("newer")
    key, done = (
        judged[0].digest("thread", "message"),
        Done(tool="write_file", mode="work", is_success=True),
    )
    await deps.started_calls.journal.hold("thread").begin(key, "write_file", {}, {}, done)
    outcome = Outcome(deps, JudgedQuestion("message", asked, context, judged), "thread")
    await outcome.settle({"call0": APPROVE})  # type: ignore[dict-item]  # a dict is one
    assert outcome.update()[0] == "act"
