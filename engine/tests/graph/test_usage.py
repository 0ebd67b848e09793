"""Tokens in the state, by turn, thread and model; and a ceiling, which asks before the model."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from modeshift.models.ceiling import Ceiling, Ceilings
from modeshift.models.loading import Models
from modeshift.models.usage import NO_FILL, Tokens, Usage, add_usage, count_answer
from modeshift.modes.errors import ConfigurationError, InvalidInputError
from tests.graph.calls import ALWAYS, asks, read
from tests.graph.conftest import Serve
from tests.harness.conversation import APPROVE, REJECT, Conversation, make_agent, restart, script
from tests.harness.modes import load_catalog
from tests.harness.place import UserFolders
from tests.harness.recording import MODELS
from tests.provider.script import call, say
from tests.provider.server import KEY
from tests.tables import rows


def tokens(**given: int) -> Tokens:
    none = Tokens(answers=1, unknown=0, input=0, output=0, cache_read=0, cache_write=0)
    return {**none, **given}  # type: ignore[typeddict-item]  # its keys


def answer(**details: Any) -> AIMessage:
    taken = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
    return AIMessage("x", usage_metadata={**taken, "input_token_details": details})


WORDS = {"input_tokens": 5, "output_tokens": "7", "total_tokens": 12}
UNKNOWN = tokens(answers=0, unknown=1)


@rows(
    "message taken used",
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
async def test_real_clients(workspace: Path, serve: Serve, name: str, *, is_streamed: bool) -> None:
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


async def test_cache_and_window(place: UserFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    chosen = {"model": MODELS["anthropic"], "cache_ttl": "1h", "context_window": 50_000}
    deps = place.loader(**chosen).deps()
    assert deps.models.window(deps.catalog["ask"]) == 50_000
    assert deps.seat("ask").model.service.fields.arguments["cache_control"]["ttl"] == "1h"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    mode = load_catalog()["ask"]
    for name, known in (("openai:gpt-5", 272_000), ("openai:gpt-no-such", None)):
        assert Models(name).window(mode) == known
        assert Models(name, 32_768).window(mode) == 32_768
    assert Models("ollama:qwen3", parameters={"num_ctx": 16_384}).window(mode) == 16_384


TOKENS = Ceiling.parse("600 tokens")
ASKED = "tokens; you are asked at every 600 tokens. Go on?"


READS = "read a.txt\nread a.txt\nread a.txt"


async def start(
    workspace: Path, text: str = READS, mode: str = "ask", find_cost: Any = None, **ceilings: Any
) -> Conversation:
    """A thread that has these ceilings, and in which a person has said the text."""
    (workspace / "a.txt").write_text("a")
    more = {"find_cost": find_cost} if find_cost else {}
    talk = Conversation(make_agent(workspace, ceilings=Ceilings(**ceilings, **more)))
    await talk.say(text, mode=mode)
    return talk


async def taken(talk: Conversation, scope: str = "turn") -> int:
    each: Tokens
    (each,) = (await talk.values())["usage"][scope].values()
    return each["input"] + each["output"]


async def test_a_turn_asks_before_the_model_and_goes_on_with_a_yes(workspace: Path) -> None:
    talk = await start(workspace, turn=TOKENS)
    (request,) = await talk.waiting()
    spent = await taken(talk)
    assert request["name"] == "go_on"
    assert request["description"].startswith(f"This turn has taken {spent} ")
    assert request["description"].endswith(ASKED)
    assert spent >= 600
    await talk.decide(APPROVE)
    values = await talk.values()
    assert (await talk.waiting(), values["phase"]) == ([], "idle")
    assert values["usage"]["allowed"] == {"turn": str(spent + 600)}
    assert await taken(talk) > spent
    await talk.say("hello")  # another turn, with its own ceiling
    assert (await talk.values())["usage"]["allowed"] == {}


async def test_no_ends_the_turn_and_a_thread_asks_again_in_the_next(workspace: Path) -> None:
    talk = await start(workspace, "read a.txt\nread a.txt", turn=TOKENS)
    spent = await taken(talk)
    await talk.decide(REJECT)
    assert (await talk.messages())[-1].text.endswith("The answer was no.")
    assert ((await talk.values())["phase"], await taken(talk)) == ("idle", spent)
    await talk.say("read a.txt")
    assert await talk.waiting() == []
    talk = await start(workspace, "hello", thread=TOKENS)
    while not await talk.waiting():
        await talk.say("hello")
    assert "This thread has taken" in (await talk.waiting())[0]["description"]
    await talk.decide(REJECT)
    before = await taken(talk, "thread")
    await talk.say("hello")
    await talk.say("go on, I said so")  # which is no answer
    assert (await asks(talk), await taken(talk, "thread")) == (["go_on"], before)
    await talk.decide(APPROVE)
    assert await talk.waiting() == []


async def test_the_question_stays_without_an_answer(workspace: Path) -> None:
    """Nor is one at the beginning of a sub-task. Another process asks by its own settings."""
    talk = await start(workspace, turn=TOKENS)
    spent, question = await taken(talk), await talk.thread.question()
    for wrong in ({"type": "edit", "edited_action": {"name": "go_on", "args": {}}}, {"type": "x"}):
        with pytest.raises(InvalidInputError):
            await talk.decide(wrong)
    with pytest.raises(InvalidInputError, match="takes one yes or no"):
        await talk.decide(ALWAYS)
    assert question is not None
    assert await talk.thread.question() == question
    for given in ({}, {"approvals": "manual"}, {"mode": "code"}, None):
        await talk.send(given)
        assert (await asks(talk), await taken(talk)) == (["go_on"], spent)
    restart(talk, workspace, ceilings=Ceilings(turn=Ceiling.parse("900000 tokens")))
    await talk.decide(REJECT)
    assert (await talk.messages())[-1].text.startswith("Here is how it went")
    few = Ceiling.parse("100 tokens")
    task = await start(workspace, "task in code: read a.txt", "code", turn=few)
    await task.decide(APPROVE)
    spent = await taken(task)
    assert (await task.values())["subtask"] is not None
    await task.send({})
    assert (await asks(task), await taken(task)) == (["go_on"], spent)


async def test_a_sub_task_ends_with_a_no_and_its_parent_is_asked(workspace: Path) -> None:
    text = "task in code: read a.txt | read a.txt | read a.txt"
    talk = await start(workspace, text, "code", turn=TOKENS)
    await talk.decide(APPROVE)
    assert await asks(talk) == ["go_on"]
    assert (await talk.values())["subtask"] is not None
    await talk.decide(REJECT)
    values = await talk.values()
    assert values.get("subtask") is None
    assert [each["status"] for each in values["subtasks"]] == ["failed"]
    assert await asks(talk) == ["go_on"]


async def test_what_is_not_known_stops_before_the_next_request(workspace: Path) -> None:
    """A price, or what an answer has taken."""
    dollars = Ceiling.parse("2.50")
    with pytest.raises(ConfigurationError, match="needs a price for modeshift-offline"):
        await start(workspace, "read a.txt", turn=dollars)
    talk = await start(workspace, "read a.txt", find_cost=lambda _: Decimal("2.50"), turn=dollars)
    (request,) = await talk.waiting()
    assert request["description"].startswith("This turn has taken 2.50 US dollars; you are")
    for ceiling in (TOKENS, dollars):
        talk = script(workspace, [read()], [read()], "end", ceilings=Ceilings(turn=ceiling))
        with pytest.raises(ConfigurationError, match="what each answer took"):
            await talk.say("go")
        assert len(talk.model.asked) == 1


@pytest.mark.parametrize("text", ["", "0", "-1", "1e9", "NaN", "5 token", "1,000", "$5", "٣"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no amount: write 2\.50 for US dollars"):
        Ceiling.parse(text)
