"""Wrong nodes: each is refused at the step or at the start, and no gate is open for it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from graph import nodes
from graph.chart import CHART
from modeshift import ChartData, Event, Step
from modeshift.modes.errors import ConfigurationError, NodeError
from modeshift.modes.facts import ProjectTests
from modeshift.testing.plugin import Snapshot
from tests.harness.conversation import APPROVE, script, until
from tests.harness.own_graph import Node, build_with

Wrong = dict[str, Callable[[Step, Any], Any]]
"""By what is wrong: what the node does, with what it has had from the engine before."""
WRITE = ("write_file", {"path": "a.txt", "content": "written"})


async def have_nothing(step: Step, mode: str) -> Any:
    return mode


async def have_answer(step: Step, mode: str) -> Any:
    return await step.ask_model(mode)


async def have_question(step: Step, mode: str) -> Any:
    """About the calls of the answer."""
    answer = await step.ask_model(mode)
    assert answer is not None
    return await (await step.judge(answer)).question()


async def have_open_question(step: Step, mode: str) -> Any:
    return await step.open_question()


async def have_call(step: Step, mode: str) -> Any:
    return await step.judge_again()


async def have_switch(step: Step, mode: str) -> Any:
    return step.approved_switch()


def make_node(
    have: Callable[[Step, str], Awaitable[Any]], wrong: Callable[[Step, Any], Any]
) -> Node:
    async def node(step: Step, mode: str = "") -> Any:
        had = await have(step, mode)
        assert had is not None
        result = wrong(step, had)
        return await result if isawaitable(result) else result

    return node


def plan(*calls: Any, **approved: Any) -> list[Any]:
    return [[{"call": call, "approved": approved or None, "denied": None}] for call in calls]


async def judge_and_act(step: Step, answer: AIMessage) -> Any:
    return step.go(Event.ACT, due_calls=(await step.judge(answer)).batches())


async def judge_another_answer(step: Step, answer: AIMessage) -> Any:
    calls = await step.judge(AIMessage(answer.text, tool_calls=answer.tool_calls, id=answer.id))
    return step.go(Event.REVIEW, asked=await calls.question())


THINKS: Wrong = {
    "acts on no plan": lambda step, _: step.go(Event.ACT, due_calls=[]),
    "plans by hand": lambda step, answer: step.go(
        Event.ACT,
        due_calls=plan(answer.tool_calls[0], args=WRITE[1], edited=False, digest="", contents={}),
    ),
    "acts where a person is needed": judge_and_act,
    "acts on nothing": lambda step, _: step.go(Event.ACT),
    "asks for nothing": lambda step, _: step.go(Event.REVIEW),
    "asks by hand": lambda step, _: step.go(Event.REVIEW, asked={"digest": "", "contents": {}}),
    "forgets the calls": lambda step, _: step.go(Event.ANSWER),
    "judges another answer": judge_another_answer,
    "moves not at all": lambda *_: {},
    "returns a phase of its own": lambda *_: {"phase": "acting"},
    "takes an edge that is not there": lambda step, _: step.go("fly"),
    "switches by itself": lambda step, _: step.go(Event.SWITCH_MODE),
}
ASKS: Wrong = {
    "moves twice": lambda step, asked: [step.go(Event.REVIEW, asked=asked) for _ in range(2)],
    "returns more than its move": lambda step, asked: {
        **step.go(Event.REVIEW, asked=asked),
        "approvals": "auto",
    },
    "sets the approvals": lambda step, asked: step.go(Event.REVIEW, asked=asked, approvals="auto"),
    "sets the mode": lambda step, asked: step.go(Event.REVIEW, asked=asked, mode="code"),
}


THINKS_NOT: Wrong = {
    "answers without the model": lambda step, _: step.go(Event.ANSWER),
    "runs a command where the model is asked": lambda step, _: step.run_command("touch a.txt"),
}


async def swallow_interrupt(step: Step, question: Any, *, settles: bool, forged: Any = None) -> Any:
    with suppress(Exception):
        question.ask()
    if forged:
        question._decisions = forged
    return await step.settle(question) if settles else step.withdraw_question()


REVIEWS: Wrong = {
    "settles without asking": lambda step, question: step.settle(question),
    "swallows the interrupt": lambda step, question: swallow_interrupt(
        step, question, settles=False
    ),
    "swallows it and settles": lambda step, question: swallow_interrupt(
        step, question, settles=True
    ),
    "forges the decisions": lambda step, question: swallow_interrupt(
        step, question, settles=True, forged=[{"type": "approve"}]
    ),
}


async def ask_model_in_review(step: Step, mode: str) -> Any:
    await step.ask_model("code")
    return step.go(Event.ANSWER)


REVIEWS_NOT: Wrong = {
    "runs a command before the person decides": lambda step, _: step.run_command("touch a.txt"),
    "acts by itself": lambda step, _: step.go(
        Event.ACT, due_calls=plan(*step.state["messages"][-1].tool_calls)
    ),
    "drops the question": lambda step, _: step.go(Event.DECIDED),
    "asks the model": ask_model_in_review,
}


async def run_without_start(step: Step, call: Any) -> Any:
    return await step.move_on(await call.run())


async def run_twice(step: Step, call: Any) -> Any:
    async with call.started():
        await call.run()
        result = await call.run()
    return await step.move_on(result)


async def run_behind_end(step: Step, call: Any) -> Any:
    async with call.started():
        pass
    return await step.move_on(await call.run())


async def move_on_twice(step: Step, call: Any) -> Any:
    await step.move_on(call.not_run("no"))
    return await step.move_on(call.not_run("no"))


ACTS: Wrong = {
    "runs without a start": run_without_start,
    "runs twice": run_twice,
    "runs behind its end": run_behind_end,
    "moves on with a result of its own": lambda step, _: step.move_on(
        {"messages": [ToolMessage("ok", tool_call_id=step.state["planned"]["call"]["id"])]}
    ),
    "moves on twice": move_on_twice,
    "writes a key of the engine": lambda step, call: step.move_on(
        call.not_run("no"), approvals="auto"
    ),
}
ACTS_NOT: Wrong = {
    "runs a command in the place of the call": lambda step, _: step.run_command("touch a.txt"),
    "moves on without judging": lambda step, _: step.move_on({"messages": []}),
    "goes by itself": lambda step, _: step.go(Event.ACTED),
    "enters a mode": lambda step, _: step.enter({"mode_slug": "code"}),  # type: ignore[typeddict-item]  # forged
}
TAKES_IN: Wrong = {
    "runs a command at the start": lambda step, _: step.run_command("touch a.txt"),
    "starts by itself": lambda step, _: step.go(Event.START),
}
NODES = {
    f"{name}: {what}": (name, make_node(have, wrong))
    for name, have, table in (
        ("think", have_nothing, THINKS_NOT),
        ("think", have_answer, THINKS),
        ("think", have_question, ASKS),
        ("review", have_nothing, REVIEWS_NOT),
        ("review", have_open_question, REVIEWS),
        ("act", have_nothing, ACTS_NOT),
        ("act", have_call, ACTS),
        ("intake", have_nothing, TAKES_IN),
    )
    for what, wrong in table.items()
}


@pytest.mark.parametrize("wrong", NODES)
async def test_a_wrong_node_is_refused_and_writes_nothing(wrong: str, workspace: Path) -> None:
    name, node = NODES[wrong]
    talk = script(workspace, [WRITE], "done", build=build_with(**{name: node}))
    told = r"the node '|write_file has not|has to decide|nobody has been asked"
    with pytest.raises(NodeError, match=told):
        await talk.say("go", mode="code")
        if name == "act":
            await talk.decide(APPROVE)
    if wrong != "act: runs twice":  # a person had approved one
        assert not (workspace / "a.txt").exists()


SWITCHES: Wrong = {
    "enters another mode": lambda step, switch: step.enter(switch | {"mode_slug": "debug"}),
    "enters and drops": lambda step, switch: (step.enter(switch), step.drop_switch()),
    "begins a sub-task of it": lambda step, switch: step.begin_subtask(switch),
}
SWITCHES_NOT: Wrong = {
    "enters unseen": lambda step, _: step.enter(step.state["switch"]),
    "sends the event": lambda step, _: step.go(Event.SWITCH_MODE),
}
SWITCH_NODES = {
    what: make_node(have, wrong)
    for have, table in ((have_switch, SWITCHES), (have_nothing, SWITCHES_NOT))
    for what, wrong in table.items()
}


@pytest.mark.parametrize("wrong", SWITCH_NODES)
async def test_a_wrong_switch_is_refused(wrong: str, workspace: Path) -> None:
    call = ("switch_mode", {"mode_slug": "code", "reason": "why"})
    build = build_with(switch_mode=SWITCH_NODES[wrong])
    talk = script(workspace, [call], "done", build=build)
    await talk.say("go")
    with pytest.raises(NodeError, match=r"the node 'switch_mode'|a switch that is none"):
        await talk.decide(APPROVE)
    assert await talk.mode() == "ask"


async def start_and_run(step: Step, call: Any) -> Any:
    async with call.started():
        return await step.move_on(await call.run())


async def test_a_call_denied_or_kept_does_not_run_whatever_the_node_does(workspace: Path) -> None:
    build = build_with(act=make_node(have_call, start_and_run))
    talk = script(workspace, [WRITE], "done", build=build)
    with pytest.raises(NodeError, match="write_file must not run"):
        await talk.say("go", mode="ask")
    assert not (workspace / "a.txt").exists()
    kept = []

    def run_first_again(step: Step, call: Any) -> Any:
        kept.append(call)
        return start_and_run(step, kept[0])

    calls = [WRITE, ("write_file", {"path": "b.txt", "content": "b"})]
    build = build_with(act=make_node(have_call, run_first_again))
    talk = script(workspace, calls, "done", build=build)
    await talk.say("go", mode="code")
    with pytest.raises(NodeError, match="write_file has not been started"):
        await talk.decide(APPROVE, APPROVE)
    assert not (workspace / "b.txt").exists()


async def stop_in_time(step: Step, call: Any, made: Path) -> Any:
    """With a time limit, which ends when the command has begun."""

    async def expire() -> None:
        await until(made.exists)
        limit.reschedule(asyncio.get_running_loop().time())

    watching = asyncio.create_task(expire())
    try:
        async with asyncio.timeout(None) as limit, call.started():
            return await step.move_on(await call.run())
    except TimeoutError:
        await watching
        return await step.move_on(call.not_run("Not run: it took too long."))


async def run_and_deny(step: Step, call: Any, made: Path) -> Any:
    async with call.started():
        await call.run()
        return await step.move_on(call.not_run("Not run: it is not wanted."))


@pytest.mark.parametrize("act", [stop_in_time, run_and_deny])
async def test_of_a_call_that_has_run_it_is_not_said_that_it_has_not(
    act: Callable[[Step, Any, Path], Any], workspace: Path
) -> None:
    lines = ["true", "touch made; sleep 300" if act is stop_in_time else "touch made"]
    calls = [[("execute_command", {"command": line})] for line in lines]

    async def act_on(step: Step) -> Any:
        if step.state["planned"]["call"]["args"]["command"] == "true":
            return await nodes.act(step)
        return await act(step, await step.judge_again(), workspace / "made")

    build, tests = build_with(act=act_on), ProjectTests(command="true")
    talk = script(workspace, *calls, "done", build=build, tests=tests)
    await talk.say("go", mode="code")
    await talk.approve_all()
    told = list((await talk.results()).values())[-1].text
    assert "may have taken effect" in told
    assert (await talk.values())["facts"]["mode"] == ["files_changed"]
    assert (await talk.values())["facts"]["workspace"] == []


EDGES = list(CHART.edges)
OWN = {**CHART.nodes, "checking": "check"}
TO_CHECK = [edge for edge in EDGES if edge != ("acting", "acted", "thinking")]


def past_review(target: str) -> list[Any]:
    return [("thinking", "review", target) if edge[1] == "review" else edge for edge in EDGES]


CHARTS: dict[str, tuple[Any, Any]] = {
    "no review": ({key: node for key, node in CHART.nodes.items() if key != "reviewing"}, EDGES),
    "act reviews": ({**CHART.nodes, "reviewing": "act"}, EDGES),
    "no edge to the review": (CHART.nodes, [edge for edge in EDGES if edge[1] != "review"]),
    "past the review": (CHART.nodes, past_review("acting")),
    "past the review by a node of its own": (
        OWN,
        [
            *past_review("checking"),
            ("checking", "checked", "reviewing"),
            ("checking", "skip", "acting"),
        ],
    ),
    "two ways by one event": (CHART.nodes, [*EDGES, ("acting", "acted", "idle")]),
    "to no phase": (CHART.nodes, [*EDGES, ("acting", "x", "flying")]),
    "no way out": (OWN, [*TO_CHECK, ("acting", "acted", "checking")]),
    "no way in": (OWN, [*EDGES, ("checking", "checked", "thinking")]),
    "an event of every phase": (CHART.nodes, [*EDGES, ("acting", "reset", "idle")]),
}


async def test_a_wrong_chart_is_an_error_at_start(snapshot: Snapshot, workspace: Path) -> None:
    told = {}
    for name, (phases, edges) in CHARTS.items():
        with pytest.raises(ConfigurationError) as caught:
            ChartData(nodes=phases, edges=edges)
        told[name] = str(caught.value)
    snapshot("charts.txt", told)
    with pytest.raises(
        ConfigurationError, match=r"no phase of graph/chart.py has the node 'check'"
    ):
        script(workspace, "hello", build=build_with(check=nodes.act))
    edges = [*TO_CHECK, ("acting", "acted", "checking"), ("checking", "checked", "thinking")]
    with pytest.raises(ConfigurationError, match="adds no node 'check'"):
        script(workspace, "hello", build=build_with(), chart=ChartData(nodes=OWN, edges=edges))
