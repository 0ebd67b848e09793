"""What the other tests rely on: the server is a real one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from modeshift.modes.errors import ProviderError
from tests.graph.models.model_thread import use
from tests.harness.conversation import Conversation, make_agent, until
from tests.local.conftest import StartLlama
from tests.local.llama import speaking
from tests.local.templates import read_template, read_templates
from tests.provider.script import say


def test_all_templates_are_there(start_llama: StartLlama) -> None:
    assert "raise_exception" in read_template("google-gemma-2-2b-it")
    assert len(read_templates()) == 71


async def test_an_agent_talks_to_it(
    start_llama: StartLlama, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another server says before it counts as an answer only where it takes the request."""
    with speaking(start_llama(), [say("Hello."), say("Again.")]) as front:
        use(front, monkeypatch)
        talk = Conversation(make_agent(workspace, "openai:local"))
        await talk.say("hello")
        await talk.say("and again")
    assert (await talk.messages())[-1].text == "Again."
    first, second = front.inputs
    assert second.read >= first.total - 1
    assert front.failures == []


async def test_a_server_that_ends_in_the_middle_of_an_answer(
    start_llama: StartLlama, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the answer is kept, and the thread goes on once there is a server again."""
    llama = start_llama(read_template("Qwen-Qwen2.5-7B-Instruct"), window=65536)
    for name, value in llama.settings.items():
        monkeypatch.setenv(name, value)
    talk = Conversation(make_agent(workspace, "openai:local"), is_streamed=True)
    answer = asyncio.create_task(talk.say("hello"))
    await until(lambda: bool(talk.chunks))
    llama.end()
    with pytest.raises(ProviderError, match="broke off, and nothing of it is kept"):
        await answer
    with speaking(start_llama(), [say("Hello.")]) as front:
        use(front, monkeypatch)
        saver: Any = talk.agent.checkpointer
        talk.agent = make_agent(workspace, "openai:local", saver=saver)
        await talk.say("again")
    words = [message.text for message in await talk.messages() if message.text]
    assert words == ["hello", "again", "Hello."]
