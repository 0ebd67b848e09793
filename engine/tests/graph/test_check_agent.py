"""``modeshift.testing.check_agent`` passes the clone's graph, and says what another leaves open."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver

from graph import nodes
from graph.agent import build
from modeshift import Agent, AgentDeps, AgentGraph, Step, Update
from modeshift.graph.threads import StartedCalls
from modeshift.modes.policy import Approvals
from modeshift.testing import check_agent

Saver = BaseCheckpointSaver[Any] | None


@pytest.mark.slow
def test_the_clones_graph_holds() -> None:
    check_agent(build)


def runs_what_the_model_calls(deps: AgentDeps, saver: Saver = None) -> Agent:
    """By itself, without ``act``."""

    async def think(step: Step, mode: str) -> Update:
        answer = await step.ask_model(mode)
        if answer is None:
            return step.update
        if not answer.tool_calls:
            return step.go("answer")
        for call in answer.tool_calls:
            if call["name"].startswith("probe"):
                await deps.toolbox[call["name"]].runnable.ainvoke(call["args"])
        calls = await step.judge(answer)
        if calls.need_a_person:
            return step.go("review", asked=await calls.question())
        return step.go("act", plan=calls.batches())

    return build_with(deps, saver, think=think)


def build_with(deps: AgentDeps, saver: Saver, **other: Any) -> Agent:
    graph = AgentGraph(deps)
    for mode in graph.modes:
        graph.add_mode(mode, other.get("think", nodes.think))
    for name in ("intake", "review", "act", "switch_mode", "end_subtask", "compact_history"):
        graph.add_node(name, other.get(name, getattr(nodes, name)))
    return graph.compile(saver)


def approves_by_itself(deps: AgentDeps, saver: Saver = None) -> Agent:
    return build(replace(deps, approvals=Approvals.AUTO), saver)


class Forgetful(StartedCalls):
    def begin(self, thread: str, planned: Mapping[str, Any]) -> bool:
        return True

    def has_begun(self, thread: str, planned: Mapping[str, Any]) -> bool:
        return False

    def may_have_begun(self, planned: Mapping[str, Any]) -> bool:
        return False


def forgets_what_has_begun(deps: AgentDeps, saver: Saver = None) -> Agent:
    return build(replace(deps, started_calls=Forgetful()), saver)


def swallows_the_question(deps: AgentDeps, saver: Saver = None) -> Agent:
    async def review(step: Step) -> Update:
        return step.go("decided")

    return build_with(deps, saver, review=review)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (runs_what_the_model_calls, r"runs although (the mode denies|nobody has approved) it"),
        (approves_by_itself, "runs although nobody has approved it"),
        (forgets_what_has_begun, "once more after it was cut off by a cancel"),
        (swallows_the_question, "the node 'review' cannot send"),
    ],
)
def test_what_a_wrong_graph_leaves_open_is_named(wrong: Callable[..., Agent], told: str) -> None:
    with pytest.raises(AssertionError, match=rf"in \w+ mode, probe_\w+:? .*{told}"):
        check_agent(wrong)
