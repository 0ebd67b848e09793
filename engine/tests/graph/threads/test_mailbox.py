"""What the host sets while a run goes on: taken in between two steps, and before each call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from modeshift.graph.configuration.user_files import WholeWrites
from modeshift.graph.messages.repair import NOT_RUN, VOID
from modeshift.graph.threads import REVISION, Mailbox, StartedCalls
from modeshift.modes.errors import UserError
from modeshift.modes.policy import Approvals
from tests.harness.conversation import (
    APPROVE,
    REJECT,
    Conversation,
    Step,
    make_agent,
    script,
)
from tests.harness.scripted import Call

WRITES: list[Call] = [("write_file", {"path": f"{name}.txt", "content": "x"}) for name in "abc"]


class Interfering(Mailbox):
    """A mailbox into which the host puts something just before a call begins."""

    def __init__(self, file: Path, **values: Any) -> None:
        super().__init__(file)
        self.values = values
        self.calls = 0

    async def begin(self, thread: str, *call: Any) -> bool:
        self.calls += 1
        if self.calls == 2:
            assert await self.put(thread, self.values) == []
        return await super().begin(thread, *call)


Make = Callable[[Mailbox], Conversation]


@pytest.fixture
def make(workspace: Path) -> Make:
    def make(mailbox: Mailbox) -> Conversation:
        started = StartedCalls(mailbox)
        return script(workspace, WRITES[:2], approvals=Approvals.AUTO, started_calls=started)

    return make


@pytest.mark.parametrize("values", [{"limit": "ask"}, {"mode": "ask"}, {"approvals": "manual"}])
async def test_a_call_that_was_judged_before_does_not_begin(
    make: Make, workspace: Path, tmp_path: Path, values: dict[str, str]
) -> None:
    talk = make(Interfering(tmp_path / "mail.sqlite", **values))
    await talk.say("go", mode="code")
    assert [file.name for file in workspace.iterdir()] == ["a.txt"]
    assert "the host has changed" in (await talk.results())["call_1"].text
    mode = values.get("mode", "code")
    assert talk.nodes == ["intake", "code", "act", "act", "intake", mode]
    state = await talk.values()
    assert {key: state[key] for key in values} == values
    await talk.say("again")
    assert (await talk.values())["host_revision"] == state["host_revision"] > 0


async def test_of_a_setting_and_a_runs_input_the_later_one_counts(
    make: Make, tmp_path: Path
) -> None:
    mailbox = Mailbox(tmp_path / "mail.sqlite")
    talk = make(mailbox)
    thread = talk.config["configurable"]["thread_id"]
    await mailbox.put(thread, {"mode": "debug", "limit": "ask"})
    await talk.say("go")
    assert talk.nodes == ["intake", "debug", "act", "act", "debug"]
    assert {result.status for result in (await talk.results()).values()} == {"error"}
    await mailbox.put(thread, {"mode": "architect", "limit": "debug"})
    with pytest.raises(UserError):
        await talk.say("again", mode="code", limit="kode")
    await talk.say("again", mode="code")
    state = await talk.values()
    assert (state["mode"], state["limit"]) == ("code", "debug")


async def test_a_setting_that_leaves_the_question_as_it_is_does_not_void_it(
    workspace: Path, tmp_path: Path
) -> None:
    mailbox = Mailbox(tmp_path / "mail.sqlite")
    steps: list[Step] = [WRITES[:1], WRITES[1:2], "done", WRITES[2:]]
    talk = script(workspace, *steps, started_calls=StartedCalls(mailbox))
    thread = talk.config["configurable"]["thread_id"]
    await talk.say("go", mode="code")
    await mailbox.put(thread, {"mode": "code", "approvals": "manual"})
    await talk.decide(APPROVE)
    assert talk.nodes == ["intake", "code", "review", "act", "code"]
    await mailbox.put(thread, {"approvals": "auto"})
    await talk.decide(APPROVE)
    assert {file.name for file in workspace.iterdir()} == {"a.txt", "b.txt"}
    await mailbox.put(thread, {"approvals": "manual"})
    await talk.say("again")
    assert await talk.waiting()
    await mailbox.put(thread, {"limit": "ask"})
    await talk.decide(APPROVE)
    assert not (workspace / "c.txt").exists()
    assert VOID in str(await talk.messages())


async def test_of_several_the_last_one_wins_key_by_key(tmp_path: Path) -> None:
    first, second = (Mailbox(tmp_path / "mail.sqlite") for _ in range(2))
    assert await first.find_news("thread", 0) == {}
    await first.put("thread", {"mode": "code", "limit": "ask"})
    await second.put("thread", {"mode": "debug"})
    await first.put("another", {"mode": "ask"})
    assert await first.find_news("thread", 0) == {
        "mode": "debug",
        "limit": "ask",
        "host_revision": 2,
    }
    assert await first.find_news("thread", 1) == {"mode": "debug", "host_revision": 2}
    assert await second.find_news("thread", 2) == {}
    await first.put("a copy of it", {"mode": "code"})
    assert (await second.find_news("a copy of it", 2))["mode"] == "code"


async def test_what_has_begun_is_named_and_what_comes_later_does_not_begin(tmp_path: Path) -> None:
    first, second = (Mailbox(tmp_path / "mail.sqlite") for _ in range(2))
    assert await first.begin("thread", "call", "a_tool", 0)
    assert await first.put("another", {"limit": None}) == []
    assert await first.put("thread", {"limit": None}) == ["a_tool"]
    for late in (first, second):
        assert not await late.begin("thread", "late", "a_tool", 0), "in another process, too"
    first.end("thread", "call")
    assert await first.put("thread", {"limit": None}) == []


RIGHTS: Any = {"approvals": "auto"}
WAYS: dict[str, Any] = {
    "a run's input": lambda talk: talk.send(RIGHTS),
    "an input with no message": lambda talk: talk.send({"messages": [], **RIGHTS}),
    "a command": lambda talk: talk.send(Command(update=RIGHTS)),
    "an update": lambda talk: talk.agent.aupdate_state(talk.config, RIGHTS),
    "an update as a node": lambda talk: talk.agent.aupdate_state(
        talk.config, {"mode": "code", **RIGHTS}, as_node="intake"
    ),
}


@pytest.mark.parametrize("way", WAYS)
async def test_other_approvals_leave_a_question_open_whoever_sets_them(
    workspace: Path, tmp_path: Path, way: str
) -> None:
    mailbox = Mailbox(tmp_path / "mail.sqlite")
    steps: list[Step] = [WRITES[:1], WRITES[1:2], "done"]
    talk = script(workspace, *steps, started_calls=StartedCalls(mailbox))
    await talk.say("go", mode="code")
    before = await talk.waiting()
    await WAYS[way](talk)
    assert await talk.waiting() == before
    assert list(workspace.iterdir()) == []
    await talk.decide(REJECT)
    assert [file.name for file in workspace.iterdir()] == ["b.txt"], "the next one runs unasked"
    assert (await talk.values())["approvals"] == "auto"


async def test_a_message_that_comes_with_rights_begins_a_turn(
    workspace: Path, tmp_path: Path
) -> None:
    started = StartedCalls(Mailbox(tmp_path / "mail.sqlite"))
    talk = Conversation(make_agent(workspace, started_calls=started))
    await talk.say("write a.txt: x", mode="code")
    await talk.say("hello", approvals="auto")
    state = await talk.values()
    (result,) = (await talk.results()).values()
    assert NOT_RUN in result.text
    (turn,) = state["usage"]["turn"].values()
    (thread,) = state["usage"]["thread"].values()
    assert (turn["answers"], thread["answers"]) == (1, 2)


async def test_rights_in_a_runs_input_hold_in_a_fork_of_an_older_checkpoint(
    workspace: Path, tmp_path: Path
) -> None:
    mailbox = Mailbox(tmp_path / "mail.sqlite")
    steps: list[Step] = ["one", "two", WRITES[:1], "done"]
    started = StartedCalls(mailbox)
    talk = script(workspace, *steps, started_calls=started, approvals=Approvals.AUTO)
    await talk.say("go", mode="code")
    older = (await talk.agent.aget_state(talk.config)).config
    await talk.say("again", limit="ask", approvals="manual", mode="debug")
    message: Any = {"messages": [{"role": "user", "content": "write"}]}
    await talk.agent.ainvoke(message, older)
    state = await talk.values()
    assert (state["limit"], state["approvals"], state["mode"]) == ("ask", "manual", "code")
    assert list(workspace.iterdir()) == []


async def test_no_revision_is_given_twice_when_a_thread_is_deleted(tmp_path: Path) -> None:
    """A copy that an earlier version made has taken in the newest one, and has no setting."""
    file = tmp_path / "mail.sqlite"
    mailbox = Mailbox(file)
    await mailbox.put("thread", {"limit": "ask"})
    taken = (await mailbox.find_news("thread", 0))[REVISION]
    async with WholeWrites.from_conn_string(str(file)) as saver:
        await saver.adelete_thread("thread")
    assert await mailbox.find_news("thread", 0) == {}
    await mailbox.put("a copy of it", {"limit": "ask"})
    assert (await mailbox.find_news("a copy of it", taken))["limit"] == "ask"
