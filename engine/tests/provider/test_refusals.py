"""The scripted provider refuses what the real services refuse, in their words."""

from types import ModuleType
from typing import Any

import pytest

from tests.provider import anthropic_messages, openai_chat, openai_responses
from tests.provider.tool_changes import BY_REFERENCE, offered

Json = dict[str, Any]
Given = tuple[ModuleType, Json, Json]
"""The format, a request's headers, and its body."""

SCHEMA = {"type": "object", "properties": {}}
READ: Json = {"name": "read", "input_schema": SCHEMA}
EDIT: Json = {"name": "edit", "input_schema": SCHEMA, "defer_loading": True}
USER = {"role": "user", "content": "hello"}
ANSWER = {"role": "assistant", "content": "So."}
SYSTEM = {"role": "system", "content": "Code mode."}


def claude(*messages: Json, betas: str = BY_REFERENCE, **more: Any) -> Given:
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": betas}
    body = {"model": "claude-opus-5", "max_tokens": 9, "tools": [READ, EDIT], **more}
    return anthropic_messages, headers, {**body, "messages": list(messages)}


def uses(*ids: str, **more: Any) -> Json:
    block = {"type": "tool_use", "name": "read", "input": {}, **more}
    return {"role": "assistant", "content": [{**block, "id": id} for id in ids]}


def results(*ids: str) -> Json:
    blocks = [{"type": "tool_result", "tool_use_id": id, "content": "x"} for id in ids]
    return {"role": "user", "content": blocks}


def changes(*blocks: tuple[str, str]) -> Json:
    """A system message with these: ``("addition", "edit")``."""
    content = [
        {"type": f"tool_{what}", "tool": {"type": "tool_reference", "name": tool}}
        for what, tool in blocks
    ]
    return {"role": "system", "content": content}


SWITCH = changes(("removal", "read"), ("addition", "edit"))
MARK: Json = {"cache_control": {"type": "ephemeral"}}
HOUR: Json = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def marked(mark: Json) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": "hello", **mark}]}


CLAUDE: list[tuple[Given, str]] = [
    (claude(USER, uses("a"), USER), "without `tool_result`"),
    (claude(USER, uses("a"), results("a", "a")), "unexpected"),
    (claude(USER, uses("a", "a"), results("a")), "ids must be unique"),
    (claude(USER, uses("a.b"), results("a.b")), "tool_use.id: String should match"),
    (claude(USER, uses("a", index=1), results("a")), "index: Extra"),
    (claude(USER, uses("a", input="{"), results("a")), "dictionary"),
    (claude(USER, ANSWER), "prefill"),
    (claude(ANSWER, USER), "first message"),
    (claude({"role": "user", "content": " \n"}), "non-whitespace"),
    (claude({"role": "user", "content": []}), "non-empty"),
    (claude({"role": "user", "content": [{"type": "image_url"}]}), "image_url"),
    (claude(SYSTEM, USER), "messages.0: use the top-level 'system' parameter"),
    (claude(USER, ANSWER, SYSTEM, SYSTEM, USER), "messages.2: role 'system' must follow a 'user'"),
    (claude(USER, SYSTEM, SYSTEM, USER), "messages.2: role 'system' must precede an 'assistant'"),
    (claude(USER, uses("a"), SYSTEM, results("a")), "messages.2: role 'system'"),
    (claude(USER, {**SYSTEM, "content": []}), "at least one block"),
    (claude(USER, {**SYSTEM, "content": [{"type": "image", "source": {}}]}), "blocks only"),
    (claude(USER, {**SYSTEM, "clear_at": "next_user_message"}), "clear_at: Extra inputs"),
    (claude({**SWITCH, "role": "user"}), "only be in system messages"),
    (claude(USER, changes(("addition", "run"))), "'run' has no corresponding tool definition"),
    (claude(USER, SYSTEM, model="claude-opus-4.8"), "'system' is not supported on this model"),
    (claude(USER, SYSTEM, model="claude-sonnet-5"), "'system' is not supported on this model"),
    (claude(USER, SYSTEM, model="claude-opus-5-6"), "'system' is not supported on this model"),
    (claude(USER, SWITCH, betas=""), "Input tag 'tool_removal' does not match"),
    (claude(USER, tools=[EDIT]), "At least one tool must be non-def"),
    (claude(USER, tools=[READ, {**EDIT, **MARK}]), "cannot have cache"),
    (claude(USER, tools=[{**READ, "parameters": {}}]), "tools.0.custom.parameters: Extra"),
    (claude(USER, tools=[READ, READ]), "names must be unique"),
    (claude(USER, tools=[{**READ, "name": "read it"}]), "custom.name: String should match"),
    (claude(USER, model="claude-opus-5-5", tool_choice={"type": "any"}), "'any' is not supported"),
    (claude(USER, context_management={"edits": []}), "context_management: Extra inputs"),
    (claude(*[marked(MARK)] * 4, **MARK), "A maximum of 4 blocks"),
    (claude(marked(MARK), marked(HOUR)), "must not come after"),
]


def chat(*messages: Json, **more: Any) -> Given:
    return openai_chat, {}, {"model": "gpt-4.1", "messages": list(messages), **more}


def calls(*ids: str, name: str = "read") -> Json:
    function = {"name": name, "arguments": "{}"}
    made = [{"id": id, "type": "function", "function": function} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(id: str) -> Json:
    return {"role": "tool", "tool_call_id": id, "content": "x"}


def function(**more: Any) -> list[Json]:
    return [{"type": "function", "function": {"name": "read", "parameters": SCHEMA, **more}}]


TOOLS: Json = {"tools": function()}
CHOSEN = {"type": "function", "name": "read"}
OF_RESPONSES: Json = {"type": "allowed_tools", "mode": "auto", "tools": [CHOSEN]}
NAMED = {"type": "function", "function": {"name": "read"}}
OF_CHAT: Json = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}}
WRONG = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "run"}}]}
CHAT: list[tuple[Given, str]] = [
    (chat(USER, calls("a")), "without an answer"),
    (chat(USER, calls("a"), USER), "did not: a"),
    (chat(USER, result("a")), "preceeding message"),
    (chat(USER, calls("a", "a"), result("a")), "Duplicate"),
    (chat(USER, calls("a", name="read it"), result("a")), "'read it'"),
    (chat(USER, calls("a" * 41), result("a" * 41)), "maximum length 40"),
    (chat(USER, {"role": "assistant", "content": None}), "expected a string"),
    (chat({**USER, "index": 1}), "Additional properties"),
    (chat({**USER, "content": [{"type": "tool_use"}]}), "'tool_use'"),
    (chat(USER, tools=function(description="x" * 1025)), "maximum length 1024"),
    (chat(USER, model="gpt-5.6-luna", **TOOLS), "use /v1/responses"),
    (chat(SYSTEM, USER, ANSWER, SYSTEM, model="qwen3"), "System message must be at the beginning."),
    (chat(USER, model="qwen3", tool_choice=OF_CHAT, **TOOLS), "got 'allowed_tools'"),
    (chat(USER, tool_choice=OF_RESPONSES, **TOOLS), "expected ['allowed_tools', 'type']"),
    (chat(USER, tool_choice={**OF_CHAT, "allowed_tools": WRONG}, **TOOLS), "'run' not found in"),
]


def responses(*items: Json, **more: Any) -> Given:
    tools = [{"type": "function", "name": "read", "parameters": SCHEMA}]
    body = {"model": "gpt-5.6", "input": list(items), "store": False, "tools": tools, **more}
    return openai_responses, {}, body


def called(id: str, **more: Any) -> Json:
    return {"type": "function_call", "call_id": id, "name": "read", "arguments": "{}", **more}


def returned(id: str) -> Json:
    return {"type": "function_call_output", "call_id": id, "output": "x"}


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAB0"}
SAID = {"role": "assistant", "content": [{"type": "output_text", "text": "So."}]}
ENCRYPTED = ["reasoning.encrypted_content"]
RESPONSES: list[tuple[Given, str]] = [
    (responses(USER, called("a")), "No tool output found for function call a."),
    (responses(USER, called("a"), returned("a"), returned("a")), "No tool call found"),
    (responses(USER, called("a"), called("a"), returned("a")), "Duplicate"),
    (responses(USER, called("a" * 65), returned("a" * 65)), "maximum length 64"),
    (responses(USER, called("a", name="read it"), returned("a")), "'read it'"),
    (responses(USER, called("a", arguments={}), returned("a")), "expected a string"),
    (responses(USER, called("a", index=1), returned("a")), "'input[1].index'"),
    (responses(USER, THOUGHT, USER), "without its required following item"),
    (responses(USER, {**THOUGHT, "encrypted_content": None}, SAID), "'rs_1' not found"),
    (responses(USER, {**THOUGHT, "encrypted_content": "x"}, SAID), "could not be verified"),
    (responses(USER, {**SAID, "id": "msg_1"}), "'msg_1' not found"),
    (responses({**USER, "content": [{"type": "text", "text": "a"}]}), "'text'"),
    (responses({"type": "tool_use"}), "'tool_use'"),
    (responses(USER, include=ENCRYPTED, model="gpt-4.1"), "not supported with this model"),
    (responses(USER, THOUGHT, SAID, model="gpt-4.1"), "to a reasoning"),
    (responses(USER, store=True), "stores nothing"),
    (responses(USER, messages=[]), "'messages'"),
    (responses(USER, tool_choice=OF_CHAT), "expected ['mode', 'tools', 'type']"),
    (responses(USER, tool_choice={**OF_RESPONSES, "mode": "any"}), "'any' for 'tool_choice.mode'"),
    (responses(USER, tool_choice={**OF_RESPONSES, "tools": []}), "empty array"),
    (responses(USER, tool_choice={**OF_RESPONSES, "tools": [{"name": "run"}]}), "'run' not found"),
    (responses(USER, tool_choice="some"), "'some'"),
    (responses(USER, tool_choice={"type": "tools"}), "'tools' for 'tool_choice.type'"),
]


@pytest.mark.parametrize(("sent", "text"), [*CLAUDE, *CHAT, *RESPONSES])
def test_what_a_service_refuses(sent: Given, text: str) -> None:
    wire, headers, body = sent
    assert text in str(wire.problem(headers, body))


@pytest.mark.parametrize(
    "sent",
    [
        claude(USER, USER, SYSTEM),
        claude(USER, uses("a", "b"), results("b", "a"), SWITCH, ANSWER, USER),
        claude(USER, SYSTEM, SWITCH, ANSWER, USER, SYSTEM, betas=f"mine,{BY_REFERENCE}"),
        claude(USER, SWITCH, model="claude-opus-5-5-20261001", tool_choice={"type": "none"}),
        claude(USER, SWITCH, model="anthropic/claude-opus-4-8"),
        claude(marked(HOUR), ANSWER, USER, **MARK),
        chat(USER, calls("a", "b"), result("b"), result("a")),
        chat(SYSTEM, USER, ANSWER, SYSTEM, {**SYSTEM, "role": "developer"}),
        chat(USER, tool_choice=OF_CHAT, **TOOLS),
        chat(SYSTEM, USER, model="qwen3", tool_choice="none", **TOOLS),
        chat(USER, model="gpt-5.6"),
        responses(USER, THOUGHT, called("a"), called("b"), returned("b"), returned("a")),
        responses(USER, THOUGHT, THOUGHT, SAID, SYSTEM, {**SYSTEM, "role": "developer"}),
        responses(USER, tool_choice=OF_RESPONSES, include=ENCRYPTED),
    ],
)
def test_what_a_service_takes(sent: Given) -> None:
    wire, headers, body = sent
    assert wire.problem(headers, body) is None


def test_which_tools_are_offered() -> None:
    body = claude(USER)[2]
    assert offered(body) == {"read"}
    body["messages"] += [SWITCH, ANSWER, USER]
    assert offered(body) == {"edit"}
    assert offered({**body, "tool_choice": {"type": "none"}}) == set()
    for wire, _, body in (chat(USER, tools=[*function(), *function(name="run")]), responses(USER)):
        choice = OF_CHAT if wire is openai_chat else OF_RESPONSES
        assert wire.offered({**body, "tool_choice": "none"}) == set()
        assert wire.offered({**body, "tool_choice": choice}) == {"read"}
        assert len(wire.offered(body)) == len(body["tools"])
