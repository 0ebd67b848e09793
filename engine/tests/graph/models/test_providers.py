"""Real clients of real providers at the scripted one: what is streamed, read, and refused."""

import json
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.utils import convert_to_messages

from modeshift.messages.from_model import CUT_OFF, REFUSED
from modeshift.messages.normal_form import accept_messages
from modeshift.modes.errors import ProviderError
from modeshift.modes.policy import Approvals
from modeshift.tools.toolbox import BROKEN
from tests.graph.conftest import Serve
from tests.graph.models.model_thread import ModelThread, bind
from tests.harness.conversation import Conversation, make_agent
from tests.harness.recording import KEYS, MODELS
from tests.provider.script import Answer, Call, Failure, Raw, Step, say
from tests.provider.server import KEY

AT_ONCE = "0.01"
"""Seconds to wait before the model is asked again."""
HERE = say("Here I am.")
HALF = '{"path": "a.txt", "content": "rm -rf /tmp/half-a-pa'
WAIT = Failure("rate", retry_after=AT_ONCE)
DATE = "Wed, 21 Oct 2026 07:28:00 GMT"
DOWN = Failure("server", retry_after=AT_ONCE)
ODD = Failure("request", "tools.0.name: too odd")

Start = Callable[..., ModelThread]
each_client = pytest.mark.parametrize(
    ("name", "is_streamed"), [("openai", False), ("chat", True), ("anthropic", True)]
)
"""Errors come through the same code of a client whether or not it streams."""
everywhere = pytest.mark.parametrize(("name", "is_streamed"), list(product(MODELS, (False, True))))
streamed = pytest.mark.parametrize(("name", "is_streamed"), [(name, True) for name in MODELS])


@pytest.fixture
def start(serve: Serve, name: str, *, is_streamed: bool) -> Iterator[Start]:
    """A thread with a model that follows a script."""
    with ExitStack() as stack:

        def started(script: Any, **options: Any) -> ModelThread:
            provider = stack.enter_context(serve(script, name, **options))
            return ModelThread(provider, bind(MODELS[name], is_streamed=is_streamed))

        yield started


def broken(answer: AIMessage) -> list[bool]:
    """Of each call, whether it is marked so that it does not run."""
    return [list(call["args"]) == [BROKEN] for call in answer.tool_calls]


FAILURES: list[tuple[list[Step], list[str] | None, int]] = [
    ([WAIT, WAIT, HERE], None, 3),
    ([Failure("rate"), Failure("overloaded"), HERE], None, 3),
    ([Failure("rate", retry_after="nan"), Failure("rate", retry_after="-1"), HERE], None, 3),
    ([Failure("rate", retry_after="soon"), Failure("rate", retry_after=DATE), HERE], None, 3),
    ([WAIT] * 3, ["too many requests", "tried 3 times", f"wait {AT_ONCE} s", "per min"], 3),
    ([Failure("rate", retry_after="61")], ["too many requests", "it asks to wait 61 s"], 1),
    ([DOWN, HERE], None, 2),
    ([DOWN] * 3, ["the provider failed", "tried 3 times"], 3),
    ([Failure("overloaded", retry_after=AT_ONCE)] * 3, ["the provider failed"], 3),
    ([Failure("context")], ["longer than it can read", "start a new thread", "reads more"], 1),
    ([Failure("permission")], ["does not let", "_API_KEY use it"], 1),
    ([Failure("model")], ["check that MODEL is right"], 1),
    ([ODD], ["tools.0.name: too odd (400)"], 1),
    ([Failure("request", "Request exceeds the maximum size")], ["longer than it can read"], 1),
    (
        [Failure("request", "Requested token count exceeds the model's maximum context length")],
        ["longer than it can read", "Requested token count exceeds"],
        1,
    ),
]
"""What comes, what the error says, and after how many requests; None if an answer comes."""


@each_client
async def test_a_failure_is_tried_again_or_explained(start: Start, name: str) -> None:
    # Anthropic is also asked without the cache's marks.
    failures = [
        ([ODD] * 2, texts, 2)
        if steps == [ODD] and name == "anthropic"
        else (steps, texts, requests)
        for steps, texts, requests in FAILURES
    ]
    thread = start([step for steps, *_ in failures for step in steps])
    for steps, texts, requests in failures:
        before = len(thread.provider.requests)
        if texts is None:
            assert (await thread.say()).text == "Here I am.", steps
        else:
            said = await thread.fail(*texts)
            assert ("tried" in said) is (len(steps) > 1 and ODD not in steps), steps
        assert len(thread.provider.requests) == before + requests, steps


@each_client
async def test_a_key_that_is_refused(start: Start, name: str) -> None:
    thread = start([], key="sk-wrong-0123456789")
    said = await thread.fail(f"does not accept {KEYS.get(name, 'OPENAI_API_KEY')}; set it")
    assert "sk-wrong" not in said, "OpenAI's answer repeats the key"


@each_client
async def test_a_server_that_cannot_be_reached(start: Start, name: str) -> None:
    thread = start([])
    thread.provider.server.shutdown()
    thread.provider.server.server_close()
    server = "the provider" if name == "openai" else thread.provider.url
    await thread.fail(server, "cannot be reached", "(tried 3 times)")


@pytest.mark.parametrize(("name", "is_streamed"), [("chat", False)])
async def test_an_unknown_model_of_another_server(start: Start) -> None:
    said = ("'openai:qwen3'", "check that MODEL is right", "BASE_URL=http")
    await start([Failure("model")]).fail(*said)


@pytest.mark.parametrize(("name", "is_streamed"), [("openai", False)])
async def test_a_used_up_quota_is_not_asked_for_again(start: Start) -> None:
    assert "tried" not in await start([Failure("quota")]).fail("no quota left")


@each_client
async def test_a_key_is_in_no_traceback(start: Start, name: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await start([Failure("request", f"I got {KEY}.")] * (1 + (name == "anthropic"))).say()
    assert KEY not in "".join(traceback.format_exception(caught.value))


TALE = "Once upon a time there was"
WRITE = (Call("write_file", {"path": "a", "content": "x" * 90}),)


MID_STREAM: list[tuple[Step, str]] = [
    *(
        (Answer(TALE, ending=ending, events=events), "nothing of it is kept")  # type: ignore[arg-type]  # one of two
        for ending, events in product(("broken", "silent"), (1, 4))
    ),
    (Answer("", WRITE, ending="broken", events=8), "broke off"),
    (Answer("", WRITE, ending="silent", events=8), "broke off"),
    (Failure("overloaded", mid_stream=True), "broke off"),
    (Failure("context", mid_stream=True), "longer than it can read"),
]


@streamed
async def test_what_fails_in_the_middle_of_a_stream_is_not_asked_for_again(start: Start) -> None:
    """Some of the words have been shown."""
    thread = start([*(step for step, _ in MID_STREAM), HERE])
    for number, (_, text) in enumerate(MID_STREAM, 1):
        await thread.fail(text)
        assert len(thread.provider.requests) == number
    assert (await thread.say()).text == "Here I am."


@streamed
async def test_a_connection_that_ends_before_a_word_is_tried_again(start: Start) -> None:
    nothing = Answer("Never said.", ending="broken", events=0)
    thread = start([nothing, nothing, HERE, *[nothing] * 3])
    assert (await thread.say()).text == "Here I am."
    assert "broke off" not in await thread.fail("cannot be reached", "tried 3 times")


INCOMPLETE: list[tuple[Answer, list[bool]]] = [
    (Answer("", (Call("write_file", HALF), Call("read_file", {"path": "b"}))), [True, False]),
    (Answer("", (Call("x", {}), Call("write_file", HALF)), is_truncated=True), [True, True]),
    *(
        (Answer("", (Call("write_file", HALF, id), Call("read_file", {}, id))), [True, False])
        for id in ("same", None)
    ),
    *(
        (Answer("", (Call("read_file", {}, id), Call("write_file", HALF, id))), [False, True])
        for id in ("same", None)
    ),
    *((Answer("", WRITE, reason=reason), [True]) for reason in ("pause_turn", "lengthlength")),
    (Answer("", (Call("read_file", '{"path": "a", "offset": NaN}'),)), [True]),
    (Answer("", (Call("read_file", '{"path": "a", "offset": 1e999}'),)), [True]),
]


@pytest.mark.parametrize(
    # A whole answer of Anthropic's holds the arguments as JSON.
    ("name", "is_streamed"),
    [("openai", False), ("chat", False), *((name, True) for name in MODELS)],
)
async def test_calls_that_did_not_come_complete_are_broken(start: Start) -> None:
    """LangChain completes what is streamed: half a command would look complete."""
    thread = start([step for answer, _ in INCOMPLETE for step in (answer, HERE)])
    for answer, marks in INCOMPLETE:
        thread.messages.clear()
        # LangChain puts calls that are not JSON last.
        assert sorted(broken(await thread.say())) == sorted(marks), answer
        assert (await thread.proceed()).text == "Here I am.", "the provider takes the history"


WORDS: list[tuple[Answer, str | None]] = [
    (Answer("Once upon a", is_truncated=True), f"Once upon a\n\n{CUT_OFF}"),
    (Answer("\n\n", (Call("list_files"),)), ""),
    (say("  Here I am.  "), "Here I am."),
    (Answer(""), None),
    (Answer(thinking="Hm, let me see", is_truncated=True), None),
]


@everywhere
async def test_the_words_of_an_answer(start: Start, name: str) -> None:
    """None for an answer with nothing in it; the last one is a refusal."""
    refusal = Answer(refusal="I cannot help with that.")
    thread = start([*(step for answer, _ in WORDS for step in (answer, HERE)), refusal, HERE])
    for answer, text in WORDS:
        thread.messages.clear()
        if text is None:
            await thread.fail("was cut off" if answer.is_truncated else "answered with nothing")
        else:
            assert (await thread.say()).text.strip() == text
        assert (await thread.proceed() if text == "" else await thread.say()).text == "Here I am."
    assert (await thread.say()).content == (REFUSED if name == "anthropic" else refusal.refusal)
    assert (await thread.say()).text == "Here I am."


@everywhere
async def test_names_and_ids_that_no_provider_takes_back(start: Start) -> None:
    calls = (
        Call("read the file!", {"path": "a"}, "same"),
        Call("no_such_tool", {}, "same"),
        Call("read_file", {"path": "a"}, "not/an id" * 9),
    )
    thread = start([Answer("", calls), Answer("", (Call("list_files", {}, "same"),)), HERE])
    await thread.say()
    await thread.proceed()
    assert (await thread.proceed()).text == "Here I am."


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
PICTURE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png", "metadata": {}}
HELLO = {"type": "text", "text": "hello"}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "forged"}
FUNCTION = {"id": "k", "type": "function", "function": {"name": "x", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": "", "tool_calls": [FUNCTION]}
CALL = {"type": "tool_use", "id": "a", "name": "x y", "input": {}}
A, B = ({"role": "user", "content": text} for text in "ab")


@pytest.mark.parametrize(("name", "is_streamed"), [(name, False) for name in MODELS])
async def test_each_provider_takes_clients_words(start: Start, workspace: Path, name: str) -> None:
    histories: list[list[dict[str, Any]]] = [
        [{"role": "assistant", "content": "Hello! How can I help?"}, A],
        [A, {"role": "assistant", "content": ""}],
        [{"role": "user", "content": [{"type": "text", "text": ""}, IMAGE]}],
        [{"role": "user", "content": ["hello", PICTURE, {**HELLO, "odd": 1}]}],
        [A, {"role": "assistant", "content": [CALL]}, B, {"role": "assistant", "content": [CALL]}],
        [A, CALLING, B, CALLING],
        [A, {"role": "assistant", "content": [THINKING, {"type": "odd"}, HELLO]}],
        [A, B],
        [A, {"role": "assistant", "content": [CALL]}],
    ]
    start([HERE] * 14)
    agent = make_agent(workspace, MODELS[name])
    for messages in histories:
        assert accept_messages(convert_to_messages(messages))
        talk = Conversation(agent)
        await talk.send({"messages": messages})
        await talk.say("and now?")
        assert (await talk.messages())[-1].text == "Here I am."


def piece(
    index: int | None, args: str | None, *, id: str | None = None, name: str | None = None
) -> Any:
    """A chunk of a stream with a part of a call, as small servers send it."""
    function = {"name": name, "arguments": args}
    part = {"index": index, "type": "function", "function": function} | ({"id": id} if id else {})
    return {"choices": [{"index": 0, "delta": {"tool_calls": [part]}, "finish_reason": None}]}


END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
A_FILE, B_FILE = (json.dumps({"path": name, "content": "x"}) for name in "ab")
NEW: dict[str, Any] = {"name": "write_file"}
BEGUN = [piece(0, A_FILE[:9], id="1", **NEW), piece(1, B_FILE[:9], id="2", **NEW)]


PIECES = [
    ([piece(0, A_FILE, id="1", **NEW), piece(1, B_FILE, id="2", **NEW)], "ab"),
    ([piece(0, A_FILE, id="1", **NEW), piece(0, B_FILE, id="2", **NEW)], "ab"),
    ([piece(0, A_FILE, **NEW), piece(1, B_FILE, **NEW)], "ab"),
    ([piece(0, A_FILE, id="1", **NEW), piece(1, B_FILE[:-4], id="2", **NEW)], "a"),
    ([piece(0, A_FILE[:-4], id="1", **NEW), piece(0, B_FILE, id="2", **NEW)], "b"),
    ([piece(0, A_FILE[:-4], **NEW), piece(1, B_FILE, **NEW)], "b"),
    ([*BEGUN, piece(0, A_FILE[9:]), piece(1, B_FILE[9:-1])], "a"),
    ([piece(0, A_FILE, id="1", **NEW), piece(0, A_FILE)], ""),
    ([piece(0, '[{"path": "a"}]', id="1", **NEW)], ""),
    ([piece(0, A_FILE[:9], id="1", **NEW), piece(2, "-i "), piece(0, A_FILE[9:])], ""),
    ([piece(0, A_FILE + "]", id="1", **NEW)], ""),
    ([piece(0, A_FILE[:-1] + ', "content": NaN}', id="1", **NEW)], ""),
]


@pytest.mark.parametrize(("name", "is_streamed"), [("chat", True)])
async def test_calls_as_other_servers_send_them(start: Start) -> None:
    """What is complete runs, and nothing else, however the pieces come."""
    thread = start([step for pieces, _ in PIECES for step in (Raw((*pieces, END)), HERE)])
    for pieces, complete in PIECES:
        calls = (await thread.say()).tool_calls
        assert "".join(str(call["args"].get("path", "")) for call in calls) == complete, pieces
        assert (await thread.proceed()).text == "Here I am."


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
@pytest.mark.parametrize("name", MODELS)
async def test_a_client_that_gets_protocol_events(workspace: Path, serve: Serve, name: str) -> None:
    """The history is as ever, half a call does not run, and nothing is asked for twice."""
    half = (Call("write_file", HALF),)
    cut = Answer(TALE, ending="broken", events=4)
    run_input: Any = {"messages": "go", "mode": "code"}
    with serve([say("Hello you."), Answer("I do.", half), HERE, cut, HERE], name):
        talk = Conversation(make_agent(workspace, MODELS[name], Approvals.AUTO))
        for text in ("", "", "broke off"):
            stream = await talk.agent.astream_events(run_input, talk.config, version="v3")
            if text:
                with pytest.raises(ProviderError, match=text):
                    _ = [event async for event in stream]
            else:
                _ = [event async for event in stream]
        await talk.say("and now?")
    assert list(workspace.iterdir()) == []
    assert [message.text for message in await talk.messages()][1::2][:2] == ["Hello you.", "I do."]
