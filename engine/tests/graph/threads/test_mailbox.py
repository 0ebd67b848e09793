"""What the host sets while a run goes on: taken in between two steps, and before each call."""

import asyncio
from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, Op
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from typing_extensions import override

from modeshift.messages.repair import NOT_RUN, VOID
from modeshift.modes.errors import UserError
from modeshift.modes.policy import Approvals
from modeshift.threads.deps import StartedCalls
from modeshift.threads.journal import Hold, Journal
from modeshift.threads.mailbox import Mailbox
from tests.graph.calls import ALWAYS, asks, result_of, run, task, to, write
from tests.harness.conversation import (
    APPROVE,
    REJECT,
    Conversation,
    Step,
    make_agent,
    script,
    until,
)
from tests.harness.scripted import Call
from tests.tables import rows

WRITES = [write(f"{name}.txt") for name in "abc"]


class Interfering(Journal):
    """The host puts something into the store just after the second call is recorded."""

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self.store = InMemoryStore()
        self.values = values
        self.starts = 0

    @override
    def hold(self, thread: str) -> Hold:
        return InterferingHold(self, thread)


class InterferingHold(Hold):
    _journal: Interfering

    @override
    async def begin(self, *call: Any) -> Any:
        self._journal.starts += 1
        begun = await super().begin(*call)
        if self._journal.starts == 2:
            await Mailbox(self._journal.store).put(self._thread, self._journal.values)
        return begun


@rows("values", {"limit": "ask"}, {"mode": "ask"}, {"approvals": "manual"})
async def test_a_call_judged_before_does_not_begin(workspace: Path, values: dict[str, str]) -> None:
    journal = Interfering(**values)
    more: Any = {"started_calls": StartedCalls(journal), "store": journal.store}
    talk = script(workspace, WRITES[:2], approvals=Approvals.AUTO, **more)
    await talk.say("go", mode="code")
    assert [file.name for file in workspace.iterdir()] == ["a.txt"]
    assert "the host has changed" in await result_of(talk, "call_1")
    mode = values.get("mode", "code")
    assert talk.nodes == ["intake", "code", "act", "act", "intake", mode]
    assert await journal.count_effects() == {"done": 1}
    state = await talk.values()
    assert {key: state[key] for key in values} == values
    await talk.say("again")
    assert (await talk.values())["host_revision"] == state["host_revision"] != {}


class SetAfterLook(InMemoryStore):
    """The host sets a mode just after the second look, which is the first step's."""

    looks = 0

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        listed = list(ops)
        answers = await super().abatch(listed)
        self.looks += isinstance(listed[0], GetOp)
        if isinstance(listed[0], GetOp) and self.looks == 2:
            await Mailbox(self).put(str(listed[0].namespace[1]), {"mode": "ask"})
        return answers


async def test_what_is_set_later_counts_and_decides_the_next_node(workspace: Path) -> None:
    talk = script(workspace, "done", store=SetAfterLook())
    await talk.say("go", mode="code")
    assert talk.nodes == ["intake", "intake", "ask"]
    talk = script(workspace, WRITES[:2], approvals=Approvals.AUTO, store=InMemoryStore())
    await put(talk, mode="debug", limit="ask")
    await talk.say("go")
    assert talk.nodes == ["intake", "debug", "act", "act", "debug"]
    assert {result.status for result in (await talk.results()).values()} == {"error"}
    await put(talk, mode="architect", limit="debug")
    with pytest.raises(UserError):
        await talk.say("again", mode="code", limit="kode")
    await talk.say("again", mode="code")
    state = await talk.values()
    assert (state["mode"], state["limit"]) == ("code", "debug")


async def put(talk: Conversation, **values: Any) -> None:
    await Mailbox(talk.agent.store).put(talk.config["configurable"]["thread_id"], values)


async def test_a_setting_that_leaves_the_question_as_it_is_voids_nothing(workspace: Path) -> None:
    steps: list[Step] = [WRITES[:1], WRITES[1:2], "done", WRITES[2:]]
    talk = script(workspace, *steps, store=InMemoryStore())
    await talk.say("go", mode="code")
    await put(talk, mode="code", approvals="manual")
    await talk.decide(APPROVE)
    assert talk.nodes == ["intake", "code", "review", "act", "code"]
    await put(talk, approvals="auto")
    await talk.decide(APPROVE)
    assert {file.name for file in workspace.iterdir()} == {"a.txt", "b.txt"}
    await put(talk, approvals="manual")
    await talk.say("again")
    assert await talk.waiting()
    await put(talk, limit="ask")
    await talk.decide(APPROVE)
    assert not (workspace / "c.txt").exists()
    assert VOID in str(await talk.messages())


def update(talk: Conversation, values: Any, node: str | None = None) -> Any:
    return talk.agent.aupdate_state(talk.config, values, as_node=node)


RIGHTS: Any = {"approvals": "auto"}
SWITCH = to("debug")
RUN = run("touch begun; until [ -e go ]; do sleep 0.02; done")
TASK = task("debug")
LATER: dict[str, Any] = {
    "beside the runs": lambda talk, rights: put(talk, **rights),
    "a run's input": lambda talk, rights: talk.send(rights),
    "a command": lambda talk, rights: talk.send(Command(update=rights)),
    "an update": update,
    "an update by a command": lambda talk, rights: update(talk, Command(update=rights)),
    "an update as a node": lambda talk, rights: update(talk, rights, "intake"),
}
WAYS: dict[str, Any] = {
    **{way: LATER[way] for way in ("a run's input", "a command", "an update")},
    "an input with no message": lambda talk, rights: talk.send({"messages": [], **rights}),
    "with the mode": lambda talk, rights: update(talk, {"mode": "code", **rights}, "intake"),
}


@pytest.mark.parametrize("way", WAYS)
async def test_other_approvals_leave_a_question_open_by_any_way(workspace: Path, way: str) -> None:
    steps: list[Step] = [WRITES[:1], WRITES[1:2], "done"]
    talk = script(workspace, *steps, store=InMemoryStore())
    await talk.say("go", mode="code")
    before = await talk.waiting()
    await WAYS[way](talk, RIGHTS)
    assert await talk.waiting() == before
    assert list(workspace.iterdir()) == []
    await talk.decide(REJECT)
    assert [file.name for file in workspace.iterdir()] == ["b.txt"], "the next one runs unasked"
    assert (await talk.values())["approvals"] == "auto"


async def approve_while_it_runs(talk: Conversation, decisions: list[Any], host: Any) -> None:
    """Of what the command is not the end; ``host`` is what the host sets meanwhile, if anything."""
    begun, go = (talk.agent.live.deps.toolbox.workspace.root / name for name in ("begun", "go"))
    resume: Command[Any] = Command(resume={"decisions": decisions})
    going = asyncio.create_task(talk.send_until("intake" if host else "act", resume))
    await until(begun.exists)
    if host:
        await put(talk, **host)
    go.touch()
    await going
    assert (await talk.values())["phase"] == "switching"


EARLIER = ("the host", "the person", "both")
YES_FIRST = [
    (way, calls, EARLIER[(first + second) % len(EARLIER)])
    for first, way in enumerate(LATER)
    for second, calls in enumerate(([SWITCH], [TASK], [TASK, TASK]))
]
"""Each way with each of the calls; what was set earlier comes in turns."""


@rows("way calls earlier", *YES_FIRST)
async def test_approvals_that_the_host_sets_after_the_yes_count(
    workspace: Path, way: str, calls: list[Call], earlier: str
) -> None:
    """Over its own earlier ones, and over those that the person chose with the switch."""
    steps: list[Step] = [[RUN, *calls], *["one"] * (len(calls) - 1), [WRITES[0]], "done"]
    talk = script(workspace, *steps, store=InMemoryStore())
    await talk.say("go", mode="code")
    chosen = {} if earlier == "the host" else RIGHTS
    decisions = [APPROVE, *({**APPROVE, **chosen} for _ in calls)]
    await approve_while_it_runs(talk, decisions, {} if earlier == "the person" else RIGHTS)
    await LATER[way](talk, {"approvals": "manual"})
    await talk.send(None)
    state = await talk.values()
    assert state["approvals"] == "manual"
    assert len(calls) == 2 or state["mode"] == "debug", "the second of two may not begin any more"
    assert await asks(talk) == ["write_file"]
    assert not (workspace / "a.txt").exists()


@pytest.mark.parametrize("chosen", [None, *Approvals])
@pytest.mark.parametrize("host", [None, *Approvals])
async def test_what_a_switch_carries_is_what_the_person_chose_with_it(
    workspace: Path, chosen: str | None, host: str | None
) -> None:
    """Whatever else happens before it is applied; what the host has set then is not of it."""
    talk = script(workspace, [RUN, SWITCH], "done", store=InMemoryStore())
    await talk.say("go", mode="code")
    decision = {**APPROVE, **({"approvals": chosen} if chosen else {})}
    await approve_while_it_runs(talk, [APPROVE, decision], {"approvals": host} if host else {})
    assert (await talk.values())["switch"]["approvals"] == (None if host else chosen)
    await talk.agent.aupdate_state(talk.config, {"todos": []})
    await talk.send(None)
    assert await talk.mode() == "debug"
    assert (await talk.values())["approvals"] == (host or chosen or "manual")


FIRST: dict[str, Any] = {"mode": "code", "limit": "code", "approvals": "manual"}
MOVES: list[dict[str, Any]] = [
    *({"mode": "ask"}, {"limit": "ask"}, {"approvals": "auto"}),
    {"mode": "debug", "approvals": "auto"},
]
LIFT: dict[str, Any] = {"limit": None, "mode": "architect"}
AT: dict[str, tuple[str | None, list[Any]]] = {
    "idle": (None, []),
    "a question": (None, [WRITES[1]]),
    "a plan": ("code", [WRITES[0]]),
    "an approval": ("review", [WRITES[1], SWITCH]),
}
"""Where the host moves: behind which node the run was cut off, and in which calls."""


MOVED_BY = ("beside the runs", "a run's input", "an update", "a command")
HOSTS = [
    (MOVED_BY[(first + second) % len(MOVED_BY)], at, move)
    for first, at in enumerate(AT)
    for second, move in enumerate(MOVES)
]
HOSTS += [(way, at, LIFT) for way, at in zip(cycle(("beside the runs", "an update")), AT)]
"""Each move at each moment; the ways come in turns. An input lifts no limit."""


@rows("way at move", *HOSTS)
async def test_a_move_of_the_host_changes_what_it_names_and_nothing_else(
    workspace: Path, way: str, at: str, move: dict[str, Any]
) -> None:
    """No right is gained by it that was not set; those that are set hold for what is due."""
    node, calls = AT[at]
    steps: list[Step] = [[WRITES[0]], "one", *([calls] if calls else []), "two", "three", "four"]
    talk = script(workspace, *steps, store=InMemoryStore())
    await talk.say("go", **FIRST)
    await talk.decide(ALWAYS)
    before = await talk.values()
    assert before["remembered"]
    go_on: Any = {"messages": [{"role": "user", "content": "go on"}]}
    if node == "code":
        await talk.send_until(node, go_on)
    elif calls:
        await talk.send(go_on)
    if node == "review":
        resume: Command[Any] = Command(resume={"decisions": [APPROVE] * len(calls)})
        await talk.send_until(node, resume)
    (workspace / "a.txt").write_text("as it was")
    await LATER[way](talk, move)
    await talk.send(None if calls else go_on)
    if waiting := await talk.waiting():
        await talk.decide(*[REJECT] * len(waiting))
    state, expected = await talk.values(), {**FIRST, **move}
    if at == "an approval" and move.keys() == {"approvals"}:
        expected["mode"] = "debug"  # as was approved
    assert {key: state[key] for key in expected} == expected
    assert state["remembered"] == before["remembered"]
    written = {path.name for path in workspace.iterdir() if path.read_text() == "x"}
    may_run = {"a plan": {"a.txt"}, "an approval": {"b.txt"}}.get(at, set())
    assert written <= (may_run if "approvals" in move else set())


async def test_a_message_with_rights_begins_a_turn_and_they_hold_in_a_fork(workspace: Path) -> None:
    talk = Conversation(make_agent(workspace, store=InMemoryStore()))
    await talk.say("write a.txt: x", mode="code")
    await talk.say("hello", approvals="auto")
    state = await talk.values()
    (result,) = (await talk.results()).values()
    assert NOT_RUN in result.text
    (turn,) = state["usage"]["turn"].values()
    (thread,) = state["usage"]["thread"].values()
    assert (turn["answers"], thread["answers"]) == (1, 2)
    steps: list[Step] = ["one", "two", WRITES[:1], "done"]
    talk = script(workspace, *steps, store=InMemoryStore(), approvals=Approvals.AUTO)
    await talk.say("go", mode="code")
    older = (await talk.agent.aget_state(talk.config)).config
    await talk.say("again", limit="ask", approvals="manual", mode="debug")
    message: Any = {"messages": [{"role": "user", "content": "write"}]}
    await talk.agent.ainvoke(message, older)
    state = await talk.values()
    assert (state["limit"], state["approvals"], state["mode"]) == ("ask", "manual", "code")
    assert list(workspace.iterdir()) == []
