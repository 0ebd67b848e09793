"""The project's cassettes in plain vcrpy."""

import json
from typing import Any

import anthropic
import openai
import pytest
import vcr
import yaml

from tests.harness.recording import LOCAL_SERVER, MODELS
from tests.harness.root import ENGINE

CASSETTES = ENGINE / "tests/cassettes" / "test_conversations"
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
        for interaction in recorded:
            answer = send(format, json.loads(interaction["request"]["body"]))
            if manner == "streamed":
                assert "".join(event.model_dump_json() for event in answer)
            else:
                assert (
                    answer.model_dump()["id"]
                    == json.loads(interaction["response"]["body"]["string"])["id"]
                )
        assert cassette.all_played
