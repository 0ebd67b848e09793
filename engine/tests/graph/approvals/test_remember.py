""" "Always allow this": what a person remembers at review, and what it is worth elsewhere."""

from dataclasses import replace
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from modeshift.models.loading import Models
from modeshift.modes.errors import InvalidInputError
from modeshift.testing.plugin import Snapshot
from modeshift.threads.mailbox import Mailbox
from tests.graph.calls import asks
from tests.harness.conversation import APPROVE, REJECT, Conversation, open_thread, reload
from tests.harness.place import UserFolders, modes_file
from tests.harness.scripted import ScriptedModel, calling
from tests.tables import rows

ALWAYS = {"type": "approve", "remember": True}


def always(pattern: str) -> dict[str, Any]:
    return {"type": "approve", "remember": pattern}


@pytest.fixture
def talk(place: UserFolders) -> Conversation:
    return open_thread(place.loader().deps())


async def waits(talk: Conversation, text: str, **host: Any) -> bool:
    """Whether a person is asked about ``text``; rejects it if so."""
    await talk.say(text, **host)
    if not await talk.waiting():
        return False
    await talk.decide(REJECT)
    return True


async def test_a_command_is_remembered(talk: Conversation, place: UserFolders) -> None:
    await talk.say("run touch a", mode="code")
    (request,) = await talk.waiting()
    assert request["remember"] == "touch a"
    await talk.decide(ALWAYS)
    (place.workspace / "a").unlink()
    await talk.say("run touch  'a'")
    assert not await talk.waiting()
    assert (place.workspace / "a").exists()
    for command in ("touch b", "touch a b", "touch a; touch b", "touch a\ttouch b", "A=1 touch a"):
        assert await waits(talk, f"run {command}"), command
    assert await waits(talk, "run touch a", mode="debug")
    assert not await waits(talk, "run touch a", mode="code")
    assert await waits(Conversation(talk.agent), "run touch a", mode="code"), "another thread"
    model = ScriptedModel(
        answers=[calling(("execute_command", {"command": "touch a", "cwd": "sub"}))]
    )
    (place.workspace / "sub").mkdir()
    reload(talk, replace(place.loader().deps(), models=Models(model)))
    assert await waits(talk, "go"), "in another folder"
    (memory,) = (await talk.values())["remembered"]
    assert (memory["mode"], memory["tool"], memory["pattern"]) == (
        "code",
        "execute_command",
        "touch a",
    )


@rows(
    "first decision free asked",
    (
        "write docs/a.md: one",
        ALWAYS,
        ["write docs/../docs/a.md: two"],
        ["write a.md: x", "write sub/docs/a.md: x", "replace two with three in docs/a.md"],
    ),
    ("write docs/a.md: one", always("docs/**"), ["write docs/deep/b.md: x"], ["write b.md: x"]),
    ("write src: a folder", ALWAYS, [], ["write src/evil.py: x"]),
    ("run touch 'a b'", ALWAYS, ['run touch "a b"'], ["run touch a b"]),
)
async def test_what_else_an_approval_covers(
    talk: Conversation,
    place: UserFolders,
    first: str,
    decision: dict[str, Any],
    free: list[str],
    asked: list[str],
) -> None:
    (place.workspace / "src").mkdir()
    await talk.say(first, mode="code")
    await talk.decide(decision)
    for text in free:
        assert not await waits(talk, text)
    for text in asked:
        assert await waits(talk, text)


async def test_a_revocation_counts_while_one_waits(talk: Conversation, place: UserFolders) -> None:
    await talk.say("write a.md: one", mode="code")
    await talk.decide(ALWAYS)
    (place.workspace / "a.md").rename(place.workspace / "b.md")
    (place.workspace / "a.md").symlink_to("b.md")
    assert await waits(talk, "write a.md: x")
    await talk.say("run touch a", mode="code")
    await talk.decide(ALWAYS)
    await talk.say("run touch b\nrun touch a")
    await talk.send({"forget": ["all"]})
    assert (await talk.values())["remembered"] == []
    (place.workspace / "a").unlink()
    await talk.decide(APPROVE)
    assert [request["args"] for request in await talk.waiting()] == [{"command": "touch a"}]
    assert not (place.workspace / "a").exists()


async def test_a_listing_and_what_may_be_denied_are_not_remembered_so(place: UserFolders) -> None:
    place.permissions.write_text("list_files: ask")
    talk = open_thread(place.loader().deps())
    await talk.say("list .")
    assert "remember" not in (await talk.waiting())[0]
    with pytest.raises(Exception, match="needs a pattern"):
        await talk.decide(ALWAYS)
    await talk.decide(always("*"))
    assert not await waits(talk, "list .")
    place.permissions.write_text("search_files: {.env: deny}")
    (place.workspace / ".env").write_text("SECRET")
    talk = open_thread(place.loader().deps())
    await talk.say("search SECRET")
    (request,) = await talk.waiting()
    assert "it may be what is denied by rule '.env'" in request["description"]
    assert "remember" not in request
    with pytest.raises(Exception, match="every time"):
        await talk.decide(always("*"))
    await talk.decide(APPROVE)
    assert await waits(talk, "search SECRET")
    place.permissions.write_text("write_file: {c.md: deny}")
    talk = open_thread(place.loader().deps())
    await talk.say("write a.md: x", mode="code")
    await talk.decide(always("*"))
    assert not await waits(talk, "write b.md: x")
    await talk.say("write c.md: x")
    assert "must not do that" in str(await talk.messages())
    assert not (place.workspace / "c.md").exists()


async def test_never_remembered(talk: Conversation, place: UserFolders, snapshot: Snapshot) -> None:
    wrong: dict[str, list[dict[str, Any]]] = {
        "write a.md: x": [
            *(always("docs/**"), always(""), always("[a].md"), always("./a.md")),
            *({**ALWAYS, "remember": 5}, {"type": "reject", "remember": True}),
        ],
        "write .envrc: x": [ALWAYS, always("*")],
        "run ls; ls": [ALWAYS, always("ls *")],
        "run touch x": [always("touch y")],
        "switch to ask: x": [ALWAYS],
    }
    told = {}
    for text, decisions in wrong.items():
        await talk.say(text, mode="code")
        for decision in decisions:
            with pytest.raises(InvalidInputError) as caught:
                await talk.decide(decision)
            told[f"{text} {decision}"] = str(caught.value)
        assert await talk.waiting(), "the question stays open"
    assert not (await talk.values()).get("remembered")
    assert not list(place.workspace.iterdir())
    snapshot("remember.txt", told)


@pytest.mark.parametrize("change", ["mode", "workspace", "gone"])
async def test_another_mode_of_the_same_name_or_folder(place: UserFolders, change: str) -> None:
    place.global_modes.write_text(modes_file("mine", groups="command"))
    talk = open_thread(place.loader().deps())
    await talk.say("run touch a", mode="mine")
    await talk.decide(ALWAYS)
    workspace = place.workspace
    if change == "mode":
        place.global_modes.write_text(modes_file("mine", groups="command, read"))
    elif change == "workspace":
        workspace = place.home
    else:
        place.global_modes.unlink()
    reload(talk, place.loader(workspace=workspace).deps())
    assert await waits(talk, "run touch a")
    values = await talk.values()
    assert values["remembered"] == []
    assert "is revoked" in str(values["notices"])


async def test_the_host_revokes_in_a_run_or_beside(talk: Conversation, place: UserFolders) -> None:
    for name in ("a", "b", "a"):
        await talk.say(f"run touch {name}", mode="code")
        if await talk.waiting():
            await talk.decide(ALWAYS)
    first, second = (await talk.values())["remembered"]
    assert await waits(talk, "run touch a", forget=[first["id"]])
    assert (await talk.values())["remembered"] == [second]
    assert not await waits(talk, "run touch b")
    await talk.say("hello", forget=["nothing"])
    values = await talk.values()
    assert values["remembered"] == [second]
    assert "no approval 'nothing' is remembered" in values["notices"][0]
    assert await waits(talk, "run touch b", forget="all")
    assert (await talk.values())["remembered"] == []
    await talk.say("run touch b")
    await talk.decide(ALWAYS)
    assert not await waits(talk, "run touch b"), "a revocation is for one turn"
    store = InMemoryStore()
    talk = open_thread(place.loader().deps(), store)
    for name in ("a", "b"):
        await talk.say(f"run touch {name}", mode="code")
        await talk.decide(ALWAYS)
    first, second = (await talk.values())["remembered"]
    put = Mailbox(store).put(talk.config["configurable"]["thread_id"], {"forget": [first["id"]]})
    await put
    assert await waits(talk, "run touch a", forget=[second["id"]])
    assert (await talk.values())["remembered"] == []


@pytest.mark.parametrize("at", ["a question", "idle"])
async def test_what_is_taken_back_beside_the_runs_asks_again(place: UserFolders, at: str) -> None:
    """Also the call that waits beside a question, and in a fork of an older checkpoint."""
    store = InMemoryStore()
    talk = open_thread(place.loader().deps(), store)
    thread = talk.config["configurable"]["thread_id"]
    for name in ("a", "b"):
        await talk.say(f"run touch {name}", mode="code")
        await talk.decide(ALWAYS)
        (place.workspace / name).unlink()
    first, second = (await talk.values())["remembered"]
    older = (await talk.agent.aget_state(talk.config)).config
    if at == "a question":
        await talk.say("run touch c\nrun touch a")
    await Mailbox(store).put(thread, {"forget": [first["id"]]})
    if at == "a question":
        await talk.decide(APPROVE)
        assert (place.workspace / "c").exists()
        assert not (place.workspace / "a").exists()
        if await talk.waiting():
            await talk.decide(REJECT)
    assert await waits(talk, "run touch a")
    assert not await waits(talk, "run touch b")
    values = await talk.values()
    assert (values["remembered"], values["forget"], values["notices"]) == ([second], [], [])
    again: Any = {"messages": [{"role": "user", "content": "run touch a"}]}
    await talk.agent.ainvoke(again, older)
    assert await asks(talk) == ["execute_command"]
    await talk.decide(ALWAYS)
    assert not await waits(talk, "run touch a"), "what is allowed again stays allowed"
