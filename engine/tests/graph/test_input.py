"""Wrong input: a clear error that names the value and what is allowed, and no change."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Overwrite, Send, StateUpdate

from modeshift.modes.errors import InvalidInputError, UnknownModeError
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit
from tests.harness.modes import load_test_catalog

TEXT = {"type": "text", "text": ""}
HELLO = {"type": "text", "text": "hello"}


async def snapshot(talk: Conversation) -> Any:
    state = await talk.agent.aget_state(talk.config)
    return state.values, state.next, state.interrupts, state.config


async def assert_refused(talk: Conversation, wrong: Any, *texts: str) -> None:
    """The run fails with these texts in our words, and the thread is as it was."""
    before = await snapshot(talk)
    with pytest.raises(ValueError) as caught:
        await talk.send(wrong)
    for text in texts:
        assert text in str(caught.value), wrong
    for wrapper in ("Value error", "validation error", "pydantic"):
        assert wrapper not in str(caught.value)
    assert await snapshot(talk) == before


BAD_BLOCKS: list[tuple[dict[str, Any], str]] = [
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
]
BAD_INPUT: list[tuple[dict[str, Any], list[str]]] = [
    ({"approvals": "yolo"}, ["'yolo'", "manual, auto"]),
    ({"mood": "code"}, ["'mood'", "messages, mode, limit"]),
    ({"messages": [], "phase": "idle"}, ["'phase'"]),
    ({"messages": [{"role": "system", "content": "obey"}]}, ["'system'", "user"]),
    ({"messages": [{"role": "user"}]}, ["not messages"]),
    ({"messages": [{"role": "wizard", "content": "x"}]}, ["not messages", "wizard"]),
    ({"messages": 5}, ["not messages", "5"]),
    # What a provider refuses would stay in the history, and be refused for ever.
    ({"messages": " \n"}, ["the user's message is empty"]),
    ({"messages": [{"role": "user", "content": []}]}, ["the user's message is empty"]),
    ({"messages": [{"role": "user", "content": [TEXT]}]}, ["the user's message is empty"]),
    ({"messages": "a\ud800b"}, ["half a character"]),
    ({"messages": [{"role": "assistant", "content": "a\ud800b"}]}, ["half a character"]),
    ({"forget": 5}, ["forget must be", "not 5"]),
    ({"forget": [5]}, ["not [5]"]),
    ({"forget": {"id": "x"}}, ["not {'id': 'x'}"]),
    ({"compact": 1}, ["compact 1 does not fit"]),
    ({"compact_from": 0}, ["unknown key 'compact_from'"]),
]


async def test_malformed_input_is_refused_and_what_waited_still_waits(talk: Conversation) -> None:
    await talk.say("write a: 1", mode="code")
    for mode in ("kode", "", "Ask", "ask\n", 7, ["ask"], {"a": 1}):
        known = ", ".join(load_test_catalog())
        wrong = {"messages": "hello", "mode": mode}
        await assert_refused(talk, wrong, "unknown mode", repr(mode), known)
    for wrong, texts in BAD_INPUT:
        await assert_refused(talk, wrong, *texts)
    for block, text in BAD_BLOCKS:
        messages = [{"role": "user", "content": [HELLO, block]}]
        await assert_refused(talk, {"messages": messages}, text)
    for node in ("act", ["code"], Send("act", {})):
        await assert_refused(talk, Command(goto=node), "goto=", "is not taken")
    assert await talk.waiting()


BAD_ANSWERS: list[tuple[Any, str]] = [
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
    ({"decisions": [edit("write_file", path="b", content=2**70)]}, "too large"),
    ({"decisions": [{**REJECT, "message": 5}]}, "message"),
    ({"decisions": [APPROVE], "extra": 1}, "extra"),
    ({"type": "approve"}, "decisions"),
    ("approve", "dictionary"),
    (True, "dictionary"),
    ([APPROVE], "dictionary"),
]


async def test_a_malformed_decision_is_no_approval(talk: Conversation, workspace: Path) -> None:
    await talk.say("write a: x", mode="code")
    for answer, text in BAD_ANSWERS:
        await assert_refused(talk, Command(resume=answer), text)
    assert list(workspace.iterdir()) == []
    await talk.decide(APPROVE)
    assert (workspace / "a").read_text() == "x"


async def test_an_empty_decision_is_no_approval(talk: Conversation, workspace: Path) -> None:
    """LangGraph stumbles over None, and takes an empty mapping for one of interrupt ids."""
    await talk.say("write a: x", mode="code")
    answers: list[Any] = [None, {}]
    for answer in answers:
        with suppress(UnboundLocalError):
            await talk.send(Command(resume=answer))
        assert len(await talk.waiting()) == 1
    assert list(workspace.iterdir()) == []


MALFORMED: dict[str, list[Any]] = {
    "mode": ["kode", {"a": 1}],
    "approvals": ["yolo"],
    "phase": ["sleeping"],
    "messages": [
        5,
        [5],
        [{"role": "wizard", "content": "x"}],
        [{"role": "tool", "content": "x"}],
        [{"role": "system", "content": "obey"}],
        [{"role": "user", "content": [{"type": "x"}]}],
        {"__overwrite__": [5]},
        Overwrite(5),
    ],
    "remembered": [5, [{}]],
    "plan": [[5], [[{}]]],
    "forget": [5],
    "compact": ["yes"],
    "compact_from": ["x"],
    "mode_changes": [5, [{"target": "code"}]],
    "switch": [{}],
    "todos": [[5], [{"a": "b"}]],
    "refused": [5],
    "written": [[5]],
    "notices": [5],
    "asked": [5, {"digest": 5}],
    "first_mode": [5],
    "instructions": [[{"after": 5}], [{"text": "obey"}]],
}


async def test_a_malformed_update_is_refused_before_it_is_saved(talk: Conversation) -> None:
    await talk.say("write a: 1", mode="code")
    before = await snapshot(talk)
    for key, values in MALFORMED.items():
        for value in values:
            with pytest.raises(ValueError, match=r"mode|unknown|message|does not fit"):
                await talk.send(Command(update={"todos": [], key: value}))
            with pytest.raises(ValueError, match=r"mode|unknown|message|does not fit"):
                await talk.agent.aupdate_state(talk.config, {"todos": [], key: value})
    for key in ("mode", "first_mode"):
        with pytest.raises(UnknownModeError):
            talk.agent.invoke(Command(update={key: "kode"}), talk.config)
        with pytest.raises(UnknownModeError):
            talk.agent.update_state(talk.config, {key: "kode"})
    with pytest.raises(InvalidInputError, match="unknown key 'mood'"):
        await talk.agent.aupdate_state(talk.config, {"mood": "good"})
    assert await snapshot(talk) == before


async def write_unchecked(talk: Conversation, values: dict[str, Any], *, by_command: bool) -> None:
    """Write as an older version did; where that failed, the write may be there all the same."""
    with suppress(Exception):
        if by_command:
            command: Command[Any] = Command(update=values)
            async for _ in CompiledStateGraph.astream(talk.agent, command, talk.config):
                pass
        else:
            update = [[StateUpdate(values, "act")]]
            await CompiledStateGraph.abulk_update_state(talk.agent, talk.config, update)


ALONE = ("approvals", "remembered", "instructions", "plan", "mode", "messages")
EACH_ALONE = [(False, {key: MALFORMED[key][0]}) for key in ALONE]
ALL_AT_ONCE = [
    (number % 4 == 1, {key: values[number % len(values)] for key, values in MALFORMED.items()})
    for number in range(8)
]


@pytest.mark.parametrize(("by_command", "held"), [*EACH_ALONE, *ALL_AT_ONCE])
async def test_a_thread_that_holds_malformed_values_recovers(
    talk: Conversation, held: dict[str, Any], *, by_command: bool
) -> None:
    await talk.say("write a: 1", mode="code")
    for key, value in held.items():
        await write_unchecked(talk, {key: value}, by_command=by_command)
    await talk.values()
    await talk.say("switch to architect")
    notices = str((await talk.values())["notices"])
    for key in {"remembered", "approvals"} & set(held):
        assert f"{key!r} of this thread held invalid values; they are dropped" in notices
    await talk.decide(APPROVE)
    state = await talk.values()
    assert (state["mode"], state["approvals"], state["phase"]) == ("architect", "manual", "idle")
    assert state["first_mode"] == "ask"
    deciders = ("host",) if len(held) == 1 else ("host", "nobody")
    assert state["mode_changes"][0]["decided_by"] in deciders


async def test_two_commands_at_one_question(talk: Conversation) -> None:
    """To LangGraph they are one step, which takes one value; nobody could read it any more."""
    await talk.say("write a: 1", mode="code")
    for mode in ("code", "ask"):
        await talk.send(Command(update={"mode": mode}))
    assert await talk.mode() == "ask"
    await talk.say("list")
    assert (await talk.values())["phase"] == "idle"


async def test_what_a_node_lacks_is_said(talk: Conversation) -> None:
    with pytest.raises(InvalidInputError, match="so `as_node` cannot be used"):
        await talk.agent.aupdate_state(talk.config, {"mode": "code"}, as_node="intake")
    for phase in ("thinking", "acting"):
        with pytest.raises(InvalidInputError, match=f"phase '{phase}' without "):
            await talk.agent.aupdate_state(talk.config, {"phase": phase}, as_node="intake")
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


async def test_a_decision_where_nothing_waits_does_nothing(talk: Conversation) -> None:
    await talk.say("list")
    before = await talk.messages()
    await talk.decide(APPROVE)
    assert await talk.messages() == before
