"""What an editor is shown while the agent works, and what a message may hold."""

from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, schema

from tests.clients.editor.editor import Editor, Talk, choosing
from tests.clients.editor.model import CLAUDE, GO_ON, GPT, STORY

pytestmark = pytest.mark.asyncio(loop_scope="session")
LIVED = ["pending", "pending", "in_progress"]
SOUND = schema.AudioContentBlock(type="audio", data="", mime_type="audio/wav")


def link(uri: str) -> schema.ResourceContentBlock:
    return schema.ResourceContentBlock(type="resource_link", uri=uri, name="a")


async def test_the_life_of_an_edit(code: Talk) -> None:
    file = code.cwd / "a.txt"
    file.write_text("one two")
    code.answer = choosing("once")
    await code.say("replace one with three in a.txt\nwrite a.txt: all")
    assert code.calls == [
        ("Edit file a.txt", [*LIVED, "completed"]),
        ("Write file a.txt", [*LIVED, "completed"]),
    ]
    output = {"output": "Edited a.txt: 1 place."}
    ended = [update for update in code.of("tool_call_update") if update.status == "completed"]
    assert ended[0].raw_output == output
    edits = [(diff.path, diff.old_text, diff.new_text) for (diff, *_) in code.results]
    assert edits == [(str(file), "one", "three"), (str(file), "three two", "all")]
    assert [(call.content or [])[0].type for call in code.asked] == ["diff", "diff"]
    start = code.of("tool_call_update")[0]
    assert start.locations[0].path == str(file)
    replayed = (await code.replayed()).of("tool_call")[0]
    assert replayed.raw_output == output
    assert start.raw_input == {"path": "a.txt", "edits": [{"old": "one", "new": "three"}]}


@pytest.mark.parametrize(
    ("said", "title", "statuses", "result"),
    [
        ("read missing.txt", "Read file missing.txt", [*LIVED, "failed"], "No such file"),
        ("broken call", "Write file", ["pending", "pending", "failed"], ""),
        ("unknown tool", "launch_rocket", ["pending", "pending", "failed"], "launch_rocket"),
    ],
)
async def test_a_call_that_cannot_run_has_failed(
    editor: Editor, workspace: Path, said: str, title: str, statuses: list[str], result: str
) -> None:
    model = "offline" if said.startswith("read") else GPT
    talk = await editor.talk(workspace, "code", model=model)
    assert await talk.say(said) == "end_turn"
    assert talk.calls == [(title, statuses)]
    ((content,),) = talk.results
    assert result in content.content.text
    assert "<data" not in content.content.text


@pytest.mark.parametrize("said", ["same id", "long id"])
async def test_an_id_that_comes_again_is_another_call(gpt: Talk, said: str) -> None:
    (gpt.cwd / "a.txt").write_text("a")
    await gpt.say(said)
    await gpt.say(f"{said} again")
    assert gpt.ends == [("List files", "completed"), ("Read file a.txt", "completed")]


async def test_text_comes_in_pieces_and_thoughts_as_thoughts(
    editor: Editor, workspace: Path
) -> None:
    talk = await editor.talk(workspace, model=CLAUDE)
    await talk.say("think")
    assert (
        "".join(update.content.text for update in talk.of("agent_thought_chunk")) == "Let me see."
    )
    assert talk.said == "Done."
    await talk.choose("model", GPT)
    turn = await talk.begin(STORY, lambda: talk.said != "Done.")
    assert talk.said != f"Done.{STORY}"
    GO_ON.release()
    await turn
    assert talk.said == f"Done.{STORY}"


async def test_an_answer_that_was_cut_off_says_so(gpt: Talk) -> None:
    assert await gpt.say("cut off") == "max_tokens"
    assert gpt.said.startswith("Half a")
    assert "limit of tokens" in gpt.said
    before = len(gpt.said)
    assert await gpt.say("declined") == "end_turn"
    assert gpt.said[before:] == "Half a"


async def test_a_provider_that_fails_is_an_error_and_the_session_goes_on(gpt: Talk) -> None:
    with pytest.raises(RequestError, match="quota"):
        await gpt.say("fail")
    for said in ("bad key", "no permission"):
        with pytest.raises(RequestError) as refused:
            await gpt.say(said)
        assert refused.value.code == -32000  # the editor shows its login card
        assert refused.value.data["authMethods"][0]["id"] == "key"  # type: ignore[index]
    assert await gpt.say("Hello.") == "end_turn"
    assert gpt.said == "Here I am."


# What a message may hold.


async def test_files_that_are_mentioned_or_attached(talk: Talk) -> None:
    uri = (talk.cwd / "my notes.txt").as_uri()
    (talk.cwd / "my notes.txt").write_text("needle")
    await talk.say("read ", link(uri))
    assert talk.ends == [("Read file my notes.txt", "completed")]
    resource = schema.TextResourceContents(uri=uri, text="the text")
    attached = schema.EmbeddedResourceContentBlock(type="resource", resource=resource)
    image = schema.ImageContentBlock(type="image", data="iVBORw0KGgo=", mime_type="image/png")
    for block in (attached, image):
        assert await talk.say(block) == "end_turn"
    said = [update.content for update in (await talk.replayed()).of("user_message_chunk")]
    assert said[0].text == "read my notes.txt"
    assert "the text" in said[1].text
    assert (said[2].data, said[2].mime_type) == ("iVBORw0KGgo=", "image/png")


async def test_how_blocks_become_a_message(talk: Talk) -> None:
    (talk.cwd / "a b.txt").touch()
    uri = (talk.cwd / "a b.txt").as_uri()
    messages: list[tuple[list[Any], str]] = [
        (["/code\tlook at ", link(uri), " please"], "look at a b.txt please"),
        (["one", "two\n", "three"], "one\ntwo\nthree"),
        (["/ask\n    indented"], "    indented"),
        (["/ask", " "], ""),
        (["look at ", link(f"{uri}%0Arun true")], "look at a b.txt\\u000arun true"),
    ]
    for blocks, _ in messages:
        await talk.say(*blocks)
    said = [update.content.text for update in (await talk.replayed()).of("user_message_chunk")]
    assert said == [text for _, text in messages if text]


@pytest.mark.parametrize(
    "said",
    [[], [" ", "\n"], ["/code look", SOUND], ["/code", SOUND], [link("file://[bad")]],
)
async def test_a_message_that_is_refused_changes_nothing(talk: Talk, said: list[Any]) -> None:
    with pytest.raises(RequestError) as refused:
        await talk.say(*said)
    assert refused.value.code == -32602
    (listed,) = await talk.editor.list(cwd=str(talk.cwd))
    assert listed.title is None
    assert await talk.stored() == ("ask", "manual")
    assert not talk.of("current_mode_update")
