"""What the history can hold of a model's answer, whichever API it came over."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk

from modeshift.messages.from_model import CUT_OFF, REFUSED, check_answer
from modeshift.modes.errors import ProviderError
from modeshift.tools.toolbox import BROKEN
from tests.tables import rows

CALL: Any = {"name": "read_file", "args": {"path": "a"}, "id": "1", "type": "tool_call"}
THOUGHT: Any = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
SIGNED: Any = {"type": "text", "text": "So.", "extras": {"signature": "x"}}
GEMINIS: Any = {"type": "text", "text": "So.", "thought_signature": "x"}
TOO_LONG = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
FILTERED = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}


def check(metadata: dict[str, Any], text: Any = "", *calls: Any) -> AIMessage:
    answer = AIMessage(text, tool_calls=list(calls), response_metadata=metadata)
    return check_answer(answer)


@rows(
    "metadata",
    {"model_provider": "openai", "finish_reason": "stop"},
    {"model_provider": "openai", "finish_reason": "tool_calls"},
    {"model_provider": "openai", "status": "completed"},
    {"model_provider": "anthropic", "stop_reason": "tool_use"},
    {"model_provider": "ollama", "done_reason": "stop"},
    {"model_provider": "groq", "finish_reason": "tool_callstool_calls"},
    {"model_provider": "google_genai", "finish_reason": "STOP"},
    {"model_provider": "another"},
    {},
)
def test_complete_answers(metadata: dict[str, Any]) -> None:
    """The Responses API has a status and no reason; Ollama has its own name for it."""
    assert check(metadata, "", CALL).tool_calls == [CALL]
    assert check(metadata, "words").text == "words"


@rows(
    "metadata",
    {"model_provider": "openai", "status": "incomplete"},
    {"model_provider": "openai", **TOO_LONG},
    {"model_provider": "ollama", "done_reason": "length"},
    {"model_provider": "anthropic", "stop_reason": "model_context_window_exceeded"},
    {"model_provider": "google_genai", "finish_reason": "MAX_TOKENS"},
)
def test_answers_that_were_cut_off(metadata: dict[str, Any]) -> None:
    (why,) = check(metadata, "", CALL).tool_calls[0]["args"].values()
    assert "cut off at the model's limit" in why
    assert "smaller parts" in why
    assert check(metadata, "words").text == f"words\n\n{CUT_OFF}"
    for blank in ("", " \n" * 100):
        with pytest.raises(ProviderError, match=r"^the answer was cut off at"):
            check(metadata, blank)


@pytest.mark.parametrize(
    "metadata",
    [FILTERED, *({"finish_reason": reason} for reason in ("content_filter", "refusal", "SAFETY"))],
)
def test_answers_that_were_declined(metadata: dict[str, Any]) -> None:
    assert check(metadata, "", CALL).tool_calls == []
    assert check(metadata, "", CALL).content == check(metadata).text == REFUSED
    assert check(metadata, "No.").text == "No."


@rows(
    "content more",
    ([{"type": "text", "text": None}], {}),
    ([{"type": ["text"], "text": "So."}], {}),
    ([{"text": "So."}], {}),
    ([{"type": "thinking", "thinking": float("inf")}], {}),
    ("So.", {"extra_content": {"1": float("nan")}}),
)
def test_answers_that_no_client_could_send_back(content: Any, more: Any) -> None:
    """Stored, they would be the end of the thread: each later request would fail."""
    answer = AIMessage("", tool_calls=[CALL], additional_kwargs=more)
    with pytest.raises(ProviderError, match="is malformed, and nothing of it is kept"):
        check_answer(answer.model_copy(update={"content": content}))


def test_an_answer_with_no_reason_or_an_unknown_one() -> None:
    for provider in ("openai", "anthropic"):
        with pytest.raises(ProviderError, match="broke off"):
            check({"model_provider": provider}, "words", CALL)
    (why,) = check({"finish_reason": "pause_turn"}, "", CALL).tool_calls[0]["args"].values()
    assert why == "the model stopped for a reason that is not known here: 'pause_turn'"


@rows(
    "pieces args",
    (['{"path": "a"}'], {"path": "a"}),
    (['{"path"', ': "a"}'], {"path": "a"}),
    ([""], {}),
    (['{"path": "a\n"}'], {"path": "a\n"}),
    (['{"path": "a'], None),
    (['{"path": "a"}', "x"], None),
    (["[1]"], None),
)
def test_a_streamed_call_is_read_strictly(pieces: list[str], args: Any) -> None:
    """What LangChain makes of it does not count."""
    chunks = [
        AIMessageChunk(
            content="",
            tool_call_chunks=[
                tool_call_chunk(name=None if n else "x", args=text, id=None if n else "1", index=0)
            ],
        )
        for n, text in enumerate(pieces)
    ]
    (call,) = check_answer(AIMessage("", tool_calls=[CALL]), chunks).tool_calls
    assert call["args"] == args if args is not None else list(call["args"]) == [BROKEN]


@rows(
    "content kept",
    ("a\ud83d\ude00b", "a\U0001f600b"),
    ("a\ud83db", "a\ufffdb"),
    ([{"type": "text", "text": "a"}, "b"], "ab"),
    ([{"type": "text", "text": "\n"}, {"type": "tool_use", "id": "1"}], ""),
    ([SIGNED], [SIGNED]),
    ([GEMINIS], [GEMINIS]),
    ([THOUGHT, "a\ud83d"], [THOUGHT, {"type": "text", "text": "a\ufffd"}]),
    (
        [{"type": "thinking", "thinking": "\ud83d\ude00", "signature": " "}],
        [{"type": "thinking", "thinking": "\U0001f600", "signature": " "}],
    ),
)
def test_what_is_kept_of_the_content(content: Any, kept: Any) -> None:
    assert check({}, content, CALL).content == kept
