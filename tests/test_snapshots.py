"""What the model sees, as it goes over the wire: prompts, and tools in each format.

A change shows in review as a change of a file in ``snapshots``; `make snapshots` writes them anew.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from modeshift.testing import Conversation, load_modes, make_agent, next_request

SNAPSHOTS = Path(__file__).parent / "snapshots"
MODELS = {
    "openai": "openai:gpt-5.6",
    "chat": "openai:qwen3",
    "anthropic": "anthropic:claude-sonnet-5-5",
}
"""By wire format; ``chat`` is any server that speaks OpenAI's Chat Completions."""
Seen = dict[str, dict[str, Any]]
"""The body of a request, by wire format and mode."""


async def requests(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Seen:
    """What each provider is sent in each mode."""
    seen: Seen = {}
    catalog = load_modes().catalog
    for name, model in MODELS.items():
        if name == "chat":
            monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")
        agent = make_agent(workspace, model, modes=catalog)
        bodies = [(await next_request(Conversation(agent), "hello", mode=m)).body for m in catalog]
        seen[name] = dict(zip(catalog, bodies, strict=True))
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return seen


def snapshots(seen: Seen, sandboxed: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of files, and what they should hold."""
    openai, chat, anthropic = seen["openai"], seen["chat"], seen["anthropic"]
    prompts = {body["input"][0]["content"] for body in openai.values()}
    prompts |= {body["messages"][0]["content"] for body in chat.values()}
    prompts |= {block["text"] for body in anthropic.values() for block in body["system"]}
    (prompt,) = prompts  # all are told the same, in every mode
    yield "prompt.md", prompt
    tools_of_modes = {}
    for mode, body in openai.items():
        words = body["input"][-1]["content"]
        assert anthropic[mode]["messages"][-1]["content"] == [{"type": "text", "text": words}]
        tagged = f"hello\n\n<system-message>\n{words}\n</system-message>"
        assert chat[mode]["messages"][-1]["content"] == tagged
        yield f"words-{mode}.md", words
        names = [tool["name"] for tool in body["tool_choice"]["tools"]]
        shown = [tool for tool in anthropic[mode]["tools"] if not tool.get("defer_loading")]
        assert [tool["name"] for tool in shown] == names
        assert [tool["function"]["name"] for tool in chat[mode]["tools"]] == names
        tools_of_modes[mode] = names
    yield "tools-of-modes.json", as_json(tools_of_modes)
    for name, bodies in seen.items():
        tools: dict[str, Any] = {}
        for body in bodies.values():
            for tool in body["tools"]:
                tool.pop("defer_loading", None)
                known = tools.setdefault(tool.get("function", tool)["name"], tool)
                assert known == tool, "a tool is the same in every mode"
        yield f"tools-{name}.json", as_json([tools[tool] for tool in sorted(tools)])
    command = next(tool for tool in sandboxed["tools"] if tool["name"] == "execute_command")
    yield "execute_command-in-the-sandbox.txt", f"{command['description']}\n"


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


async def test_what_the_model_sees(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Callable[[str, str], None]
) -> None:
    sandboxed = make_agent(workspace, MODELS["anthropic"], is_sandboxed=True)
    request = await next_request(Conversation(sandboxed), "hello")
    expected = dict(snapshots(await requests(workspace, monkeypatch), request.body))
    for name, text in expected.items():
        snapshot(name, text)
    assert {file.name for file in SNAPSHOTS.iterdir()} == {*expected}, "a snapshot of nothing"
