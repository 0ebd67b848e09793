"""Custom modes in the running agent: odd slugs, models, plans handed over, files that change."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from graph.agent import Agent, build_agent
from graph.state import TAKEN_NAMES
from graph.workshop import Workshop
from modes.errors import UnknownModeError
from tests.conversation import APPROVE, REJECT, Conversation, edit, problems
from tests.place import Place, modes_file

ODD = [
    *("send", "states", "model", "review", "act", "intake", "messages", "mode", "phase"),
    *("approvals", "todos", "plan", "switch", "refused", "remembered", "m-0", "0", "-", "END"),
    *("start", "to", "agent", "input", "idle", "thinking", "Ask", "class"),
]


def talk_to(workshop: Workshop) -> Conversation:
    return Conversation(build_agent(workshop.harness(), InMemorySaver()))


async def again(conversation: Conversation, workshop: Workshop) -> None:
    """Go on with the thread in an agent of the files as they are now."""
    saver = conversation.agent.checkpointer
    agent: Agent = build_agent(workshop.harness(), saver)  # type: ignore[arg-type]  # it is one
    conversation.agent = agent


async def test_slugs_that_collide_with_something(place: Place) -> None:
    place.global_modes.write_text(modes_file(*ODD))
    workshop = place.workshop()
    (place.workspace / "a.txt").write_text("hello")
    for slug in ODD:
        talk = talk_to(workshop)
        await talk.say(f"switch to {slug}: why\nread a.txt")
        (request,) = await talk.waiting()
        assert request["args"]["mode_slug"] == slug
        await talk.decide(APPROVE)
        assert await talk.mode() == slug
        node = f"mode_{slug}" if slug in {*TAKEN_NAMES, "review", "act"} else slug
        assert node in talk.nodes
        assert "hello" in (await talk.messages())[-1].text


async def test_two_hundred_modes_switch(place: Place) -> None:
    place.global_modes.write_text(modes_file(*(f"m-{number}" for number in range(200))))
    talk = talk_to(place.workshop())
    await talk.say("switch to m-199: why")
    await talk.decide(APPROVE)
    assert await talk.mode() == "m-199"


# Models


@pytest.fixture
def with_two_models(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    rest = "    model: openai:some-model\n"
    place.global_modes.write_text(modes_file("planner", groups="read", rest=rest))
    return place


async def test_a_mode_s_model_is_shown_and_used(with_two_models: Place) -> None:
    workshop = with_two_models.workshop()
    harness = workshop.harness()
    assert harness.models["openai:some-model"] is harness.models["openai:some-model"]
    bound: Any = harness.voice("planner").model
    assert bound.bound.model_name == "some-model"
    assert harness.voice("ask").model.bound is harness.models[None]  # type: ignore[attr-defined]
    talk = talk_to(workshop)
    await talk.say("switch to planner: why")
    (request,) = await talk.waiting()
    assert "Model: openai:some-model instead of offline." in request["description"]
    await talk.decide(edit("switch_mode", mode_slug="code", reason="no"))
    assert await talk.mode() == "code"
    assert "Model:" not in str([message.text for message in await talk.messages()])


# What is handed over


async def test_the_plan_is_named_to_the_next_mode(place: Place) -> None:
    talk = talk_to(place.workshop())
    await talk.say("write PLAN.md: first this", mode="architect", approvals="auto")
    await talk.say("write docs/more.md: then that\nwrite PLAN.md: first this, really")
    await talk.say("todo: one; two")
    await talk.say("switch to code: as planned\nwrite app.py: x")
    await talk.decide(APPROVE)
    notice = next(
        message.text
        for message in await talk.messages()
        if message.name == "switch_mode" and "Switched" in message.text
    )
    assert "Files written in Architect mode: PLAN.md, docs/more.md." in notice
    assert "The todo list as it stands:\n- one (pending)\n- two (pending)" in notice
    assert (await talk.values())["written"] == ["app.py"]
    await talk.say("switch to ask: done")
    await talk.decide(APPROVE)
    assert "Files written in Code mode: app.py." in str(await talk.messages())
    assert (await talk.values())["written"] == []


async def test_what_was_not_written_is_not_named(place: Place) -> None:
    talk = talk_to(place.workshop())
    await talk.say("write PLAN.md: x", mode="architect")
    await talk.decide(REJECT)
    await talk.say("switch to code: x")
    await talk.decide(APPROVE)
    assert "Files written" not in str(await talk.messages())
    await talk.say("write a.md: x", mode="architect", approvals="auto")
    await talk.say("hello", mode="ask")
    assert (await talk.values())["written"] == []


# Files that change


async def test_a_mode_that_has_disappeared(place: Place) -> None:
    place.global_modes.write_text(modes_file("mine"))
    workshop = place.workshop()
    talk = talk_to(workshop)
    await talk.say("hello", mode="mine")
    place.global_modes.unlink()
    await again(talk, workshop)
    await talk.say("read x")
    values = await talk.values()
    assert values["mode"] == "ask"
    assert talk.nodes[-1] == "ask"
    text = "The mode 'mine' is no more; this thread goes on in Ask mode."
    assert values["notices"] == [text]
    assert values["mode_changes"][-1]["source"] == "mine"
    history = await talk.messages()
    texts = [str(message.text) for message in history]
    assert texts.count(text) == 1
    notice = history[texts.index(text)]
    assert isinstance(notice, AIMessage)
    assert texts[texts.index(text) + 1] == "read x"
    assert problems(history) == []
    await talk.say("hello")
    assert (await talk.values())["notices"] == []


async def test_a_disappeared_mode_s_question_is_void(place: Place) -> None:
    place.global_modes.write_text(modes_file("mine", groups="edit"))
    workshop = place.workshop()
    talk = talk_to(workshop)
    await talk.say("write a.txt: x", mode="mine")
    assert await talk.waiting()
    place.global_modes.write_text(modes_file("other"))
    await again(talk, workshop)
    await talk.decide(APPROVE)
    assert not (place.workspace / "a.txt").exists()
    assert await talk.mode() == "ask"
    assert problems(await talk.messages()) == []


async def test_a_run_that_was_cut_off_in_a_mode_that_has_disappeared(place: Place) -> None:
    place.global_modes.write_text(modes_file("mine", groups="edit"))
    workshop = place.workshop(approvals="auto")
    talk = talk_to(workshop)
    message = {"role": "user", "content": "write a: x & write b: y"}
    await talk.send_until("mine", {"messages": [message], "mode": "mine"})
    place.global_modes.unlink()
    await again(talk, workshop)
    await talk.send(None)
    assert not list(place.workspace.iterdir())
    assert await talk.mode() == "ask"
    assert talk.nodes[-1] == "ask"
    assert "The mode 'mine' is no more" in str((await talk.values())["notices"])
    assert problems(await talk.messages()) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (modes_file("mine", groups="edit"), modes_file("mine", groups="edit, read")),
        (modes_file("mine", groups="edit"), modes_file("mine", "new", groups="edit")),
        (modes_file("mine", groups="edit"), modes_file("mine", groups="read")),
    ],
)
async def test_an_approval_is_for_the_modes_as_they_were(
    place: Place, before: str, after: str
) -> None:
    place.global_modes.write_text(before)
    workshop = place.workshop()
    talk = talk_to(workshop)
    await talk.say("write a.txt: x", mode="mine")
    place.global_modes.write_text(after)
    await again(talk, workshop)
    await talk.decide(APPROVE)
    assert not (place.workspace / "a.txt").exists()
    assert problems(await talk.messages()) == []


async def test_an_approval_holds_while_the_files_stay(place: Place) -> None:
    place.global_modes.write_text(modes_file("mine", groups="edit"))
    workshop = place.workshop()
    talk = talk_to(workshop)
    await talk.say("write a.txt: x", mode="mine")
    await again(talk, place.workshop())
    await talk.decide(APPROVE)
    assert (place.workspace / "a.txt").read_text() == "x"


async def test_an_unknown_mode_changes_nothing(place: Place) -> None:
    talk = talk_to(place.workshop())
    await talk.say("hello")
    before = await talk.values()
    with pytest.raises(UnknownModeError, match="'mine'"):
        await talk.say("hello", mode="mine")
    assert await talk.values() == before


async def test_untrusted_files_are_noticed_in_every_thread(place: Place) -> None:
    place.project_modes.write_text(modes_file("theirs"))
    talk = talk_to(place.workshop())
    await talk.say("hello")
    (notice,) = (await talk.values())["notices"]
    assert "ignored until you trust" in notice
    assert "theirs" not in str(talk.agent.get_graph().nodes)
