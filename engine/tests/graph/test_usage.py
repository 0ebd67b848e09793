"""Tokens in the state: by turn, by thread and by model; unknown ones are not taken for none."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from modeshift.models.loading import Models
from modeshift.models.usage import NO_FILL, Tokens, Usage, add_usage, count_answer
from tests.graph.conftest import Serve
from tests.harness.conversation import Conversation, make_agent
from tests.harness.modes import load_catalog
from tests.harness.place import UserFolders
from tests.harness.recording import MODELS
from tests.provider.script import call, say
from tests.provider.server import KEY


def tokens(**given: int) -> Tokens:
    none = Tokens(answers=1, unknown=0, input=0, output=0, cache_read=0, cache_write=0)
    return {**none, **given}  # type: ignore[typeddict-item]  # its keys


def answer(**details: Any) -> AIMessage:
    taken = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
    return AIMessage("x", usage_metadata={**taken, "input_token_details": details})


WORDS = {"input_tokens": 5, "output_tokens": "7", "total_tokens": 12}
UNKNOWN = tokens(answers=0, unknown=1)


@pytest.mark.parametrize(
    ("message", "taken", "used"),
    [
        (answer(), tokens(input=100, output=7), 107),
        (
            answer(cache_read=60, cache_creation=30),
            tokens(input=100, output=7, cache_read=60, cache_write=30),
            107,
        ),
        (
            answer(cache_creation=0, ephemeral_5m_input_tokens=10, ephemeral_1h_input_tokens=20),
            tokens(input=100, output=7, cache_write=30),
            107,
        ),
        (
            answer(flex_cache_read=60, priority_cache_creation=5, flex=40),
            tokens(input=100, output=7, cache_read=60, cache_write=5),
            107,
        ),
        (AIMessage("no count"), UNKNOWN, None),
        (AIMessage("x").model_copy(update={"usage_metadata": WORDS}), UNKNOWN, None),
        (
            AIMessage(
                "zeros for what is missing",
                usage_metadata={"input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
            ),
            UNKNOWN,
            None,
        ),
    ],
)
def test_what_an_answer_took(message: AIMessage, taken: Tokens, used: int | None) -> None:
    usage = count_answer(message, "m", 1000)
    assert usage["thread"] == usage["turn"] == {"m": taken}
    assert usage["last"] == {"model": "m", "used": used, "window": 1000}


def test_parts_of_one_step_add_up_in_any_order() -> None:
    """Two tasks may write at the same time; what they say of the window comes from one of them."""
    first, other = count_answer(answer(), "m", 9), count_answer(AIMessage("x"), "n", None)
    del other["last"]
    both = add_usage(add_usage(Usage(), first), other)
    assert both == add_usage(add_usage(Usage(), other), first)
    assert both["thread"] == {"m": tokens(input=100, output=7), "n": UNKNOWN}
    assert both["last"] == {"model": "m", "used": 107, "window": 9}
    assert add_usage(both, NO_FILL) == {**both, "last": None}


@pytest.mark.parametrize("name", MODELS)
async def test_turns_with_a_real_client(
    workspace: Path, serve: Serve, name: str, *, is_streamed: bool
) -> None:
    """The sums are the provider's; a resume in another agent goes on with the turn."""
    script = [call("list_files"), call("write_file", path="a", content="b"), say("1"), say("2")]
    with serve(script, name) as provider:
        agent = make_agent(workspace, MODELS[name])
        talk = Conversation(agent, is_streamed=is_streamed)
        await talk.say("word " * 2000, mode="code")
        talk.agent = make_agent(workspace, MODELS[name], saver=agent.checkpointer)  # type: ignore[arg-type]
        await talk.approve_all()
        first = (await talk.values())["usage"]
        await talk.say("more")
        usage = (await talk.values())["usage"]
    assert first["turn"] == first["thread"]
    if name == "chat" and is_streamed:  # LangChain does not ask other servers for it
        assert usage["thread"] == {MODELS[name]: {**UNKNOWN, "unknown": 4}}
        assert usage["turn"] == {MODELS[name]: UNKNOWN}
        assert usage["last"] == {"model": MODELS[name], "used": None, "window": None}
        return
    said = [
        message.usage_metadata
        for message in await talk.messages()
        if isinstance(message, AIMessage)
    ]
    output = [request["output_tokens"] for request in said if request]
    for taken, start, end in (
        (usage["thread"], 0, 4),
        (first["turn"], 0, 3),
        (usage["turn"], 3, 4),
    ):
        inputs = provider.inputs[start:end]
        assert taken[MODELS[name]] == tokens(
            answers=end - start,
            input=sum(request.total for request in inputs),
            output=sum(output[start:end]),
            cache_read=sum(request.read for request in inputs),
            cache_write=sum(request.written for request in inputs),
        )
    assert usage["turn"][MODELS[name]]["cache_read"] > 2000
    assert usage["last"]["used"] == provider.inputs[-1].total + output[-1]
    assert (usage["last"]["window"] or 0) > 100_000 or name == "chat"


async def test_the_setting_wins_over_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    mode = load_catalog()["ask"]
    for name, known in (("openai:gpt-5", 272_000), ("openai:gpt-no-such", None)):
        assert Models(name).window(mode) == known
        assert Models(name, 32_768).window(mode) == 32_768
    assert Models("ollama:qwen3", parameters={"num_ctx": 16_384}).window(mode) == 16_384


async def test_settings_of_cache_and_window(
    place: UserFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    chosen = {"model": MODELS["anthropic"], "cache_ttl": "1h", "context_window": 50_000}
    deps = place.loader(**chosen).deps()
    assert deps.models.window(deps.catalog["ask"]) == 50_000
    assert deps.seat("ask").model.service.fields.arguments["cache_control"]["ttl"] == "1h"
