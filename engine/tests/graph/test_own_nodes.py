"""What the node of an own phase can do: run a command, tell the model, ask a person."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from graph import nodes
from graph.chart import CHART
from modeshift import ChartData, Step, Update
from modeshift.modes.errors import InvalidInputError, NodeError
from modeshift.modes.facts import ProjectTests
from modeshift.threads.mailbox import Mailbox
from modeshift.tools.processes.process import Ended
from modeshift.tools.processes.sandboxes import Commands
from tests.graph.calls import ALWAYS, asks, read, respond, run
from tests.harness.conversation import APPROVE, REJECT, Conversation, script, until
from tests.harness.own_graph import build_with
from tests.tables import rows
from tests.tools.sandbox.commands import needs_sandbox, sandbox

READ = read()
OWN = ChartData(
    nodes={**CHART.nodes, "checking": "check"},
    edges=[
        *(edge for edge in CHART.edges if edge != ("acting", "acted", "thinking")),
        ("acting", "acted", "checking"),
        ("checking", "checked", "thinking"),
    ],
)
Check = Callable[[Step], Awaitable[Any]]


def talk_with(
    check: Check, workspace: Path, *steps: Any, moves: bool = False, **options: Any
) -> Conversation:
    """A conversation in which ``check`` follows the calls of a message; it may move by itself."""
    (workspace / "a.txt").write_text("a")

    async def run(step: Step) -> Update:
        await check(step)
        return step.go("checked")

    options = {"chart": OWN, **options}
    build = build_with(check=check if moves else run)
    return script(workspace, *(steps or ([READ], "done")), build=build, **options)


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
    lines = ("true", "echo '[exit code 0]'; exit 3", "echo so far; sleep 20", "echo \0")
    good, bad, late, wrong = await run_commands(workspace, *lines, commands=commands)
    assert [each.exit_code for each in (good, bad, late, wrong)] == [0, 3, None, None]
    assert "so far\n[ended after 1 s" in late.text
    assert bad.text.startswith("<data-"), "what a command prints may be anybody's"
    assert "[not run: " in wrong.text


@needs_sandbox
@pytest.mark.parametrize("mode", ["ask", "code"])
async def test_a_command_has_the_rights_of_the_mode(mode: str, workspace: Path) -> None:
    commands = Commands(sandbox())
    (ended,) = await run_commands(workspace, "touch made.txt", mode=mode, commands=commands)
    assert (workspace / "made.txt").exists() == (mode == "code") == (ended.exit_code == 0)


@needs_sandbox
async def test_it_does_not_wait_for_a_command_in_the_background(workspace: Path) -> None:
    ended = list[Ended]()

    async def check(step: Step) -> None:
        ended.append(await step.run_command("true"))

    start = run("sleep 300", background=True)
    talk = talk_with(check, workspace, [start], "done", commands=Commands(sandbox()))
    async with asyncio.timeout(60):
        await talk.say("go", mode="code", approvals="auto")
    assert ended[0].exit_code is None
    assert "'sleep 300'" in ended[0].text


async def test_what_runs_beside_tests_counts_against_them(workspace: Path) -> None:
    """Else what one has written meanwhile would not count against tests that passed."""
    tests = ProjectTests(command="touch go; while ! test -e gone; do sleep 0.1; done; sleep 0.5")

    async def check(step: Step) -> None:
        await step.run_command(tests.command)

    start = run("while ! test -e go; do sleep 0.1; done; touch gone", background=True)
    talk = talk_with(check, workspace, [start], "done", tests=tests)
    await talk.say("go", mode="code")
    await talk.approve_all()
    assert (workspace / "gone").exists()
    assert "tests_passed" not in (await talk.values())["facts"]["workspace"]
    tests = ProjectTests(command="test ! -e late && sleep 0.5")
    ended = list[Ended]()

    async def check_all(step: Step) -> None:
        lines = (tests.command, "touch late", "false")
        ended.extend(await asyncio.gather(*map(step.run_command, lines)))

    talk = talk_with(check_all, workspace, tests=tests)
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


async def test_what_is_told_under_a_first_line_is_told_when_it_changes(workspace: Path) -> None:
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
    return step.go("checked" if [*map(bool, answers)] == [False, True] else "again")


@pytest.mark.parametrize("reason", ["The card is at home.", ""])
async def test_what_a_person_says_with_a_no_reaches_the_node(workspace: Path, reason: str) -> None:
    """It tells the model, or does otherwise."""
    answers = list[Any]()

    async def check(step: Step) -> None:
        answers.append(step.ask_person("sure", "Sure?"))

    talk = talk_with(check, workspace)
    await talk.say("go", mode="code")
    await talk.decide({**REJECT, **({"message": reason} if reason else {})})
    (answer,) = answers
    assert (bool(answer), answer.reason) == (False, reason)


async def test_a_question_shows_money_and_dates(workspace: Path) -> None:
    """A terminal ended at what is no JSON."""

    async def check(step: Step) -> None:
        step.ask_person(
            "pay", "Is it paid?", {"due": date(2026, 12, 24), "amount": Decimal("1.50")}
        )

    talk = talk_with(check, workspace)
    await talk.say("go", mode="code")
    (request,) = await talk.waiting()
    assert request["args"] == {"due": "2026-12-24", "amount": "1.50"}


AGAIN = ChartData(OWN.nodes, [*OWN.edges, ("checking", "again", "checking")])


@pytest.mark.parametrize("check", [_asks_until_yes, _asks_twice])
async def test_a_question_asked_again_at_once_is_another(check: Check, workspace: Path) -> None:
    talk = talk_with(check, workspace, moves=True, chart=AGAIN)
    await talk.say("go", mode="code")

    async def answer(decision: dict[str, str]) -> dict[str, Any]:
        (interrupt,) = (await talk.agent.aget_state(talk.config)).interrupts
        given = {"decisions": [decision], "question": interrupt.value["question"]}
        await talk.send(Command(resume=given))
        return given

    first = await answer(REJECT)
    with pytest.raises(InvalidInputError, match="but the question is now"):
        await talk.send(Command(resume=first))
    assert await asks(talk) == ["sure"]
    await answer(APPROVE)
    assert (await talk.messages())[-1].text == "done"


@pytest.mark.parametrize("is_bound", [True, False])
async def test_an_answer_neither_yes_nor_no_is_refused(workspace: Path, *, is_bound: bool) -> None:
    more: Any = {"moves": True, "chart": AGAIN, "bound_answers": is_bound}
    talk = talk_with(_asks_until_yes, workspace, **more)
    await talk.say("go", mode="code")
    (interrupt,) = (await talk.agent.aget_state(talk.config)).interrupts
    question = interrupt.value["question"]
    no_yes = "this question takes one yes or no; give {.decisions"
    for answer, problem in (
        ({"decisions": [APPROVE, APPROVE]}, no_yes),
        ({"decisions": []}, no_yes),
        ({"decisions": [ALWAYS]}, no_yes),
        ({"decisions": [respond("yes")]}, no_yes),
        ({"decisions": [APPROVE], "question": "x"}, f"answers question 'x', .* now '{question}'"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            await talk.send(Command(resume={"question": question, **answer}))
    if is_bound:
        with pytest.raises(InvalidInputError, match=f"must name its question: .* '{question}'"):
            await talk.send(Command(resume={"decisions": [APPROVE]}))
    decision = {**REJECT, "message": "No.", "id": "1"}
    named = {"question": question} if is_bound else {}
    await talk.send(Command(resume={"decisions": [decision], **named}))
    assert await asks(talk) == ["sure"], "it asks again"


ENDS = ChartData(
    nodes={**CHART.nodes, "signing": "sign"},
    edges=[
        *(edge for edge in CHART.edges if edge != ("thinking", "answer", "idle")),
        ("thinking", "answer", "signing"),
        ("signing", "signed", "idle"),
    ],
)


@rows("setting", {"approvals": "auto"}, {"limit": "ask"}, {"mode": "ask"})
async def test_a_node_runs_also_if_the_host_sets_something_before(
    setting: dict[str, str], workspace: Path
) -> None:
    """Else a click while the model answers would end the turn without the person's yes."""
    store = InMemoryStore()

    async def think(step: Step, mode: str) -> Update:
        await Mailbox(store).put(step.thread, setting)
        return await nodes.think(step, mode)

    async def sign(step: Step) -> Update:
        assert step.ask_person("sure", "Sure?")
        return step.go("signed")

    build = build_with(think=think, sign=sign)
    talk = script(workspace, "done", build=build, chart=ENDS, store=store)
    await talk.say("go", mode="code")
    assert await asks(talk) == ["sure"]
    await talk.send({})
    assert await asks(talk) == ["sure"], "as the engine's question, where nothing is said"
    await talk.decide(APPROVE)
    assert talk.nodes == ["intake", "code", "intake", "intake", "sign"]
    values = await talk.values()
    assert {**values, **setting} == values
    assert values["phase"] == "idle"


async def _runs_before_it_asks(step: Step) -> Update:
    await step.run_command("true")
    return step.go("checked" if step.ask_person("sure", "Sure?") else "again")


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


WRONG = "behind its move|while its command runs|runs a command before it asks"


@rows(
    "check",
    *(_runs_behind_its_move, _tells_behind_its_move),
    *(_moves_while_a_command_runs, _runs_before_it_asks),
)
async def test_what_would_be_lost_behind_a_move_is_refused(check: Check, workspace: Path) -> None:
    talk = talk_with(check, workspace, moves=True)
    with pytest.raises(NodeError, match=WRONG):
        await talk.say("go", mode="code")
    assert not (workspace / "made.txt").exists()


@rows(
    "change",
    lambda state: state["facts"]["workspace"].append("tests_passed"),
    lambda state: state["facts"].update(workspace=["tests_passed"]),
    lambda state: state["remembered"].append({}),
    ids=["a fact", "all facts of a scope", "what is remembered"],
)
async def test_the_state_cannot_be_changed(change: Callable[[Any], Any], workspace: Path) -> None:
    async def check(step: Step) -> None:
        if "workspace" in step.state["facts"]:
            with pytest.raises((AttributeError, TypeError)):
                change(step.state)
        await step.run_command("true")

    talk = talk_with(check, workspace, [READ], [READ], "done")
    await talk.say("go", mode="code")
    values = await talk.values()
    assert values["facts"]["workspace"] == values["remembered"] == []
