"""Wrong input: a clear error that names the value and what is allowed, and no change."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from modes.catalog import load_catalog
from modes.errors import InvalidInputError, UnknownModeError
from tests.conversation import APPROVE, REJECT, Conversation, edit

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
    await refuses(talk, given, "unknown mode", repr(mode), ", ".join(load_catalog()))
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


async def test_update_state_refuses_too(talk: Conversation) -> None:
    await talk.say("list")
    for values, error in (
        ({"mode": "kode"}, UnknownModeError),
        ({"approvals": "yolo"}, InvalidInputError),
        ({"phase": "sleeping"}, InvalidInputError),
    ):
        with pytest.raises(error):
            await talk.agent.aupdate_state(talk.config, values)
    values = await talk.values()
    assert (values["mode"], values["approvals"], values["phase"]) == ("ask", "manual", "idle")


async def test_a_decision_where_nothing_waits_does_nothing(
    talk: Conversation, workspace: Path
) -> None:
    await talk.say("list")
    before = await talk.messages()
    await talk.decide(APPROVE)
    assert await talk.messages() == before
