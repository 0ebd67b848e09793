"""What Anthropic's and OpenAI's services are sent beside messages and tools, and get back."""

import logging
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from modeshift.models.loading import Models, load_model
from modeshift.models.service import OptionalFields
from modeshift.modes.errors import ProviderError
from modeshift.modes.policy import Approvals
from tests.graph.conftest import Serve
from tests.graph.journey import list_thoughts
from tests.graph.models.model_thread import ModelThread, bind
from tests.harness.conversation import APPROVE, Conversation, make_agent
from tests.harness.recording import MODELS
from tests.provider.anthropic_input import marks_of
from tests.provider.binding import BETA, UPDATES_BETA
from tests.provider.script import Answer, Call, Failure, Step, call, say
from tests.provider.server import ScriptedProvider
from tests.tables import rows

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


@rows(
    "name caches drops",
    *((f"anthropic:claude-{one}-5-5", True, True) for one in ("haiku", "sonnet", "opus")),
    *((f"anthropic:claude-{one}-5-1", True, True) for one in ("fable", "mythos")),
    ("anthropic:claude-sonnet-5-5-20260928", True, True),
    ("anthropic:claude-sonnet-5", True, False),
    ("anthropic:claude-opus-5-50", True, False),
    ("anthropic:my-claude-sonnet-5-5", True, False),
    ("openai:claude-sonnet-5-5", False, False),
)
def test_which_model_is_sent_what(name: str, caches: bool, drops: bool) -> None:
    fields = OptionalFields.of(name)
    thinking = "of this prefix" if drops else "all"
    assert (fields.caches, fields.drops, fields.thinking) == (caches, drops, thinking)


@both_manners
@rows(
    "name thinking betas",
    (SONNET, UPDATES, f"mine-2026-01-01,{BETA},{UPDATES_BETA}"),
    ("anthropic:claude-haiku-5-5", DROP, f"mine-2026-01-01,{BETA}"),
    ("anthropic:claude-opus-5", None, "mine-2026-01-01"),
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


@rows("unknown is_streamed", (BETA, True), ("block_binding", False))
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


ENCRYPTED = ["reasoning.encrypted_content"]
HERE = say("Here I am.")


ELSEWHERE = "http://127.0.0.1:8080/v1"


@rows(
    "model address wanted api",
    ("gpt-5.6", None, None, ENCRYPTED),
    ("gpt-5.6", None, True, ENCRYPTED),
    ("gpt-5.6", None, False, None),
    ("gpt-5.6-luna", "https://api.openai.com/v1", None, ENCRYPTED),
    ("a-model-of-tomorrow", "https://eu.api.openai.com/v1/", None, ENCRYPTED),
    ("gpt-4.1-mini", None, None, []),
    ("gpt-5.3-chat-latest", None, None, []),
    ("qwen3", ELSEWHERE, None, None),
    ("qwen3", ELSEWHERE, True, ENCRYPTED),
    # LangChain would go by the name.
    ("gpt-5.6-sol", "https://openai.example.com/v1", None, None),
)
def test_which_api_is_asked(
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    address: str | None,
    wanted: bool | None,
    api: list[str] | None,
) -> None:
    """``api`` is what the Responses API is to include; None for Chat Completions.

    Without a word, ``wanted``, it is for OpenAI's own address.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    if address is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
    parameters = {} if wanted is None else {"use_responses_api": wanted}
    loaded: Any = load_model(f"openai:{model}", parameters)
    assert loaded.use_responses_api is (api is not None)
    assert loaded.store is (None if api is None else False)
    assert (loaded.include or []) == (api or [])


def talk_of(model: str, workspace: Path, saver: InMemorySaver, talk: Any, **how: Any) -> Any:
    """The thread of ``talk``, with an agent that is made anew."""
    later = Conversation(make_agent(workspace, model, Approvals.AUTO, saver), **how)
    later.config = talk.config if talk else later.config
    return later


def items(provider: ScriptedProvider, kind: str, request: int = -1) -> list[dict[str, Any]]:
    """What of this kind went over the wire."""
    sent = provider.requests[request].body["input"]
    return [item for item in sent if item["type"] == kind]


async def test_calls_and_a_switch(workspace: Path, serve: Serve, *, is_streamed: bool) -> None:
    """Ids come again here; each call goes back once, in its place, with one result."""
    (workspace / "a").write_text("one")
    reads = (Call("read_file", {"path": "a"}, "c1"), Call("read_file", {"path": "é"}, "c2"))
    switch = Call("switch_mode", {"mode_slug": "code", "reason": "To write."}, "c1")
    writes = tuple(Call("write_file", {"path": name, "content": "x"}, "c2") for name in "bc")
    script = [Answer("Both.", reads), Answer("", (switch,)), Answer("", writes), HERE]
    saver = InMemorySaver()
    with serve(script, "openai") as provider:
        asked = talk_of(MODELS["openai"], workspace, saver, None, is_streamed=is_streamed)
        await asked.say("go")
        assert [request["name"] for request in await asked.waiting()] == ["switch_mode"]
        talk = talk_of(MODELS["openai"], workspace, saver, asked, is_streamed=is_streamed)
        await talk.decide(APPROVE)
    assert {request.path for request in provider.requests} == {"/v1/responses"}
    assert sorted(file.name for file in workspace.iterdir()) == ["a", "b", "c"]
    ids = Counter(item["call_id"] for item in items(provider, "function_call"))
    assert ids == Counter(item["call_id"] for item in items(provider, "function_call_output"))
    assert (len(ids), set(ids.values())) == (5, {1})
    assert list(ids)[:2] == ["c1", "c2"], "as they came"
    assert items(provider, "function_call")[1]["arguments"] == '{"path":"\\u00e9"}', "to the letter"
    kinds = [item["type"] for item in provider.requests[-1].body["input"] if "role" not in item]
    call_items, two = ["reasoning", "function_call"], ["function_call", "function_call_output"]
    result = two[1:]
    assert kinds == [*call_items, *two, *result, *call_items, *result, *call_items, *two, *result]
    for request in provider.requests:
        assert (request.body["store"], request.body["include"]) == (False, ENCRYPTED)
        assert all(tool["strict"] is False for tool in request.body["tools"])
    (key,) = {request.body["prompt_cache_key"] for request in provider.requests}
    assert re.fullmatch("[0-9a-f]{32}", key)
    assert asked.config["configurable"]["thread_id"] not in str(provider.requests[-1].body)


@pytest.mark.parametrize(
    ("name", "path"),
    [("chat", "chat/completions"), ("anthropic", "messages"), ("chat", "responses")],
)
async def test_others_get_no_cache_key(workspace: Path, serve: Serve, name: str, path: str) -> None:
    """Also over the Responses API of another server."""
    more = {"use_responses_api": True} if path == "responses" else {}
    with serve([HERE], name) as provider:
        models = Models(MODELS[name], parameters=more)
        await Conversation(make_agent(workspace, models)).say("go")
    (request,) = provider.requests
    assert request.path.endswith(path)
    assert "prompt_cache_key" not in request.body


async def test_a_thread_that_changes_its_model(serve: Serve) -> None:
    """Reasoning goes to a model that reasons, and is not lost in the meantime."""
    with serve([Answer("", (Call("list_files"),)), *[HERE] * 3], "openai") as provider:
        thread = ModelThread(provider, bind(MODELS["openai"]))
        await thread.say()
        await thread.proceed()
        for model in ("openai:gpt-4.1", "openai:gpt-5.6-terra"):
            thread.bound = bind(model)
            await thread.say()
    assert [len(items(provider, "reasoning", number)) for number in range(4)] == [0, 1, 0, 2]
