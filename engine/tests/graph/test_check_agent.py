"""``modeshift.testing.check_agent`` passes the clone's graph, and says what another leaves open."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from shutil import copy
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command
from typing_extensions import override

from graph import nodes
from graph.agent import build
from graph.chart import CHART
from modeshift import Agent, AgentDeps, ChartData, Step, Update
from modeshift.modes.catalog import prompts_of
from modeshift.modes.policy import Approvals
from modeshift.project import load_project, register
from modeshift.testing import check_agent
from modeshift.threads.deps import StartedCalls
from modeshift.threads.journal import Hold, Journal
from tests.harness.modes import MODES
from tests.harness.own_graph import Build, build_with
from tests.tables import rows

Saver = BaseCheckpointSaver[Any] | None


@pytest.fixture(autouse=True, scope="module")
def two_modes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The clone has ask and code alone: each pair of modes is tried."""
    project, folder = load_project(), tmp_path_factory.mktemp("clone")
    (folder / "modes").mkdir()
    (folder / "prompts").symlink_to(prompts_of(MODES))
    for slug in ("ask", "code"):
        copy(MODES / f"{slug}.yaml", folder / "modes")
    register(replace(project, root=folder))
    yield
    register(project)


async def go_on(step: Step, answer: AIMessage) -> Update:
    """As the clone's ``think`` does."""
    if not answer.tool_calls:
        return step.go("answer")
    calls = await step.judge(answer)
    if calls.need_a_person:
        return step.go("review", asked=await calls.question())
    return step.go("act", due_calls=calls.batches())


def runs_calls_itself(first: int) -> Build:
    """Without ``act``, from the message's call of this number on."""

    def build(deps: AgentDeps, saver: Saver = None) -> Agent:
        async def think(step: Step, mode: str) -> Update:
            answer = await step.ask_model(mode)
            if answer is None:
                return step.update
            for call in answer.tool_calls[first:]:
                if call["name"].startswith("probe"):
                    await deps.toolbox[call["name"]].runnable.ainvoke(call["args"])
            return await go_on(step, answer)

        return build_with(think=think)(deps, saver)

    return build


def asks_before_the_model(deps: AgentDeps, saver: Saver = None) -> Agent:
    async def greet(step: Step) -> Update:
        return step.go("greeted" if step.ask_person("greet", "May it begin?") else "left")

    more = [("greeting", "greeted", "thinking"), ("greeting", "left", "idle")]
    edges = [edge for edge in CHART.edges if edge != ("idle", "start", "thinking")]
    chart = ChartData(
        nodes={**CHART.nodes, "greeting": "greet"},
        edges=[*edges, ("idle", "start", "greeting"), *more],
    )
    return build_with(greet=greet)(replace(deps, chart=chart), saver)


def approves_by_itself(deps: AgentDeps, saver: Saver = None) -> Agent:
    return build(replace(deps, approvals=Approvals.AUTO), saver)


class Forgetful(Journal):
    async def find(self, *given: Any) -> None:
        return None

    def hold(self, thread: str) -> Hold:
        return ForgetfulHold(self, thread)


class ForgetfulHold(Hold):
    async def begin(self, *call: Any) -> Any:
        await self._journal.delete_thread(self._thread)
        return await super().begin(*call)


def forgets_what_has_begun(deps: AgentDeps, saver: Saver = None) -> Agent:
    return build(replace(deps, started_calls=StartedCalls(journal=Forgetful())), saver)


def swallows_the_question(deps: AgentDeps, saver: Saver = None) -> Agent:
    async def review(step: Step) -> Update:
        return step.go("decided")

    return build_with(review=review)(deps, saver)


class SaysYesItself(Agent):
    """Answers the question about a switch in the person's place."""

    @override
    async def astream(self, *given: Any, **more: Any) -> AsyncIterator[Any]:
        async for part in super().astream(*given, **more):
            yield part
        interrupts = (await self.aget_state(given[1])).interrupts
        if interrupts and interrupts[0].value["action_requests"][0]["name"] == "switch_mode":
            decisions: Any = Command(resume={"decisions": [{"type": "approve"}]})
            async for part in super().astream(decisions, *given[1:], **more):
                yield part


def switches_without_a_yes(deps: AgentDeps, saver: Saver = None) -> Agent:
    agent = build(deps, saver)
    agent.__class__ = SaysYesItself
    return agent


def takes_the_tools_it_asked_for(deps: AgentDeps, saver: Saver = None) -> Agent:
    """Whatever a person says of the switch."""
    wanted: list[str] = []

    async def think(step: Step, mode: str) -> Update:
        answer = await step.ask_model([mode, *wanted][-1])
        assert answer is not None
        wanted[:] = [call["args"].get("mode_slug", mode) for call in answer.tool_calls]
        return await go_on(step, answer)

    return build_with(think=think)(deps, saver)


def keeps_the_old_tools(deps: AgentDeps, saver: Saver = None) -> Agent:
    first: list[str] = []

    async def think(step: Step, mode: str) -> Update:
        first.append(mode)
        return await nodes.think(step, first[0])

    return build_with(think=think)(deps, saver)


def runs_calls_beside_the_engine(deps: AgentDeps, saver: Saver = None) -> Agent:
    """Each has begun, is run by the node itself, and is told as not run."""

    async def act(step: Step) -> Any:
        call = await step.judge_again()
        if call is None or call.refusal is not None or call.task["due_calls"]:
            return step.start_again() if call is None else await nodes.act(step)
        due = call.task["planned"]["call"]
        async with call.started() as problem:
            if problem is None and due["name"].startswith("probe"):
                await deps.toolbox[due["name"]].runnable.ainvoke(due["args"])
            told = call.not_run(problem or "It has run.")
        return await step.move_on(told)

    return build_with(act=act)(deps, saver)


IN_PROBE = r"in \w+ mode, probe_\w+:? .*"
UNASKED = IN_PROBE + "runs although nobody has approved it"
UNDENIED = IN_PROBE + r"runs although (the mode denies|nobody has approved) it"


@rows(
    "wrong told",
    (runs_calls_itself(0), UNDENIED),
    (approves_by_itself, UNASKED),
    (runs_calls_beside_the_engine, IN_PROBE + "has run, .* no fact says so: files_changed"),
    (forgets_what_has_begun, IN_PROBE + "once more after it was cut off by a cancel"),
    (swallows_the_question, IN_PROBE + "the node 'review' cannot send"),
    (switches_without_a_yes, r"in \w+ mode, switch_mode to \w+ takes effect although nobody"),
    (takes_the_tools_it_asked_for, r"switch_mode to \w+ after 'reject' the model has the tools"),
    (keeps_the_old_tools, r"switch_mode to \w+ after 'approve' the model has the tools of"),
    pytest.param(
        *(runs_calls_itself(1), r"in random walk \d probe_\w+ runs although"),
        marks=pytest.mark.slow,  # behind all that the walks come after
    ),
)
def test_what_a_wrong_graph_leaves_open_is_named(wrong: Build, told: str) -> None:
    """The last is what a message with one call does not show."""
    with pytest.raises(AssertionError, match=told):
        check_agent(wrong)


def test_a_question_before_the_model_answers_leaves_nothing_open() -> None:
    check_agent(asks_before_the_model)
