"""The scripted provider's answers fit the types of the real clients."""

import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from tests.provider import anthropic_messages, openai_chat, openai_responses
from tests.provider.prompt_cache import Input
from tests.provider.script import Answer, Call, Ids

Json = dict[str, Any]
NOT_IN_TYPES = {"obfuscation", "store", "reasoning_content"}
"""What the services send, and some of the clients' types do not have."""
TYPES: dict[ModuleType, tuple[Any, Any]] = {
    openai_chat: (ChatCompletion, ChatCompletionChunk),
    openai_responses: (Response, ResponseStreamEvent),
    anthropic_messages: (Message, RawMessageStreamEvent),
}
"""Of an answer in one piece, and of an event."""
ANSWERS = [
    Answer("Let me see.", (Call("read", {"path": "a"}), Call("list"))),
    Answer("", (Call("list"),), thinking="Hm."),
    Answer(refusal="No."),
    Answer(thinking="Hm, let me see", is_truncated=True),
]


def read_events(sent: list[str]) -> Iterator[Json]:
    """The events of a stream that say something."""
    for event in sent:
        fields = dict(line.split(": ", 1) for line in event.strip().split("\n"))
        data = json.loads(fields["data"]) if fields["data"] != "[DONE]" else {"type": "ping"}
        if data.get("type") != "ping":
            assert data.get("type") == fields.get("event")
            yield data


def unknown_fields(value: Any) -> set[str]:
    """What the client's type does not have, at any depth."""
    if isinstance(value, list):
        return set[str]().union(*map(unknown_fields, value))
    if not isinstance(value, BaseModel):
        return set()
    deeper = [unknown_fields(part) for _, part in value]
    return set(value.model_extra or ()).union(*deeper)


@pytest.mark.parametrize("wire", TYPES, ids=lambda wire: wire.PATH)
def test_answers_have_the_types_of_the_clients(wire: Any) -> None:
    include = ["reasoning.encrypted_content"]
    body: Json = {"model": "m", "input": [], "messages": [], "include": include}
    body["stream_options"] = {"include_usage": True}
    whole, event = map(TypeAdapter, TYPES[wire])
    tokens = Input(plain=7, read=1024, written=100)
    for answer in ANSWERS:
        parsed = [whole.validate_python(wire.as_json(answer, body, Ids(), tokens))]
        events = read_events(wire.as_events(answer, body, Ids(), tokens))
        parsed += map(event.validate_python, events)
        assert unknown_fields(parsed) <= NOT_IN_TYPES, answer
