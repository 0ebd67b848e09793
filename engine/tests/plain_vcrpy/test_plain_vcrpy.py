"""A cassette of the project in plain vcrpy."""

import json

import openai
import vcr
import yaml

from tests.harness.root import TEMPLATE

CASSETTE = TEMPLATE / "cassettes/test_own_server/test_a_switch_at_a_server_of_ones_own.yaml"
MATCH_ON = ["method", "uri", "body"]


def test_a_cassette_of_the_project() -> None:
    """Found by the body too, as a client's own library writes it."""
    recorded = yaml.safe_load(CASSETTE.read_text())["interactions"]
    client = openai.OpenAI(api_key="x", base_url="http://127.0.0.1:8080/v1")
    with vcr.use_cassette(str(CASSETTE), record_mode="none", match_on=MATCH_ON) as cassette:
        for interaction in recorded:
            answer = client.chat.completions.create(**json.loads(interaction["request"]["body"]))
            assert "".join(event.model_dump_json() for event in answer)
        assert cassette.all_played
