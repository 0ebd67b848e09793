"""Services' answers as bytes, whole and cut anywhere, through the graph to the next request."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from modeshift.messages.from_model import ENDED, REFUSED
from modeshift.messages.instructions import remove_instructions
from modeshift.models.loading import Models
from modeshift.modes.errors import ProviderError
from modeshift.testing.plugin import Snapshot
from tests.graph.models.shapes import (
    ANTHROPIC,
    ARGS,
    AZURE,
    EVENTS,
    KIMI,
    SHAPES,
    VLLM,
    ByteServer,
    Reply,
    Shape,
    events,
    serving_bytes,
    whole,
)
from tests.harness.conversation import Conversation, make_agent
from tests.tables import rows

AZURE_FILTERED = {"content_filter_results": {"hate": {"filtered": False}}}
REASONS = ("finish_reason", "stop_reason", "done_reason", "status")


Talking = Callable[..., AbstractContextManager[tuple[Conversation, ByteServer]]]


@pytest.fixture
def talking(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Talking:
    """A conversation with a shape's model at a server that gives these replies."""
    (workspace / "é.txt").write_text("one")

    @contextmanager
    def talking(
        shape: Shape, replies: Sequence[Reply], **how: Any
    ) -> Iterator[tuple[Conversation, ByteServer]]:
        with serving_bytes(replies, seed=len(replies[0].content)) as server:
            for name, value in shape.variables.items():
                monkeypatch.setenv(name, value.format(url=server.url))
            models = Models(shape.model, parameters=shape.parameters)
            yield Conversation(make_agent(workspace, models), **how), server

    return talking


def list_sent_back(body: dict[str, Any]) -> list[Any]:
    """What of the model's answers a request holds, in any of the formats."""
    history = body.get("messages") or body["contents"]
    return [message for message in history if message["role"] in ("assistant", "model")]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # a list is no text to OpenAI's
@pytest.mark.parametrize("name", SHAPES)
async def test_a_call_and_what_follows(talking: Talking, name: str, *, is_streamed: bool) -> None:
    shape = SHAPES[name]
    replies = [shape.streamed if is_streamed else shape.whole, shape.last[is_streamed]]
    with talking(shape, replies, is_streamed=is_streamed) as (talk, server):
        await talk.say("go")
    _, answer, *results, last = await talk.messages()
    assert isinstance(answer, AIMessage)
    ids = tuple(call["id"] for call in answer.tool_calls)
    assert [call["args"] for call in answer.tool_calls] == [ARGS] * len(ids)
    assert ids == shape.ids or shape.ids is None
    assert [result.tool_call_id for result in results if isinstance(result, ToolMessage)] == list(
        ids
    )
    assert (answer.text, last.text) == (shape.text, "Done.")
    metadata = answer.response_metadata
    assert shape.reason in [metadata.get(name) for name in REASONS]
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["total_tokens"] == 59
    assert list_sent_back(server.requests[1][1]) == shape.sent_back


@pytest.mark.parametrize("is_elsewhere", [True, False])
async def test_reasoning_goes_to_no_other_server_and_no_other_model(
    talking: Talking, workspace: Path, monkeypatch: pytest.MonkeyPatch, *, is_elsewhere: bool
) -> None:
    """And is sent again when the thread comes back to its own."""
    shape = SHAPES["claude_by_openrouter"]
    done = [shape.last[0]]
    own = [shape.whole, *done * (2 if is_elsewhere else 3)]
    with talking(shape, own) as (talk, server), serving_bytes(done * is_elsewhere) as elsewhere:
        await talk.say("go")
        saver: Any = talk.agent.checkpointer
        with monkeypatch.context() as patch:
            if is_elsewhere:
                patch.setenv("OPENAI_BASE_URL", f"{elsewhere.url}/v1")
            name = shape.model if is_elsewhere else VLLM.model
            talk.agent = make_agent(workspace, name, saver=saver)
            await talk.say("and now?")
        talk.agent = make_agent(workspace, shape.model, saver=saver)
        await talk.say("and here?")
    ((_, asked),) = elsewhere.requests or server.requests[2:3]
    answer = list_sent_back(asked)[0]
    (call,), (known,) = answer["tool_calls"], AZURE.sent_back[0]["tool_calls"]
    assert len(call["id"]) == 9
    call["id"] = known["id"]
    assert answer == AZURE.sent_back[0], "which has none"
    assert list_sent_back(server.requests[-1][1])[0] == shape.sent_back[0]


TOO_LONG = [
    (400, "input length and `max_tokens` exceed context limit: 199 + 8 > 200"),
    (400, "Input is too long for requested model."),
    (400, "Your request exceeded model token limit: 262144"),
    (400, "Prompt exceeds max length"),
    (400, "This model's maximum prompt length is 131072"),
    (400, "Range of input length should be [1, 129024]"),
    (400, "Prompt contains 9 tokens, too large for model with 8"),
    (413, "Request too large for model `x`: please reduce your message size"),
    (422, "Please reduce the length of the messages or completion."),
]
RAW = {"message": "Provider error", "metadata": {"raw": "it is odd"}}
FILTERED = {"message": "Filtered.", "code": "content_filter", "innererror": {}}
STOPPED = "content filter stopped the conversation; go on from an earlier message"
ERRORS: list[tuple[int, Any, str]] = [
    (400, {"error": "no such field: foo"}, "no such field: foo (400)"),
    (400, {"detail": "tools are not served"}, "tools are not served (400)"),
    (422, {"detail": [{"loc": ["body", "n"], "msg": "is no number"}]}, "is no number (422)"),
    (400, {"error": RAW}, "Provider error it is odd (400)"),
    (400, {"error": FILTERED}, STOPPED),
    *((code, {"error": {"message": text}}, "longer than it can read") for code, text in TOO_LONG),
    (200, {"error": {"message": "Upstream is busy.", "code": 404}}, "Upstream is busy."),
]


async def test_the_words_of_an_error(talking: Talking) -> None:
    replies = [whole(body, status) for status, body, _ in ERRORS]
    with talking(VLLM, replies) as (talk, _):
        for *_, text in ERRORS:
            with pytest.raises(ProviderError) as caught:
                await talk.say("go")
            assert text in str(caught.value)


_IN_TEMPLATE = """
------------
While executing CallExpression at line 48, column 32 in source:
...== 0) %}\u21b5            {{- raise_exception('After the optional system message, con...
                                           ^
Error: Jinja Exception: Conversation roles must alternate user and assistant."""
_WRAPPED = f"Unable to generate parser for this template. Automatic parser failed: {_IN_TEMPLATE}"
_UNDEFINED = _IN_TEMPLATE.partition("Jinja")[0] + "Cannot operate on undefined values"
_LARGE = "request (2995 tokens) exceeds the available context size (512 tokens), try increasing it"
BEGUN = {"choices": [{"index": 0, "delta": {"content": "He"}}]}
SOON = {"retry-after": "0.01"}
HTML = b"<!DOCTYPE html><html><body><h1>It works!</h1></body></html>"
LOCAL: dict[str, tuple[Reply, int]] = {
    "template, 400": (whole({"error": {"code": 400, "message": _WRAPPED}}, 400), 1),
    "template, 500": (whole({"error": {"code": 500, "message": _IN_TEMPLATE}}, 500), 1),
    "template, undefined": (whole({"error": {"code": 500, "message": _UNDEFINED}}, 500), 1),
    "loading": (whole({"error": {"code": 503, "message": "Loading model"}}, 503, SOON), 3),
    "window": (whole({"error": {"code": 400, "message": _LARGE}}, 400), 1),
    "HTML": (Reply(HTML, "text/html"), 1),
    "HTML, 502": (Reply(HTML, "text/html", 502, SOON), 3),
    "not JSON": (Reply(b"Hello, I am a printer."), 1),
    "HTML, streamed": (Reply(HTML, "text/html"), 1),
    "stopped, streamed": (
        events({"choices": [{"index": 0, "delta": {"content": "He"}}]}, end=""),
        1,
    ),
}
"""What a server of one's own sends, and how often it is asked."""


async def test_a_server_of_ones_own_fails(talking: Talking, snapshot: Snapshot) -> None:
    """A line says what to do; the user's words go with the next message."""
    lines = []
    for name, (reply, times) in LOCAL.items():
        is_streamed = "streamed" in name
        replies = [*[reply] * times, VLLM.last[is_streamed]]
        with talking(VLLM, replies, is_streamed=is_streamed) as (talk, server):
            with pytest.raises(ProviderError) as caught:
                await talk.say("go")
            lines.append(f"{name}: {caught.value}\n")
            await talk.say("go on")
            assert (await talk.messages())[-1].text == "Done."
        *_, (_, asked) = server.requests
        assert [message["role"] for message in asked["messages"]] == ["system", "user"], name
        assert remove_instructions(asked["messages"][1]["content"]) == "go\n\ngo on"
    snapshot("local-server-errors.txt", "".join(lines))


@pytest.mark.parametrize("shape", [AZURE, VLLM], ids=["azure_openai", "openai"])
async def test_azure_filtered_it_all(talking: Talking, shape: Shape, *, is_streamed: bool) -> None:
    """It leaves out the message too."""
    choice = {"index": 0, "finish_reason": "content_filter", **AZURE_FILTERED}
    filtered = [whole({"choices": [choice]}), events({"choices": [choice]})]
    replies = [filtered[is_streamed], shape.last[is_streamed]]
    with talking(shape, replies, is_streamed=is_streamed) as (talk, _):
        if is_streamed:
            await talk.say("go")
            assert (await talk.messages())[-1].text == REFUSED
        else:
            with pytest.raises(ProviderError, match=STOPPED):
                await talk.say("go")
        await talk.say("and now?")
    assert (await talk.messages())[-1].text == "Done."


REFUSED_CALL = {
    "message": "Failed to call a function. See 'failed_generation' for more details.",
    "code": "tool_use_failed",
    "failed_generation": '<function=read_file{"path": "a</function>',
}


async def test_a_call_that_the_service_refuses(talking: Talking, *, is_streamed: bool) -> None:
    """Groq's: the model is told, and goes on."""
    error = {"error": REFUSED_CALL}
    first = events(error) if is_streamed else whole(error, 400)
    replies = [first, VLLM.last[is_streamed]]
    with talking(VLLM, replies, is_streamed=is_streamed) as (talk, server):
        await talk.say("go")
    (result,) = (await talk.results()).values()
    assert (result.name, result.status) == ("read_file", "error")
    assert '<function=read_file{"path": "a</function>' in result.text
    assert (await talk.messages())[-1].text == "Done."
    assert server.requests[1][1]["messages"][-1]["content"] == result.text


BUSY = {"error": {"message": "Upstream is busy.", "code": 429}}


@rows(
    "busy is_asked_again",
    (whole(BUSY), True),  # OpenRouter's, in a whole answer
    (whole(BUSY, 429, {"retry-after-ms": "1"}), True),
    (whole(BUSY, 429, {"retry-after-ms": "61000", "retry-after": "1"}), False),
)
async def test_how_long_a_service_wants_to_be_left_alone(
    talking: Talking, busy: Reply, *, is_asked_again: bool
) -> None:
    replies = [busy, *[VLLM.last[0]] * is_asked_again]
    with talking(VLLM, replies) as (talk, _):
        if is_asked_again:
            await talk.say("go")
            assert (await talk.messages())[-1].text == "Done."
        else:
            with pytest.raises(ProviderError, match="it asks to wait 61 s"):
                await talk.say("go")


@pytest.mark.parametrize("is_behind_a_result", [True, False])
async def test_an_empty_end_of_turn(talking: Talking, *, is_behind_a_result: bool) -> None:
    """Behind a result it ends the turn, and what is kept of it can be sent back."""
    empty = json.loads(ANTHROPIC.whole.content) | {"content": [], "stop_reason": "end_turn"}
    replies = [*[ANTHROPIC.whole] * is_behind_a_result, whole(empty), ANTHROPIC.last[0]]
    with talking(ANTHROPIC, replies) as (talk, server):
        if is_behind_a_result:
            await talk.say("go")
            assert (await talk.messages())[-1].text == ENDED
        else:
            with pytest.raises(ProviderError, match="answered with nothing"):
                await talk.say("go")
        await talk.say("and now?")
    sent = list_sent_back(server.requests[-1][1])
    assert [message["content"] for message in sent[1:]] == [ENDED] * is_behind_a_result


@pytest.mark.parametrize("end", ["", "data: [DON", ": [DONE]\n\n"])
async def test_a_stream_with_no_end(talking: Talking, end: str) -> None:
    """Neither a reason nor ``[DONE]``: the answer broke off, whatever of it looks whole."""
    broken = Reply(KIMI.streamed.content.replace(b"data: [DONE]\n\n", end.encode()), EVENTS)
    with (
        talking(KIMI, [broken], is_streamed=True) as (talk, _),
        pytest.raises(ProviderError, match="broke off"),
    ):
        await talk.say("go")


async def test_kimis_ids_that_come_again(talking: Talking) -> None:
    """Each call has one of its own, of the form that the model reads."""
    replies = [KIMI.whole, KIMI.whole, KIMI.last[0]]
    with talking(KIMI, replies) as (talk, server):
        await talk.say("go")
    ids = [message["tool_calls"][0]["id"] for message in list_sent_back(server.requests[2][1])]
    assert ids == ["functions.read_file:0", "functions.read_file:1"]
    assert list(await talk.results()) == ids
