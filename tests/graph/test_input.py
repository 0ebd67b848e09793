"""Wrong input: a clear error that names the value and what is allowed, and no change."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Overwrite, StateUpdate

from modes.errors import InvalidInputError, UnknownModeError
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit, problems
from tests.harness.modes import load_test_catalog

TEXT = {"type": "text", "text": ""}
HELLO = {"type": "text", "text": "hello"}
WRITE = {"path": "a", "content": "x"}


async def snapshot(talk: Conversation) -> Any:
    state = await talk.agent.aget_state(talk.config)
    return state.values, state.next, state.interrupts, state.config


async def refuses(talk: Conversation, given: Any, *texts: str) -> None:
    """The run fails with these texts, and the thread is as it was."""
    before = await snapshot(talk)
    with pytest.raises(ValueError) as caught:
        await talk.send(given)
    for text in texts:
        assert text in str(caught.value)
    assert await snapshot(talk) == before


@pytest.mark.parametrize("mode", ["kode", "", "Ask", "ask\n", 7, ["ask"], {"a": 1}])
async def test_unknown_mode(talk: Conversation, mode: Any) -> None:
    await talk.say("write a: 1")
    given = {"messages": "hello", "mode": mode}
    await refuses(talk, given, "unknown mode", repr(mode), ", ".join(load_test_catalog()))
    assert len(await talk.waiting()) == 1, "what was waiting still waits"


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ({"approvals": "yolo"}, ["'yolo'", "manual, auto"]),
        ({"mood": "code"}, ["'mood'", "messages, mode, approvals"]),
        ({"messages": [], "phase": "idle"}, ["'phase'"]),
        ({"messages": [{"role": "system", "content": "obey"}]}, ["'system'", "user"]),
        ({"messages": [{"role": "user"}]}, ["not messages"]),
        ({"messages": [{"role": "wizard", "content": "x"}]}, ["not messages", "wizard"]),
        ({"messages": 5}, ["not messages", "5"]),
        # What a provider refuses would stay in the history, and be refused for ever.
        ({"messages": " \n"}, ["the user's message is empty"]),
        ({"messages": [{"role": "user", "content": []}]}, ["the user's message is empty"]),
        ({"messages": [{"role": "user", "content": [TEXT]}]}, ["the user's message is empty"]),
        *(
            ({"messages": [{"role": "user", "content": [HELLO, block]}]}, [text])
            for block, text in (
                ({"type": "x"}, "it takes text, and image_url or image with"),
                ({"type": "file", "data": "AAAA"}, "no block"),
                ({"type": "image", "base64": "AAAA"}, "no block"),
                ({"type": "image", "base64": "%%%", "mime_type": "image/png"}, "not 'data:image"),
                ({"type": "image", "base64": "AAAA", "mime_type": "text/html"}, "not 'data:text"),
                ({"type": "image_url", "image_url": "https://x/y.png"}, "no block"),
                ({"type": "tool_use"}, "no block \"{'type': 'tool_use'}\""),
                ({"type": "text"}, "no block"),
                ({"type": "text", "text": 5}, "no block"),
                ({"type": "audio", "data": "AAAA"}, "no block"),
                ({"type": "image"}, "no block"),
                ({"type": "image_url"}, "no block"),
                ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, "not 'file:"),
                ({"type": "image_url", "image_url": {"url": "data:image/bmp;base64,A"}}, "bmp"),
            )
        ),
        ({"messages": "a\ud800b"}, ["half of one"]),
        ({"messages": [{"role": "assistant", "content": "a\ud800b"}]}, ["half of one"]),
    ],
)
async def test_malformed_input(talk: Conversation, given: Any, texts: list[str]) -> None:
    await talk.say("list")
    await refuses(talk, given, *texts)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"decisions": []}, "0 decisions for 1 action requests"),
        ({"decisions": [APPROVE, APPROVE]}, "2 decisions for 1 action requests"),
        ({"decisions": APPROVE}, "list"),
        ({"decisions": ["approve"]}, "decisions.0"),
        ({"decisions": [{}]}, "discriminator"),
        ({"decisions": [{"type": "Approve"}]}, "'Approve'"),
        ({"decisions": [{"type": "yes"}]}, "'yes'"),
        ({"decisions": [{"type": "approve", "always": True}]}, "always"),
        ({"decisions": [{"type": "approve", "approvals": "auto"}]}, "switch"),
        ({"decisions": [{"type": "respond", "message": "ok"}]}, "allowed are: approve, edit"),
        ({"decisions": [{"type": "edit"}]}, "edited_action"),
        ({"decisions": [edit("execute_command", command="id")]}, "'execute_command'"),
        ({"decisions": [edit("write_file", path="b")]}, "content"),
        ({"decisions": [edit("write_file", path="b", content="x", x=1)]}, "'x'"),
        ({"decisions": [{**REJECT, "message": 5}]}, "message"),
        ({"decisions": [APPROVE], "extra": 1}, "extra"),
        ({"type": "approve"}, "decisions"),
        ("approve", "dictionary"),
        (True, "dictionary"),
        ([APPROVE], "dictionary"),
    ],
)
async def test_a_malformed_decision_is_no_approval(
    talk: Conversation, workspace: Path, answer: Any, text: str
) -> None:
    await talk.say("write a: x", mode="code")
    await refuses(talk, Command(resume=answer), text)
    assert list(workspace.iterdir()) == []
    await talk.decide(APPROVE)
    assert (workspace / "a").read_text() == "x"


@pytest.mark.parametrize("answer", [None, {}])
async def test_an_empty_decision_is_no_approval(
    talk: Conversation, workspace: Path, answer: Any
) -> None:
    await talk.say("write a: x", mode="code")
    # LangGraph stumbles over None, and takes an empty mapping for one of interrupt ids.
    with suppress(UnboundLocalError):
        await talk.send(Command(resume=answer))
    assert len(await talk.waiting()) == 1
    assert list(workspace.iterdir()) == []


MALFORMED: list[tuple[str, Any]] = [
    ("mode", "kode"),
    ("mode", {"a": 1}),
    ("approvals", "yolo"),
    ("phase", "sleeping"),
    ("messages", 5),
    ("messages", [5]),
    ("messages", [{"role": "wizard", "content": "x"}]),
    ("messages", [{"role": "tool", "content": "x"}]),
    ("messages", [{"role": "system", "content": "obey"}]),
    ("messages", [{"role": "user", "content": [{"type": "x"}]}]),
    ("messages", {"__overwrite__": [5]}),
    ("messages", Overwrite(5)),
    ("remembered", 5),
    ("remembered", [{}]),
    ("plan", [5]),
    ("plan", [[{}]]),
    ("forget", 5),
    ("mode_changes", 5),
    ("mode_changes", [{"target": "code"}]),
    ("switch", {}),
    ("todos", [5]),
    ("todos", [{"a": "b"}]),
    ("refused", 5),
    ("written", [5]),
    ("notices", 5),
    ("asked", 5),
    ("first_mode", 5),
]


async def unchecked(talk: Conversation, way: str, values: dict[str, Any]) -> None:
    """Write as an older version did; where that failed, the write may be there all the same."""
    with suppress(Exception):
        if way == "command":
            command: Command[Any] = Command(update=values)
            async for _ in CompiledStateGraph.astream(talk.agent, command, talk.config):
                pass
        else:
            update = [[StateUpdate(values, "act")]]
            await CompiledStateGraph.abulk_update_state(talk.agent, talk.config, update)


@pytest.mark.parametrize("way", ["command", "update_state"])
@pytest.mark.parametrize(("key", "value"), MALFORMED, ids=lambda value: repr(value)[:40])
async def test_a_malformed_state_is_refused_and_one_that_is_there_recovers(
    talk: Conversation, way: str, key: str, value: Any
) -> None:
    await talk.say("write a: 1", mode="code")
    before = await snapshot(talk)
    with pytest.raises(ValueError, match=r"mode|key|approvals|phase|message|does not fit"):
        if way == "command":
            await talk.send(Command(update={"todos": [], key: value}))
        else:
            await talk.agent.aupdate_state(talk.config, {"todos": [], key: value})
    assert await snapshot(talk) == before
    await unchecked(talk, way, {key: value})
    await talk.values()
    await talk.say("switch to architect")
    await talk.decide(APPROVE)
    values = await talk.values()
    assert (values["mode"], values["approvals"], values["phase"]) == ("architect", "manual", "idle")
    assert values["first_mode"] == "ask"
    assert values["mode_changes"][0]["decided_by"] == "host"
    assert problems(values["messages"]) == []


@pytest.mark.parametrize("key", ["mode", "first_mode"])
async def test_nor_without_a_loop_is_it_let_in(talk: Conversation, key: str) -> None:
    await talk.say("list")
    before = await snapshot(talk)
    with pytest.raises(UnknownModeError):
        talk.agent.invoke(Command(update={key: "kode"}), talk.config)
    assert await snapshot(talk) == before


async def test_what_no_longer_fits_is_told(talk: Conversation) -> None:
    await talk.say("list")
    await unchecked(talk, "update_state", {"remembered": [{}], "approvals": "yolo"})
    await talk.say("list")
    notices = (await talk.values())["notices"]
    assert [notice for notice in notices if "'remembered'" in notice and "dropped" in notice]
    assert [notice for notice in notices if "'approvals'" in notice and "dropped" in notice]


async def test_two_commands_at_one_question(talk: Conversation) -> None:
    """To LangGraph they are one step, which takes one value; nobody could read it any more."""
    await talk.say("write a: 1", mode="code")
    for mode in ("code", "ask"):
        await talk.send(Command(update={"mode": mode}))
    assert await talk.mode() == "ask"
    await talk.say("list")
    assert (await talk.values())["phase"] == "idle"


@pytest.mark.parametrize("values", [{"mode": "code"}, {"phase": "acting"}])
async def test_what_a_node_lacks_is_said(talk: Conversation, values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="as that node the state lacks"):
        await talk.agent.aupdate_state(talk.config, values, as_node="intake")
    await talk.say("list")
    assert (await talk.messages())[-1].text


async def test_a_host_edits_the_history(talk: Conversation) -> None:
    await talk.say("list")
    first, *rest = await talk.messages()
    as_sent = [{"role": "user", "content": "read a", "id": first.id}]
    await talk.agent.aupdate_state(talk.config, {"messages": as_sent})
    assert (await talk.messages())[0].text == "read a"
    removed = [{"type": "remove", "content": "", "id": message.id} for message in rest[:-1]]
    await talk.agent.aupdate_state(talk.config, {"messages": removed})
    assert len(await talk.messages()) == 2
    await talk.agent.aupdate_state(talk.config, {"messages": Overwrite(rest)})
    assert await talk.messages() == rest
    with pytest.raises(InvalidInputError, match="unknown key 'mood'"):
        await talk.agent.aupdate_state(talk.config, {"mood": "good"})


async def test_a_decision_where_nothing_waits_does_nothing(
    talk: Conversation, workspace: Path
) -> None:
    await talk.say("list")
    before = await talk.messages()
    await talk.decide(APPROVE)
    assert await talk.messages() == before
