"""``ModelThread``: a history that real clients continue at the scripted provider, with no agent."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from modeshift.models.bound_model import BoundModel, call_model
from modeshift.models.loading import load_model
from modeshift.models.service import ModelService
from modeshift.modes.errors import ProviderError
from tests.harness.recording import redirect
from tests.provider.server import KEY, ScriptedProvider

TEXT = {"type": "string"}
TOOLS: list[dict[str, Any]] = [
    {
        "name": name,
        "description": f"{name} does it.",
        "parameters": {"type": "object", "properties": dict.fromkeys(args, TEXT)},
    }
    for name, args in (
        ("list_files", ()),
        ("read_file", ("path",)),
        ("write_file", ("path", "content")),
    )
]


def use(
    provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch, name: str = "chat", key: str = KEY
) -> None:
    """Make this the provider of the environment; for ``openai`` at OpenAI's own address."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    if name == "openai":
        monkeypatch.delenv("OPENAI_BASE_URL")
        redirect(monkeypatch, provider.url)


def bind(name: str, mode: str = "code", *, is_streamed: bool = False) -> BoundModel:
    """The model, loaded as the environment says, which waits for nothing."""
    model: Any = load_model(name)
    model.streaming = is_streamed
    prompt = SystemMessage(f"You are in {mode} mode.")
    tools = {tool["name"]: tool for tool in TOOLS}
    return BoundModel(prompt, model, tools, tuple(tools), name, ModelService(name), first_wait=0.01)


class ModelThread:
    """A history; each call gets a result at once."""

    def __init__(self, provider: ScriptedProvider, bound: BoundModel) -> None:
        self.provider = provider
        self.bound = bound
        self.messages: list[AnyMessage] = []

    async def say(self, text: str = "go") -> AIMessage:
        """The answer to a user's message."""
        self.messages.append(HumanMessage(text))
        return await self.proceed()

    async def proceed(self) -> AIMessage:
        """The answer to the history as it is."""
        answer = await call_model(self.bound, self.messages, {})
        self.messages.append(answer)
        for call in answer.tool_calls:
            self.messages.append(ToolMessage("found", tool_call_id=str(call["id"])))
        return answer

    async def fail(self, *texts: str) -> str:
        """Say something; the error says ``texts``, and no key, and keeps nothing of the answer."""
        with pytest.raises(ProviderError) as caught:
            await self.say("hello")
        said = str(caught.value)
        assert [text for text in texts if text not in said] == [], said
        assert KEY not in said
        self.messages.pop()
        return said
