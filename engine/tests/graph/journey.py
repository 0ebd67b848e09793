"""Conversations with a model that thinks, and what each of its requests must be like."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from tests.graph.test_prefix import check_prefixes
from tests.provider.script import Answer, Call, Step
from tests.provider.server import Request, ScriptedProvider

CLAUDE, GPT = "anthropic:claude-sonnet-5-5", "openai:gpt-6.2"
"""Both bind what they thought to all that stood before it."""


def answer(messages: Sequence[BaseMessage]) -> Step:
    """What the user says is a list of steps: ``mode code, write_file a.txt``."""
    last = max(index for index, one in enumerate(messages) if one.type == "human")
    steps = [step.split() for step in messages[last].text.partition(":")[2].split(",")]
    done = sum(message.type == "tool" for message in messages[last:])
    thinking = f"Hm {len(messages)}."
    if done >= len(steps) or not steps[done]:
        return Answer("So.", thinking=thinking)
    name, value = steps[done]
    args: dict[str, Any] = {"path": value}
    if name == "mode":
        name, args = "switch_mode", {"mode_slug": value, "reason": "It is time."}
    elif name == "write_file":
        args["content"] = "x"
    return Answer(calls=(Call(name, args),), thinking=thinking)


def check_requests(provider: ScriptedProvider, requests: Sequence[Request]) -> None:
    """Nothing was refused or dropped, and each request begins with the one before."""
    assert (provider.refused, provider.dropped, provider.not_offered) == ([], [], [])
    assert len(requests) > 1
    check_prefixes([request.body for request in requests])


def list_thoughts(request: Request) -> list[str]:
    """What was thought and is sent back."""
    body = request.body
    if "input" in body:
        return [item["summary"][0]["text"] for item in body["input"] if item["type"] == "reasoning"]
    return [
        block["thinking"]
        for message in body["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "thinking"
    ]
