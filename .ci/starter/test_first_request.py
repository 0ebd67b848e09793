"""How many tokens the first request has in each mode that is shipped, as llama.cpp counts them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

from modeshift.configuration.loading import AgentLoader
from modeshift.testing.answers import next_request
from tests.harness.conversation import open_thread
from tests.harness.place import UserFolders, in_sandbox
from tests.local.conftest import StartLlama, start_llama
from tests.local.llama import Llama
from tests.local.templates import read_template

__all__ = ["start_llama"]
pytestmark = pytest.mark.local
MOST = 2_400
PAGE = (ROOT / "docs/own/prompts.md").read_text(encoding="utf-8")
TEMPLATE = "Qwen-Qwen2.5-7B-Instruct"
NEAR = 25
"""What is told of the machine has another length elsewhere."""


def count(llama: Llama, body: dict[str, Any], *left_out: str) -> int:
    asked = {name: body[name] for name in ("messages", "tools") if name not in left_out}
    status, answer = llama.ask("/apply-template", asked)
    assert status == 200, answer
    return llama.count(answer["prompt"])


def measure(llama: Llama, body: dict[str, Any]) -> tuple[int, ...]:
    """The system prompt, the mode's words, the tools, and the whole."""
    system, user = (message["content"] for message in body["messages"])
    words, _, _ = user.partition("\n# Where you work")
    whole = count(llama, body)
    return llama.count(system), llama.count(words), whole - count(llama, body, "tools"), whole


async def test_the_first_request_is_small(
    start_llama: StartLlama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    settings = UserFolders(tmp_path).settings(modes_folder=ROOT / "modes", model="openai:qwen3")
    deps = in_sandbox(AgentLoader(settings).deps())
    llama = start_llama(read_template(TEMPLATE))
    rows = {}
    for mode in deps.catalog:
        request = await next_request(open_thread(deps), "hello", mode=mode)
        body = json.loads(json.dumps(request.body).replace(str(tmp_path), "/home/me"))
        rows[mode] = measure(llama, body)
    assert max(whole for *_, whole in rows.values()) <= MOST, rows
    estimates = {mode: deps.seat(mode).first_request_size for mode in rows}
    assert all(abs(rows[mode][-1] / size - 1) < 0.1 for mode, size in estimates.items()), estimates
    told = re.findall(
        r"^\| `(\w+)` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.M
    )
    page = {mode: [int(number.replace(",", "")) for number in numbers] for mode, *numbers in told}
    assert page.keys() == rows.keys(), f"{rows}"
    far = [
        (mode, row)
        for mode, row in rows.items()
        if any(abs(now - then) > NEAR for now, then in zip(row, page[mode], strict=True))
    ]
    assert not far, f"docs/own/prompts.md says {page}"
