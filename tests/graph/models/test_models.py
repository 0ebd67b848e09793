"""What a model needs before it can be asked, said when the agent starts."""

import os
from pathlib import Path
from typing import Any

import pytest

from graph.models.loading import load_model
from graph.models.providers import PROVIDERS
from graph.settings import ROOT
from modes.errors import ConfigurationError
from tests.harness import prefork


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        (
            "openai:gpt-5.5",
            ["needs OPENAI_API_KEY (set it in .env", "or OPENAI_BASE_URL for a server"],
        ),
        ("anthropic:claude-sonnet-5-5", ["needs ANTHROPIC_API_KEY (set it in .env"]),
        ("claude", ["'claude' is neither 'offline' nor", "nor 'provider:name'"]),
        ("openai:", ["neither"]),
        (":gpt", ["neither"]),
        ("opnai:gpt-5.5", ["'opnai:gpt-5.5' cannot be loaded (did you mean 'openai'?)"]),
        ("mistralai:m", ["'mistralai:m' needs a package that is not installed", "make lock"]),
    ],
)
def test_what_cannot_be_loaded(name: str, texts: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_model(name)
    for text in texts:
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "name"),
    [
        ("OPENAI_BASE_URL", "127.0.0.1:8080/v1", "openai:qwen3"),
        ("OPENAI_BASE_URL", "nonsense", "openai:qwen3"),
        ("OPENAI_API_BASE", "ftp://server/v1", "openai:qwen3"),
        ("ANTHROPIC_BASE_URL", "http://", "anthropic:claude-sonnet-5-5"),
        ("OLLAMA_HOST", "http://a:port", "ollama:qwen3"),
        ("OPENAI_BASE_URL", "http://user:hunter2pass@127.0.0.1:1/v1", "openai:qwen3"),
        ("OPENAI_BASE_URL", "htp://user:hunter2pass@127.0.0.1:1/v1", "openai:qwen3"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1?api_key=hunter2pass", "openai:qwen3"),
        ("OLLAMA_HOST", "user:hunter2pass@somewhere:11434", "ollama:qwen3"),
    ],
)
def test_an_address_that_is_none(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, name: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    monkeypatch.setenv(variable, value)
    with pytest.raises(
        ConfigurationError, match=f"needs {variable} (to be a URL|without)"
    ) as caught:
        load_model(name)
    assert (repr(value) in str(caught.value)) is ("hunter2pass" not in value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("value", ["127.0.0.1:11434", "somewhere", "http://somewhere:11434"])
def test_ollamas_address_may_be_a_host(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
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


@pytest.mark.parametrize("key", ["a-key\n", " a-key", "a\nkey", "schl\u00fcssel"])
def test_a_key_that_no_header_can_hold(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ConfigurationError, match="needs OPENAI_API_KEY without spaces"):
        load_model("openai:gpt-5.5")


def key_of(name: str) -> str:
    model = load_model(name)
    return str(model.openai_api_key.get_secret_value())  # type: ignore[attr-defined]  # ChatOpenAI's


@pytest.mark.parametrize("name", ["openai:gpt-5.5", "anthropic:claude-sonnet-5-5"])
def test_a_request_is_bounded_and_the_client_does_not_retry(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    model = load_model(name)
    client = getattr(model, "root_async_client", None) or model._async_client  # type: ignore[attr-defined]
    assert (client.max_retries, client.timeout) == (0, 600.0)
    assert getattr(model, "stream_chunk_timeout", 600.0) == 600.0, "it may reason for long"


async def test_ollamas_requests_are_bounded_too() -> None:
    model: Any = load_model("ollama:qwen3")
    assert model._async_client._client.timeout.read == 600.0


def test_the_extras_are_those_of_the_project() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    for provider in PROVIDERS.values():
        assert f'{provider.extra} = ["{provider.package}>=' in text
    assert 'replay = ["vcrpy>=' in text


@pytest.mark.parametrize(
    ("package", "name", "texts"),
    [
        (
            "langchain_openai",
            "openai:gpt-5.5",
            ["the extra 'openai' of pyproject.toml", "langchain-openai)", "and OPENAI_API_KEY"],
        ),
        (
            "langchain_anthropic",
            "anthropic:claude-sonnet-5-5",
            ["the extra 'anthropic'", "and ANTHROPIC_API_KEY"],
        ),
        ("langchain_ollama", "ollama:qwen3", ["the extra 'ollama'", "langchain-ollama)"]),
        ("vcr", "replay:cassettes/a.yaml", ["the extra 'replay'", "uv pip install vcrpy"]),
    ],
)
def test_an_extra_that_is_not_installed(
    tmp_path: Path, package: str, name: str, texts: list[str]
) -> None:
    (tmp_path / "look.py").write_text(
        "import sys\n"
        f"names = [name for name in sys.modules if name.startswith({package!r})]\n"
        f"sys.modules.update(dict.fromkeys([{package!r}, *names]))\n"
        f"from graph.models.loading import load_model\nload_model({name!r})\n"
    )
    said = prefork.run("look", env=os.environ, cwd=tmp_path).stderr.splitlines()[-1]
    assert "ConfigurationError" in said
    for text in texts:
        assert text in said
