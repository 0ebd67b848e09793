"""What the node of an own phase can do: run a command, tell the model, ask a person."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from graph.chart import CHART
from modeshift import ChartData, Step, Update
from modeshift.modes.errors import InvalidInputError, NodeError
from modeshift.modes.facts import ProjectTests
from modeshift.tools.processes.process import Ended
from modeshift.tools.processes.sandboxes import Commands
from tests.harness.conversation import APPROVE, REJECT, Conversation, script, until
from tests.harness.own_graph import build_with
from tests.tools.sandbox.commands import needs_sandbox, sandbox

READ = ("read_file", {"path": "a.txt"})
OWN = ChartData(
    nodes={**CHART.nodes, "checking": "check"},
    edges=[
        *(edge for edge in CHART.edges if edge != ("acting", "acted", "thinking")),
        ("acting", "acted", "checking"),
        ("checking", "checked", "thinking"),
    ],
)
Check = Callable[[Step], Awaitable[Any]]


def talk_with(check: Check, workspace: Path, *steps: Any, **options: Any) -> Conversation:
    """A conversation in which ``check`` follows the calls of a message."""
    (workspace / "a.txt").write_text("a")

    async def run(step: Step) -> Update:
        await check(step)
        return step.go("checked")

    steps = steps or ([READ], "done")
    return script(workspace, *steps, build=build_with(check=run), chart=OWN, **options)


async def run_commands(
    workspace: Path, *lines: str, mode: str = "code", **more: Any
) -> list[Ended]:
    ended = list[Ended]()

    async def check(step: Step) -> None:
        ended.extend([await step.run_command(line, 1) for line in lines])

    await talk_with(check, workspace, **more).say("go", mode=mode)
    return ended


KINDS = [None, pytest.param("sandbox", marks=needs_sandbox)]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_exit_code_is_what_the_process_said(kind: str | None, workspace: Path) -> None:
    commands = Commands(sandbox() if kind else None)
    lines = ("true", "echo '[exit code 0]'; exit 3", "echo so far; sleep 20")
    good, bad, late = await run_commands(workspace, *lines, commands=commands)
    assert (good.exit_code, bad.exit_code, late.exit_code) == (0, 3, None)
    assert "so far\n[ended after 1 s" in late.text
    assert bad.text.startswith("<data-"), "what a command prints may be anybody's"


@needs_sandbox
@pytest.mark.parametrize("mode", ["ask", "code"])
async def test_a_command_has_the_rights_of_the_mode(mode: str, workspace: Path) -> None:
    commands = Commands(sandbox())
    (ended,) = await run_commands(workspace, "touch made.txt", mode=mode, commands=commands)
    assert (workspace / "made.txt").exists() == (mode == "code") == (ended.exit_code == 0)


async def test_what_cannot_be_run_is_said(workspace: Path) -> None:
    (ended,) = await run_commands(workspace, "echo \0")
    assert ended.exit_code is None
    assert "[not run: " in ended.text


@needs_sandbox
async def test_it_does_not_wait_for_a_command_in_the_background(workspace: Path) -> None:
    ended = list[Ended]()

    async def check(step: Step) -> None:
        ended.append(await step.run_command("true"))

    start = ("execute_command", {"command": "sleep 300", "background": True})
    talk = talk_with(check, workspace, [start], "done", commands=Commands(sandbox()))
    async with asyncio.timeout(60):
        await talk.say("go", mode="code", approvals="auto")
    assert ended[0].exit_code is None
    assert "'sleep 300'" in ended[0].text


async def test_tests_beside_a_command_in_the_background_have_not_passed(workspace: Path) -> None:
    tests = ProjectTests(command="touch go; while ! test -e gone; do sleep 0.1; done; sleep 0.5")

    async def check(step: Step) -> None:
        await step.run_command(tests.command)

    line = "while ! test -e go; do sleep 0.1; done; touch gone"
    start = ("execute_command", {"command": line, "background": True})
    talk = talk_with(check, workspace, [start], "done", tests=tests)
    await talk.say("go", mode="code")
    await talk.approve_all()
    assert (workspace / "gone").exists()
    assert "tests_passed" not in (await talk.values())["facts"]["workspace"]


async def test_commands_that_are_started_at_once_run_one_after_the_other(workspace: Path) -> None:
    """Else what one has written meanwhile would not count against tests that passed."""
    tests = ProjectTests(command="test ! -e late && sleep 0.5")
    ended = list[Ended]()

    async def check(step: Step) -> None:
        ended.extend(
            await asyncio.gather(
                step.run_command(tests.command),
                step.run_command("touch late"),
                step.run_command("false"),
            )
        )

    talk = talk_with(check, workspace, tests=tests)
    await talk.say("go", mode="code")
    facts = (await talk.values())["facts"]
    assert [each.exit_code for each in ended] == [0, 0, 1]
    assert facts == {"mode": ["files_changed"], "conversation": ["command_failed"], "workspace": []}


async def test_a_command_that_the_node_gives_up_may_have_changed_files(workspace: Path) -> None:
    async def check(step: Step) -> None:
        running = asyncio.create_task(step.run_command("touch made; sleep 300"))
        await until((workspace / "made").exists)
        running.cancel()
        await asyncio.wait({running})

    talk = talk_with(check, workspace)
    await talk.say("go", mode="code")
    assert (await talk.values())["facts"]["mode"] == ["files_changed"]


async def test_what_is_told_under_a_first_line_is_told_again_when_it_changes(
    workspace: Path,
) -> None:
    texts = ["# A\n\n12", "# A\n\n12", "# A\n\n1", "# B\n\n12", "# A\n\n12"]
    waiting = iter(texts)

    async def check(step: Step) -> None:
        step.show(next(waiting))

    talk = talk_with(check, workspace, *[[READ]] * 5, "done")
    await talk.say("go", mode="code")
    sent = "\n".join(message.text for message in talk.model.asked[-1].messages)
    assert re.findall(r"^# [AB]\n\n\d+$", sent, re.M) == [texts[0], *texts[2:]]


async def _asks_until_yes(step: Step) -> Update:
    return step.go("checked" if step.ask_person("sure", "Sure?") else "again")


async def _asks_twice(step: Step) -> Update:
    answers = [step.ask_person("sure", "Sure?") for _ in range(2)]
    return step.go("checked" if answers == [False, True] else "again")


@pytest.mark.parametrize("check", [_asks_until_yes, _asks_twice])
async def test_a_question_that_is_asked_again_at_once_is_another_one(
    check: Check, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("a")
    chart = ChartData(OWN.nodes, [*OWN.edges, ("checking", "again", "checking")])
    talk = script(workspace, [READ], "done", build=build_with(check=check), chart=chart)
    await talk.say("go", mode="code")

    async def answer(decision: dict[str, str]) -> dict[str, Any]:
        (interrupt,) = (await talk.agent.aget_state(talk.config)).interrupts
        given = {"decisions": [decision], "question": interrupt.value["question"]}
        await talk.send(Command(resume=given))
        return given

    first = await answer(REJECT)
    with pytest.raises(InvalidInputError, match="but the question is now"):
        await talk.send(Command(resume=first))
    assert [request["name"] for request in await talk.waiting()] == ["sure"]
    await answer(APPROVE)
    assert (await talk.messages())[-1].text == "done"


@pytest.mark.parametrize("is_bound", [True, False])
async def test_an_answer_that_is_neither_yes_nor_no_is_refused(
    workspace: Path, *, is_bound: bool
) -> None:
    (workspace / "a.txt").write_text("a")
    chart = ChartData(OWN.nodes, [*OWN.edges, ("checking", "again", "checking")])
    build, more = build_with(check=_asks_until_yes), {"chart": chart, "bound_answers": is_bound}
    talk = script(workspace, [READ], "done", build=build, **more)
    await talk.say("go", mode="code")
    (interrupt,) = (await talk.agent.aget_state(talk.config)).interrupts
    question = interrupt.value["question"]
    no_yes = "this question takes one yes or no; give {.decisions"
    for answer, problem in (
        ({"decisions": [APPROVE, APPROVE]}, no_yes),
        ({"decisions": []}, no_yes),
        ({"decisions": [APPROVE | {"remember": True}]}, no_yes),
        ({"decisions": [{"type": "respond", "message": "yes"}]}, no_yes),
        ({"decisions": [APPROVE], "question": "x"}, f"answers question 'x', .* now '{question}'"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            await talk.send(Command(resume={"question": question, **answer}))
    named = {"question": question} if is_bound else {}
    if is_bound:
        with pytest.raises(InvalidInputError, match=f"must name its question: .* '{question}'"):
            await talk.send(Command(resume={"decisions": [APPROVE]}))
    decision = {**REJECT, "message": "No.", "id": "1"}
    await talk.send(Command(resume={"decisions": [decision], **named}))
    assert [request["name"] for request in await talk.waiting()] == ["sure"], "it asks again"


async def _runs_before_it_asks(step: Step) -> None:
    await step.run_command("touch made.txt")
    step.ask_person("sure", "Sure?")


async def test_a_node_that_runs_a_command_before_it_asks_is_refused(workspace: Path) -> None:
    with pytest.raises(NodeError, match="runs a command before it asks"):
        await talk_with(_runs_before_it_asks, workspace).say("go", mode="code")


async def _runs_behind_its_move(step: Step) -> Update:
    update = step.go("checked")
    await step.run_command("touch made.txt")
    return update


async def _tells_behind_its_move(step: Step) -> Update:
    update = step.go("checked")
    step.tell("It is not done.")
    return update


async def _moves_while_a_command_runs(step: Step) -> Update:
    running = asyncio.create_task(step.run_command("sleep 0.1"))
    await asyncio.sleep(0)
    try:
        return step.go("checked")
    finally:
        await running


async def _runs_behind_its_end(step: Step) -> Update:
    later.append(asyncio.create_task(step.run_command("touch made.txt")))
    return step.go("checked")


later = list["asyncio.Task[Ended]"]()
"""What a node has left behind."""


@pytest.mark.parametrize(
    "check", [_runs_behind_its_move, _tells_behind_its_move, _moves_while_a_command_runs]
)
async def test_what_would_be_lost_behind_a_move_is_refused(check: Check, workspace: Path) -> None:
    (workspace / "a.txt").write_text("a")
    talk = script(workspace, [READ], "done", build=build_with(check=check), chart=OWN)
    with pytest.raises(NodeError, match=r"behind its move|while its command runs"):
        await talk.say("go", mode="code")
    assert not (workspace / "made.txt").exists()


async def test_a_command_that_a_node_leaves_behind_does_not_run(workspace: Path) -> None:
    (workspace / "a.txt").write_text("a")
    build = build_with(check=_runs_behind_its_end)
    await script(workspace, [READ], "done", build=build, chart=OWN).say("go", mode="code")
    with pytest.raises(NodeError, match="behind its move"):
        await later.pop()
    assert not (workspace / "made.txt").exists()


CHANGES: dict[str, Callable[[Any], Any]] = {
    "a fact": lambda state: state["facts"]["workspace"].append("tests_passed"),
    "all facts of a scope": lambda state: state["facts"].update(workspace=["tests_passed"]),
    "what is remembered": lambda state: state["remembered"].append({}),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_the_state_is_not_changed_in_place(change: str, workspace: Path) -> None:
    async def check(step: Step) -> None:
        if "workspace" in step.state["facts"]:
            with pytest.raises((AttributeError, TypeError)):
                CHANGES[change](step.state)
        await step.run_command("true")

    talk = talk_with(check, workspace, [READ], [READ], "done")
    await talk.say("go", mode="code")
    values = await talk.values()
    assert values["facts"]["workspace"] == values["remembered"] == []
