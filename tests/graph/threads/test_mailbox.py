"""What the host sets while a run goes on: taken in between two steps, and before each call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph.messages.repair import VOID
from graph.threads.mailbox import Mailbox
from graph.threads.started_calls import StartedCalls
from modes.errors import UserError
from modes.policy import Approvals
from tests.harness.conversation import APPROVE, Conversation, Step, script
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
