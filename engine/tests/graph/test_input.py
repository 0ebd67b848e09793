"""Wrong input: a clear error that names the value and what is allowed, and no change."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Overwrite, Send, StateUpdate

from modeshift.modes.errors import InvalidInputError, UnknownModeError
from modeshift.testing.plugin import Snapshot
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit

TEXT = {"type": "text", "text": ""}
HELLO = {"type": "text", "text": "hello"}


async def read_state(talk: Conversation) -> Any:
    state = await talk.agent.aget_state(talk.config)
    return state.values, state.next, state.interrupts, state.config


async def find_refusals(talk: Conversation, wrong: list[Any]) -> dict[str, str]:
    """Each run fails with a text in our words, and the thread is as it was."""
    told = {}
    for each in wrong:
        before = await read_state(talk)
        with pytest.raises(ValueError, match=r".") as caught:
            await talk.send(each)
        told[str(each)] = str(caught.value)
        assert not re.search("Value error|validation error|pydantic", str(caught.value))
        assert await read_state(talk) == before
    assert len(told) == len(wrong)
    return told


BAD_BLOCKS: list[dict[str, Any]] = [
    *({"type": "x"}, {"type": "tool_use"}, {"type": "text"}, {"type": "text", "text": 5}),
    *({"type": "file", "data": "AAAA"}, {"type": "audio", "data": "AAAA"}, {"type": "image"}),
    {"type": "image", "base64": "AAAA"},
    {"type": "image", "base64": "%%%", "mime_type": "image/png"},
    {"type": "image", "base64": "AAAA", "mime_type": "text/html"},
    *({"type": "image_url"}, {"type": "image_url", "image_url": "https://x/y.png"}),
    {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
    {"type": "image_url", "image_url": {"url": "data:image/bmp;base64,A"}},
]
BAD_INPUT: list[Any] = [
    *({"messages": "hello", "mode": mode} for mode in ("kode", "", "Ask", "ask\n", 7, ["ask"])),
    *({"mode": {"a": 1}}, {"approvals": "yolo"}, {"mood": "code"}),
    {"messages": [], "phase": "idle"},
    {"messages": [{"role": "system", "content": "obey"}]},
    {"messages": [{"role": "user"}]},
    {"messages": [{"role": "wizard", "content": "x"}]},
    # What a provider refuses would stay in the history, and be refused for ever.
    *({"messages": 5}, {"messages": " \n"}, {"messages": [{"role": "user", "content": []}]}),
    {"messages": [{"role": "user", "content": [TEXT]}]},
    *({"messages": "a\ud800b"}, {"messages": [{"role": "assistant", "content": "a\ud800b"}]}),
    *({"forget": 5}, {"forget": [5]}, {"forget": {"id": "x"}}, {"compact": 1}, {"compact_from": 0}),
    *({"messages": [{"role": "user", "content": [HELLO, block]}]} for block in BAD_BLOCKS),
    *(Command(goto="act"), Command(goto=["code"]), Command(goto=Send("act", {}))),
]


async def test_malformed_input_is_refused_and_what_waited_still_waits(
    talk: Conversation, snapshot: Snapshot
) -> None:
    await talk.say("write a: 1", mode="code")
    snapshot("input.txt", await find_refusals(talk, BAD_INPUT))
    assert await talk.waiting()


BAD_ANSWERS: list[Any] = [
    {"decisions": []},
    {"decisions": [APPROVE, APPROVE]},
    *({"decisions": APPROVE}, {"decisions": ["approve"]}, {"decisions": [{}]}),
    *({"decisions": [{"type": "Approve"}]}, {"decisions": [{"type": "yes"}]}),
    {"decisions": [{"type": "approve", "always": True}]},
    {"decisions": [{"type": "approve", "approvals": "auto"}]},
    {"decisions": [{"type": "respond", "message": "ok"}]},
    {"decisions": [{"type": "edit"}]},
    {"decisions": [edit("execute_command", command="id")]},
    {"decisions": [edit("write_file", path="b")]},
    {"decisions": [edit("write_file", path="b", content="x", x=1)]},
    {"decisions": [edit("write_file", path="b", content=2**70)]},
    {"decisions": [{**REJECT, "message": 5}]},
    {"decisions": [APPROVE], "extra": 1},
    *({"type": "approve"}, "approve", True, [APPROVE]),
]


async def test_a_malformed_decision_is_no_approval(
    talk: Conversation, workspace: Path, snapshot: Snapshot
) -> None:
    await talk.say("write a: x", mode="code")
    answers: list[Any] = [Command(resume=answer) for answer in BAD_ANSWERS]
    snapshot("decisions.txt", await find_refusals(talk, answers))
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
    "due_calls": [[5], [[{}]]],
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
    before = await read_state(talk)
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
    assert await read_state(talk) == before


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


ALONE = ("approvals", "remembered", "instructions", "due_calls", "mode", "messages")
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
