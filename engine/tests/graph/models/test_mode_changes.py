"""How a model is told of a change of mode: which way is chosen, and what if it is refused."""

import json
import logging
import re
from pathlib import Path
from typing import get_args

import pytest

from modeshift.graph.models.loading import Models, load_model
from modeshift.graph.models.service import Way, choose_way
from modeshift.modes.errors import ProviderError
from modeshift.modes.policy import Approvals
from tests.graph.models.model_thread import use
from tests.graph.test_prefix import get_begin
from tests.harness.conversation import APPROVE, Conversation, make_agent
from tests.harness.root import ROOT
from tests.provider.script import Failure, call, say
from tests.provider.server import serving
from tests.provider.tool_changes import offered

DOCS = (ROOT / "docs/mode-changes.md").read_text(encoding="utf-8")
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
    assert choose_way(load_model(model)) == way


def test_the_page_has_every_way() -> None:
    assert {way for _, way, _ in CASES} == {*get_args(Way)}
    assert len(CASES) > 10


@pytest.mark.parametrize("wanted", get_args(Way))
def test_no_way_is_taken_that_the_client_has_not(
    monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    for model, possible in (
        ("anthropic:claude-fable-5-2", "tool_changes"),
        ("ollama:qwen3", "none"),
    ):
        assert choose_way(load_model(model), wanted) == (
            wanted if wanted == possible else "rewrite"
        )


async def test_the_tools_are_declared_once_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sub-task and a summary begin a history of their own, behind the same tools."""
    task = call("new_task", mode_slug="ask", message="Look.")
    script = [
        *(task, call("list_files"), say("Nothing there.")),
        call("switch_mode", mode_slug="ask", reason="To read."),
        *(say("Read."), say("The user wants it."), say("Yes."), say("Still.")),
    ]
    with serving(script) as provider:
        use(provider, monkeypatch)
        agent = make_agent(tmp_path, "anthropic:claude-sonnet-5-5", Approvals.AUTO)
        talk = Conversation(agent)
        await talk.say("Do it.", mode="code")
        await talk.approve_all()
        await talk.say("Go on.", compact=True)
        await talk.say("And now?")
    assert (provider.refused, provider.dropped, provider.not_offered) == ([], [], [])
    assert provider.steps_left == 0
    begins = {json.dumps(get_begin(request.body)) for request in provider.requests}
    assert len(begins) == 1
    first, *others = provider.inputs
    assert all(given.read > 0.5 * first.total for given in others)
    for request in (*provider.requests[1:3], *provider.requests[4:]):
        assert "list_files" in offered(request.body), "Ask mode's, and no others"
        assert "write_file" not in offered(request.body)


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("anthropic:claude-sonnet-5-5", "auto"),
        ("anthropic:claude-sonnet-5", "auto"),
        ("openai:deepseek-v4-flash", "allowed_tools"),
    ],
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
        [name for name in fields if name in json.dumps([{**one.headers}, one.body])]
        for one in provider.requests
    ]
    assert held[0] == held[2] != []
    assert held[1] == held[3] == held[4] == []
    assert caplog.messages
    assert len({*caplog.messages}) == len(caplog.messages), "said once"
    assert all("not sent from now on" in told for told in caplog.messages)


@pytest.mark.parametrize(
    ("model", "wanted", "unknown"),
    [
        ("openai:qwen3", "allowed_tools", None),
        ("openai:deepseek-v4-flash", "allowed_tools", "allowed_tools"),
    ],
)
async def test_a_service_that_refuses_the_way(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    model: str,
    wanted: str,
    unknown: str | None,
) -> None:
    """It gets each change as all services take it, from then on, and in every thread."""
    switch = call("switch_mode", mode_slug="code", reason="To write.")
    script = [switch, call("write_file", path="a", content="b"), say("Done."), say("Hello.")]
    caplog.set_level(logging.WARNING, "modeshift")
    with serving(script, unknown=unknown) as provider:
        use(provider, monkeypatch)
        agent = make_agent(tmp_path, Models(model, mode_changes=wanted))
        first, second = Conversation(agent), Conversation(agent)
        await first.say("Write it.")
        await first.decide(APPROVE)
        await first.decide(APPROVE)
        await second.say("Hello?")
        assert provider.steps_left == 0
        assert provider.not_offered == []
        assert len(provider.requests) == 1 + len(script), "asked once more, the first time"
    assert (tmp_path / "a").read_text() == "b"
    (told,) = caplog.messages
    assert "so each change of mode rewrites the request" in told
