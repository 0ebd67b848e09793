"""The host's limit: attempts of the model, and of approvals, to get beyond it; each has to fail."""

from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from modeshift.models.loading import Models
from modeshift.models.offline import OfflineModel
from modeshift.modes.catalog import Catalog
from modeshift.modes.effects import EFFECTS, ToolSpec
from modeshift.modes.errors import InvalidInputError, UnknownModeError
from modeshift.modes.limits import is_within
from modeshift.modes.mode import Grant, Level, Mode
from modeshift.modes.policy import Approvals, is_offered
from modeshift.threads.checks import check_settings
from modeshift.threads.deps import AgentDeps
from modeshift.tools.tool import Tool
from modeshift.tools.toolbox import Toolbox, build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.graph.test_gates import CHANGES, EDIT, RUN, WRITE, assert_untouched
from tests.harness.conversation import (
    APPROVE,
    Conversation,
    open_thread,
    restart,
    run_script,
    script,
)
from tests.harness.modes import load_catalog
from tests.harness.scripted import Call, ScriptedModel, calling

ALWAYS = {"type": "approve", "remember": True}
NOTE: Call = ("write_file", {"path": "plan.md", "content": "x"})


def to(slug: str) -> Call:
    return "switch_mode", {"mode_slug": slug, "reason": "to write"}


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
    await run_script(
        workspace, [NOTE, WRITE, RUN], approvals=Approvals.AUTO, mode="code", limit="architect"
    )
    assert [file.name for file in workspace.iterdir()] == ["plan.md"]
    await run_script(workspace, [EDIT, WRITE, RUN], approvals=Approvals.AUTO, limit="code")
    assert [file.name for file in workspace.iterdir()] == ["plan.md"]
    deps = AgentDeps(
        load_catalog(),
        build_toolbox(Workspace(workspace), load_catalog()),
        Models(OfflineModel()),
    )
    assert deps.seat("code").edit_restriction is None
    assert "has no 'edit' tools" in str(deps.seat("code", "ask").edit_restriction)


@pytest.mark.parametrize("target", ["code", "architect", "debug"])
async def test_a_switch_beyond_it_is_answered_without_a_person(there: Path, target: str) -> None:
    question: Call = (
        "ask_followup_question",
        {"question": "Which?", "follow_up": [{"text": "Do it", "mode": target}]},
    )
    talk = await run_script(there, [to(target)], [question], [*CHANGES], limit="ask")
    assert await talk.waiting() == []
    results = await talk.results()
    for id in ("call_0", "step1_0"):
        assert f"{target!r} is beyond it" in results[id].text
        assert "The modes within it: ask." in results[id].text
    assert await talk.mode() == "ask"
    assert_untouched(there)


async def test_its_own_mode_is_within_it_and_the_threads_own_need_not_be(there: Path) -> None:
    task: Call = ("new_task", {"mode_slug": "code", "message": "x"})
    talk = await run_script(there, [task], [to("ask")], mode="code", limit="ask")
    assert [request["name"] for request in await talk.waiting()] == ["switch_mode"]
    assert "'code' is beyond it" in (await talk.results())["call_0"].text


async def test_what_was_remembered_before_does_not_raise_it(there: Path) -> None:
    talk = await run_script(there, [RUN], [RUN, WRITE], [RUN], mode="code")
    await talk.decide(ALWAYS)
    assert await talk.waiting(), "the file alone is asked about"
    await talk.say("stop", limit="ask")
    assert (await talk.results())["step1_0"].status == "error"
    (there / "made.txt").unlink()
    await talk.say("go")
    assert_untouched(there)
    assert len((await talk.values())["remembered"]) == 1


async def test_what_the_limit_asks_about_is_asked_about(there: Path) -> None:
    """What is remembered counts in the mode in which it was given, so not in the limit's."""
    talk = await run_script(there, [RUN], "yes", [RUN], mode="code")
    await talk.decide(ALWAYS)
    await talk.say("go", limit="debug")
    assert [request["name"] for request in await talk.waiting()] == ["execute_command"]


@pytest.mark.parametrize("call", [WRITE, EDIT, RUN, to("code")])
@pytest.mark.parametrize("is_approved", [False, True])
async def test_an_old_question_and_an_old_approval_do_not_raise_it(
    there: Path, call: Call, *, is_approved: bool
) -> None:
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
    read: Call = ("read_file", {"path": "there.txt"})
    catalog = load_catalog()
    less = Catalog([catalog[slug] for slug in catalog if slug != "architect"], "ask")
    calls = [read, *CHANGES, to("ask")]
    talk = await run_script(there, "hello", calls, mode="code", limit="architect")
    restart(talk, there, catalog=less, approvals=Approvals.AUTO)
    await talk.say("go")
    values = await talk.values()
    assert "limit, 'architect', no longer exists" in values["notices"][0]
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
    expert = _with("expert", "read", "experts")
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


def _with(slug: str, *groups: Any) -> Mode:
    grants = tuple(grant if isinstance(grant, Grant) else Grant(group=grant) for grant in groups)
    return Mode(slug=slug, name=slug, role_definition="x", groups=grants)


PLANS = Grant(group="edit", file_regex=r"\.md$")
DOCS = Grant(group="edit", file_regex="^docs/")


@pytest.mark.parametrize(
    ("mode", "limit", "expected"),
    [
        ((), (), True),
        ((), ("read",), True),
        (("read",), (), False),
        (("read", "edit"), ("read",), False),
        (("read", PLANS), ("read", "edit"), True),
        (("read", PLANS), ("read", PLANS), True),
        (("read", "edit"), ("read", PLANS), False),
        (("read", DOCS), ("read", PLANS), False),
        (("command",), ("read", "edit"), False),
        (("read", "edit", "command"), ("command", "edit", "read"), True),
    ],
)
def test_which_modes_are_within(
    workspace: Path, mode: tuple[Any, ...], limit: tuple[Any, ...], expected: bool
) -> None:
    specs = build_toolbox(Workspace(workspace), load_catalog()).specs
    assert is_within(_with("one", *mode), _with("two", *limit), specs) is expected


def test_a_mode_that_runs_commands_is_beyond_one_that_runs_a_few() -> None:
    tool = ToolSpec("run", EFFECTS["command"], "command", command="line", sandboxed=True)
    rules = {"permissions": {"run": {"pwd": "allow"}}, "level": Level.BUILT_IN}
    few = _with("few").model_copy(update=rules)
    assert is_offered(few, tool)
    assert not is_within(_with("all", "command"), few, [tool])


async def test_a_fork_behind_it_is_limited_too(there: Path) -> None:
    talk = await run_script(there, [to("code")], [*CHANGES], approvals=Approvals.AUTO, limit="ask")
    forks = [state async for state in talk.agent.aget_state_history(talk.config) if state.values]
    for fork in forks:
        if "phase" not in fork.values:
            continue
        talk.config = await talk.agent.aupdate_state(
            fork.config, {"mode": "code"}, as_node="intake"
        )
        talk.config["configurable"].pop("checkpoint_id")
        await talk.send(None)
        await talk.say("go on")
        assert (await talk.values())["limit"] == "ask"
        assert_untouched(there)
