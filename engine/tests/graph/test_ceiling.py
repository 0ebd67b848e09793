"""A ceiling on what a turn, or a thread, may cost: it asks before the model, and kills nothing."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from modeshift.models.ceiling import Ceiling, Ceilings
from modeshift.models.usage import Tokens
from modeshift.modes.errors import ConfigurationError, InvalidInputError
from tests.harness.conversation import APPROVE, REJECT, Conversation, make_agent, restart, script

TOKENS = Ceiling.parse("600 tokens")
ASKED = "tokens; you are asked at every 600 tokens. Go on?"


def talk_with(workspace: Path, **ceilings: Any) -> Conversation:
    (workspace / "a.txt").write_text("a")
    return Conversation(make_agent(workspace, ceilings=Ceilings(**ceilings)))


async def taken(talk: Conversation, scope: str = "turn") -> int:
    each: Tokens
    (each,) = (await talk.values())["usage"][scope].values()
    return each["input"] + each["output"]


async def test_a_turn_asks_before_the_model_and_goes_on_with_a_yes(workspace: Path) -> None:
    talk = talk_with(workspace, turn=TOKENS)
    await talk.say("read a.txt\nread a.txt\nread a.txt")
    (request,) = await talk.waiting()
    spent = await taken(talk)
    assert request["name"] == "go_on"
    assert request["description"].startswith(f"This turn has taken {spent} ")
    assert request["description"].endswith(ASKED)
    assert spent >= 600
    await talk.decide(APPROVE)
    values = await talk.values()
    assert await talk.waiting() == []
    assert values["phase"] == "idle"
    assert values["usage"]["allowed"] == {"turn": str(spent + 600)}
    assert await taken(talk) > spent
    await talk.say("hello")  # another turn, with its own ceiling
    assert (await talk.values())["usage"]["allowed"] == {}


async def test_no_ends_the_turn_and_says_why(workspace: Path) -> None:
    talk = talk_with(workspace, turn=TOKENS)
    await talk.say("read a.txt\nread a.txt")
    spent = await taken(talk)
    await talk.decide(REJECT)
    last = (await talk.messages())[-1]
    assert last.text.endswith("A person has said not to go on.")
    assert (await talk.values())["phase"] == "idle"
    assert await taken(talk) == spent
    await talk.say("read a.txt")
    assert await talk.waiting() == []


async def test_a_thread_asks_at_its_own_ceiling_in_each_turn_after_a_no(workspace: Path) -> None:
    talk = talk_with(workspace, thread=TOKENS)
    while not await talk.waiting():
        await talk.say("hello")
    (request,) = await talk.waiting()
    assert "This thread has taken" in request["description"]
    await talk.decide(REJECT)
    await talk.say("hello")
    assert await talk.waiting() != []
    await talk.decide(APPROVE)
    assert await talk.waiting() == []


async def test_a_message_instead_of_an_answer_allows_nothing(workspace: Path) -> None:
    talk = talk_with(workspace, thread=TOKENS)
    await talk.say("read a.txt\nread a.txt\nread a.txt")
    before = await taken(talk, "thread")
    await talk.say("go on, I said so")
    assert [request["name"] for request in await talk.waiting()] == ["go_on"]
    assert await taken(talk, "thread") == before


@pytest.mark.parametrize("given", [{}, {"approvals": "manual"}, {"mode": "code"}, None])
async def test_a_run_without_a_message_is_no_new_turn(
    workspace: Path, given: dict[str, Any] | None
) -> None:
    talk = talk_with(workspace, turn=TOKENS)
    await talk.say("read a.txt\nread a.txt\nread a.txt")
    spent = await taken(talk)
    await talk.send(given)
    assert [request["name"] for request in await talk.waiting()] == ["go_on"]
    assert await taken(talk) == spent


async def test_nor_is_one_at_the_beginning_of_a_sub_task(workspace: Path) -> None:
    talk = talk_with(workspace, turn=Ceiling.parse("100 tokens"))
    await talk.say("task in code: read a.txt", mode="code")
    await talk.decide(APPROVE)
    spent = await taken(talk)
    assert (await talk.values())["subtask"] is not None
    await talk.send({})
    assert [request["name"] for request in await talk.waiting()] == ["go_on"]
    assert await taken(talk) == spent


async def test_the_question_is_bound_to_what_was_spent(workspace: Path) -> None:
    talk = talk_with(workspace, turn=TOKENS)
    await talk.say("read a.txt\nread a.txt\nread a.txt")
    question = await talk.thread.question()
    assert question is not None
    for wrong in ({"type": "edit", "edited_action": {"name": "go_on", "args": {}}}, {"type": "x"}):
        with pytest.raises(InvalidInputError):
            await talk.decide(wrong)
    with pytest.raises(InvalidInputError, match="takes one yes or no"):
        await talk.decide({"type": "approve", "remember": True})
    assert await talk.thread.question() == question


async def test_a_sub_task_ends_with_a_no_and_its_parent_is_asked(workspace: Path) -> None:
    talk = talk_with(workspace, turn=TOKENS)
    await talk.say("task in code: read a.txt | read a.txt | read a.txt", mode="code")
    asked = [request["name"] for request in await talk.waiting()]
    await talk.decide(APPROVE)
    while asked != ["go_on"]:
        asked = [request["name"] for request in await talk.waiting()]
    assert (await talk.values())["subtask"] is not None
    await talk.decide(REJECT)
    assert (await talk.values()).get("subtask") is None
    (ended,) = (await talk.values())["subtasks"]
    assert ended["status"] == "failed"
    assert [request["name"] for request in await talk.waiting()] == ["go_on"]


async def test_another_process_asks_again_by_its_own_settings(workspace: Path) -> None:
    talk = talk_with(workspace, turn=TOKENS)
    await talk.say("read a.txt\nread a.txt\nread a.txt")
    restart(talk, workspace, ceilings=Ceilings(turn=Ceiling.parse("900000 tokens")))
    await talk.decide(REJECT)
    assert (await talk.messages())[-1].text.startswith("Here is how it went")


async def test_a_price_that_is_not_known_stops_before_the_next_request(workspace: Path) -> None:
    dollars = Ceiling.parse("2.50")
    talk = talk_with(workspace, turn=dollars)
    with pytest.raises(ConfigurationError, match="needs a price for modeshift-offline"):
        await talk.say("read a.txt")
    known = talk_with(workspace, turn=dollars, find_cost=lambda _: Decimal("2.50"))
    await known.say("read a.txt")
    (request,) = await known.waiting()
    assert request["description"].startswith("This turn has taken 2.50 US dollars; you are")


async def test_a_model_that_does_not_say_what_it_takes_stops_before_the_next_request(
    workspace: Path,
) -> None:
    (workspace / "a.txt").write_text("a")
    read = [("read_file", {"path": "a.txt"})]
    for ceiling in (TOKENS, Ceiling.parse("2.50")):
        talk = script(workspace, read, read, "end", ceilings=Ceilings(turn=ceiling))
        with pytest.raises(ConfigurationError, match="what each answer took"):
            await talk.say("go")
        assert len(talk.model.asked) == 1


@pytest.mark.parametrize("text", ["", "0", "-1", "1e9", "NaN", "5 token", "1,000", "$5", "٣"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no amount: write 2\.50 for US dollars"):
        Ceiling.parse(text)
