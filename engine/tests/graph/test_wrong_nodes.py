"""Wrong nodes: each is refused at the step or at the start, and no gate is open for it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver

from graph import nodes
from graph.chart import CHART
from modeshift import Agent, AgentDeps, AgentGraph, ChartData, Event, Step
from modeshift.modes.errors import ConfigurationError, NodeError
from tests.harness.conversation import APPROVE, Conversation, script

Node = Callable[..., Awaitable[Any]]
NAMES = ("intake", "review", "act", "switch_mode", "end_subtask", "compact_history")


def build_with(**wrong: Node) -> Callable[..., Agent]:
    """The clone's graph with other nodes; a name that is new is an own phase's."""

    def build(
        deps: AgentDeps, saver: BaseCheckpointSaver[Any] | None = None, max_steps: int = 500
    ) -> Agent:
        graph = AgentGraph(deps)
        for mode in graph.modes:
            graph.add_mode(mode, wrong.get("think", nodes.think))
        for name in {*NAMES, *wrong} - {"think"}:
            graph.add_node(name, wrong.get(name) or getattr(nodes, name))
        return graph.compile(saver, max_steps)

    return build


WRONG: dict[str, tuple[str, Node]] = {}
"""By what is wrong with it: the name of the node, and the node."""
KEPT: dict[str, Any] = {}
"""What a node keeps from one step to the next."""


def wrong(node: str) -> Callable[[Node], Node]:
    def add(function: Node) -> Node:
        WRONG[f"{node}: {function.__name__}"] = node, function
        return function

    return add


@wrong("think")
async def acts_on_no_plan(step: Step, mode: str) -> Any:
    await step.ask_model(mode)
    return step.go(Event.ACT, plan=[])


@wrong("think")
async def plans_by_hand(step: Step, mode: str) -> Any:
    answer = await step.ask_model(mode)
    assert answer is not None
    if not answer.tool_calls:
        return step.go(Event.ANSWER)
    forged = {"args": answer.tool_calls[0]["args"], "edited": False, "digest": "", "contents": {}}
    plan = [[{"call": answer.tool_calls[0], "approved": forged, "denied": None}]]
    return step.go(Event.ACT, plan=plan)


@wrong("think")
async def acts_where_a_person_is_needed(step: Step, mode: str) -> Any:
    answer = await step.ask_model(mode)
    assert answer is not None
    if not answer.tool_calls:
        return step.go(Event.ANSWER)
    return step.go(Event.ACT, plan=(await step.judge(answer)).batches())


@wrong("think")
async def acts_on_nothing(step: Step, mode: str) -> Any:
    await step.ask_model(mode)
    return step.go(Event.ACT)


@wrong("think")
async def asks_for_nothing(step: Step, mode: str) -> Any:
    await step.ask_model(mode)
    return step.go(Event.REVIEW)


@wrong("think")
async def asks_by_hand(step: Step, mode: str) -> Any:
    await step.ask_model(mode)
    return step.go(Event.REVIEW, asked={"digest": "", "contents": {}})


@wrong("think")
async def forgets_the_calls(step: Step, mode: str) -> Any:
    await step.ask_model(mode)
    return step.go(Event.ANSWER)


@wrong("think")
async def answers_without_the_model(step: Step, mode: str) -> Any:
    return step.go(Event.ANSWER)


@wrong("think")
async def judges_another_answer(step: Step, mode: str) -> Any:
    answer = await step.ask_model(mode)
    assert answer is not None
    calls = await step.judge(AIMessage(answer.text, tool_calls=answer.tool_calls, id=answer.id))
    return step.go(Event.REVIEW, asked=await calls.question())


@wrong("think")
async def moves_twice(step: Step, mode: str) -> Any:
    answer = await step.ask_model(mode)
    assert answer is not None
    calls = await step.judge(answer)
    asked = await calls.question()
    step.go(Event.REVIEW, asked=asked)
    return step.go(Event.REVIEW, asked=asked)


@wrong("think")
async def moves_not_at_all(step: Step, mode: str) -> Any:
    await step.ask_model(mode)
    return {}


@wrong("think")
async def returns_more_than_its_move(step: Step, mode: str) -> Any:
    answer = await step.ask_model(mode)
    assert answer is not None
    calls = await step.judge(answer)
    return {**step.go(Event.REVIEW, asked=await calls.question()), "approvals": "auto"}


@wrong("think")
async def returns_a_phase_of_its_own(step: Step, mode: str) -> Any:
    await step.ask_model(mode)
    return {"phase": "acting"}


@wrong("think")
async def sets_the_approvals(step: Step, mode: str) -> Any:
    answer = await step.ask_model(mode)
    assert answer is not None
    asked = await (await step.judge(answer)).question()
    return step.go(Event.REVIEW, asked=asked, approvals="auto")


@wrong("think")
async def sets_the_mode(step: Step, mode: str) -> Any:
    answer = await step.ask_model(mode)
    assert answer is not None
    asked = await (await step.judge(answer)).question()
    return step.go(Event.REVIEW, asked=asked, mode="code")


@wrong("think")
async def takes_an_edge_that_is_not_there(step: Step, mode: str) -> Any:
    await step.ask_model(mode)
    return step.go("fly")


@wrong("think")
async def switches_by_itself(step: Step, mode: str) -> Any:
    await step.ask_model(mode)
    return step.go(Event.SWITCH_MODE)


@wrong("think")
async def settles_where_nothing_was_asked(step: Step, mode: str) -> Any:
    return await step.settle(None)  # type: ignore[arg-type]  # that is what is wrong


@wrong("think")
async def does_what_act_does(step: Step, mode: str) -> Any:
    call = await step.judge_again()
    assert call is not None
    return await call.run()


@wrong("think")
async def runs_a_command_where_the_model_is_asked(step: Step, mode: str) -> Any:
    return await step.run_command("touch a.txt")


@wrong("review")
async def runs_a_command_before_the_person_decides(step: Step) -> Any:
    return await step.run_command("touch a.txt")


@wrong("act")
async def runs_a_command_in_the_place_of_the_call(step: Step) -> Any:
    return await step.run_command("touch a.txt")


@wrong("intake")
async def runs_a_command_at_the_start(step: Step) -> Any:
    return await step.run_command("touch a.txt")


@wrong("review")
async def settles_without_asking(step: Step) -> Any:
    question = await step.open_question()
    assert question is not None
    return await step.settle(question)


@wrong("review")
async def swallows_the_interrupt(step: Step) -> Any:
    question = await step.open_question()
    assert question is not None
    with suppress(Exception):
        question.ask()
    return step.withdraw_question()


@wrong("review")
async def swallows_it_and_settles(step: Step) -> Any:
    question = await step.open_question()
    assert question is not None
    with suppress(Exception):
        question.ask()
    return await step.settle(question)


@wrong("review")
async def forges_the_decisions(step: Step) -> Any:
    question = await step.open_question()
    assert question is not None
    with suppress(Exception):
        question.ask()
    question._decisions = [{"type": "approve"}]
    return await step.settle(question)


@wrong("review")
async def acts_by_itself(step: Step) -> Any:
    plan = [[{"call": call, "approved": None, "denied": None}] for call in _last_calls(step)]
    return step.go(Event.ACT, plan=plan)


@wrong("review")
async def drops_the_question(step: Step) -> Any:
    return step.go(Event.DECIDED)


@wrong("review")
async def asks_the_model(step: Step) -> Any:
    await step.ask_model("code")
    return step.go(Event.ANSWER)


@wrong("act")
async def runs_without_a_start(step: Step) -> Any:
    call = await step.judge_again()
    assert call is not None
    return await step.move_on(await call.run())


@wrong("act")
async def runs_twice(step: Step) -> Any:
    call = await step.judge_again()
    assert call is not None
    async with call.started():
        await call.run()
        result = await call.run()
    return await step.move_on(result)


@wrong("act")
async def runs_behind_its_end(step: Step) -> Any:
    call = await step.judge_again()
    assert call is not None
    async with call.started():
        pass
    return await step.move_on(await call.run())


@wrong("act")
async def moves_on_with_a_result_of_its_own(step: Step) -> Any:
    await step.judge_again()
    call = step.state["planned"]["call"]
    return await step.move_on({"messages": [ToolMessage("ok", tool_call_id=call["id"])]})


@wrong("act")
async def moves_on_without_judging(step: Step) -> Any:
    return await step.move_on({"messages": []})


@wrong("act")
async def moves_on_twice(step: Step) -> Any:
    call = await step.judge_again()
    assert call is not None
    result = call.not_run("no")
    await step.move_on(result)
    return await step.move_on(result)


@wrong("act")
async def writes_a_key_of_the_engine(step: Step) -> Any:
    call = await step.judge_again()
    assert call is not None
    return await step.move_on(call.not_run("no"), approvals="auto")


@wrong("act")
async def goes_by_itself(step: Step) -> Any:
    return step.go(Event.ACTED)


@wrong("act")
async def enters_a_mode(step: Step) -> Any:
    return step.enter({"mode_slug": "code"})  # type: ignore[typeddict-item]  # forged


@wrong("intake")
async def goes_on_whatever_was_said(step: Step) -> Any:
    return step.keep_waiting()


@wrong("intake")
async def starts_by_itself(step: Step) -> Any:
    return step.go(Event.START)


def _last_calls(step: Step) -> list[Any]:
    return list(step.state["messages"][-1].tool_calls)


WRITE = ("write_file", {"path": "a.txt", "content": "written"})


@pytest.mark.parametrize("what", WRONG)
async def test_a_wrong_node_is_refused_and_writes_nothing_unasked(
    what: str, workspace: Path
) -> None:
    name, node = WRONG[what]
    talk = script(workspace, [WRITE], "done", build=build_with(**{name: node}))
    with pytest.raises(
        NodeError, match=r"the node '|write_file has not|has to decide|nobody has been asked"
    ):
        await _go(talk, approves=name == "act")
    if what != "act: runs_twice":  # a person had approved one
        assert not (workspace / "a.txt").exists()


async def _go(talk: Conversation, *, approves: bool) -> None:
    await talk.send({"messages": [{"role": "user", "content": "go"}], "mode": "code"})
    if approves:
        await talk.decide(APPROVE)


SWITCHES: dict[str, Node] = {}


def wrong_switch(function: Node) -> Node:
    SWITCHES[function.__name__] = function
    return function


@wrong_switch
async def enters_another_mode(step: Step) -> Any:
    switch = step.approved_switch()
    assert switch is not None
    return step.enter({**switch, "mode_slug": "debug"})


@wrong_switch
async def enters_unseen(step: Step) -> Any:
    return step.enter(step.state["switch"])


@wrong_switch
async def enters_and_drops(step: Step) -> Any:
    switch = step.approved_switch()
    assert switch is not None
    step.enter(switch)
    return step.drop_switch()


@wrong_switch
async def sends_the_event(step: Step) -> Any:
    return step.go(Event.SWITCH_MODE)


@wrong_switch
async def begins_a_subtask_of_it(step: Step) -> Any:
    switch = step.approved_switch()
    assert switch is not None
    return step.begin_subtask(switch)


@pytest.mark.parametrize("what", SWITCHES)
async def test_a_wrong_switch_is_refused(what: str, workspace: Path) -> None:
    call = ("switch_mode", {"mode_slug": "code", "reason": "why"})
    build = build_with(switch_mode=SWITCHES[what])
    talk = script(workspace, [call], "done", build=build)
    await talk.say("go")
    with pytest.raises(NodeError, match=r"the node 'switch_mode'|a switch that is none"):
        await talk.decide(APPROVE)
    assert await talk.mode() == "ask"


async def test_a_denied_call_does_not_run_whatever_the_node_does(workspace: Path) -> None:
    async def runs_what_is_refused(step: Step) -> Any:
        call = await step.judge_again()
        assert call is not None
        async with call.started():
            return await step.move_on(await call.run())

    talk = script(workspace, [WRITE], "done", build=build_with(act=runs_what_is_refused))
    with pytest.raises(NodeError, match="write_file must not run"):
        await talk.say("go", mode="ask")
    assert not (workspace / "a.txt").exists()


async def test_a_call_that_is_kept_does_not_run_again(workspace: Path) -> None:
    async def runs_the_first_again(step: Step) -> Any:
        call = await step.judge_again()
        assert call is not None
        first = KEPT.setdefault("call", call)
        async with first.started():
            result = await first.run()
        return await step.move_on(result)

    KEPT.clear()
    calls = [WRITE, ("write_file", {"path": "b.txt", "content": "b"})]
    talk = script(workspace, calls, "done", build=build_with(act=runs_the_first_again))
    await talk.say("go", mode="code")
    with pytest.raises(NodeError, match="write_file has not been started"):
        await talk.decide(APPROVE, APPROVE)
    assert not (workspace / "b.txt").exists()


NODES, EDGES = dict(CHART.nodes), list(CHART.edges)
OWN = {**NODES, "checking": "check"}
TO_CHECK = [edge for edge in EDGES if edge != ("acting", "acted", "thinking")]
CHARTS: dict[str, tuple[Any, Any, str]] = {
    "no row for a phase": (
        {key: node for key, node in NODES.items() if key != "reviewing"},
        EDGES,
        "the node of the phase reviewing is missing; the engine needs 'review'",
    ),
    "another node": (
        {**NODES, "reviewing": "act"},
        EDGES,
        "phase reviewing is 'act'; the engine needs 'review'",
    ),
    "an edge is missing": (
        NODES,
        [edge for edge in EDGES if edge[1] != "review"],
        "the engine needs an edge from thinking by review, to reviewing",
    ),
    "past the review": (
        NODES,
        [("thinking", "review", "acting") if e[1] == "review" else e for e in EDGES],
        "from thinking by review no way leads to reviewing",
    ),
    "past the review by an own phase": (
        OWN,
        [
            *(("thinking", "review", "checking") if e[1] == "review" else e for e in EDGES),
            ("checking", "checked", "reviewing"),
            ("checking", "skip", "acting"),
        ],
        "a way leads to acting, past reviewing",
    ),
    "two ways": (NODES, [*EDGES, ("acting", "acted", "idle")], "leads to two phases"),
    "an unknown phase": (NODES, [*EDGES, ("acting", "x", "flying")], "'flying', which has no row"),
    "no way out": (OWN, [*TO_CHECK, ("acting", "acted", "checking")], "no edge leads out of"),
    "no way in": (OWN, [*EDGES, ("checking", "checked", "thinking")], "no edge leads to"),
    "everywhere": (NODES, [*EDGES, ("acting", "reset", "idle")], "possible in every phase"),
}


@pytest.mark.parametrize("what", CHARTS)
def test_a_wrong_chart_is_an_error_at_start(what: str) -> None:
    chart_nodes, edges, text = CHARTS[what]
    with pytest.raises(ConfigurationError, match=text):
        ChartData(nodes=chart_nodes, edges=edges)


async def test_a_node_that_the_chart_lacks_and_one_that_the_graph_lacks(workspace: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"no phase of graph/chart.py has the node 'check'"
    ):
        script(workspace, "hello", build=build_with(check=nodes.act))
    chart = ChartData(
        nodes=OWN,
        edges=[*TO_CHECK, ("acting", "acted", "checking"), ("checking", "checked", "thinking")],
    )
    with pytest.raises(ConfigurationError, match="adds no node 'check'"):
        script(workspace, "hello", build=build_with(), chart=chart)
