"""``MODEL=replay:...``: the dev server on a cassette."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from langgraph_sdk.client import LangGraphClient

from graph.models.loading import load_model
from graph.settings import ROOT
from modes.errors import ConfigurationError
from tests.graph.replay.test_conversations import ADD, CHECK
from tests.harness.conversation import APPROVE, REJECT
from tests.harness.server import Server, Thread, running

CASSETTES = ROOT / "cassettes" / "test_conversations"
PLANNED = CASSETTES / "test_plan_then_code-anthropic-streamed.yaml"
SAID = "check.py fails. Plan the mending"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    nonsense = {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1/nonsense",
        "ANTHROPIC_API_KEY": "nonsense",
    }
    folder = tmp_path_factory.mktemp("clone")
    # In the sandbox where there is one: the tools are described differently then.
    with running(folder, MODEL=f"replay:{PLANNED}", SANDBOX="auto", **nonsense) as server:
        yield server


def to_say(server: Server) -> str:
    (line,) = [line for line in server.log.read_text().splitlines() if line.startswith("say ")]
    return line.removeprefix("say").strip().strip("'\"")


async def test_a_conversation_as_recorded_and_once_more(
    server: Server, client: LangGraphClient
) -> None:
    """In a workspace that is new, and again in one in which the work is done."""
    (server.workspace / "add.py").write_text(ADD)
    (server.workspace / "check.py").write_text(CHECK)
    assert to_say(server).startswith(SAID)
    for _ in range(2):
        thread = await Thread.new(client)
        asked: list[str] = []
        await thread.say(to_say(server))
        while waiting := await thread.waiting():
            asked += [request["name"] for request in waiting]
            await thread.decide(*[APPROVE] * len(waiting))
        assert thread.error is None
        assert asked.count("switch_mode") == 2
        assert await thread.mode() == "code"
        assert (server.workspace / "add.py").read_text() == ADD.replace("-", "+")
        messages = (await thread.values())["messages"]
        assert messages[-1]["content"] == "add.py adds now; check.py says ok."


async def test_what_was_not_recorded_is_refused_and_the_thread_goes_on(
    server: Server, client: LangGraphClient
) -> None:
    thread = await Thread.new(client)
    await thread.say("something else")
    assert thread.error is not None
    assert "In a new thread say 'check.py fails." in thread.error["message"]
    thread = await Thread.new(client)
    await thread.say(to_say(server))
    assert thread.error is None
    await thread.decide(REJECT)
    assert thread.error is not None, "it was approved then"
    assert "set the mode, or decide, as in the recording" in thread.error["message"]
    assert await thread.mode() == "ask"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("uri: .*", "uri: http://127.0.0.1:1/api/chat", "no request to a model"),
        ('"role": "user"', '"type": "function_call"', "a malformed request"),
        (r"(?s)interactions:.*", "interactions: []", "no request to a model"),
    ],
)
def test_what_cannot_be_played(tmp_path: Path, old: str, new: str, text: str) -> None:
    """Ollama's client is not one that is kept from the network."""
    path = tmp_path / "changed.yaml"
    path.write_text(re.sub(old, new, PLANNED.read_text()))
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        load_model(f"replay:{path}")
