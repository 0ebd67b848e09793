"""How a model is told of a change of mode: which way is chosen, and what if it is refused."""

import json
import logging
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from modeshift.models.loading import Models, load_model
from modeshift.models.providers import is_local
from modeshift.models.service import ToolsWay, choose_tools_way
from modeshift.modes.errors import ProviderError
from tests.graph.models.model_thread import use
from tests.harness.conversation import Conversation, make_agent
from tests.harness.root import ENGINE
from tests.provider.script import Failure, call, say
from tests.provider.server import serving
from tests.tables import rows

DOCS = (ENGINE / "docs/mode-changes.md").read_text(encoding="utf-8")
ELSEWHERE = "at `OPENAI_BASE_URL`"
ROWS = re.findall(r"^\| (.*`\w+:.+`.*) \| `(\w+)` \|", DOCS, re.M)
CASES = [
    (model, way, ELSEWHERE in models)
    for models, way in ROWS
    for model in re.findall(r"`(\w+:[\w.-]+)`", models)
]


@pytest.mark.parametrize(("model", "way", "is_elsewhere"), CASES)
def test_the_way_is_as_the_page_says(
    monkeypatch: pytest.MonkeyPatch, model: str, way: str, *, is_elsewhere: bool
) -> None:
    for name in ("ANTHROPIC", "OPENAI", "GOOGLE"):
        monkeypatch.setenv(f"{name}_API_KEY", "none")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    if is_elsewhere:
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    provider, _, _ = model.partition(":")
    assert choose_tools_way(load_model(model), is_local=is_local(provider)) == way


def test_the_page_has_every_way() -> None:
    assert {way for _, way, _ in CASES} == {*get_args(ToolsWay)}
    assert len(CASES) > 10


@pytest.mark.parametrize("wanted", get_args(ToolsWay))
def test_no_way_is_taken_that_there_is_not(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    for model, possible in (
        ("anthropic:claude-fable-5-2", "tool_changes"),
        ("ollama:qwen3", "none"),
    ):
        assert choose_tools_way(load_model(model), wanted) == (
            wanted if wanted in (possible, "append") else "rewrite"
        )


@rows(
    "window setting way why",
    (None, "auto", "rewrite", "does not say its window"),
    (4096, "auto", "rewrite", "room for append"),
    (16_384, "auto", "append", "of its window of 16,384"),
    (4096, "append", "append", "MODE_CHANGES"),
    (16_384, "rewrite", "rewrite", "MODE_CHANGES"),
)
async def test_all_tools_are_declared_where_the_window_has_room(
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    window: int | None,
    setting: str,
    way: str,
    why: str,
) -> None:
    """A thread keeps the way that it began with; nothing is asked of the server for it."""
    script = [call("write_file", path="a", content="b"), say("No."), say("Again.")]
    with serving(script) as provider:
        use(provider, monkeypatch)
        agent = make_agent(
            workspace, models := Models("openai:qwen3", window, mode_changes=setting)
        )
        seat = agent.live.deps.seat("ask")
        assert (seat.way[0], why in seat.describe_way()) == (way, True)
        talk = Conversation(agent)
        await talk.say("hello")
        (result,) = (await talk.results()).values()
        assert "Ask mode has no 'edit' tools, so write_file did not run." in result.text
        assert not (workspace / "a").exists()
        other = Models(
            "openai:qwen3", window, mode_changes={"append": "rewrite"}.get(way, "append")
        )
        saver: Any = agent.checkpointer
        talk.agent = make_agent(workspace, other, saver=saver)
        seat = talk.agent.live.deps.seat("ask")
        assert "began so" in seat.describe_way((await talk.values())["instructions"])
        await talk.say("and again")
        assert provider.steps_left == 0
    declared = {len(request.body["tools"]) for request in provider.requests}
    assert declared == {len(seat.model.tools if way == "append" else seat.model.names)}
    assert not [request for request in provider.requests if "tool_choice" in request.body]
    assert models.service(seat.mode).fields.way == (setting if setting != "auto" else "append")


@rows(
    "model wanted",
    ("anthropic:claude-sonnet-5-5", "auto"),
    ("anthropic:claude-sonnet-5", "auto"),
    ("openai:deepseek-v4-flash", "allowed_tools"),
)
async def test_a_refusal_in_whatever_words(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    model: str,
    wanted: str,
) -> None:
    """What is ours is left out; if that was it, for good, and else only once."""
    odd = Failure("request", "Computer says no.")
    caplog.set_level(logging.WARNING, "modeshift")
    with serving([odd, odd, odd, say("Hello."), say("Yes.")]) as provider:
        use(provider, monkeypatch)
        talk = Conversation(make_agent(tmp_path, Models(model, mode_changes=wanted)))
        with pytest.raises(ProviderError, match="Computer says no"):
            await talk.say("Hello?")
        assert caplog.messages == []
        await talk.say("Is it you?")
        await talk.say("Really?")
    fields = ("cache_control", "defer_loading", "allowed_tools", "thinking", "anthropic-beta")
    held = [
        [name for name in fields if name in json.dumps([{**request.headers}, request.body])]
        for request in provider.requests
    ]
    assert held[0] == held[2] != []
    assert held[1] == held[3] == held[4] == []
    assert caplog.messages
    assert len({*caplog.messages}) == len(caplog.messages), "said once"
    assert all("not sent from now on" in told for told in caplog.messages)
