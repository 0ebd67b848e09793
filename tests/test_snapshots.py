"""What the model sees, as it goes over the wire: prompts, and tools in each format.

A change shows in review as a change of a file in ``snapshots``; `make renew` writes them anew.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modeshift.tools.processes.sandboxes import Commands
from modeshift.tools.tool import ToolDeps
from modeshift.tools.workspace.workspace import Workspace
from tests.graph.models.model_thread import use
from tests.harness.conversation import Conversation, make_agent
from tests.harness.modes import load_catalog
from tests.harness.place import JUDGED_SANDBOX
from tests.harness.recording import MODELS
from tests.provider.script import say
from tests.provider.server import serving
from tools.command import command_tools

SNAPSHOTS = Path(__file__).parent / "snapshots"
Seen = dict[str, dict[str, Any]]
"""The body of a request, by provider and mode."""


async def requests(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Seen]:
    """What each provider is sent in each mode."""
    seen: dict[str, Seen] = {}
    catalog = load_catalog()
    with serving([say("Here I am.")] * len(MODELS) * len(catalog)) as provider:
        for name, model in MODELS.items():
            use(provider, monkeypatch, name)
            for mode in catalog:
                agent = make_agent(workspace, model, catalog=catalog)
                await Conversation(agent).say("hello", mode=mode)
                seen.setdefault(name, {})[mode] = provider.requests[-1].body
    return seen


def snapshots(seen: dict[str, Seen], workspace: Workspace) -> Iterator[tuple[str, str]]:
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
    commands = Commands(JUDGED_SANDBOX)
    command, *_ = command_tools(ToolDeps(workspace, commands=commands))
    yield "execute_command-in-the-sandbox.txt", f"{command.runnable.description}\n"


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


async def test_what_the_model_sees(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    expected = dict(snapshots(await requests(workspace, monkeypatch), Workspace(workspace)))
    if pytestconfig.getoption("--update-snapshots"):
        SNAPSHOTS.mkdir(exist_ok=True)
        for file in SNAPSHOTS.iterdir():
            if file.name not in expected:
                file.unlink()
        for name, text in expected.items():
            (SNAPSHOTS / name).write_text(text, encoding="utf-8")
    found = {file.name: file.read_text(encoding="utf-8") for file in SNAPSHOTS.iterdir()}
    for name, text in expected.items():
        assert text == found.get(name, ""), f"{name} has changed; is it meant? `make renew`"
    assert sorted(found) == sorted(expected), "a snapshot of nothing"
