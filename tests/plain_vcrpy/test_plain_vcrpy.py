"""The project's cassettes in plain vcrpy, and those of plain vcrpy in the project."""

import json
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
import vcr
import yaml
from langchain.chat_models import init_chat_model
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

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


async def play(path: Path, workspace: Path, text: str) -> list[BaseMessage]:
    """What becomes of a message to this agent, whose tools and prompt are others."""
    calls = load_calls(path)
    with Player.use(path=str(path), calls=calls) as player:
        talk = Conversation(make_agent(workspace, make_client(calls[0])))
        await talk.say(text)
        assert player.play_count == len(calls)
        return await talk.messages()


@pytest.mark.parametrize(
    ("suffix", "is_decoded", "is_streamed"),
    [("yaml", False, False), ("json", True, False), ("yaml", False, True)],
    ids=["yaml-gzip-base64", "json-whole", "yaml-streamed"],
)
async def test_a_cassette_of_plain_vcrpy(
    workspace: Path,
    tmp_path: Path,
    format: str,
    suffix: str,
    *,
    is_decoded: bool,
    is_streamed: bool,
) -> None:
    """Of an agent without modes, recorded by plain vcrpy."""
    path = tmp_path / f"elsewhere.{suffix}"
    weather = {"name": "get_weather", "description": "Tells it.", "parameters": {"type": "object"}}
    options: dict[str, Any] = {"use_responses_api": format == "openai"}
    if format == "openai":
        options |= {"store": False, "include": ["reasoning.encrypted_content"]}
    question = "What is the weather in Paris?"
    with (
        serving([call("get_weather", city="Paris"), say("It is sunny.")]) as server,
        vcr.use_cassette(str(path), serializer=suffix, decode_compressed_response=is_decoded),
    ):
        model = init_chat_model(
            MODELS[format],
            api_key=KEY,
            base_url=server.url + ("" if format == "anthropic" else "/v1"),
            streaming=is_streamed,
            **({} if format == "anthropic" else options),
        ).bind_tools([{"type": "function", "function": weather}])
        messages: list[Any] = [HumanMessage(question)]
        messages.append(model.invoke(messages))
        messages.append(ToolMessage("sunny", tool_call_id=messages[-1].tool_calls[0]["id"]))
        assert model.invoke(messages).text == "It is sunny."
    assert ("!!binary" in path.read_text()) is not (is_decoded or is_streamed)
    played = await play(path, workspace, question)
    assert [message.type for message in played] == ["human", "ai", "tool", "ai"]
    assert played[-1].text == "It is sunny."


PARSED = """
interactions:
- request: {method: GET, uri: "https://api.anthropic.com/v1/models", body: null, headers: {}}
  response: {status: {code: 200, message: OK}, headers: {}, body: {string: "{}"}}
- request:
    method: POST
    uri: https://api.anthropic.com/v1/messages?beta=true
    headers: {}
    parsed_body: {model: claude-sonnet-5-5, messages: [{role: user, content: Hello.}]}
  response:
    status: {code: 200, message: OK}
    # The second as the service sent it, though the body is not compressed any more.
    headers: {Content-Type: [application/json], Content-Encoding: [gzip]}
    parsed_body:
      {id: msg_1, type: message, role: assistant, model: claude-sonnet-5-5, stop_reason: end_turn,
       content: [{type: text, text: Hello to you.}], usage: {input_tokens: 1, output_tokens: 1}}
"""


async def test_a_cassette_with_parsed_bodies(workspace: Path, tmp_path: Path) -> None:
    """As some projects write them, among requests that are for no model."""
    path = tmp_path / "elsewhere.yaml"
    path.write_text(PARSED)
    assert (await play(path, workspace, "Hello."))[-1].text == "Hello to you."
