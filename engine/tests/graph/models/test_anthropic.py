"""What Anthropic is sent beside messages and tools, and which thinking it gets back."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from modeshift.models.service import OptionalFields
from modeshift.modes.errors import ProviderError
from tests.graph.conftest import Serve
from tests.graph.journey import list_thoughts
from tests.graph.models.model_thread import ModelThread, bind
from tests.provider.anthropic_input import marks_of
from tests.provider.binding import BETA, UPDATES_BETA
from tests.provider.script import Answer, Call, Failure, Step, call, say
from tests.provider.server import ScriptedProvider

SONNET = "anthropic:claude-sonnet-5-5"
CACHE = {"type": "ephemeral"}
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
UPDATES = {**DROP, "display": "updates"}
ASK = Answer(calls=(Call("list_files"),), thinking="ask")
CODE = Answer(calls=(Call("write_file", {"path": "a", "content": "x"}),), thinking="code")
BOUND = Failure(
    "request",
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
    f"different conversation. That setting requires the `{BETA}` value.",
)
both_manners = pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])


class ModalThread(ModelThread):
    """A thread whose mode can be changed: each mode has a prompt of its own."""

    def __init__(
        self, provider: ScriptedProvider, name: str = SONNET, *, is_streamed: bool = False
    ) -> None:
        super().__init__(provider, bind(name, "ask", is_streamed=is_streamed))
        code = bind(name, "code", is_streamed=is_streamed)
        self.modes = {"ask": self.bound, "code": replace(code, service=self.bound.service)}

    def switch_to(self, mode: str) -> None:
        self.bound = self.modes[mode]


@pytest.mark.parametrize(
    ("name", "caches", "drops"),
    [
        *((f"anthropic:claude-{one}-5-5", True, True) for one in ("haiku", "sonnet", "opus")),
        *((f"anthropic:claude-{one}-5-1", True, True) for one in ("fable", "mythos")),
        ("anthropic:claude-sonnet-5-5-20260928", True, True),
        ("anthropic:claude-sonnet-5", True, False),
        ("anthropic:claude-opus-5-50", True, False),
        ("anthropic:my-claude-sonnet-5-5", True, False),
        ("openai:claude-sonnet-5-5", False, False),
    ],
)
def test_which_model_is_sent_what(name: str, caches: bool, drops: bool) -> None:
    fields = OptionalFields.of(name)
    thinking = "of this prefix" if drops else "all"
    assert (fields.caches, fields.drops, fields.thinking) == (caches, drops, thinking)


@both_manners
@pytest.mark.parametrize(
    ("name", "thinking", "betas"),
    [
        (SONNET, UPDATES, f"mine-2026-01-01,{BETA},{UPDATES_BETA}"),
        ("anthropic:claude-haiku-5-5", DROP, f"mine-2026-01-01,{BETA}"),
        ("anthropic:claude-opus-5", None, "mine-2026-01-01"),
    ],
)
async def test_what_is_on_the_wire(
    monkeypatch: pytest.MonkeyPatch,
    serve: Serve,
    name: str,
    thinking: Any,
    betas: str,
    *,
    is_streamed: bool,
) -> None:
    """The cache's mark is at the top level, which the service moves along with the history.

    A second one is where the request before ended, a third behind tools and prompt.
    """
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "anthropic-beta: mine-2026-01-01")
    with serve([call("list_files"), say("Here I am.")], "anthropic") as provider:
        thread = ModelThread(provider, bind(name, is_streamed=is_streamed))
        await thread.say()
        await thread.proceed()
    assert len(provider.requests) == 2
    for request in provider.requests:
        assert request.body["cache_control"] == CACHE
        assert "cache_control" not in str(request.body["messages"][1:])
        assert request.body.get("thinking") == thinking
        assert request.headers["anthropic-beta"] == betas
    first, second = [[*marks_of(request.body["messages"])] for request in provider.requests]
    assert (first, second) == ([], [CACHE])
    assert all([*marks_of(request.body["system"])] == [CACHE] for request in provider.requests)


async def test_a_model_that_checks_and_is_not_known_to(serve: Serve) -> None:
    """It says so itself. All thinking is left out for the history that needs it, not for ever."""
    with serve(
        [ASK, BOUND, CODE, BOUND, say("Done."), BOUND, BOUND, BOUND], "anthropic"
    ) as provider:
        thread = ModalThread(provider, "anthropic:claude-opus-6")
        await thread.say()
        thread.switch_to("code")
        await thread.proceed()
        assert (await thread.proceed()).text == "Done."
        with pytest.raises(ProviderError, match="bound to a different"):
            await thread.say("and now?")
    sent = [list_thoughts(request) for request in provider.requests]
    assert sent == [[], ["ask"], [], ["code"], [], ["code"], [], []]


@both_manners
@pytest.mark.parametrize("unknown", [BETA, "block_binding"])
async def test_a_service_that_refuses_the_header(
    serve: Serve, caplog: pytest.LogCaptureFixture, unknown: str, *, is_streamed: bool
) -> None:
    """It checks all the same: thinking of an earlier prompt stays away for good."""
    script = [ASK, CODE, CODE, say("Done."), say("Back."), say("Hello.")]
    caplog.set_level(logging.WARNING, "modeshift")
    with serve(script, "anthropic", unknown=unknown) as provider:
        thread = ModalThread(provider, is_streamed=is_streamed)
        await thread.say()
        thread.switch_to("code")
        for _ in range(3):
            await thread.proceed()
        thread.switch_to("ask")
        await thread.say("and back?")
        await ModelThread(provider, thread.bound).say("hello")
    first, *rest = [request.body for request in provider.requests]
    assert first.get("thinking") == UPDATES
    assert not any("thinking" in body for body in rest), "known from then on, in every thread"
    assert all(body["cache_control"] == CACHE for body in rest)
    sent = [list_thoughts(request) for request in provider.requests]
    assert sent == [[], [], [], ["code"], ["code"] * 2, [], []]
    (told,) = caplog.messages
    assert "refuses block_binding: not sent" in told


@pytest.mark.parametrize("unknown", [UPDATES_BETA, "display"])
async def test_a_service_that_knows_no_updates(serve: Serve, unknown: str) -> None:
    """The binding of thinking is kept."""
    with serve([ASK, say("Done.")], "anthropic", unknown=unknown) as provider:
        thread = ModelThread(provider, bind(SONNET))
        await thread.say()
        await thread.proceed()
    sent = [request.body["thinking"] for request in provider.requests]
    assert sent == [UPDATES, DROP, DROP]


async def test_an_image_that_is_refused_blocks_no_thread(serve: Serve) -> None:
    """Neither a tool's nor the user's: words are sent in its place, and later ones are sent.

    One is refused as what it is, one because no model behind an address takes any (404).
    """

    def picture(kind: str, id: str) -> Any:
        data = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
        content: Any = [{"type": "text", "text": "A dot:"}, data]
        if kind == "tool":
            return ToolMessage(content, tool_call_id=thread.messages[-1].tool_call_id, id=id)
        return HumanMessage(content, id=id)

    unread = Failure("request", "messages.2.content.0.image.source: Could not process image")
    script: list[Step] = [
        call("list_files"),
        unread,
        say("1"),
        Failure("model", "No endpoints found that support image input"),
        say("2"),
        say("3"),
        *[unread] * 4,
    ]
    with serve(script, "anthropic") as provider:
        thread: Any = ModelThread(provider, bind("anthropic:claude-sonnet-5"))
        await thread.say()
        thread.messages[-1] = picture("tool", "a")
        await thread.proceed()
        thread.messages.append(picture("user", "b"))
        await thread.proceed()
        await thread.say("and now?")
        thread.messages.append(picture("user", "c"))
        with pytest.raises(ProviderError, match="Could not process image"):
            await thread.proceed()
        assert "c" not in thread.bound.service.unshown, "it was not what was refused"
        assert thread.bound.service.fields.caches, "nor was that"
    sent = [str(request.body["messages"]) for request in provider.requests]
    assert [text.count("'type': 'image'") for text in sent] == [0, 1, 0, 1, 0, 0, 1, 0, 1, 0]
    assert "[images that you cannot be shown: 1]" in sent[2]
