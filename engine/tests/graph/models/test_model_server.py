"""What servers say of a model: those of vLLM and Ollama, and those that say nothing, or not yet."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from modeshift.models.loading import Models
from modeshift.models.service import ModelServer, ask_server
from modeshift.modes.errors import ConfigurationError, ProviderError
from tests.harness.conversation import Conversation, make_agent
from tests.harness.modes import load_catalog
from tests.provider.server import Handler, listening

VLLM = {"data": [{"id": "other", "max_model_len": 1}, {"id": "qwen3", "max_model_len": 40_960}]}
LLAMA = {"default_generation_settings": {"n_ctx": 8192}, "chat_template_caps": {}}
SHOWN = {"capabilities": ["completion", "tools"], "parameters": "stop  x\nnum_ctx    16384\n"}
PAGE = "<html>Welcome to nginx!</html>"
SAID: list[tuple[str, dict[str, object], ModelServer | None]] = [
    ("openai:qwen3", {"/props?model=qwen3": LLAMA}, ModelServer(8192)),
    ("openai:qwen3", {"/v1/models": VLLM}, ModelServer(40_960)),
    ("openai:another", {"/v1/models": VLLM}, ModelServer()),
    ("openai:qwen3", {"/v1/models": {"data": [7, {"id": "qwen3"}]}}, ModelServer()),
    ("openai:qwen3", {"/props?model=qwen3": PAGE, "/v1/models": PAGE}, ModelServer()),
    ("openai:qwen3", {"/props?model=qwen3": 503}, None),
    ("openai:qwen3", {}, ModelServer()),
    ("ollama:qwen3", {"/api/show": SHOWN}, ModelServer(16_384, has_tools=True)),
    ("ollama:qwen3", {"/api/show": {"capabilities": []}}, ModelServer(None, has_tools=False)),
    ("ollama:qwen3", {"/api/show": {"license": ""}}, ModelServer()),
    ("anthropic:claude-sonnet-5-5", {"/v1/models": VLLM}, ModelServer()),
]
"""By model and what its server answers on which path; a number is a status."""


@contextmanager
def saying(
    monkeypatch: pytest.MonkeyPatch, answers: Mapping[str, object]
) -> Iterator[list[str | None]]:
    """A server behind every variable that names one; gives the keys that it is sent."""
    keys: list[str | None] = []

    class Saying(Handler):
        def do_GET(self) -> None:  # noqa: N802  # the name is http.server's
            self.rfile.read(int(self.headers.get("content-length") or 0))
            keys.append(self.headers["authorization"])
            answer = answers.get(self.path, 404)
            text = answer if isinstance(answer, str) else json.dumps(answer)
            status = answer if isinstance(answer, int) else 200
            self.begin(status, {"content-length": str(len(text))})
            self.wfile.write(text.encode())

        do_POST = do_GET  # noqa: N815  # so is this

    server = ThreadingHTTPServer(("127.0.0.1", 0), Saying)
    for name in ("OPENAI_API_BASE", "OLLAMA_HOST", "ANTHROPIC_BASE_URL"):
        tail = "/v1" if name == "OPENAI_API_BASE" else ""
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.server_port}{tail}")
    with listening(server):
        yield keys


@pytest.mark.parametrize(("model", "answers", "said"), SAID)
def test_what_a_server_says(
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    answers: dict[str, object],
    said: ModelServer | None,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    with saying(monkeypatch, answers) as keys:
        assert ask_server(model) == said
    expected = {"openai": {"Bearer a-key"}, "ollama": {None}, "anthropic": set()}
    assert {*keys} == expected[model.partition(":")[0]]


async def test_absent_servers_are_asked(monkeypatch: pytest.MonkeyPatch, workspace: Path) -> None:
    """And once it has answered, not any more."""
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:1/v1")
    models, mode = Models("openai:qwen3", asks_servers=True), load_catalog()["ask"]
    talk = Conversation(make_agent(workspace, models))
    with pytest.raises(ProviderError, match="cannot be reached"):
        await talk.say("hello")
    assert models.service(mode).server is None
    says = {"n_ctx": 512}
    with saying(monkeypatch, {"/props?model=qwen3": {"default_generation_settings": says}}) as keys:
        with pytest.raises(ConfigurationError, match="reads 512 tokens"):
            await talk.say("and again")
        says["n_ctx"] = 8192  # as a person has been told to start it
        for _ in range(2):
            with pytest.raises(ProviderError, match="cannot be reached"):
                await talk.say("now then")
        assert (models.window(mode), len(keys)) == (8192, 2)


def test_what_the_user_says_counts_and_nobody_asks_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cassette has no such request."""
    mode = load_catalog()["ask"]
    with saying(monkeypatch, {"/api/show": SHOWN}):
        for given, window in (({}, 16_384), ({"num_ctx": 4096}, 4096)):
            models = Models("ollama:qwen3", parameters=given, asks_servers=True)
            models.learn(mode)
            assert models.window(mode) == window
            assert models.service(mode).max_tokens == window // 4
        models = Models("ollama:qwen3", 8192, asks_servers=True)
        models.learn(mode)
        assert models.window(mode) == 8192
    mode = load_catalog()["ask"]
    with saying(monkeypatch, {"/api/show": SHOWN}) as keys:
        models = Models("ollama:qwen3")
        models.learn(mode)
        assert (models.window(mode), keys) == (None, [])
