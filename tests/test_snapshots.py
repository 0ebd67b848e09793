"""What the model is told, as it goes over the wire: the prompt, and each mode and tool in a file.

A change shows in review as a change of a file in ``snapshots``; `make snapshots` writes them anew.
The modes and tools that there are stand in none of them: a new one is a new file, and no more.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from modeshift.testing import Conversation, load_modes, make_agent, next_request

SNAPSHOTS = Path(__file__).parent / "snapshots"
MODEL = "anthropic:claude-sonnet-5-5"


async def snapshots(workspace: Path) -> Iterator[tuple[str, str]]:
    """Names of files, and what they should hold."""
    catalog = load_modes().catalog
    agent = make_agent(workspace, MODEL, is_sandboxed=True)
    texts, tools = dict[str, str](), dict[str, Any]()
    for mode in catalog:
        body = (await next_request(Conversation(agent), "hello", mode=mode)).body
        (prompt,) = [block["text"] for block in body["system"]]
        texts["prompt.md"] = re.sub(r"(?<=\nThe modes:\n\n)(- .*\n)+", "- ...\n", prompt)
        ((words,),) = [[block["text"] for block in body["messages"][-1]["content"]]]
        texts[f"modes/{mode}.md"] = re.sub(r"(?m)^Its tools are: .*\n\n?", "", words)
        tools |= {tool["name"]: tool for tool in body["tools"]}
    for name, tool in tools.items():
        tool.pop("defer_loading", None)
        shown = json.dumps(without([*catalog], tool), indent=2, ensure_ascii=False)
        texts[f"tools/{name}.json"] = f"{shown}\n"
    return iter(texts.items())


def without(modes: list[str], value: Any) -> Any:
    """The value with dots in the place of the list of all modes."""
    if isinstance(value, dict):
        return {key: without(modes, part) for key, part in value.items()}
    if isinstance(value, list):
        return ["..."] if value == modes else [without(modes, part) for part in value]
    return value


async def test_what_the_model_sees(workspace: Path, snapshot: Callable[[str, str], None]) -> None:
    expected = dict(await snapshots(workspace))
    for name, text in expected.items():
        snapshot(name, text)
    for file in [file for file in SNAPSHOTS.rglob("*") if file.is_file()]:
        if file.relative_to(SNAPSHOTS).as_posix() not in expected:
            assert os.environ.get("WRITE") == "1", f"{file} is of nothing: make snapshots"
            file.unlink()
