"""OpenAI's models at its own address, over the Responses API; others over Chat Completions."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from modeshift.models.loading import Models, load_model
from modeshift.modes.policy import Approvals
from tests.graph.conftest import Serve
from tests.graph.models.model_thread import ModelThread, bind
from tests.harness.conversation import APPROVE, Conversation, make_agent
from tests.harness.recording import MODELS
from tests.provider.script import Answer, Call, say
from tests.provider.server import ScriptedProvider

ENCRYPTED = ["reasoning.encrypted_content"]
HERE = say("Here I am.")


ELSEWHERE = "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize(
    ("model", "address", "wanted", "api"),
    [
        ("gpt-5.6", None, None, ENCRYPTED),
        ("gpt-5.6", None, True, ENCRYPTED),
        ("gpt-5.6", None, False, None),
        ("gpt-5.6-luna", "https://api.openai.com/v1", None, ENCRYPTED),
        ("a-model-of-tomorrow", "https://eu.api.openai.com/v1/", None, ENCRYPTED),
        ("gpt-4.1-mini", None, None, []),
        ("gpt-5.3-chat-latest", None, None, []),
        ("qwen3", ELSEWHERE, None, None),
        ("qwen3", ELSEWHERE, True, ENCRYPTED),
        # LangChain would go by the name.
        ("gpt-5.6-sol", "https://openai.example.com/v1", None, None),
    ],
)
def test_which_api_is_asked(
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    address: str | None,
    wanted: bool | None,
    api: list[str] | None,
) -> None:
    """``api`` is what the Responses API is to include; None for Chat Completions.

    Without a word, ``wanted``, it is for OpenAI's own address.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    if address is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
    parameters = {} if wanted is None else {"use_responses_api": wanted}
    loaded: Any = load_model(f"openai:{model}", parameters)
    assert loaded.use_responses_api is (api is not None)
    assert loaded.store is (None if api is None else False)
    assert (loaded.include or []) == (api or [])


def talk_of(model: str, workspace: Path, saver: InMemorySaver, talk: Any, **how: Any) -> Any:
    """The thread of ``talk``, with an agent that is made anew."""
    later = Conversation(make_agent(workspace, model, Approvals.AUTO, saver), **how)
    later.config = talk.config if talk else later.config
    return later


def items(provider: ScriptedProvider, kind: str, request: int = -1) -> list[dict[str, Any]]:
    """What of this kind went over the wire."""
    sent = provider.requests[request].body["input"]
    return [item for item in sent if item["type"] == kind]


async def test_two_calls_a_switch_and_a_resume(
    workspace: Path, serve: Serve, *, is_streamed: bool
) -> None:
    """Ids come again here; each call goes back once, in its place, with one result."""
    (workspace / "a").write_text("one")
    reads = (Call("read_file", {"path": "a"}, "c1"), Call("read_file", {"path": "é"}, "c2"))
    switch = Call("switch_mode", {"mode_slug": "code", "reason": "To write."}, "c1")
    writes = tuple(Call("write_file", {"path": name, "content": "x"}, "c2") for name in "bc")
    script = [Answer("Both.", reads), Answer("", (switch,)), Answer("", writes), HERE]
    saver = InMemorySaver()
    with serve(script, "openai") as provider:
        asked = talk_of(MODELS["openai"], workspace, saver, None, is_streamed=is_streamed)
        await asked.say("go")
        assert [request["name"] for request in await asked.waiting()] == ["switch_mode"]
        talk = talk_of(MODELS["openai"], workspace, saver, asked, is_streamed=is_streamed)
        await talk.decide(APPROVE)
    assert {request.path for request in provider.requests} == {"/v1/responses"}
    assert sorted(file.name for file in workspace.iterdir()) == ["a", "b", "c"]
    ids = Counter(item["call_id"] for item in items(provider, "function_call"))
    assert ids == Counter(item["call_id"] for item in items(provider, "function_call_output"))
    assert (len(ids), set(ids.values())) == (5, {1})
    assert list(ids)[:2] == ["c1", "c2"], "as they came"
    assert items(provider, "function_call")[1]["arguments"] == '{"path":"\\u00e9"}', "to the letter"
    kinds = [item["type"] for item in provider.requests[-1].body["input"] if "role" not in item]
    call_items, two = ["reasoning", "function_call"], ["function_call", "function_call_output"]
    result = two[1:]
    assert kinds == [*call_items, *two, *result, *call_items, *result, *call_items, *two, *result]
    for request in provider.requests:
        assert (request.body["store"], request.body["include"]) == (False, ENCRYPTED)
        assert all(tool["strict"] is False for tool in request.body["tools"])
    (key,) = {request.body["prompt_cache_key"] for request in provider.requests}
    assert re.fullmatch("[0-9a-f]{32}", key)
    assert asked.config["configurable"]["thread_id"] not in str(provider.requests[-1].body)


@pytest.mark.parametrize(
    ("name", "path"),
    [("chat", "chat/completions"), ("anthropic", "messages"), ("chat", "responses")],
)
async def test_others_are_sent_no_cache_key(
    workspace: Path, serve: Serve, name: str, path: str
) -> None:
    """Also over the Responses API of another server."""
    more = {"use_responses_api": True} if path == "responses" else {}
    with serve([HERE], name) as provider:
        models = Models(MODELS[name], parameters=more)
        await Conversation(make_agent(workspace, models)).say("go")
    (request,) = provider.requests
    assert request.path.endswith(path)
    assert "prompt_cache_key" not in request.body


async def test_a_thread_that_changes_its_model(serve: Serve) -> None:
    """Reasoning goes to a model that reasons, and is not lost in the meantime."""
    with serve([Answer("", (Call("list_files"),)), *[HERE] * 3], "openai") as provider:
        thread = ModelThread(provider, bind(MODELS["openai"]))
        await thread.say()
        await thread.proceed()
        for model in ("openai:gpt-4.1", "openai:gpt-5.6-terra"):
            thread.bound = bind(model)
            await thread.say()
    assert [len(items(provider, "reasoning", number)) for number in range(4)] == [0, 1, 0, 2]
