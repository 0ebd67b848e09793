"""What a model needs before it can be asked, and the limits that it is asked within."""

import asyncio
import sys
from collections.abc import AsyncIterator
from itertools import repeat
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGenerationChunk
from typing_extensions import override

from modeshift.models.bound_model import BoundModel, call_model
from modeshift.models.loading import load_model
from modeshift.models.providers import PROVIDERS, TIME_LIMIT
from modeshift.models.service import ModelService
from modeshift.modes.errors import ConfigurationError, ProviderError
from modeshift.testing.plugin import Snapshot
from tests.harness.root import ENGINE


def test_what_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    """Also where the package of a provider is not installed."""
    told = {}
    for name, missing in (
        *(("openai:x", ""), ("openai:x", "langchain_openai")),
        *(("anthropic:x", ""), ("anthropic:x", "langchain_anthropic")),
        *(("ollama:x", "langchain_ollama"), ("claude", ""), (":gpt", "")),
        *(("replay:cassettes/a.yaml", ""), ("opnai:x", ""), ("mistralai:m", "")),
    ):
        with monkeypatch.context() as patch, pytest.raises(ConfigurationError) as caught:
            for module in [key for key in sys.modules if key.partition(".")[0] == missing]:
                patch.setitem(sys.modules, module, None)
            patch.setitem(sys.modules, missing, None)
            load_model(name)
        told[f"{name} without {missing}" if missing else name] = str(caught.value).partition(
            " Supported model"
        )[0]
    snapshot("models.txt", told)


@pytest.mark.parametrize(
    ("variable", "value", "name"),
    [
        ("OPENAI_BASE_URL", "127.0.0.1:8080/v1", "openai:qwen3"),
        ("OPENAI_API_BASE", "ftp://server/v1", "openai:qwen3"),
        ("ANTHROPIC_BASE_URL", "http://", "anthropic:claude-sonnet-5-5"),
        ("OLLAMA_HOST", "http://a:port", "ollama:qwen3"),
        ("OPENAI_BASE_URL", "http://user:hunter2pass@127.0.0.1:1/v1", "openai:qwen3"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1?api_key=hunter2pass", "openai:qwen3"),
        ("OLLAMA_HOST", "user:hunter2pass@somewhere:11434", "ollama:qwen3"),
    ],
)
def test_an_address_that_is_none(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, name: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"needs {variable} (to be|without)") as caught:
        load_model(name)
    assert (repr(value) in str(caught.value)) is ("hunter2pass" not in value)
    assert "hunter2" not in str(caught.value)


def test_ollamas_address_may_be_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("127.0.0.1:11434", "somewhere", "http://somewhere:11434"):
        monkeypatch.setenv("OLLAMA_HOST", value)
        load_model("ollama:qwen3")


def test_a_local_server_needs_no_key_and_keeps_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")
    assert key_of("openai:qwen3") == "none"
    monkeypatch.setenv("OPENAI_API_KEY", "my-key")
    assert key_of("openai:qwen3") == "my-key"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080")
    with pytest.raises(ConfigurationError, match="needs ANTHROPIC_API_KEY"):
        load_model("anthropic:claude-sonnet-5-5")


def test_a_key_that_no_header_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("a-key\n", " a-key", "a\nkey", "schl\u00fcssel"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with pytest.raises(ConfigurationError, match="needs OPENAI_API_KEY without spaces"):
            load_model("openai:gpt-5.5")


def key_of(name: str) -> str:
    model = load_model(name)
    return str(model.openai_api_key.get_secret_value())  # type: ignore[attr-defined]  # ChatOpenAI's


def test_no_client_retries_and_all_have_one_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is installed, and not in our table: Azure's. Google's counts otherwise."""
    for provider in ("OPENAI", "ANTHROPIC", "AZURE_OPENAI", "GOOGLE"):
        monkeypatch.setenv(f"{provider}_API_KEY", "a-key")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OPENAI_API_VERSION", "2026-01-01")
    models: list[Any] = [
        load_model(name) for name in ("openai:x", "azure_openai:x", "anthropic:x", "ollama:x")
    ]
    *openais, anthropic, ollama = models
    for model in openais:
        assert (model.root_async_client.max_retries, model.stream_chunk_timeout) == (0, TIME_LIMIT)
        assert model.root_async_client.timeout == TIME_LIMIT
    client = anthropic._async_client
    assert (client.max_retries, client.timeout) == (0, TIME_LIMIT)
    assert ollama._async_client._client.timeout.read == TIME_LIMIT
    google: Any = load_model("google_genai:x")
    assert (google.max_retries, google.timeout) == (1, TIME_LIMIT), "the first request is one"


class SlowModel(GenericFakeChatModel):
    """Calls ``pause`` before each of its words, and has no limits of its own."""

    pause: Any
    streaming: bool = True

    @override
    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in super()._stream(*args, **kwargs):
            await self.pause()
            yield chunk


async def ask_slow(pause: Any, **options: Any) -> str:
    model = SlowModel(messages=repeat(AIMessage("one two three")), pause=pause, streaming=True)
    prompt = SystemMessage("Be slow.")
    bound = BoundModel(prompt, model, {}, (), "slow:x", ModelService("slow:x"), **options)
    return (await call_model(bound, [HumanMessage("go")], {})).text


async def test_the_time_limit_holds_for_a_client_that_has_none() -> None:
    with pytest.raises(ProviderError, match=r"\(tried 3 times\): no answer in time"):
        async with asyncio.timeout(20):
            await ask_slow(asyncio.Event().wait, time_limit=0.01, first_wait=0)


async def test_the_time_limit_starts_anew_with_each_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's clock is put forward by two thirds of the limit before each word."""
    loop = asyncio.get_running_loop()
    clock = loop.time
    passed = 0.0
    monkeypatch.setattr(loop, "time", lambda: clock() + passed)

    async def pause() -> None:
        nonlocal passed
        passed += TIME_LIMIT * 2 / 3
        await asyncio.sleep(0)

    assert await ask_slow(pause) == "one two three"
    assert passed > 2 * TIME_LIMIT


def test_the_extras_are_those_of_the_project() -> None:
    text = (ENGINE / "pyproject.toml").read_text()
    for provider in PROVIDERS.values():
        assert f'{provider.extra} = ["langchain-{provider.extra}>=' in text
