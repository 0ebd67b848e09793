"""The project's cassettes in plain vcrpy, and those of plain vcrpy in the project."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
import vcr
import yaml
from langchain.chat_models import init_chat_model
from langchain_core.messages import HumanMessage, ToolMessage

from graph.replay.player import Player, load_calls, make_client
from graph.settings import ROOT
from tests.harness.conversation import Conversation, make_agent
from tests.harness.recording import LOCAL_SERVER, MODELS
from tests.provider.script import call, say
from tests.provider.server import KEY, serving

CASSETTES = ROOT / "cassettes" / "test_conversations"
MATCH_ON = ["method", "uri", "body"]


@pytest.fixture(params=MODELS)
def format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def send(format: str, body: dict[str, Any]) -> Any:
    """By the service's own client."""
    if format == "anthropic":
        allowed = {name: body.pop(name) for name in ("cache_control",) if name in body}
        return anthropic.Anthropic(
            api_key="x", base_url="https://api.anthropic.com"
        ).messages.create(**body, extra_body=allowed, timeout=9)
    url = LOCAL_SERVER if format == "chat" else "https://api.openai.com/v1"
    client = openai.OpenAI(api_key="x", base_url=url)
    return (client.chat.completions if format == "chat" else client.responses).create(**body)


@pytest.mark.parametrize("manner", ["whole", "streamed"])
def test_a_cassette_of_the_project(format: str, manner: str) -> None:
    """Found by the body too, as a client's own library writes it."""
    path = CASSETTES / f"test_parallel_reads-{format}-{manner}.yaml"
    recorded = yaml.safe_load(path.read_text())["interactions"]
    with vcr.use_cassette(str(path), record_mode="none", match_on=MATCH_ON) as cassette:
        for one in recorded:
            answer = send(format, json.loads(one["request"]["body"]))
            if manner == "streamed":
                assert "".join(event.model_dump_json() for event in answer)
            else:
                assert (
                    answer.model_dump()["id"] == json.loads(one["response"]["body"]["string"])["id"]
                )
        assert cassette.all_played


@pytest.fixture
def recorded(
    request: pytest.FixtureRequest, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Of an agent without modes, recorded by plain vcrpy."""
    suffix, is_decoded, is_streamed = request.param
    path = tmp_path / f"elsewhere.{suffix}"
    weather = {"name": "get_weather", "description": "Tells it.", "parameters": {"type": "object"}}
    options: dict[str, Any] = {"use_responses_api": format == "openai"}
    if format == "openai":
        options |= {"store": False, "include": ["reasoning.encrypted_content"]}
    with serving([call("get_weather", city="Paris"), say("It is sunny.")]) as server:
        model = init_chat_model(
            MODELS[format],
            api_key=KEY,
            base_url=server.url + ("" if format == "anthropic" else "/v1"),
            streaming=is_streamed,
            **({} if format == "anthropic" else options),
        ).bind_tools([{"type": "function", "function": weather}])
        with vcr.use_cassette(
            str(path), serializer=suffix, decode_compressed_response=is_decoded
        ) as cassette:
            messages: list[Any] = [HumanMessage("What is the weather in Paris?")]
            messages.append(model.invoke(messages))
            messages.append(ToolMessage("sunny", tool_call_id=messages[-1].tool_calls[0]["id"]))
            assert model.invoke(messages).text == "It is sunny."
            assert len(cassette) == 2
    yield path


@pytest.mark.parametrize(
    "recorded",
    [
        ("yaml", False, False),
        ("json", True, False),
        ("yaml", False, True),
    ],
    ids=["yaml-gzip-base64", "json-whole", "yaml-streamed"],
    indirect=True,
)
async def test_a_cassette_of_plain_vcrpy(
    recorded: Path, workspace: Path, request: pytest.FixtureRequest
) -> None:
    """Played to this agent, whose tools and prompt are others."""
    assert ("!!binary" in recorded.read_text()) is ("base64" in request.node.name)
    calls = load_calls(recorded)
    with Player.use(path=str(recorded), calls=calls) as player:
        talk = Conversation(make_agent(workspace, make_client(calls[0])))
        await talk.say("What is the weather in Paris?")
        messages = await talk.messages()
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
    assert messages[-1].text == "It is sunny."
    assert player.play_count == 2


async def test_a_cassette_with_parsed_bodies(workspace: Path, tmp_path: Path) -> None:
    """As some projects write them, among requests that are for no model."""
    models = {"method": "GET", "uri": "https://api.anthropic.com/v1/models", "body": None}
    sent = {"model": "claude-sonnet-5-5", "messages": [{"role": "user", "content": "Hello."}]}
    got = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [{"type": "text", "text": "Hello to you."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    uri = "https://api.anthropic.com/v1/messages?beta=true"
    response = {
        "status": {"code": 200, "message": "OK"},
        # The second as the service sent it, though the body is not compressed any more.
        "headers": {"Content-Type": ["application/json"], "Content-Encoding": ["gzip"]},
    }
    path = tmp_path / "elsewhere.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "interactions": [
                    {
                        "request": {**models, "headers": {}},
                        "response": {**response, "body": {"string": "{}"}},
                    },
                    {
                        "request": {
                            "method": "POST",
                            "uri": uri,
                            "headers": {},
                            "parsed_body": sent,
                        },
                        "response": {**response, "parsed_body": got},
                    },
                ]
            }
        )
    )
    calls = load_calls(path)
    with Player.use(path=str(path), calls=calls):
        talk = Conversation(make_agent(workspace, make_client(calls[0])))
        await talk.say("Hello.")
        assert (await talk.messages())[-1].text == "Hello to you."
