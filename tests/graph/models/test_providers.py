"""Real clients of real providers against the scripted one: streaming, and every failure."""

import asyncio
import json
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langgraph.checkpoint.memory import InMemorySaver

from graph.messages.from_model import CUT_OFF, REFUSED
from modes.errors import ProviderError
from modes.policy import Approvals
from tests.harness.conversation import APPROVE, Conversation, make_agent
from tests.harness.recording import KEYS, MODELS, redirect
from tests.provider.script import Answer, Call, Driver, Failure, Raw, Step, call, offline, say
from tests.provider.server import KEY, ScriptedProvider, serving

AT_ONCE = "0.01"
"""Seconds to wait before the client tries again."""
HERE = say("Here I am.")
BROKEN = '{"path": "a.txt", "content": "rm -rf /tmp/half-a-pa'


def use(
    provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch, name: str = "chat", key: str = KEY
) -> None:
    """Make this the provider of the environment; for ``openai`` at OpenAI's own address."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    if name == "openai":
        monkeypatch.delenv("OPENAI_BASE_URL")
        redirect(monkeypatch, provider.url)


class Talk(Conversation):
    """A thread with a model of the provider."""

    def __init__(
        self, provider: ScriptedProvider, workspace: Path, name: str, *, is_streamed: bool
    ) -> None:
        agent = make_agent(workspace, MODELS[name], Approvals.AUTO)
        super().__init__(agent, is_streamed=is_streamed)
        self.provider = provider


of_chat_too = pytest.mark.parametrize("name", MODELS)
"""Where Chat Completions are not what OpenAI's Responses are: errors come through one client."""


@pytest.fixture(params=KEYS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def start(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, is_streamed: bool
) -> Iterator[Any]:
    """Makes a thread with a model that follows a script; nothing is left of the script."""
    providers: list[ScriptedProvider] = []
    with ExitStack() as stack:

        def started(script: Sequence[Step] | Driver, key: str = KEY) -> Talk:
            provider = stack.enter_context(serving(script))
            providers.append(provider)
            use(provider, monkeypatch, name, key)
            return Talk(provider, workspace, name, is_streamed=is_streamed)

        yield started
    for provider in providers:
        assert provider.refused == [], "the real service would have refused it"
        assert provider.steps_left == 0


async def fails(talk: Talk, *texts: str) -> str:
    """The run ends with an error that says this; nothing of the answer is kept."""
    before = len(await talk.messages())
    with pytest.raises(ProviderError) as caught:
        await talk.say("hello")
    for text in texts:
        assert text in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(await talk.messages()) == before + 1
    return str(caught.value)


async def goes_on(talk: Talk) -> None:
    """The thread is usable, and its history is one that the provider takes."""
    await talk.say("and now?")
    assert (await talk.messages())[-1].text == "Here I am."


@of_chat_too
async def test_words_and_calls_arrive_piece_by_piece(
    start: Any, workspace: Path, *, is_streamed: bool
) -> None:
    text = "hello " * 9
    talk = start([call("write_file", text="I write it now.", path="a.txt", content=text), HERE])
    await talk.say("go", mode="code")
    assert (workspace / "a.txt").read_text() == text
    assert (await talk.messages())[-1].text == "Here I am."
    message: Any = (await talk.messages())[1]
    assert message.text == "I write it now.", "words only, and the same with each provider"
    assert talk.provider.requests[0].body.get("stream", False) is is_streamed
    words = [chunk.text for chunk in talk.chunks if chunk.text]
    parts = [piece["args"] for chunk in talk.chunks for piece in chunk.tool_call_chunks]
    assert (len(words) > 2, len(parts) > 4) == (is_streamed, is_streamed)
    if is_streamed:
        assert "".join(words) == "I write it now.Here I am."
        assert json.loads("".join(part or "" for part in parts)) == message.tool_calls[0]["args"]


@of_chat_too
async def test_parallel_calls(start: Any, workspace: Path) -> None:
    (workspace / "a").write_text("one")
    (workspace / "b").write_text("two")
    reads = (Call("read_file", {"path": "a"}), Call("read_file", {"path": "b"}))
    talk = start([Answer("", reads), HERE])
    await talk.say("go")
    one, two = (await talk.results()).values()
    assert ("one" in one.text, "two" in two.text) == (True, True)
    sent = json.dumps(talk.provider.requests[1].body)
    assert 0 < sent.index("one") < sent.index("two")


@of_chat_too
async def test_the_offline_model_drives_it(start: Any, workspace: Path) -> None:
    """What the client sends can be read back whole: text, calls, results."""
    talk = start(offline)
    await talk.say("write a.txt: hello\nread a.txt\nread missing")
    await talk.decide(APPROVE)
    assert (workspace / "a.txt").read_text() == "hello"
    report = (await talk.messages())[-1].text
    assert report.startswith("Here is how it went:\n- write a.txt: hello: Created a.txt")
    assert "- read missing: " in report
    assert "'missing' cannot be read" in report


async def test_a_key_that_is_refused(start: Any, name: str) -> None:
    talk = start([], key="sk-wrong-0123456789")
    text = await fails(talk, f"does not accept {KEYS.get(name, KEYS['openai'])}; set it")
    assert "sk-wrong" not in text, "OpenAI's answer repeats the key"


async def test_too_many_requests_are_tried_again(start: Any) -> None:
    wait = Failure("rate", retry_after=AT_ONCE)
    talk = start([wait, wait, HERE])
    await goes_on(talk)
    assert len(talk.provider.requests) == 3


@pytest.mark.parametrize("seconds", ["61", "86400"])
async def test_a_provider_that_asks_to_wait_long_is_not_waited_for(
    start: Any, seconds: str
) -> None:
    """Anthropic's own client would: for a day, or a hundred years."""
    talk = start([Failure("rate", retry_after=seconds), HERE])
    async with asyncio.timeout(20):
        text = await fails(talk, "too many requests", f"it asks to wait {float(seconds):g} s")
    assert "tried" not in text
    await goes_on(talk)


async def test_too_many_requests_for_too_long(start: Any) -> None:
    talk = start([*[Failure("rate", retry_after=AT_ONCE)] * 3, HERE])
    await fails(talk, "too many requests", "tried 3 times", f"wait {AT_ONCE} s", "per min")
    await goes_on(talk)


@pytest.mark.parametrize("kind", ["server", "overloaded"])
async def test_a_failing_server(start: Any, kind: Any) -> None:
    failure = Failure(kind, retry_after=AT_ONCE)
    talk = start([failure, HERE, *[failure] * 3, HERE])
    await goes_on(talk)
    await fails(talk, "the provider failed", "tried 3 times")
    await goes_on(talk)


async def test_a_conversation_that_is_too_long(start: Any) -> None:
    talk = start([Failure("context"), HERE])
    await fails(talk, "longer than it can read", "start a new thread", "reads more: ")
    assert len(talk.provider.requests) == 1, "trying again would not help"
    await goes_on(talk)


async def test_a_key_that_may_not_use_the_model(start: Any, name: str) -> None:
    key = KEYS.get(name, KEYS["openai"])
    await fails(start([Failure("permission")]), f"does not let {key} use it")


@pytest.mark.parametrize(
    "text",
    [
        "the request exceeds the available context size. try increasing the context size",
        "Requested token count exceeds the model's maximum context length of 4096 tokens",
        "Request exceeds the maximum size",
    ],
)
async def test_other_words_for_too_long(start: Any, text: str) -> None:
    await fails(start([Failure("request", text)]), "longer than it can read", text[:30])


@of_chat_too
async def test_an_unknown_model(start: Any, name: str) -> None:
    where = [] if name == "openai" else ["BASE_URL=http"]
    texts = [repr(MODELS[name]), "check that MODEL is right", *where]
    await fails(start([Failure("model")]), *texts)


async def test_a_request_that_is_refused(start: Any) -> None:
    talk = start([Failure("request", "tools.0.name: too odd"), HERE])
    await fails(talk, "did not answer", "tools.0.name: too odd (400)")
    await goes_on(talk)


async def test_a_server_that_is_not_there(start: Any, name: str) -> None:
    talk = start([])
    talk.provider.close()
    server = "the provider" if name == "openai" else talk.provider.url
    await fails(talk, server, "cannot be reached", "(tried 3 times)")


@pytest.mark.parametrize("is_streamed", [True], ids=["streamed"])
class TestStreams:
    """What can happen in the middle of a stream."""

    @pytest.mark.parametrize("events", [1, 4])
    @pytest.mark.parametrize("ending", ["broken", "silent"])
    @of_chat_too
    async def test_an_answer_that_breaks_off(self, start: Any, ending: Any, events: int) -> None:
        talk = start([Answer("Once upon a time there was", ending=ending, events=events), HERE])
        await fails(talk, "broke off", "nothing of it is kept", "go on")
        assert len(talk.provider.requests) == 1, "not asked again: the words are out"
        await goes_on(talk)

    @pytest.mark.parametrize("ending", ["broken", "silent"])
    @of_chat_too
    async def test_a_call_that_breaks_off(self, start: Any, workspace: Path, ending: Any) -> None:
        calls = (Call("write_file", {"path": "a", "content": "x" * 90}),)
        talk = start([Answer("", calls, ending=ending, events=8), HERE])
        await fails(talk, "broke off")
        assert list(workspace.iterdir()) == []
        await goes_on(talk)

    @of_chat_too
    async def test_an_error_in_the_middle(self, start: Any) -> None:
        talk = start([Failure("overloaded", mid_stream=True), HERE])
        await fails(talk, "broke off", "verloaded")
        await goes_on(talk)

    async def test_too_long_in_the_middle(self, start: Any) -> None:
        talk = start([Failure("context", mid_stream=True), HERE])
        await fails(talk, "longer than it can read")
        await goes_on(talk)

    async def test_a_connection_that_ends_before_a_word(self, start: Any) -> None:
        nothing = Answer("Never said.", ending="broken", events=0)
        talk = start([nothing, nothing, HERE, *[nothing] * 3, HERE])
        await goes_on(talk)
        text = await fails(talk, "cannot be reached", "tried 3 times")
        assert "broke off" not in text
        await goes_on(talk)


@of_chat_too
async def test_a_call_with_broken_json_does_not_run(start: Any, workspace: Path) -> None:
    """LangChain mends what is streamed: half a command would look like a whole one."""
    (workspace / "b").write_text("two")
    calls = (Call("write_file", BROKEN), Call("read_file", {"path": "b"}))
    talk = start([Answer("", calls), HERE])
    await talk.say("go", mode="code")
    results = {result.name: result for result in (await talk.results()).values()}
    assert results["write_file"].status == "error"
    assert results["read_file"].status == "success"
    assert not (workspace / "a.txt").exists()
    assert (await talk.messages())[-1].text == "Here I am."


@of_chat_too
async def test_a_call_at_the_limit_of_tokens_does_not_run(start: Any, workspace: Path) -> None:
    calls = (Call("read_file", {"path": "b"}), Call("write_file", BROKEN))
    talk = start([Answer("", calls, is_truncated=True), HERE])
    await talk.say("go", mode="code")
    for result in (await talk.results()).values():
        assert result.status == "error"
        assert "cut off at the model's limit" in result.text
        assert "smaller parts" in result.text
    assert list(workspace.iterdir()) == []
    assert (await talk.messages())[-1].text == "Here I am."


@of_chat_too
async def test_words_at_the_limit_of_tokens(start: Any) -> None:
    talk = start([Answer("Once upon a", is_truncated=True), HERE])
    await talk.say("tell me")
    assert (await talk.messages())[-1].text == f"Once upon a\n\n{CUT_OFF}"
    await goes_on(talk)


async def test_an_empty_answer(start: Any) -> None:
    talk = start([Answer(""), HERE])
    await fails(talk, "answered with nothing")
    await goes_on(talk)


@of_chat_too
async def test_a_refusal(start: Any, name: str, *, is_streamed: bool) -> None:
    talk = start([Answer(refusal="I cannot help with that."), HERE])
    if name == "chat" and is_streamed:
        # LangChain drops the words of a streamed refusal: an empty answer is left.
        await fails(talk, "answered with nothing", "decline")
    else:
        await talk.say("hello")
        said = REFUSED if name == "anthropic" else "I cannot help with that."
        assert (await talk.messages())[-1].content == said
    await goes_on(talk)


@pytest.mark.parametrize("reason", ["pause_turn", "MAX_TOKENS", "lengthlength", "lengthstop", "x"])
@of_chat_too
async def test_calls_of_an_answer_that_stopped_oddly_do_not_run(
    start: Any, workspace: Path, reason: str
) -> None:
    calls = (Call("write_file", {"path": "a", "content": "x"}),)
    talk = start([Answer("", calls, reason=reason), HERE])
    await talk.say("go", mode="code")
    assert list(workspace.iterdir()) == []
    (result,) = (await talk.results()).values()
    assert ("stopped for a reason" in result.text) is (reason in ("pause_turn", "x"))
    assert (await talk.messages())[-1].text == "Here I am."


@pytest.mark.parametrize("text", ["\n\n", "  "])
async def test_spaces_beside_a_call(start: Any, text: str) -> None:
    """Some models say so; Anthropic refuses to hear it again."""
    talk = start([call("list_files", text=text), say(f"{text}Here I am.{text}")])
    await talk.say("go")
    assert (await talk.messages())[1].text.strip() == ""


async def test_spaces_alone_are_an_empty_answer(start: Any) -> None:
    talk = start([Answer(" \n"), HERE])
    await fails(talk, "answered with nothing")
    await goes_on(talk)


@pytest.mark.parametrize("ids", [("same", "same"), (None, None)])
@pytest.mark.parametrize("args", [(BROKEN, {"path": "b"}), ({"path": "b"}, BROKEN)])
@of_chat_too
async def test_a_broken_call_beside_a_whole_one_with_its_id(
    start: Any, workspace: Path, ids: Any, args: Any
) -> None:
    calls = tuple(Call("write_file", one, id) for one, id in zip(args, ids, strict=True))
    talk = start([Answer("", calls), HERE])
    await talk.say("go", mode="code")
    assert list(workspace.iterdir()) == [], "one is broken, the other lacks its content"
    assert [one.status for one in (await talk.results()).values()] == ["error"] * 2


@pytest.mark.parametrize("number", ["NaN", "1e999", "-Infinity"])
async def test_a_number_that_is_none(start: Any, number: str) -> None:
    """A history with it could be sent to nobody."""
    calls = (Call("read_file", '{"path": "a", "offset": %s}' % number),)  # noqa: UP031
    talk = start([Answer("", calls), HERE])
    await talk.say("go")
    (result,) = (await talk.results()).values()
    assert result.status == "error"
    assert (await talk.messages())[-1].text == "Here I am."


async def test_a_thread_that_changes_its_provider(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thoughts go back to who thought them, and to no other."""
    saver = InMemorySaver()
    thoughts = Answer("Seen.", (Call("list_files"),), thinking="Let me look.")
    talks: list[Conversation] = []
    names = ("anthropic", "chat", "anthropic", "openai", "chat", "anthropic", "openai")
    with serving([thoughts, *[HERE] * len(names)]) as provider:
        for name in names:
            use(provider, monkeypatch, name)
            talk = Conversation(make_agent(workspace, MODELS[name], saver=saver))
            talk.config = talks[0].config if talks else talk.config
            talks.append(talk)
            await talk.say(f"Are you {name}?")
        assert provider.refused == []
        sent = [json.dumps(request.body) for request in provider.requests]
    of_anthropic = ["messages" in request.path for request in provider.requests]
    assert ["Let me look." in text for text in sent] == [False, *of_anthropic[1:]]
    assert ["gAAAA" in text for text in sent] == [*[False] * 7, True]
    assert all("Seen." in text for text in sent[1:])


@of_chat_too
async def test_names_and_ids_that_no_provider_takes_back(start: Any) -> None:
    calls = (
        Call("read the file!", {"path": "a"}, "same"),
        Call("no_such_tool", {}, "same"),
        Call("read_file", {"path": "a"}, "not/an id" * 9),
    )
    talk = start([Answer("", calls), Answer("", (Call("list_files", {}, "same"),)), HERE])
    await talk.say("go")
    assert len(await talk.results()) == 4
    assert (await talk.messages())[-1].text == "Here I am."


@pytest.mark.parametrize("name", ["anthropic"])
async def test_thoughts_go_back_as_they_came(start: Any) -> None:
    talk = start([Answer("", (Call("list_files", {}),), thinking="Let me look."), HERE])
    await talk.say("go")
    sent = talk.provider.requests[1].body["messages"][1]["content"]
    assert sent[0]["thinking"] == "Let me look."
    assert sent[0]["signature"].startswith("EqE")


async def test_a_local_server_needs_no_key(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, *, is_streamed: bool
) -> None:
    with serving([HERE], key="none") as provider:
        use(provider, monkeypatch)
        monkeypatch.delenv("OPENAI_API_KEY")
        await goes_on(Talk(provider, workspace, "chat", is_streamed=is_streamed))
        assert provider.steps_left == 0


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
PICTURE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png", "metadata": {}}
HELLO = {"type": "text", "text": "hello"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "forged"}
FUNCTION = {"id": "k", "type": "function", "function": {"name": "x", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": "", "tool_calls": [FUNCTION]}
CALL = {"type": "tool_use", "id": "a", "name": "x y", "input": {}}
A, B = ({"role": "user", "content": text} for text in "ab")


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "content": "Hello! How can I help?"}, A],
        [A, {"role": "assistant", "content": ""}],
        [{"role": "user", "content": [{"type": "text", "text": ""}, IMAGE]}],
        [{"role": "user", "content": ["hello", PICTURE, {**HELLO, "odd": 1}]}],
        [A, {"role": "assistant", "content": [CALL]}, B, {"role": "assistant", "content": [CALL]}],
        [A, CALLING, B, CALLING],
        [A, {"role": "assistant", "content": [THOUGHT, {"type": "odd"}, HELLO]}],
        [A, B],
        [A, {"role": "assistant", "content": [CALL]}],
    ],
)
@of_chat_too
async def test_what_a_client_supplies_is_taken_by_the_provider(
    start: Any, messages: list[dict[str, Any]]
) -> None:
    talk = start(lambda _: HERE)
    await talk.send({"messages": messages})
    await goes_on(talk)


def piece(
    index: int | None, args: str | None, *, id: str | None = None, name: str | None = None
) -> Any:
    """A chunk of a stream with a part of a call, as small servers send it."""
    part: dict[str, Any] = {"index": index, "id": id, "type": "function"}
    part["function"] = {"name": name, "arguments": args}
    part = {key: value for key, value in part.items() if value is not None}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [part]}, "finish_reason": None}]}


END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
A_FILE, B_FILE = (json.dumps({"path": name, "content": "x"}) for name in "ab")
WRITE: dict[str, Any] = {"name": "write_file"}


@pytest.mark.parametrize("name", ["chat"])
@pytest.mark.parametrize("is_streamed", [True], ids=["streamed"])
@pytest.mark.parametrize(
    ("pieces", "written"),
    [
        ([piece(0, A_FILE, id="1", **WRITE), piece(1, B_FILE, id="2", **WRITE)], ["a", "b"]),
        ([piece(0, A_FILE, id="1", **WRITE), piece(0, B_FILE, id="2", **WRITE)], ["a", "b"]),
        ([piece(0, A_FILE, **WRITE), piece(1, B_FILE, **WRITE)], ["a", "b"]),
        ([piece(0, A_FILE, id="1", **WRITE), piece(1, B_FILE[:-4], id="2", **WRITE)], ["a"]),
        ([piece(0, A_FILE[:-4], id="1", **WRITE), piece(0, B_FILE, id="2", **WRITE)], ["b"]),
        ([piece(0, A_FILE[:-4], **WRITE), piece(1, B_FILE, **WRITE)], ["b"]),
        (
            [
                piece(0, A_FILE[:9], id="1", **WRITE),
                piece(1, B_FILE[:9], id="2", **WRITE),
                piece(0, A_FILE[9:]),
                piece(1, B_FILE[9:-1]),
            ],
            ["a"],
        ),
        ([piece(0, A_FILE, id="1", **WRITE), piece(0, A_FILE)], []),
        ([piece(0, '[{"path": "a"}]', id="1", **WRITE)], []),
        (
            [piece(0, A_FILE[:9], id="1", **WRITE), piece(2, "-i "), piece(0, A_FILE[9:])],
            [],
        ),
        ([piece(0, A_FILE + "]", id="1", **WRITE)], []),
        ([piece(0, A_FILE[:-1] + ', "content": NaN}', id="1", **WRITE)], []),
    ],
)
async def test_calls_as_other_servers_send_them(
    start: Any, workspace: Path, pieces: list[Any], written: list[str]
) -> None:
    """What is whole runs, and nothing else, however the pieces come."""
    talk = start([Raw((*pieces, END)), HERE])
    await talk.say("go", mode="code")
    assert sorted(file.name for file in workspace.iterdir()) == written
    results = await talk.results()
    assert [one.status for one in results.values()].count("success") == len(written)
    assert (await talk.messages())[-1].text == "Here I am."


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
@pytest.mark.parametrize("is_streamed", [True], ids=["streamed"])
@of_chat_too
async def test_a_client_that_listens_to_langchains_events(start: Any, workspace: Path) -> None:
    """The history is as ever, half a call does not run, and nothing is asked twice."""
    half = (Call("write_file", BROKEN),)
    broken = Answer("Once upon a time there was", ending="broken", events=4)
    talk = start([say("Hello you."), Answer("I do.", half), HERE, broken, HERE])
    for _ in range(2):
        await listen(talk)
    assert list(workspace.iterdir()) == []
    assert [message.text for message in await talk.messages()][1::2][:2] == [
        "Hello you.",
        "I do.",
    ]
    with pytest.raises(ProviderError, match="broke off"):
        await listen(talk)
    await goes_on(talk)


async def listen(talk: Talk) -> None:
    given: Any = {"messages": "go", "mode": "code"}
    stream = await talk.agent.astream_events(given, talk.config, version="v3")
    async for _ in stream:
        pass


async def test_a_quota_is_not_asked_for_again(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving([Failure("quota"), HERE]) as provider:
        use(provider, monkeypatch, "openai")
        talk = Talk(provider, workspace, "openai", is_streamed=False)
        text = await fails(talk, "no quota left")
        assert "tried" not in text
        await goes_on(talk)


@pytest.mark.parametrize("seconds", ["nan", "-1", "soon", "Wed, 21 Oct 2026 07:28:00 GMT"])
async def test_a_time_to_wait_that_is_none(start: Any, seconds: str) -> None:
    talk = start([Failure("rate", retry_after=seconds), HERE])
    async with asyncio.timeout(20):
        await goes_on(talk)


async def test_a_key_is_in_no_traceback(start: Any) -> None:
    talk = start([Failure("request", f"I got {KEY}.")])
    with pytest.raises(ProviderError) as caught:
        await talk.say("hello")
    assert KEY not in "".join(traceback.format_exception(caught.value))


async def test_a_model_that_always_streams_is_read_as_strictly(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nobody listens."""
    with serving([Answer("", (Call("write_file", BROKEN),)), HERE]) as provider:
        use(provider, monkeypatch)
        model = init_chat_model(MODELS["chat"], streaming=True)
        talk = Conversation(make_agent(workspace, model, Approvals.AUTO))
        await talk.say("go", mode="code")
        assert provider.requests[0].body["stream"] is True
    (result,) = (await talk.results()).values()
    assert (result.status, "no JSON" in result.text) == ("error", True)
    assert list(workspace.iterdir()) == []
