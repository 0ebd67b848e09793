"""Custom modes in the running agent: odd slugs, models, plans handed over, files that change."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command

from modeshift.models.loading import Models
from modeshift.modes.errors import ConfigurationError
from modeshift.testing.plugin import Snapshot
from modeshift.threads.state import State
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit, open_thread, reload
from tests.harness.place import UserFolders, modes_file
from tests.harness.scripted import Call, ScriptedModel, calling


def script(place: UserFolders, *steps: Call) -> Conversation:
    """A model that makes one call in each step, with the modes and rules of the place."""
    answers = [calling(call, prefix=f"step{number}") for number, call in enumerate(steps)]
    deps = replace(place.loader().deps(), models=Models(ScriptedModel(answers=answers)))
    return open_thread(deps)


SWITCH: Call = ("switch_mode", {"mode_slug": "code", "reason": "x"})
SUGGEST: Call = (
    "ask_followup_question",
    {"question": "May I?", "follow_up": [{"text": "Yes", "mode": "code"}]},
)


async def test_slugs_that_collide_with_something(place: UserFolders) -> None:
    taken = ["review", "act", *(name for name in State.__annotations__ if "_" not in name)]
    slugs = [*taken, "send", "model", "m-0", "0", "-", "END", "start", "agent", "Ask", "class"]
    place.global_modes.write_text(modes_file(*slugs))
    agent = open_thread(place.loader().deps()).agent
    assert {f"mode_{slug}" for slug in taken} <= {*agent.nodes}
    for slug in ("review", "END", "-"):
        talk = Conversation(agent)
        await talk.say(f"switch to {slug}: why")
        await talk.decide(APPROVE)
        assert await talk.mode() == slug
        assert talk.nodes[-1] in (slug, f"mode_{slug}")


async def test_a_mode_s_model_is_shown_and_used(
    place: UserFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    rest = "    model: openai:some-model\n"
    place.global_modes.write_text(modes_file("planner", groups="read", rest=rest))
    loader = place.loader()
    deps = loader.deps()
    planner = deps.catalog["planner"]
    assert deps.models[planner] is deps.models[planner]
    model: Any = deps.seat("planner").model.model
    assert model.model_name == "some-model"
    assert deps.seat("ask").model.model is deps.models[deps.catalog["ask"]]
    talk = open_thread(loader.deps())
    await talk.say("switch to planner: why")
    (request,) = await talk.waiting()
    assert "Model: openai:some-model instead of offline." in request["description"]
    await talk.decide(edit("switch_mode", mode_slug="code", reason="no"))
    assert await talk.mode() == "code"
    assert "Model:" not in str([message.text for message in await talk.messages()])


async def test_the_plan_is_named_to_the_next_mode(place: UserFolders, snapshot: Snapshot) -> None:
    talk = open_thread(place.loader().deps())
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
    snapshot("switched.txt", f"{notice}\n")
    assert (await talk.values())["written"] == ["app.py"]
    await talk.say("switch to ask: done")
    await talk.decide(APPROVE)
    assert "Files written in Code mode: app.py." in str(await talk.messages())
    assert (await talk.values())["written"] == []


async def test_what_was_not_written_is_not_named(place: UserFolders) -> None:
    talk = open_thread(place.loader().deps())
    await talk.say("write PLAN.md: x", mode="architect")
    await talk.decide(REJECT)
    await talk.say("switch to code: x")
    await talk.decide(APPROVE)
    assert "Files written" not in str(await talk.messages())
    await talk.say("write a.md: x", mode="architect", approvals="auto")
    await talk.say("hello", mode="ask")
    assert (await talk.values())["written"] == []


async def test_a_mode_that_has_disappeared(place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("mine"))
    talk = open_thread(place.loader().deps())
    await talk.say("hello", mode="mine")
    place.global_modes.unlink()
    reload(talk, place.loader().deps())
    await talk.say("read x")
    values = await talk.values()
    assert values["mode"] == "ask"
    assert talk.nodes[-1] == "ask"
    text = "Mode 'mine' no longer exists; this thread continues in Ask mode."
    assert values["notices"] == [text]
    change = values["mode_changes"][-1]
    assert (change["source"], change["decided_by"]) == ("mine", "nobody")
    history = await talk.messages()
    texts = [str(message.text) for message in history]
    assert texts.count(text) == 1
    notice = history[texts.index(text)]
    assert isinstance(notice, AIMessage)
    assert texts[texts.index(text) + 1] == "read x"
    await talk.say("hello")
    assert (await talk.values())["notices"] == []


async def test_a_disappeared_mode_s_question_is_void(place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("mine", groups="edit"))
    talk = open_thread(place.loader().deps())
    await talk.say("write a.txt: x", mode="mine")
    assert await talk.waiting()
    place.global_modes.write_text(modes_file("other"))
    reload(talk, place.loader().deps())
    await talk.decide(APPROVE)
    assert not (place.workspace / "a.txt").exists()
    assert await talk.mode() == "ask"
    assert any("have changed since" in notice for notice in (await talk.values())["notices"])
    await talk.decide(REJECT)


async def test_a_run_that_was_cut_off_in_a_mode_that_has_disappeared(place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("mine", groups="edit"))
    talk = open_thread(place.loader(approvals="auto").deps())
    message = {"role": "user", "content": "write a: x & write b: y"}
    await talk.send_until("mine", {"messages": [message], "mode": "mine"})
    place.global_modes.unlink()
    reload(talk, place.loader().deps())
    await talk.send(None)
    assert not list(place.workspace.iterdir())
    assert (await talk.mode(), talk.nodes[-1]) == ("ask", "ask")
    assert "Mode 'mine' no longer exists" in str((await talk.values())["notices"])


async def test_a_switch_is_to_the_mode_as_it_was_approved(place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("mine", groups="read"))
    talk = open_thread(place.loader().deps())
    await talk.say("switch to mine: why")
    place.global_modes.write_text(modes_file("mine", groups="command"))
    reload(talk, place.loader().deps())
    await talk.decide(APPROVE)
    assert await talk.mode() == "ask", "asked before it changed"
    assert await talk.waiting(), "and again after"
    await talk.agent.ainvoke(
        Command(resume={"decisions": [APPROVE]}), talk.config, interrupt_after=["review"]
    )
    place.global_modes.write_text(modes_file("mine", groups="command, edit"))
    reload(talk, place.loader().deps())
    await talk.send(None)
    assert await talk.mode() == "ask", "approved before it changed"
    (request,) = await talk.waiting()
    assert (
        "Tools gained: write_file, edit_file, execute_command, read_output."
        in request["description"]
    )
    await talk.decide(APPROVE)
    assert await talk.mode() == "mine"


async def test_a_switch_that_is_denied_is_no_answer_to_a_question(place: UserFolders) -> None:
    place.permissions.write_text("switch_mode: deny")
    talk = script(place, SUGGEST, SWITCH)
    await talk.say("go")
    assert not await talk.waiting()
    results = await talk.results()
    assert len(results) == 2
    for result in results.values():
        assert "must not do that: rule '*' for switch_mode" in result.text


async def test_a_switch_to_a_mode_without_a_model_is_refused(place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("mine", rest="    model: strange:model\n"))
    talk = open_thread(place.loader().deps())
    await talk.say("switch to mine: why")
    assert not await talk.waiting()
    told = "No switch to 'mine' is possible: the model 'strange:model'"
    assert told in str(await talk.messages())
    with pytest.raises(ConfigurationError, match="'strange:model'"):
        await talk.say("hello", mode="mine")
    await talk.say("hello", mode="ask")
    assert "no language model" in (await talk.messages())[-1].text


async def test_the_question_says_which_files_are_gained(place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("mine", groups="read, edit"))
    talk = open_thread(place.loader().deps())
    await talk.say("switch to mine: why", mode="architect")
    (request,) = await talk.waiting()
    said = r"Files to edit: every file instead of Markdown files only (paths that match `\.md$`)."
    assert said in request["description"]
