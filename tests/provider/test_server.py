"""What the scripted provider tells a test, with the real clients at it."""

import pytest

from tests.graph.models.model_thread import ModelThread, bind, use
from tests.harness.recording import MODELS
from tests.provider.script import Answer, Call, say
from tests.provider.server import serving

everywhere = pytest.mark.parametrize("name", MODELS)


@everywhere
async def test_the_cache_in_the_usage_of_answers(
    monkeypatch: pytest.MonkeyPatch, name: str, *, is_streamed: bool
) -> None:
    call = Answer("I look.", (Call("list_files"), Call("no_such_tool")))
    with serving([call, say("So."), say("And so.")]) as provider:
        use(provider, monkeypatch, name)
        thread = ModelThread(provider, bind(MODELS[name], is_streamed=is_streamed))
        answers = [await thread.say("word " * 2000), await thread.proceed(), await thread.say()]
    assert (provider.refused, provider.dropped) == ([], [])
    assert provider.not_offered == ["no_such_tool"]
    assert [one.read > 2000 for one in provider.inputs] == [False, True, True]
    for answer, given in zip(answers, provider.inputs, strict=True):
        usage = answer.usage_metadata
        if name == "chat" and is_streamed:
            assert usage is None, "the client does not ask other servers for it"
            continue
        assert usage is not None
        details = usage["input_token_details"]
        assert usage["input_tokens"] == given.total
        # Where a cache's time is told, LangChain puts what is written under that name.
        written = [details.get(key, 0) for key in ("cache_creation", "ephemeral_5m_input_tokens")]
        assert details.get("cache_read") == given.read
        assert given.written in written


@everywhere
async def test_a_window_that_is_too_small(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with serving([say("So.")], window=600) as provider:
        use(provider, monkeypatch, name)
        thread = ModelThread(provider, bind(MODELS[name]))
        await thread.say()
        thread.messages *= 100
        await thread.fail("longer than it can read")
        assert (provider.refused, provider.steps_left, len(provider.inputs)) == ([], 0, 1)
    (tokens,) = provider.too_long
    assert tokens > 600 > provider.inputs[0].total
