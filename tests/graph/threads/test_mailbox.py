"""What the host sets while a run goes on: taken in between two steps, and before each call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph.threads.mailbox import Mailbox
from graph.threads.started_calls import StartedCalls
from modes.policy import Approvals
from tests.harness.conversation import Conversation, make_agent
from tests.harness.scripted import Call, ScriptedModel, calling

WRITES: list[Call] = [("write_file", {"path": f"{name}.txt", "content": "x"}) for name in "ab"]


class Interfering(Mailbox):
    """A mailbox into which the host puts something just before a call begins."""

    def __init__(self, file: Path, **values: Any) -> None:
        super().__init__(file)
        self.values = values
        self.calls = 0

    async def begin(self, thread: str, call: str, tool: str, taken: int) -> bool:
        self.calls += 1
        if self.calls == 2:
            assert await self.put(thread, self.values) == []
        return await super().begin(thread, call, tool, taken)


Make = Callable[[Mailbox], Conversation]


@pytest.fixture
def make(workspace: Path) -> Make:
    def make(mailbox: Mailbox) -> Conversation:
        model = ScriptedModel(answers=[calling(*WRITES)])
        started = StartedCalls(mailbox)
        return Conversation(make_agent(workspace, model, Approvals.AUTO, started_calls=started))

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
    assert (await talk.values())["host_revision"] == 1


async def test_a_setting_that_comes_before_the_first_run(make: Make, tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path / "mail.sqlite")
    talk = make(mailbox)
    await mailbox.put(talk.config["configurable"]["thread_id"], {"mode": "debug", "limit": "ask"})
    await talk.say("go", mode="code")
    assert talk.nodes == ["intake", "debug", "act", "act", "debug"]
    assert {result.status for result in (await talk.results()).values()} == {"error"}


async def test_of_several_the_last_one_wins_key_by_key(tmp_path: Path) -> None:
    first, second = (Mailbox(tmp_path / "mail.sqlite") for _ in range(2))
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
    assert await second.begin("thread", "call", "write_file", 2)
    assert not await second.begin("thread", "late", "write_file", 1)
    assert await first.put("thread", {"limit": None}) == ["write_file"]
    await second.end("thread", "call")
    assert await first.put("thread", {"limit": None}) == []
