"""What Anthropic is sent beside messages and tools, and what becomes of thoughts."""

import logging
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from graph.models.anthropic import OptionalFields
from modes.errors import ProviderError
from modes.policy import Approvals
from tests.graph.models.test_providers import use
from tests.harness.conversation import Conversation, make_agent
from tests.provider.binding import BETA
from tests.provider.script import Answer, Call, Failure, call, say
from tests.provider.server import ScriptedProvider, serving

SONNET = "anthropic:claude-sonnet-5-5"
CACHE = {"type": "ephemeral"}
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
ASK = Answer(
    calls=(Call("switch_mode", {"mode_slug": "code", "reason": "A file is wanted."}),),
    thinking="ask",
)
CODE = Answer(calls=(Call("write_file", {"path": "a", "content": "x"}),), thinking="code")
BOUND = Failure(
    "request",
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
    f"different conversation. That setting requires the `{BETA}` value.",
)


def talk_with(workspace: Path, name: str = SONNET, *, is_streamed: bool = False) -> Conversation:
    return Conversation(make_agent(workspace, name, Approvals.AUTO), is_streamed=is_streamed)


def thoughts(provider: ScriptedProvider) -> list[list[str]]:
    """What each request sends back of them."""
    return [
        [
            block["thinking"]
            for message in request.body["messages"]
            for block in message["content"]
            if isinstance(block, dict) and block["type"] == "thinking"
        ]
        for request in provider.requests
    ]


@pytest.mark.parametrize(
    ("name", "caches", "drops"),
    [
        *((f"anthropic:claude-{one}-5-5", True, True) for one in ("haiku", "sonnet", "opus")),
        *((f"anthropic:claude-{one}-5-1", True, True) for one in ("fable", "mythos")),
        ("anthropic:claude-fable-5-2", True, True),
        ("anthropic:claude-sonnet-5-5-20260928", True, True),
        ("anthropic:claude-sonnet-5", True, False),
        ("anthropic:claude-opus-5-20260724", True, False),
        ("anthropic:claude-opus-5-50", True, False),
        ("anthropic:my-claude-sonnet-5-5", True, False),
        ("openai:claude-sonnet-5-5", False, False),
        ("ollama:qwen3", False, False),
        ("offline", False, False),
    ],
)
def test_who_is_sent_what(name: str, caches: bool, drops: bool) -> None:
    fields = OptionalFields.of(name)
    thoughts = "of this mode" if drops else "all"
    assert (fields.caches, fields.drops, fields.thinking) == (caches, drops, thoughts)


@pytest.mark.parametrize(
    ("name", "thinking", "betas"),
    [
        (SONNET, DROP, f"mine-2026-01-01,{BETA}"),
        ("anthropic:claude-opus-5", None, "mine-2026-01-01"),
    ],
)
async def test_what_is_on_the_wire(
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    thinking: Any,
    betas: str,
    *,
    is_streamed: bool,
) -> None:
    """The cache's mark stands at the top: the service moves it along with the history."""
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "anthropic-beta: mine-2026-01-01")
    with serving([call("list_files"), say("Here I am.")]) as provider:
        use(provider, monkeypatch, "anthropic")
        await talk_with(workspace, name, is_streamed=is_streamed).say("go")
        assert provider.refused == []
    assert len(provider.requests) == 2
    for request in provider.requests:
        assert request.body["cache_control"] == CACHE
        assert "cache_control" not in str(request.body["messages"])
        assert request.body.get("thinking") == thinking
        assert request.headers["anthropic-beta"] == betas


async def test_a_thread_goes_on_through_switches(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the model is one that checks and is not known to: from its own words."""
    with serving([ASK, BOUND, CODE, BOUND, say("Done."), BOUND, BOUND]) as provider:
        use(provider, monkeypatch, "anthropic")
        talk = talk_with(workspace, "anthropic:claude-opus-6")
        await talk.say("go")
        await talk.approve_all()
        assert (await talk.messages())[-1].text == "Done."
        with pytest.raises(ProviderError, match="bound to a different"):
            await talk.say("and now?")
    assert thoughts(provider) == [[], ["ask"], [], ["code"], [], ["code"], []], "and not for ever"


@pytest.mark.parametrize("unknown", [BETA, "block_binding"])
async def test_a_service_that_refuses_the_header(
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    unknown: str,
    *,
    is_streamed: bool,
) -> None:
    """It checks all the same: what was thought in an earlier mode stays away for good."""
    script = [ASK, CODE, CODE, say("Done."), say("Back."), say("Hello.")]
    caplog.set_level(logging.WARNING, "modeshift")
    with serving(script, unknown=unknown) as provider:
        use(provider, monkeypatch, "anthropic")
        talk = talk_with(workspace, is_streamed=is_streamed)
        await talk.say("go")
        await talk.approve_all()
        await talk.say("and back?", mode="ask")
        other = Conversation(talk.agent)
        await other.say("hello")
        assert provider.refused == []
        assert provider.steps_left == 0
    first, *rest = [request.body for request in provider.requests]
    assert first.get("thinking") == DROP
    assert not any("thinking" in body for body in rest), "known from then on, in every thread"
    assert all(body["cache_control"] == CACHE for body in rest)
    assert thoughts(provider) == [[], [], [], ["code"], ["code"] * 2, [], []]
    (told,) = caplog.messages
    assert "refuses block_binding, or thinking of an earlier mode" in told


@pytest.mark.parametrize("unknown", [BETA, None])
async def test_a_history_that_was_edited(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, unknown: str | None
) -> None:
    """The service drops thoughts of the same mode; without the header it is sent none."""
    with serving([CODE, say("Done."), say("So?")], unknown=unknown) as provider:
        use(provider, monkeypatch, "anthropic")
        talk = talk_with(workspace)
        await talk.say("go", mode="code")
        first = (await talk.messages())[0]
        edited = HumanMessage("stay", id=first.id)
        await talk.agent.aupdate_state(talk.config, {"messages": [edited]})
        await talk.say("and now?")
        assert (await talk.messages())[-1].text == "So?"
        assert thoughts(provider)[-2:] == ([["code"], []] if unknown else [["code"], ["code"]])


async def test_a_service_that_refuses_the_cache(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving([ASK, CODE, say("Done.")], unknown="cache_control") as provider:
        use(provider, monkeypatch, "anthropic")
        talk = talk_with(workspace)
        await talk.say("go")
        await talk.approve_all()
        assert provider.refused == []
    assert ["cache_control" in one.body for one in provider.requests] == [True, *[False] * 3]
    assert all(one.body["thinking"] == DROP for one in provider.requests)
    assert thoughts(provider)[-1] == ["code"]
