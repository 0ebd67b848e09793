"""System messages in the middle, tools that come and go, and who may send which."""

from typing import Any

import pytest
from anthropic.types.beta import BetaMessageParam, BetaToolParam
from openai.types.chat import ChatCompletionAllowedToolChoiceParam
from openai.types.responses import ToolChoiceAllowedParam
from pydantic import TypeAdapter

from tests.provider import anthropic_messages, openai_chat, openai_responses
from tests.provider.test_wire import SAID, USER, anthropic_calls, anthropic_results
from tests.provider.tool_changes import BY_REFERENCE, offered

Json = dict[str, Any]

SCHEMA = {"type": "object", "properties": {}}
READ: Json = {"name": "read", "input_schema": SCHEMA}
EDIT: Json = {"name": "edit", "input_schema": SCHEMA, "defer_loading": True}
ANSWER = {"role": "assistant", "content": "So."}
SYSTEM = {"role": "system", "content": "Code mode."}


def changes(*blocks: tuple[str, str]) -> Json:
    """A system message with these: ``("addition", "edit")``."""
    content = [
        {"type": f"tool_{what}", "tool": {"type": "tool_reference", "name": tool}}
        for what, tool in blocks
    ]
    return {"role": "system", "content": content}


def problem(*messages: Json, betas: str = BY_REFERENCE, **body: Any) -> str | None:
    whole = {"model": "claude-opus-5", "max_tokens": 9, "tools": [READ, EDIT], **body}
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": betas}
    return anthropic_messages.problem(headers, {**whole, "messages": list(messages)})


SWITCH = changes(("removal", "read"), ("addition", "edit"))


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([USER, SYSTEM], None),
        ([USER, SYSTEM, SWITCH, ANSWER, USER, SYSTEM], None),
        ([USER, anthropic_calls("a"), anthropic_results("a"), SWITCH, ANSWER, USER], None),
        ([SYSTEM, USER], "messages.0: use the top-level 'system' parameter"),
        ([USER, ANSWER, SYSTEM, SYSTEM, USER], "messages.2: role 'system' must follow a 'user'"),
        ([USER, SYSTEM, SYSTEM, USER], "messages.2: role 'system' must precede an 'assistant'"),
        ([USER, anthropic_calls("a"), SYSTEM, anthropic_results("a")], "messages.2: role 'system'"),
        ([USER, {**SYSTEM, "content": []}], "at least one block"),
        ([USER, {**SYSTEM, "content": [{"type": "image", "source": {}}]}], "blocks only"),
        ([USER, {**SYSTEM, "clear_at": "next_user_message"}], "clear_at: Extra inputs"),
        ([{**SWITCH, "role": "user"}], "only be in system messages"),
        ([USER, changes(("addition", "run"))], "'run' has no corresponding tool definition"),
    ],
)
def test_where_system_messages_may_stand(messages: list[Json], text: str | None) -> None:
    found = problem(*messages)
    assert found is None if text is None else text in str(found)
    if text is None:
        TypeAdapter(list[BetaMessageParam]).validate_python(messages)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"model": "claude-opus-5-5-20261001"}, None),
        ({"model": "anthropic/claude-opus-4.8"}, "not supported on this model"),
        ({"model": "anthropic/claude-opus-4-8"}, None),
        ({"model": "claude-sonnet-5"}, "not supported on this model"),
        ({"model": "claude-opus-5-6"}, "not supported on this model"),
        ({"betas": ""}, "Input tag 'tool_removal' does not match"),
        ({"betas": f"mine,{BY_REFERENCE}"}, None),
        ({"tools": [EDIT, {**READ, "defer_loading": True}]}, "At least one tool must be non-def"),
        ({"tools": [READ, {**EDIT, "cache_control": {"type": "ephemeral"}}]}, "cannot have cache"),
        ({"tools": [{**READ, "parameters": {}}, EDIT]}, "tools.0.custom.parameters: Extra"),
        ({"model": "claude-opus-5-5", "tool_choice": {"type": "any"}}, "'any' is not supported"),
        ({"tool_choice": {"type": "none"}}, None),
        ({"context_management": {"edits": []}}, "context_management: Extra inputs"),
    ],
)
def test_what_a_request_with_a_switch_must_hold(body: Json, text: str | None) -> None:
    found = problem(USER, SWITCH, **body)
    assert found is None if text is None else text in str(found)
    TypeAdapter(BetaToolParam).validate_python(EDIT)


def test_which_tools_are_offered() -> None:
    body: Json = {"tools": [READ, EDIT], "messages": [USER]}
    assert offered(body) == {"read"}
    body["messages"] += [SWITCH, ANSWER, USER]
    assert offered(body) == {"edit"}
    assert offered({**body, "tool_choice": {"type": "none"}}) == set()


NAMES = [{"type": "function", "name": "read"}]
RESPONSES_CHOICE: Json = {"type": "allowed_tools", "mode": "auto", "tools": NAMES}
CHAT_NAMES = [{"type": "function", "function": {"name": "read"}}]
CHAT_CHOICE: Json = {
    "type": "allowed_tools",
    "allowed_tools": {"mode": "auto", "tools": CHAT_NAMES},
}
WRONG = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "run"}}]}


@pytest.mark.parametrize(
    ("is_chat", "choice", "text"),
    [
        (False, RESPONSES_CHOICE, None),
        (False, CHAT_CHOICE, "expected ['mode', 'tools', 'type']"),
        (False, {**RESPONSES_CHOICE, "mode": "any"}, "'any' for 'tool_choice.mode'"),
        (False, {**RESPONSES_CHOICE, "tools": []}, "empty array"),
        (False, {**RESPONSES_CHOICE, "tools": [{"name": "run"}]}, "'run' not found in 'tools'"),
        (False, "some", "'some'"),
        (False, {"type": "tools"}, "'tools' for 'tool_choice.type'"),
        (True, CHAT_CHOICE, None),
        (True, RESPONSES_CHOICE, "expected ['allowed_tools', 'type']"),
        (True, {**CHAT_CHOICE, "allowed_tools": WRONG}, "'run' not found in 'tools'"),
        (True, "none", None),
    ],
)
def test_which_tools_openai_lets_be_chosen(*, is_chat: bool, choice: Any, text: str | None) -> None:
    wire: Any = openai_chat if is_chat else openai_responses
    tool = {"name": "read", "parameters": SCHEMA}
    given: Json = {"model": "gpt-4.1", "tool_choice": choice}
    if is_chat:
        given |= {"messages": [USER], "tools": [{"type": "function", "function": tool}]}
    else:
        given |= {"input": [USER], "store": False, "tools": [{"type": "function", **tool}]}
    found = wire.problem({}, given)
    assert found is None if text is None else text in str(found)
    if text is None:
        assert wire.offered(given) == (set() if choice == "none" else {"read"})
        assert wire.offered({**given, "tool_choice": "auto"}) == {"read"}
    kind: Any = ChatCompletionAllowedToolChoiceParam if is_chat else ToolChoiceAllowedParam
    if text is None and choice != "none":
        TypeAdapter(kind).validate_python(choice)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_who_takes_a_later_system_message(role: str) -> None:
    """The templates of some models on other servers do not; nor do their servers choose tools."""
    later = [{"role": "system", "content": "s"}, USER, ANSWER, {"role": role, "content": "now"}]
    for model, text in (("gpt-4.1", None), ("qwen3", "System message must be at the beginning.")):
        assert openai_chat.problem({}, {"model": model, "messages": later}) == text
    assert openai_chat.problem({}, {"model": "qwen3", "messages": later[:3]}) is None
    function = {"type": "function", "function": {"name": "read", "parameters": SCHEMA}}
    chosen = {"model": "qwen3", "messages": [USER], "tools": [function], "tool_choice": CHAT_CHOICE}
    assert "got 'allowed_tools'" in str(openai_chat.problem({}, chosen))
    items = [USER, SAID, {"type": "message", "role": role, "content": "now"}]
    body = {"model": "gpt-5.6", "input": items, "store": False}
    assert openai_responses.problem({}, body) is None
