"""What the history can hold of an answer, whatever wire it came over."""

import json
from typing import Any

import httpx2
import pytest
from langchain_core.exceptions import ModelTimeoutError
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.messages.from_model import CUT_OFF, REFUSED, check_answer
from graph.messages.provider_form import prepare_for_provider
from graph.models.provider_errors import is_worth_another_try, provider_error
from graph.replay.cassette import load_cassette
from graph.replay.dialogue import read_dialogue
from graph.settings import ROOT
from modes.errors import ProviderError
from tools.arguments import BROKEN

CALL: Any = {"name": "read_file", "args": {"path": "a"}, "id": "1", "type": "tool_call"}


def read(metadata: dict[str, Any], text: str = "", *calls: Any) -> AIMessage:
    return check_answer(AIMessage(text, tool_calls=list(calls), response_metadata=metadata))


@pytest.mark.parametrize(
    "metadata",
    [
        {"model_provider": "openai", "finish_reason": "stop"},
        {"model_provider": "openai", "finish_reason": "tool_calls"},
        {"model_provider": "openai", "status": "completed"},
        {"model_provider": "anthropic", "stop_reason": "tool_use"},
        {"model_provider": "ollama", "done_reason": "stop"},
        {"model_provider": "groq", "finish_reason": "tool_callstool_calls"},
        {"model_provider": "google_genai", "finish_reason": "STOP"},
        {"model_provider": "another"},
        {},
    ],
)
def test_whole_answers(metadata: dict[str, Any]) -> None:
    """The Responses API has a status and no reason; Ollama has a word of its own."""
    assert read(metadata, "", CALL).tool_calls == [CALL]
    assert read(metadata, "words").text == "words"


@pytest.mark.parametrize(
    "metadata",
    [
        {"model_provider": "openai", "status": "incomplete"},
        {"model_provider": "ollama", "done_reason": "length"},
        {"model_provider": "anthropic", "stop_reason": "model_context_window_exceeded"},
        {"model_provider": "google_genai", "finish_reason": "MAX_TOKENS"},
    ],
)
def test_answers_that_were_cut_off(metadata: dict[str, Any]) -> None:
    assert list(read(metadata, "", CALL).tool_calls[0]["args"]) == [BROKEN]
    assert read(metadata, "words").text == f"words\n\n{CUT_OFF}"
    with pytest.raises(ProviderError, match="answered with nothing"):
        read(metadata)


def test_a_filtered_answer_of_the_responses_api() -> None:
    metadata = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    assert read(metadata, "", CALL).content == REFUSED


@pytest.mark.parametrize("reason", ["content_filter", "refusal", "SAFETY"])
def test_answers_that_were_declined(reason: str) -> None:
    assert read({"finish_reason": reason}, "", CALL).tool_calls == []
    assert read({"finish_reason": reason}, "").text == REFUSED
    assert read({"finish_reason": reason}, "No.").text == "No."


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_answers_without_an_end(provider: str) -> None:
    with pytest.raises(ProviderError, match="broke off"):
        read({"model_provider": provider}, "words", CALL)


def test_ids_are_its_own() -> None:
    earlier: list[AnyMessage] = [HumanMessage("hello"), AIMessage("", tool_calls=[CALL], id="m")]
    answer = AIMessage("", tool_calls=[CALL, {**CALL, "id": None}], id="m")
    after = check_answer(answer, earlier=earlier)
    assert after.id != "m"
    assert len({"1", *(call["id"] for call in after.tool_calls)}) == 3
    other = AIMessage("", tool_calls=[{**CALL, "id": "2"}], id="n")
    assert check_answer(other, earlier=earlier) == other


@pytest.mark.parametrize(
    ("content", "after"),
    [
        ("a\ud83d\ude00b", "a\U0001f600b"),
        ("a\ud83db", "a\ufffdb"),
        ([{"type": "text", "text": "a"}, "b"], "ab"),
        ([{"type": "text", "text": "\n"}, {"type": "tool_use", "id": "1"}], ""),
        ([{"type": "thinking", "thinking": "\ud83d\ude00"}], None),
    ],
)
def test_what_is_kept_of_the_words(content: Any, after: Any) -> None:
    message = check_answer(AIMessage(content, tool_calls=[CALL]))
    expected = [{"type": "thinking", "thinking": "\U0001f600"}] if after is None else after
    assert message.content == expected


THOUGHT: Any = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
WORDS: Any = {"type": "text", "text": "So.", "id": "msg_1", "annotations": []}


def block(id: str, arguments: str = '{"path": "a"}') -> Any:
    """A call as OpenAI's Responses API has it among its blocks."""
    return {
        "type": "function_call",
        "id": "fc_1",
        "call_id": id,
        "name": "read_file",
        "arguments": arguments,
        "status": "completed",
        "index": 1,
    }


@pytest.mark.parametrize(
    ("content", "kinds"),
    [
        ([THOUGHT, block("2"), THOUGHT, WORDS, block("3")], "reasoning 2 reasoning text 3"),
        ([WORDS, block("2"), block("3")], None),
        ([{**WORDS, "phase": "commentary"}, block("2"), block("3")], "text 2 3"),
        ([THOUGHT, block("2"), block("3"), THOUGHT], "reasoning 2 3"),
        ([THOUGHT, block("2"), block("nobody's")], "reasoning 2"),
        ([THOUGHT], "reasoning"),
    ],
)
def test_calls_stay_where_they_were_beside_thoughts(content: Any, kinds: str | None) -> None:
    """What was reasoned comes before what came of it, or the service refuses it."""
    calls = [{**CALL, "id": "2"}, {**CALL, "id": "3"}]
    after = check_answer(AIMessage(content, tool_calls=calls))
    assert after.tool_calls == calls
    if kinds is None:
        assert after.content == "So."
    else:
        assert " ".join(one.get("call_id", one["type"]) for one in blocks(after)) == kinds


def blocks(message: AIMessage) -> list[dict[str, Any]]:
    return [one for one in message.content if isinstance(one, dict)]


@pytest.mark.parametrize("ids", [("1", "2"), ("2", "2"), ("", "2"), ("\n", "2")])
def test_a_call_is_the_same_in_both_places(ids: tuple[str, str]) -> None:
    """With another id, if it got one, and broken, if it is."""
    unread: Any = {"name": "read_file", "args": "{", "id": ids[1], "error": None}
    answer = AIMessage(
        [THOUGHT, block(ids[0], '{"path":"a"}'), block(ids[1], "{")],
        tool_calls=[{**CALL, "id": ids[0]}],
        invalid_tool_calls=[unread],
    )
    earlier: list[AnyMessage] = [AIMessage("", tool_calls=[CALL])]
    after = check_answer(answer, earlier=earlier)
    whole, cut = after.tool_calls
    assert len({"1", whole["id"], cut["id"]}) == 3
    assert blocks(after)[1:] == [
        {
            "type": "function_call",
            "call_id": call["id"],
            "name": "read_file",
            "arguments": arguments,
        }
        for call, arguments in ((whole, '{"path":"a"}'), (cut, json.dumps(cut["args"])))
    ]


def test_an_answer_of_thoughts_that_ends_at_the_limit() -> None:
    metadata = {
        "model_provider": "openai",
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
    }
    call = {**CALL, "id": "2"}
    answer = AIMessage(
        [THOUGHT, block("2"), THOUGHT], tool_calls=[call], response_metadata=metadata
    )
    after = check_answer(answer)
    assert list(after.tool_calls[0]["args"]) == [BROKEN]
    assert [one["type"] for one in blocks(after)] == ["reasoning", "function_call"]
    assert BROKEN in blocks(after)[1]["arguments"]


def test_thoughts_go_to_their_own_provider_only() -> None:
    blocks: Any = [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "Yes."}]
    thought = AIMessage(blocks, response_metadata={"model_provider": "anthropic"})
    history: list[AnyMessage] = [AIMessage("Hello!"), HumanMessage("Do you?"), thought]
    first, *rest = prepare_for_provider(history, "anthropic")
    assert isinstance(first, HumanMessage)
    assert rest == history
    assert [one.content for one in prepare_for_provider(history, "openai-chat")][-1] == "Yes."
    assert prepare_for_provider(history[1:], "anthropic") == history[1:]


def test_ids_go_back_to_who_gave_them() -> None:
    """Some servers keep something in them; the next one takes only so many characters, say."""
    ids = ["a" * 64, "b" * 65, "c/d" * 40, "e"]
    calls = [{**CALL, "id": id} for id in ids]
    answer = AIMessage("", tool_calls=calls, response_metadata={"model_provider": "openai"})
    results = [ToolMessage("", tool_call_id=id) for id in ids]
    history: list[AnyMessage] = [HumanMessage("go"), answer, *results]
    assert prepare_for_provider(history, "openai-chat") == history
    assert prepare_for_provider(history, "ollama") == history
    for origin, kept in (("openai", ["a" * 64, "e"]), ("anthropic", ["a" * 64, "b" * 65, "e"])):
        sent = prepare_for_provider(history, origin)
        assert sent == prepare_for_provider(history, origin), "the same at every step"
        called: list[Any] = [
            call["id"] for one in sent if isinstance(one, AIMessage) for call in one.tool_calls
        ]
        assert [one.tool_call_id for one in sent if isinstance(one, ToolMessage)] == called
        assert [id for id in called if id in ids] == kept
        assert (len(set(called)), max(map(len, set(called) - set(ids)))) == (4, 37)


def test_a_timeout_is_told_and_tried_again() -> None:
    error = ModelTimeoutError("Request timed out.")
    assert is_worth_another_try(error)
    text = str(provider_error(error, "openai:x", 3, has_begun=False))
    assert "(tried 3 times): no answer in time: " in text


def test_ollamas_server_that_is_not_there() -> None:
    error = httpx2.ConnectError("All connection attempts failed")
    assert is_worth_another_try(error)
    text = str(provider_error(error, "ollama:qwen3", 3, has_begun=False))
    assert "http://127.0.0.1:11434 cannot be reached: " in text
    assert not is_worth_another_try(ValueError("no"))
    late = httpx2.ReadTimeout("")
    assert is_worth_another_try(late)
    assert "no answer in time: " in str(provider_error(late, "ollama:qwen3", 3, has_begun=False))


def test_no_secret_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the text is cut."""
    monkeypatch.setenv("MY_TOKEN", "correct-horse-battery")
    monkeypatch.setenv("DATABASE", "postgresql://me:staple-of-mine@localhost/db")
    for before in ("", "x" * 590):
        error = RuntimeError(
            f"{before} correct-horse-battery staple-of-mine sk-or-v1-0123456789abcdef0123"
        )
        text = str(provider_error(error, "openai:x", 1, has_begun=False))
        assert "correct" not in text
        assert "staple" not in text
        assert "sk-or" not in text


def test_what_is_said_reads_the_same_in_each_format() -> None:
    found = []
    for name in ("openai", "chat", "anthropic"):
        path = ROOT / "cassettes" / "test_conversations" / f"test_parallel_reads-{name}-whole.yaml"
        found.append(read_dialogue(load_cassette(path).interactions[-1].request.body))
    assert found[0] == found[1] == found[2]
    assert [who for who, _ in found[0][1]] == ["user", "assistant", *["call"] * 2, *["result"] * 2]


@pytest.mark.parametrize("change", ["name", "input", "text", "role", "tools"])
def test_what_makes_another_conversation(change: str) -> None:
    def body(name: str = "read", path: str = "a", text: str = "hello", tool: str = "read") -> Any:
        call = {"type": "tool_use", "id": "1", "name": name, "input": {"path": path}}
        result = {"type": "tool_result", "tool_use_id": "1", "content": "whatever"}
        return {
            "system": "whatever",
            "tools": [{"name": tool, "description": "whatever"}],
            "messages": [
                {"role": "user", "content": text},
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [result, {"type": "text", "text": "and?"}]},
            ],
        }

    same, other = body(), body()
    same["system"] = same["tools"][0]["description"] = "something else"
    same["messages"][2]["content"][0]["content"] = "something else"
    assert read_dialogue(same) == read_dialogue(other)
    match change:
        case "name":
            other = body(name="write")
        case "input":
            other = body(path="b")
        case "text":
            other = body(text="hallo")
        case "tools":
            other = body(tool="write")
        case "role":
            other["messages"][0]["role"] = "assistant"
    assert read_dialogue(same) != read_dialogue(other)
