"""The first request of each mode that is shipped is as small as docs/own/prompts.md says."""

import json
from pathlib import Path
from typing import Any

import pytest
from modeshift.graph.configuration.loading import AgentLoader
from modeshift.testing.answers import next_request
from repository import ROOT
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


def count(llama: Llama, body: dict[str, Any]) -> int:
    asked = {name: body[name] for name in ("messages", "tools")}
    status, answer = llama.ask("/apply-template", asked)
    assert status == 200, answer
    return llama.count(answer["prompt"])


async def test_the_first_request_is_small(
    start_llama: StartLlama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    settings = UserFolders(tmp_path).settings(modes_folder=ROOT / "modes", model="openai:qwen3")
    deps = in_sandbox(AgentLoader(settings).deps())
    llama = start_llama(read_template(TEMPLATE))
    sizes = {}
    for mode in deps.catalog:
        request = await next_request(open_thread(deps), "hello", mode=mode)
        body = json.loads(json.dumps(request.body).replace(str(tmp_path), "/home/me"))
        sizes[mode] = count(llama, body)
    assert max(sizes.values()) <= MOST, sizes
    estimates = {mode: deps.seat(mode).first_request_size for mode in sizes}
    assert all(abs(sizes[mode] / size - 1) < 0.1 for mode, size in estimates.items()), estimates
    assert f"at most {MOST:,} tokens" in PAGE
