"""What settings and modes set of a model's client, and what a workspace's modes cannot."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel

from modeshift.configuration.settings import Settings, load_settings
from modeshift.models.loading import load_model
from modeshift.models.providers import HARMLESS, check_parameters
from modeshift.modes.errors import ConfigurationError
from modeshift.testing.plugin import Snapshot
from tests.graph.models.shapes import ANTHROPIC, VLLM, serving_bytes
from tests.harness.conversation import Conversation, open_thread
from tests.harness.place import UserFolders, modes_file

PROVIDERS = ("openai", "azure_openai", "anthropic", "ollama", "google_genai")
ELSEWHERE = "http://127.0.0.1:1/elsewhere"
VALUES: dict[str, Any] = {
    "base_url openai_api_base openai_proxy": ELSEWHERE,
    "api_key openai_api_key organization": "sk-another",
    "default_headers default_query model_kwargs extra_body": {"x": "y"},
    "http_client http_async_client async_client": {},
    "timeout request_timeout max_retries stream_chunk_timeout": 9,
    "model model_name": "another",
    "store use_previous_response_id use_responses_api": True,
    "callbacks cache metadata": [],
    "include service_tier n no_such_thing": 1,
}
DANGEROUS = {name: value for names, value in VALUES.items() for name in names.split()}


def rest(**parameters: Any) -> str:
    """The rest of a mode in YAML; JSON is YAML."""
    return f"    modelParameters: {parameters!r}\n".replace("True", "true")


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GOOGLE", "AZURE_OPENAI"):
        monkeypatch.setenv(f"{name}_API_KEY", "a-key")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OPENAI_API_VERSION", "2026-01-01")


async def test_modes_win_over_settings(place: UserFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"temperature": 0.5, "max_tokens": 7, "extra_body": {"top_k": 3}}
    own = rest(max_completion_tokens=8, reasoning_effort="high")
    place.global_modes.write_text(modes_file("own", rest=own))
    with serving_bytes([VLLM.last[0]] * 2) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        loader = place.loader(model="openai:m", model_parameters=parameters)
        for mode in ("ask", "own"):
            await open_thread(loader.deps()).say("go", mode=mode)
    plain, special = (body for _, body in server.requests)
    names = ("temperature", "max_completion_tokens", "top_k", "reasoning_effort")
    assert [plain.get(name) for name in names] == [0.5, 7, 3, None]
    assert [special.get(name) for name in names] == [0.5, 8, 3, "high"]


async def test_the_users_thinking_wins(place: UserFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest models of Anthropic's are sent ``block_binding`` otherwise."""
    own = {"type": "adaptive", "display": "summarized"}
    with serving_bytes([ANTHROPIC.last[0]]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        parameters = {"thinking": own, "effort": "low"}
        loader = place.loader(model="anthropic:claude-sonnet-5-5", model_parameters=parameters)
        await open_thread(loader.deps()).say("go")
    ((_, body),) = server.requests
    assert body["thinking"] == own
    assert body["output_config"] == {"effort": "low"}


def test_what_nobody_can_set(snapshot: Snapshot) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        *(("openai:m", {"temprature": 0}), ("ollama:m", {"reasoning_effort": "low"})),
        *(("anthropic:m", {"cache": True}), ("offline", {"temperature": 0})),
        *(("openai:m", {"api_key": "sk-1"}), ("openai:m", {"base_url": ELSEWHERE})),
        *(("ollama:m", {"client_kwargs": {}}), ("openai:m", {"default_headers": {}})),
        *(("openai:m", {"max_retries": 9}), ("anthropic:m", {"default_request_timeout": 9})),
        ("anthropic:m", {"mcp_servers": []}),
    ]
    told = {}
    for model, parameters in wrong:
        with pytest.raises(ConfigurationError) as caught:
            load_model(model, parameters)
        told[f"{model} {parameters}"] = str(caught.value)
        assert "sk-1" not in str(caught.value)
    snapshot("model-parameters.txt", told)
    with pytest.raises(ConfigurationError, match="'openai:m' cannot be loaded: "):
        load_model("openai:m", {"temperature": "hot"})


def list_names(integration: type[BaseChatModel]) -> Iterator[str]:
    for name, field in integration.model_fields.items():
        yield from {name, field.alias or name}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_workspace_sets_only_what_is_listed(provider: str) -> None:
    """Of all that there is, whatever a later version of the client adds."""
    integration = type(load_model(f"{provider}:x"))
    for name in {*list_names(integration), *DANGEROUS} - HARMLESS:
        with pytest.raises(ConfigurationError):
            check_parameters("x:y", integration, {name: "z"}, is_trusted=False)


async def test_a_workspace_s_mode_cannot_redirect_requests_or_take_keys(
    place: UserFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the user trusts the workspace: the mode refuses to be used, and nothing is sent."""
    with serving_bytes([]) as elsewhere, serving_bytes([VLLM.last[0]]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        shown = {name: elsewhere.url if v == ELSEWHERE else v for name, v in DANGEROUS.items()}
        modes = [modes_file(f"m{n}", rest=rest(**{k: v})) for n, (k, v) in enumerate(shown.items())]
        text = "customModes:\n" + "".join(mode.partition("\n")[2] for mode in modes)
        place.project_modes.write_text(text + modes_file("fine", rest=rest(seed=5))[13:])
        loader = place.loader(model="openai:m", trust_workspace=True)
        deps = loader.deps()
        agent = open_thread(deps).agent
        for slug, name in ((f"m{n}", name) for n, name in enumerate(shown)):
            (notice,) = (
                notice for notice in deps.notices if f"mode '{slug}' cannot be used" in notice
            )
            assert repr(name) in notice
            with pytest.raises(ConfigurationError, match=name):
                await Conversation(agent).say("go", mode=slug)
        await Conversation(agent).say("go", mode="fine")
    ((_, body),) = server.requests
    assert (elsewhere.requests, body["seed"], body["model"]) == ([], 5, "m")


def test_the_setting_is_an_object(place: UserFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    text = modes_file("own", rest="    model: ollama:qwen3\n")
    place.global_modes.write_text(text)
    settings = place.settings(model="openai:m", model_parameters={"seed": 5})
    deps = place.loader(model="openai:m", model_parameters={"seed": 5}).deps()
    seeds = [getattr(deps.models[deps.catalog[mode]], "seed", None) for mode in ("ask", "own")]
    assert seeds == [5, None]
    chosen = [settings.with_model(name).model_parameters for name in ("openai:n", "offline")]
    assert chosen == [{"seed": 5}, {}]
    monkeypatch.setenv("MODEL_PARAMETERS", '{"reasoning": {"effort": "low"}}')
    assert Settings().model_parameters == {"reasoning": {"effort": "low"}}
    for text in ("reasoning=low", "[1]", "5", '{"a": '):
        monkeypatch.setenv("MODEL_PARAMETERS", text)
        with pytest.raises(ConfigurationError, match=r"MODEL_PARAMETERS=.* is not a JSON object"):
            load_settings()
