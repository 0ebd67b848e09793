"""What services answer, written from their documented formats: a call, then words."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.graph.models.byte_server import EVENTS, Reply, events, lines, whole

ARGS = {"path": "é.txt"}
TEXT = json.dumps(ARGS, ensure_ascii=False)
TOKENS = {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59}


@dataclass(frozen=True)
class Shape:
    """One service's answer with calls of ``read_file``, whole and streamed."""

    model: str
    whole: Reply
    streamed: Reply
    last: tuple[Reply, Reply]
    """Its answer in words, after the results; whole, and streamed."""
    sent_back: list[Any]
    """What of the answer the next request holds."""
    reason: str = "tool_calls"
    text: str = ""
    ids: tuple[str, ...] | None = ("call_1",)
    """None where LangChain makes them up."""
    variables: dict[str, str] = field(default_factory=dict)
    """The address, with ``{url}`` in it, and the key."""
    parameters: dict[str, Any] = field(default_factory=dict)


def call(id: str = "call_1", **more: Any) -> dict[str, Any]:
    """A call in Chat Completions."""
    function = {"name": "read_file", "arguments": TEXT}
    return {"id": id, "type": "function", "function": function, **more}


def parts(id: str = "call_1", index: int = 0, **more: Any) -> list[dict[str, Any]]:
    """The same as the deltas of a stream."""
    begun = {**call(id, **more), "function": {"name": "read_file", "arguments": ""}}
    pieces = (TEXT[:5], TEXT[5:])
    return [
        {"tool_calls": [{"index": index, **begun}]},
        *({"tool_calls": [{"index": index, "function": {"arguments": one}}]} for one in pieces),
    ]


def chat(
    model: str,
    message: dict[str, Any],
    deltas: Sequence[dict[str, Any]],
    back: dict[str, Any] | None = None,
    *,
    reason: str | None = "tool_calls",
    **more: Any,
) -> Shape:
    """A server that speaks Chat Completions; without ``reason`` it gives none, or an empty one."""
    said = {"role": "assistant", "content": "", **message}
    choice = {"index": 0, "message": said, "logprobs": None}
    ends = [{"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}]
    ends = ends if reason is not None else []
    head: dict[str, Any] = {"id": "gen-1", "created": 1_767_225_600, "model": model}
    stream: list[dict[str, Any]] = [
        *({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas),
        *ends,
        {"choices": [], "usage": TOKENS},
    ]
    body = {**head, "object": "chat.completion", "usage": TOKENS}
    finish = {"finish_reason": reason} if reason is not None else {}
    kept = {"role": "assistant", "content": None, "tool_calls": [call()], **(back or {})}
    done = {"role": "assistant", "content": "Done."}
    stop: dict[str, Any] = {"finish_reason": "stop"} if reason else finish
    return Shape(
        f"openai:{model}",
        whole({**body, "choices": [{**choice, **finish}]}),
        events(*({**head, "object": "chat.completion.chunk", **one} for one in stream)),
        (
            whole({**body, "choices": [{"index": 0, "message": done, **stop}]}),
            events({"choices": [{"index": 0, "delta": done, **stop}]}),
        ),
        [kept],
        reason=reason or "completed",
        variables={"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "a-key"},
        **more,
    )


THOUGHT = "Let me read it \u2026 first."
THOUGHTS = ("Let me read", " it \u2026 first.")
SIGNED = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
SEALED: dict[str, Any] = {
    "type": "reasoning.encrypted",
    "format": "google-gemini-v1",
    "index": 0,
}
DEEPSEEK = chat(
    "deepseek-v4-pro",
    {"reasoning_content": THOUGHT, "tool_calls": [call()]},
    [
        {"role": "assistant", "content": None, "reasoning_content": ""},
        *({"content": None, "reasoning_content": one} for one in THOUGHTS),
        *parts(),
    ],
    {"reasoning_content": THOUGHT},
)
VLLM = chat(
    "qwen3",
    {"content": None, "reasoning": THOUGHT, "tool_calls": [call()]},
    [{"role": "assistant", "content": ""}, *({"reasoning": one} for one in THOUGHTS), *parts()],
    {"reasoning": THOUGHT},
)
CLAUDE_BY_OPENROUTER = chat(
    "anthropic/claude-sonnet-5-5",
    {
        "reasoning": THOUGHT,
        "reasoning_details": [{**SIGNED, "text": THOUGHT, "signature": "c2ln"}],
        "tool_calls": [call()],
    },
    [
        *(
            {"content": "", "reasoning": one, "reasoning_details": [{**SIGNED, "text": one}]}
            for one in THOUGHTS
        ),
        {"content": "", "reasoning_details": [{**SIGNED, "signature": "c2ln"}]},
        *parts(),
    ],
    {
        "reasoning": THOUGHT,
        "reasoning_details": [{**SIGNED, "text": THOUGHT, "signature": "c2ln"}],
    },
)
TWO_SEALED = [
    {**SEALED, "id": "call_1", "data": "QUE="},
    {**SEALED, "id": "call_2", "data": "QkI="},
]
WITH_HOLES = chat(
    "m",
    {"reasoning_details": [None, SEALED], "tool_calls": [call()]},
    [
        {"reasoning_details": [None, SEALED]},
        *parts(),
        {"tool_calls": [{"index": 0, "function": {"arguments": ""}, "extra_content": {"a": 1}}]},
    ],
    {"reasoning_details": [SEALED]},
)
GEMINI_BY_OPENROUTER = chat(
    "google/gemini-3.1-pro-preview",
    {"reasoning_details": TWO_SEALED, "tool_calls": [call(), call("call_2")]},
    [
        {"reasoning_details": TWO_SEALED[:1]},
        *parts(),
        {"reasoning_details": TWO_SEALED[1:]},
        *parts("call_2", 1),
    ],
    {"reasoning_details": TWO_SEALED, "tool_calls": [call(), call("call_2")]},
    ids=("call_1", "call_2"),
)
SIGNATURE: dict[str, Any] = {"extra_content": {"google": {"thought_signature": "QUE="}}}
GEMINI_BY_GOOGLES_OPENAI = chat(
    "gemini-3.1-pro-preview",
    {"tool_calls": [call(**SIGNATURE)]},
    [{"role": "assistant", "tool_calls": [call(**SIGNATURE)]}],  # without an index
    {"tool_calls": [call(**SIGNATURE)]},
)
KIMI_ID = "functions.read_file:0"
KIMI = chat(
    "moonshotai/kimi-k2",
    {"content": "I read it.", "tool_calls": [call(KIMI_ID)]},
    [{"role": "assistant", "content": "I read "}, {"content": "it."}, *parts(KIMI_ID)],
    {"content": "I read it.", "tool_calls": [call(KIMI_ID)]},
    reason=None,
    text="I read it.",
    ids=(KIMI_ID,),
)
LONG_ID = "toolu_" + "x" * 60
SNOWFLAKE = chat(
    "claude-by-snowflake",
    {"tool_calls": [call(LONG_ID)]},
    parts(LONG_ID),
    {"tool_calls": [call(LONG_ID)]},
    reason=None,
    ids=(LONG_ID,),
)
SNOWFLAKE_WITH_A_REASON = chat(
    "claude-by-snowflake", {"tool_calls": [call()]}, parts(), {"tool_calls": [call()]}, reason=""
)
THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}
MAGISTRAL = chat(
    "magistral-medium",
    {"content": [THINKING, "I read", " it."], "tool_calls": [call()]},
    [{"role": "assistant", "content": [THINKING]}, {"content": ["I read", " it."]}, *parts()],
    {"content": "I read it."},
    text="I read it.",
)
AZURE_CHAT = chat("gpt-5.6", {"content": None, "tool_calls": [call()]}, parts())
AZURE_FILTERED = {"content_filter_results": {"hate": {"filtered": False}}}
AZURE = replace(
    AZURE_CHAT,
    model="azure_openai:gpt-5.6",
    streamed=Reply(
        events(
            {"choices": [], "prompt_filter_results": [{"prompt_index": 0, **AZURE_FILTERED}]},
            end="",
        ).content
        + AZURE_CHAT.streamed.content,
        EVENTS,
    ),
    variables={
        "AZURE_OPENAI_ENDPOINT": "{url}",
        "AZURE_OPENAI_API_KEY": "a-key",
        "OPENAI_API_VERSION": "2026-01-01",
    },
)


THINKS = {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"}
USES = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": ARGS}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5"}
COUNTED = {"input_tokens": 50, "output_tokens": 9}


def build_message(content: list[Any], reason: str) -> dict[str, Any]:
    """An answer of Anthropic's in one piece."""
    ended = {"stop_reason": reason, "stop_sequence": None, "usage": COUNTED}
    return {**MESSAGE, "content": content, **ended}


def _stream(reason: str, *blocks: tuple[dict[str, Any], Sequence[dict[str, str]]]) -> Reply:
    """The events of a message with these blocks, each with its deltas."""
    begun = {**build_message([], reason), "stop_reason": None}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, (block, deltas) in enumerate(blocks):
        at = {"index": index}
        found.append({"type": "content_block_start", **at, "content_block": block})
        found += [{"type": "content_block_delta", **at, "delta": delta} for delta in deltas]
        found.append({"type": "content_block_stop", **at})
    ended = {"stop_reason": reason, "stop_sequence": None}
    found.append({"type": "message_delta", "delta": ended, "usage": COUNTED})
    return events(*found, {"type": "message_stop"}, end="")


ANTHROPIC = Shape(
    "anthropic:claude-opus-5",
    whole(build_message([THINKS, USES], "tool_use")),
    _stream(
        "tool_use",
        (
            {**THINKS, "thinking": "", "signature": ""},
            [
                *({"type": "thinking_delta", "thinking": one} for one in THOUGHTS),
                {"type": "signature_delta", "signature": "c2ln"},
            ],
        ),
        (
            {**USES, "input": {}},
            [{"type": "input_json_delta", "partial_json": one} for one in ("", TEXT[:5], TEXT[5:])],
        ),
    ),
    (
        whole(build_message([{"type": "text", "text": "Done."}], "end_turn")),
        _stream(
            "end_turn",
            ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Done."}]),
        ),
    ),
    [{"role": "assistant", "content": [THINKS, USES]}],
    reason="tool_use",
    ids=("toolu_1",),
    variables={"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "a-key"},
)


def _ollama(message: dict[str, Any], *, done: bool = False) -> dict[str, Any]:
    said = {"role": "assistant", "content": "", **message}
    ended = {"done_reason": "stop", "prompt_eval_count": 50, "eval_count": 9}
    at = "2026-01-01T00:00:00Z"
    return {"model": "qwen3", "created_at": at, "message": said, "done": done} | (
        ended if done else {}
    )


FUNCTION = {"function": {"name": "read_file", "arguments": ARGS}}
OLLAMA_STREAM = lines(
    *(_ollama({"thinking": one}) for one in THOUGHTS),
    _ollama({"tool_calls": [FUNCTION]}),
    _ollama({}, done=True),
)
OLLAMA = Shape(
    "ollama:qwen3",
    OLLAMA_STREAM,  # it always streams
    OLLAMA_STREAM,
    (lines(_ollama({"content": "Done."}), _ollama({}, done=True)),) * 2,
    [{"role": "assistant", "thinking": THOUGHT, "tool_calls": [FUNCTION]}],
    reason="stop",
    ids=None,
    variables={"OLLAMA_HOST": "{url}"},
    parameters={"reasoning": True},
)


def _gemini(*given: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(given), "role": "model"}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    counted = {"promptTokenCount": 50, "candidatesTokenCount": 5, "thoughtsTokenCount": 4}
    used = {"usageMetadata": {**counted, "totalTokenCount": 59}}
    return {
        "candidates": [candidate],
        **used,
        "modelVersion": "gemini-3.1-pro-preview",
        "responseId": "r",
    }


PONDERED = {"text": THOUGHT, "thought": True}
SIGNED_TEXT = {"text": "I read it.", "thoughtSignature": "VEVYVA=="}
SIGNED_CALL = {"functionCall": {"name": "read_file", "args": ARGS}, "thoughtSignature": "QUFB"}
GEMINI = Shape(
    "google_genai:gemini-3.1-pro-preview",
    whole(_gemini(PONDERED, SIGNED_TEXT, SIGNED_CALL, reason="STOP")),
    events(
        _gemini(PONDERED),
        _gemini({"text": "I read "}),
        _gemini({"text": "it.", "thoughtSignature": "VEVYVA=="}),
        _gemini(SIGNED_CALL),
        _gemini({"text": ""}, reason="STOP"),
        end="",
    ),
    (
        whole(_gemini({"text": "Done."}, reason="STOP")),
        events(_gemini({"text": "Done."}, reason="STOP"), end=""),
    ),
    [{"role": "model", "parts": [PONDERED, SIGNED_TEXT, SIGNED_CALL]}],
    reason="STOP",
    text="I read it.",
    ids=None,
    variables={"GOOGLE_GEMINI_BASE_URL": "{url}", "GOOGLE_API_KEY": "a-key"},
)
SHAPES = {name: value for name, value in globals().items() if isinstance(value, Shape)}
