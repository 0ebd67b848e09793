"""What makes two requests the same point of the same conversation."""

from typing import Any

import pytest

from graph.replay.dialogue import read_dialogue
from graph.replay.player import load_calls
from graph.settings import ROOT


def test_each_format_reads_the_same() -> None:
    found = []
    for name in ("openai", "chat", "anthropic"):
        path = ROOT / "cassettes" / "test_conversations" / f"test_parallel_reads-{name}-whole.yaml"
        found.append(read_dialogue(load_calls(path)[-1].body))
    assert found[0] == found[1] == found[2]
    kinds = [kind for kind, _ in found[0][1]]
    assert kinds == ["user", "assistant", "call", "call", "result", "result"]


def body(**changed: str) -> Any:
    """A request to Anthropic, with something ``changed``."""
    now = {"name": "read", "path": "a", "text": "hello", "role": "user", "tool": "read"} | changed
    call = {"type": "tool_use", "id": "1", "name": now["name"], "input": {"path": now["path"]}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": now.get("result", "found")}
    return {
        "system": now.get("system", "You are."),
        "tools": [{"name": now["tool"], "description": now.get("description", "Reads.")}],
        "messages": [
            {"role": now["role"], "content": now["text"]},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result, {"type": "text", "text": "and?"}]},
        ],
    }


@pytest.mark.parametrize(
    ("changed", "is_same"),
    [
        ({"system": "Another."}, True),
        ({"description": "Reads well."}, True),
        ({"result": "nothing"}, True),
        ({"name": "write"}, False),
        ({"path": "b"}, False),
        ({"text": "hallo"}, False),
        ({"role": "assistant"}, False),
        ({"tool": "write"}, False),
    ],
)
def test_prompts_and_results_may_differ(changed: dict[str, str], is_same: bool) -> None:
    assert (read_dialogue(body()) == read_dialogue(body(**changed))) is is_same
