"""Undo: what it puts back, what it leaves alone and names, and what nobody gets by it."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from modeshift import APPROVE, Agents, Thread, UserError, open_agent
from modeshift.calls.previews import list_changes
from modeshift.threads.audit import find_breaks, read_entries
from modeshift.threads.compiled import writes_anything
from modeshift.tools.workspace import undo_log
from tests.clients.commands.conftest import Run, run
from tests.harness import prefork
from tests.harness.conversation import until
from tests.harness.place import UserFolders
from tests.tools.mcp.servers import serving_toy

__all__ = ["run"]
LAST, BACK = "last", "back"
FIRST = {"old.txt": "old", "folder/in.txt": "in", "run.sh": "#!/bin/sh\n", "bytes": "\0\x01"}
CODE = {"mode": "code", "approvals": "auto"}


@pytest.fixture
async def agents(place: UserFolders) -> AsyncIterator[Agents]:
    for name, text in FIRST.items():
        place.rule(name, text)
    (place.workspace / "run.sh").chmod(0o755)
    async with open_agent(place.settings(sandbox="auto")) as agents:
        yield agents


def read(workspace: Path) -> dict[str, str]:
    return {
        str(file.relative_to(workspace)): file.read_text(errors="surrogateescape")
        for file in sorted(workspace.rglob("*"))
        if file.is_file() and not file.is_symlink()
    }


async def say(thread: Thread, *texts: str, **host: str) -> None:
    """Approving whatever asks."""
    for text in texts:
        question = await thread.say(text, **{**CODE, **host})
        while question is not None:
            answers = [APPROVE] * len(question.value["action_requests"])
            question = await thread.answer(question, answers)


async def undo(thread: Thread, message: str = "last") -> dict[str, Any]:
    preview = await thread.undo(message)
    done = await thread.undo(message, preview["digest"])
    assert done == {**preview, "stays": done["stays"]}
    return done


@dataclass
class Case:
    """What the agent does, what somebody else does then, and what of it undo leaves alone."""

    name: str
    says: str
    meddles: Callable[[Path], object] = lambda _: None
    stays: str = ""
    """The file that stays as it is, and words of the reason."""


def replace(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def put_link(name: str, target: str) -> Callable[[Path], object]:
    def put(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        path.symlink_to(target)

    return put


def put_other(name: str, make: Callable[[Path], object]) -> Callable[[Path], object]:
    def put(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return put


NEW = "write old.txt: new"
MINE = replace("old.txt", "mine")
IN_LINK = "folder/in.txt it is a link"
OURS, LINK = "old.txt somebody", "old.txt it is a link by now, or no file"
BEFORE = "it may have been there before"
IGNORED = f"ignored.txt {BEFORE}"
CASES = [
    Case("an edit", NEW),
    Case("a new file", "write new.txt: new"),
    Case("a new file in new folders", "write a/b/c.txt: new"),
    Case("a piece of a file", "replace ol with ne in old.txt"),
    Case("a file of a command", "run echo new > new.txt"),
    Case("a file that a command changed", "run echo new >> old.txt"),
    Case("a file that a command emptied", "run : > old.txt"),
    Case("a file that a command deleted", "run rm old.txt"),
    Case("a folder that a command deleted", "run rm -r folder"),
    Case("a rename", "run mv old.txt other.txt"),
    Case("a rename over another file", "run mv old.txt folder/in.txt"),
    Case("a folder that was renamed", "run mv folder other"),
    Case("two files that were swapped", "run mv old.txt t; mv run.sh old.txt; mv t run.sh"),
    Case("permissions", "run chmod 644 run.sh"),
    Case("permissions of a file that was edited", "replace sh with bash in run.sh"),
    Case("bytes", r"run printf '\377\000x' > bytes"),
    Case("names like an option, and with a blank", "run echo a > ./-rf; echo b > './a b'"),
    Case("as large, and as old", "run printf new > old.txt; touch -d @1 old.txt"),
    Case("a file by another name", "run ln old.txt hard; echo new > hard"),
    Case("a link in its place", "run rm old.txt; ln -s run.sh old.txt", stays=LINK),
    Case("a large file", "run head -c 2000000 /dev/zero > old.txt", stays="old.txt too large"),
    Case("a file that was large", "run echo new > large", stays="large too large"),
    Case("what git ignores", "run echo new > ignored.txt", stays=" "),
    Case("dependencies", "run mkdir node_modules; echo > node_modules/a.js", stays=" "),
    Case("a file that git ignored, renamed", "run mv ignored.txt seen", stays=f"seen {BEFORE}"),
    Case("the same, over a file", "run mv ignored.txt old.txt", stays=f"old.txt {BEFORE}"),
    Case("one more name of it", "run ln ignored.txt seen", stays=f"seen {BEFORE}"),
    Case("ignored no more", "run rm .gitignore; echo >> ignored.txt", stays=IGNORED),
    Case("ignored no more by an edit", "run echo > .gitignore", stays=IGNORED),
    Case("a new file that looks like a secret", "write .env: x", stays=".env it may hold secrets"),
    Case("changed since", NEW, MINE, OURS),
    Case("a command's, changed since", "run echo 1 > old.txt", MINE, OURS),
    Case("deleted since", NEW, lambda folder: (folder / "old.txt").unlink(), OURS),
    Case("closed since", NEW, lambda folder: (folder / "old.txt").chmod(0o600), OURS),
    Case("a link since", NEW, put_link("old.txt", "run.sh"), LINK),
    Case("a link to a file outside since", NEW, put_link("old.txt", "../outside"), LINK),
    Case("its folder", "write folder/in.txt: new", put_link("folder", "../outside.d"), IN_LINK),
    Case("its new folder", "write a/b.txt: new", put_link("a", "../outside.d"), "a/b.txt it is a"),
    Case("a folder since", NEW, put_other("old.txt", Path.mkdir), LINK),
    Case("a pipe since", NEW, put_other("old.txt", os.mkfifo), LINK),
    Case("ignored since", NEW, replace(".rooignore", "old.txt\n"), "old.txt is out of reach"),
    Case("made again by somebody", "run rm old.txt", MINE, OURS),
    Case("written again", NEW, put_other("old.txt", lambda file: file.write_text("new"))),
    Case("put back already", NEW, replace("old.txt", "old"), " "),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_files_go_back_and_what_is_not_the_threads_stays(
    case: Case, agents: Agents, place: UserFolders
) -> None:
    outside = {place.root / "outside": "outside", place.root / "outside.d/in.txt": "outside"}
    outside[place.root / "outside.d/b.txt"] = "outside"
    (place.root / "outside.d").mkdir()
    for file, text in outside.items():
        file.write_text(text)
    (place.workspace / "large").write_bytes(bytes(2_000_000))
    place.rule(".gitignore", "ignored.txt\n")
    place.rule("ignored.txt", "x")
    before = read(place.workspace)
    thread = agents.thread()
    await say(thread, "hello", case.says)
    after = read(place.workspace)
    case.meddles(place.workspace)
    now = read(place.workspace)
    done = await undo(thread)
    path, _, words = case.stays.partition(" ")
    kept = {name: does for name, does in done["files"].items() if "stays as it is" in does}
    assert [*kept] == [path] * bool(path)
    assert all(words in does for does in kept.values())
    expected = {name: text for name, text in now.items() if name not in after}
    expected |= {name: text for name, text in now.items() if after.get(name) != text}
    left = read(place.workspace)
    if not case.stays:
        assert left == before
        assert (place.workspace / "run.sh").stat().st_mode & 0o777 == 0o755
    for name, text in expected.items():
        assert left[name] == text  # what somebody else did
    assert {file: file.read_text() for file in outside} == outside
    assert [message.type for message in await thread.history()] == ["human", "ai"]


async def test_nothing_that_is_hidden_or_secret_is_ever_kept(
    agents: Agents, place: UserFolders
) -> None:
    hidden = {
        ".rooignore": "private\n",
        ".gitignore": "built\n",
        "private/a.txt": "HIDDEN1",
        "built/a.txt": "HIDDEN2",
        ".env": "HIDDEN3",
        "key.pem": "HIDDEN4",
        "node_modules/a.js": "HIDDEN5",
        ".git/config": "HIDDEN6",
    }
    for name, text in hidden.items():
        place.rule(name, text)
    thread = agents.thread()
    await say(thread, "run echo shown > a.txt", "write .env: HIDDEN7", "write .env: HIDDEN8")
    store = Path(f"{place.settings().checkpoints}.undo")
    kept = [file.read_bytes() for file in store.rglob("*") if file.is_file()]
    assert b"old" in kept
    assert not any(b"HIDDEN" in data for data in kept)
    preview = await thread.undo()
    assert preview["files"] == {".env": "stays as it is: it may hold secrets"}
    modes = {file.stat().st_mode & 0o777 for file in (store, *store.rglob("*"))}
    assert modes == {0o700, 0o600}


async def test_turns_go_back_one_by_one_and_forth(agents: Agents, place: UserFolders) -> None:
    thread = agents.thread()
    texts = ("write a.txt: 1", "write a.txt: 2", "run echo 3 > a.txt; rm old.txt")
    states = [read(place.workspace)]
    for text in texts:
        await say(thread, text)
        states.append(read(place.workspace))
    for n in (2, 1, 0):
        await undo(thread)
        assert read(place.workspace) == states[n]
        said = [each.text for each in await thread.history() if each.type == "human"]
        assert said == [*texts[:n]]
    with pytest.raises(UserError, match="no message 'last' of yours"):
        await thread.undo()
    await undo(thread, BACK)  # only the last one goes back
    assert read(place.workspace) == states[1]
    await undo(thread, BACK)
    assert read(place.workspace) == states[0]
    await say(thread, "write a.txt: 4")
    await undo(thread, BACK)  # with what was done since
    assert read(place.workspace) == states[1]
    assert [each.text for each in await thread.history() if each.type == "human"] == [texts[0]]


async def test_several_turns_go_back_at_once(agents: Agents, place: UserFolders) -> None:
    before = read(place.workspace)
    thread = agents.thread()
    await say(thread, "write a.txt: 1", "run echo 2 > a.txt", "write old.txt: 3", "run mv a.txt b")
    first = next(each for each in await thread.history() if each.type == "human")
    after = read(place.workspace)
    await undo(thread, str(first.id))
    assert (read(place.workspace), await thread.history()) == (before, [])
    await undo(thread, BACK)
    assert read(place.workspace) == after
    assert len([each for each in await thread.history() if each.type == "human"]) == 4


async def test_it_is_refused_in_one_line_and_changes_nothing(
    agents: Agents, place: UserFolders
) -> None:
    thread = agents.thread()
    with pytest.raises(UserError, match="no message 'last' of yours"):
        await thread.undo()
    await say(thread, "hello", "write old.txt: new")
    preview, before = await thread.undo(), read(place.workspace)
    with pytest.raises(UserError, match="there is no undo"):
        await thread.undo(BACK)
    answer = next(each for each in await thread.history() if each.type == "ai")
    for wrong in (str(uuid4()), "", "nonsense", str(answer.id), "../last"):
        with pytest.raises(UserError, match="no message"):
            await thread.undo(wrong)
    for digest in ("", "0" * 16, preview["digest"].upper() + "x"):
        with pytest.raises(UserError, match="another undo by now"):
            await thread.undo(LAST, digest)
    (place.workspace / "old.txt").write_text("mine")
    with pytest.raises(UserError, match="another undo by now"):
        await thread.undo(LAST, preview["digest"])
    (place.workspace / "old.txt").write_text("new")
    await say(thread, "hello again")
    with pytest.raises(UserError, match="another undo by now"):
        await thread.undo(LAST, preview["digest"])
    assert read(place.workspace) == before


async def test_a_turn_that_runs_is_not_undone_and_one_that_was_stopped_is(
    agents: Agents, place: UserFolders
) -> None:
    thread = agents.thread()
    before = read(place.workspace)
    run = asyncio.ensure_future(say(thread, "run rm old.txt; echo > began; sleep 600"))
    await until((place.workspace / "began").exists)
    for digest in (None, "0"):
        with pytest.raises(UserError, match="a run goes on"):
            await thread.undo(LAST, digest)
    await thread.stop()
    await asyncio.wait({run})
    done = await undo(thread)
    assert done["stays"] == []
    assert read(place.workspace) == before


async def test_what_cannot_go_back_is_named(place: UserFolders) -> None:
    place.rule("old.txt", "old")
    with serving_toy() as port:
        entry = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}
        (place.home / "mcp.json").write_text(json.dumps({"mcpServers": {"here": entry}}))
        async with open_agent(place.settings(sandbox="off")) as agents:
            thread = agents.thread()
            await say(thread, "run echo new > old.txt", 'call mcp__here__get_time {"zone": "Rome"}')
            await check_named(thread)
    assert (place.workspace / "old.txt").read_text() == "new\n"


async def check_named(thread: Thread) -> None:
    (first, *_) = await thread.history()
    done = await undo(thread, str(first.id))
    assert done["stays"] == [
        "execute_command echo new > old.txt: it ran without a sandbox",
        "mcp__here__get_time: it calls an MCP server",
    ]
    assert done["files"] == {}


async def test_what_a_tool_writes_past_the_workspace_is_named(
    agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_log.CallRecord, "note_write", lambda *_: None)
    thread = agents.thread()
    await say(thread, NEW)
    done = await undo(thread)
    assert done["files"] == {}
    assert done["stays"] == ["write_file old.txt: what it changed is not known"]


async def test_a_command_in_the_background_is_named(agents: Agents, place: UserFolders) -> None:
    thread = agents.thread()
    call = '{"command": "echo > began", "background": true}'
    await say(thread, f"call execute_command {call}")
    assert (await undo(thread))["stays"] == [
        "execute_command echo > began: it ran in the background"
    ]


async def test_what_a_subtask_did_goes_back(agents: Agents, place: UserFolders) -> None:
    before = read(place.workspace)
    thread = agents.thread()
    await say(thread, "hello", "task in code: write a.txt: 1 | run rm old.txt")
    assert (place.workspace / "a.txt").exists()
    await undo(thread)
    assert read(place.workspace) == before
    assert [each.type for each in await thread.history()] == ["human", "ai"]


async def test_in_the_question_of_a_subtask_its_outer_message_goes_back(
    agents: Agents, place: UserFolders
) -> None:
    before = read(place.workspace)
    thread = agents.thread()
    await say(thread, "hello")
    question = await thread.say("task in code: write a.txt: 1 | run rm old.txt", approvals="manual")
    while question is not None and not (place.workspace / "a.txt").exists():
        question = await thread.answer(question, [APPROVE])
    assert (await thread.state()).values["subtask"]
    inner = (await thread.state()).values["messages"][0]
    with pytest.raises(UserError, match="no message"):
        await thread.undo(str(inner.id))
    await undo(thread)
    assert read(place.workspace) == before
    assert await thread.question() is None
    assert not (await thread.state()).values.get("subtask")
    with pytest.raises(UserError, match="no longer open"):
        await thread.answer(question, [APPROVE])  # type: ignore[arg-type]  # it was one
    with pytest.raises(UserError, match="a sub-task went on then"):
        await thread.undo(BACK)


async def test_a_question_that_was_open_then_is_not_open_again(
    agents: Agents, place: UserFolders
) -> None:
    thread = agents.thread()
    question = await thread.say("write a.txt: 1", mode="code", approvals="manual")
    assert question is not None
    await thread.say("no, write b.txt: 1", approvals="auto")
    await undo(thread)
    assert await thread.question() is None
    assert (await thread.state()).next == ()
    with pytest.raises(UserError, match="no longer open"):
        await thread.answer(question, [APPROVE])
    assert read(place.workspace) == FIRST
    assert await thread.say("hello") is None
    assert read(place.workspace) == FIRST


RIGHTS = [
    # What was set before the message, what after it, and what holds then.
    ({"approvals": "auto"}, {"approvals": "manual"}, ("code", None, "manual")),
    ({"approvals": "manual"}, {"approvals": "auto"}, ("code", None, "manual")),
    ({"approvals": "auto"}, {"approvals": "auto"}, ("code", None, "auto")),
    ({"limit": None}, {"limit": "ask"}, ("code", "ask", "auto")),
    ({"limit": "ask"}, {"limit": None}, ("code", "ask", "auto")),
    ({"limit": "ask"}, {"limit": "code"}, ("code", "ask", "auto")),
    ({"limit": "code"}, {"limit": "ask"}, ("code", "ask", "auto")),
    ({"mode": "code"}, {"mode": "ask"}, ("ask", None, "auto")),
    ({"mode": "ask"}, {"mode": "code"}, ("ask", None, "auto")),
]


@pytest.mark.parametrize("is_said", [True, False], ids=["with a message", "beside one"])
@pytest.mark.parametrize(("then", "now", "after"), RIGHTS)
async def test_no_right_comes_back(
    then: Any, now: Any, after: Any, is_said: bool, agents: Agents
) -> None:
    thread = agents.thread()
    await thread.set(**{**CODE, **then})
    await thread.say("hello")
    await thread.say("undo this")
    await thread.set(**now)
    if is_said:
        await thread.say("and this")
    said = [each for each in await thread.history() if each.type == "human"]
    done = await undo(thread, str(said[1].id))
    for _ in range(2):
        values = (await thread.state()).values
        assert tuple(values[key] for key in ("mode", "limit", "approvals")) == after
        assert tuple(done["rights"].values()) == after
        await thread.say("hello")  # takes in what the host has set


@pytest.mark.parametrize(
    ("then", "now", "after", "approvals"),
    [
        (None, None, None, "auto"),
        ("a", "a", "a", "auto"),
        ("a", None, "a", "auto"),
        (None, "b", "b", "auto"),
        ("a", "b", "b", "manual"),
    ],
)
async def test_the_limit_of_an_approved_plan_stays(
    then: Any, now: Any, after: Any, approvals: str, agents: Agents
) -> None:
    def make(name: str | None) -> Any:
        plan = {"path": "plan.md", "digest": "x", "text": "", "paths": [name]}
        return None if name is None else plan

    thread = agents.thread()
    await say(thread, "hello")
    writes_anything.set(True)  # as a switch does
    agent = await thread.load()
    await agent.aupdate_state(thread.config, {"approved_plan": make(then)}, as_node="intake")
    await say(thread, "undo this")
    await agent.aupdate_state(thread.config, {"approved_plan": make(now)}, as_node="intake")
    done = await undo(thread)
    assert (await thread.state()).values["approved_plan"] == make(after)
    assert done["rights"]["approvals"] == approvals


async def test_what_was_remembered_then_and_taken_back_since_stays_away(agents: Agents) -> None:
    thread = agents.thread()
    for text in ("run printf 1", "run printf 2"):
        question = await thread.say(text, mode="code", approvals="manual")
        assert question is not None
        await thread.answer(question, [{**APPROVE, "remember": True}])
    one, two = await thread.remembered()
    question = await thread.say("run printf 3")
    assert question is not None
    await thread.answer(question, [{**APPROVE, "remember": True}])
    await thread.set(forget=[one["id"]])
    await undo(thread)
    assert await thread.remembered() == [two]  # not the third, of the message that is undone
    assert await thread.say("run printf 1") is not None


async def test_facts_that_differ_are_not_known_and_nobody_sets_them(agents: Agents) -> None:
    thread = agents.thread()
    await say(thread, "hello")
    await say(thread, "write a.txt: 1")
    assert "files_changed" in (await thread.state()).values["facts"]["mode"]
    await undo(thread)
    facts = (await thread.state()).values["facts"]
    assert facts["mode"] == ["?files_changed"]
    agent = await thread.load()
    for key, value in (("facts", {"mode": []}), ("undo_from", 1)):
        with pytest.raises(UserError, match=key):
            await agent.aupdate_state(thread.config, {key: value})


async def test_what_was_spent_stays_spent(agents: Agents) -> None:
    thread = agents.thread()
    await say(thread, "hello", "hello")
    usage = (await thread.state()).values["usage"]["thread"]
    await undo(thread)
    assert (await thread.state()).values["usage"]["thread"] == usage


async def test_another_threads_changes_stay(agents: Agents, place: UserFolders) -> None:
    one, other = agents.thread(), agents.thread()
    await say(one, "write a.txt: 1", "write b.txt: 1")
    await say(other, "run echo 2 > a.txt; echo 2 > c.txt")
    first = str((await one.history())[0].id)
    done = await undo(one, first)
    assert done["files"] == {
        "a.txt": "stays as it is: somebody else has changed it since",
        "b.txt": "is deleted",
    }
    await say(one, "write c.txt: 3", "write c.txt: 4")
    await say(other, "write c.txt: 5")
    await say(one, "write c.txt: 6")
    texts = [each for each in await one.history() if each.type == "human"]
    done = await undo(one, str(texts[0].id))
    assert done["files"] == {"c.txt": "stays as it is: somebody else has changed it since"}
    assert (place.workspace / "c.txt").read_text() == "6"


async def test_what_another_thread_writes_while_a_command_runs_is_not_the_commands(
    agents: Agents, place: UserFolders
) -> None:
    one, other = agents.thread(), agents.thread()
    line = "run echo 1 > a.txt; until test -e go; do sleep 0.01; done"
    run = asyncio.ensure_future(say(one, line))
    await until((place.workspace / "a.txt").exists)
    await say(other, "write old.txt: theirs")
    (place.workspace / "go").touch()
    await run
    done = await undo(one)
    assert done["files"]["old.txt"] == "stays as it is: another thread changed it meanwhile"
    assert done["files"]["a.txt"] == "is deleted"
    assert (place.workspace / "old.txt").read_text() == "theirs"


async def test_many_files_of_a_command_go_back(agents: Agents, place: UserFolders) -> None:
    thread = agents.thread()
    await say(thread, "run seq 1000 | while read n; do echo $n > $n; done")
    before = read(place.workspace)
    await say(thread, "run for n in [1-9]*; do echo changed > $n; done; rm 1*")
    assert len((await undo(thread))["files"]) == 1000
    assert read(place.workspace) == before


async def test_among_very_many_files_edits_go_back_and_commands_are_named(
    agents: Agents, place: UserFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_log, "MAX_LOOKED", 3)
    thread = agents.thread()
    await say(thread, f"run echo new > new.txt\n{NEW}")
    done = await undo(thread)
    assert done["files"] == {"old.txt": "goes back to what it held"}
    assert done["stays"] == ["execute_command echo new > new.txt: what it changed is not known"]
    assert (place.workspace / "new.txt").exists()
    monkeypatch.undo()
    monkeypatch.setattr(undo_log, "SECONDS_TOO_LARGE", 0)
    await say(thread, "run echo newer > newer.txt")
    assert (await undo(thread))["files"] == {"newer.txt": "is deleted"}


async def test_a_tampered_store_gives_back_nothing(agents: Agents, place: UserFolders) -> None:
    thread = agents.thread()
    await say(thread, NEW)
    store = Path(f"{place.settings().checkpoints}.undo")
    (kept,) = [file for file in store.rglob("*") if file.is_file() and file.read_bytes() == b"old"]
    kept.write_text("evil")
    done = await undo(thread)
    assert done["files"] == {"old.txt": "stays as it is: what it held is not kept"}


async def test_what_a_power_failure_emptied_is_kept_again_before_it_is_deleted(
    agents: Agents, place: UserFolders
) -> None:
    thread = agents.thread()
    await say(thread, "hello", "run printf mine > a.txt")
    after = read(place.workspace)
    store = Path(f"{place.settings().checkpoints}.undo")
    (kept,) = [file for file in store.rglob("*") if file.is_file() and file.read_bytes() == b"mine"]
    kept.write_bytes(b"")
    await undo(thread)
    await undo(thread, BACK)
    assert read(place.workspace) == after


async def test_what_a_person_allowed_to_be_spent_does_not_come_back(agents: Agents) -> None:
    async def allow(**amounts: str) -> None:
        writes_anything.set(True)  # as a ceiling does
        values = {"usage": {"allowed": amounts}}
        await agent.aupdate_state(thread.config, values, as_node="intake")

    thread = agents.thread()
    agent = await thread.load()
    await say(thread, "hello")
    await allow(thread="9", turn="1")
    await say(thread, "undo this")
    await allow(thread="10")
    for message, allowed in ((LAST, {"thread": "9"}), (LAST, {}), (BACK, {})):
        await undo(thread, message)
        assert (await thread.state()).values["usage"]["allowed"] == allowed


async def test_a_deleted_thread_leaves_nothing_and_a_copy_undoes_only_its_own(
    agents: Agents, place: UserFolders
) -> None:
    store = Path(f"{place.settings().checkpoints}.undo")
    thread, copy = agents.thread(), agents.thread()
    await say(thread, NEW)
    saver: Any = (await thread.load()).checkpointer
    await saver.acopy_thread(thread.id, copy.id)
    with pytest.raises(UserError, match="not kept here"):
        await copy.undo()
    await say(copy, "write a.txt: 1")
    await undo(copy)
    assert read(place.workspace) == {**FIRST, "old.txt": "new"}
    with pytest.raises(UserError, match="not kept here"):
        await copy.undo()
    folders = len([*store.iterdir()])
    await agents.cache.delete_thread(thread.id)
    assert len([*store.iterdir()]) == folders - 1
    assert b"old" not in [file.read_bytes() for file in store.rglob("*") if file.is_file()]


async def test_a_fork_undoes_its_own(agents: Agents, place: UserFolders) -> None:
    thread = agents.thread()
    await say(thread, "hello")
    fork = replace_fields(thread, config={**(await thread.state()).config})
    await say(thread, "write a.txt: 1")
    await say(fork, "write b.txt: 1")
    done = await undo(thread)
    assert done["files"] == {"b.txt": "is deleted"}
    assert (place.workspace / "a.txt").exists()


@pytest.mark.parametrize("days", [0, 7])
async def test_what_is_over_or_off_is_refused(days: int, place: UserFolders) -> None:
    async with open_agent(place.settings(undo_days=days)) as agents:
        thread = agents.thread()
        await say(thread, "write a.txt: 1")
    store = Path(f"{place.settings().checkpoints}.undo")
    assert store.exists() is bool(days)
    for file in store.glob("*/*"):
        os.utime(file, (0, 0))
    async with open_agent(place.settings(undo_days=7 - days)) as agents:
        with pytest.raises(UserError, match="kept"):
            await agents.thread(thread.id).undo()
        assert days == 7 or not [*store.glob("[0-9a-f]*/calls")]
    async with open_agent(place.settings()) as agents:
        with pytest.raises(UserError, match="not kept here"):
            await agents.thread(thread.id).undo()


async def test_what_a_thread_has_changed(agents: Agents, place: UserFolders) -> None:
    """Also what a command has, and a sub-task; not what is as it was."""
    for name in ("gone", "same"):
        place.rule(name, "old")
    thread = agents.thread()
    await say(thread, "write old.txt: new", "replace ew with ow in old.txt", "write gone: 1")
    await say(thread, "task in code: write s: 1", "run echo 1 > c; echo 1 > same; echo 2 > run.sh")
    await say(thread, "write same: old")
    (place.workspace / "gone").unlink()
    (place.workspace / "run.sh").write_bytes(b"\0")
    deps, values = await thread.deps(), (await thread.state()).values
    changes = {change["path"]: change for change in list_changes(deps, thread.id, values)}
    assert {path: each["before"] for path, each in changes.items() if "problem" not in each} == {
        "old.txt": "old",
        "s": None,
        "c": None,
    }
    assert changes["old.txt"]["after"] == "now"
    problems = {path: each["problem"] for path, each in changes.items() if "problem" in each}
    assert [*problems] == ["gone", "run.sh"]
    assert problems["gone"] == "the file is gone"
    other = list_changes(deps, str(uuid4()), {"written": ["old.txt"]})
    assert [change["problem"] for change in other] == ["what it was before is not known"]


async def test_what_is_older_than_is_kept_is_refused(agents: Agents) -> None:
    thread = agents.thread()
    await say(thread, NEW)
    log = (await thread.deps()).undo_log
    assert log is not None
    log.days = 0
    with pytest.raises(UserError, match="not kept here"):
        await thread.undo()


async def test_where_nothing_can_be_noted_nothing_is_changed(
    agents: Agents, place: UserFolders
) -> None:
    store = Path(f"{place.settings().checkpoints}.undo")
    thread = agents.thread()
    await say(thread, "hello")
    shutil.rmtree(store)
    store.write_text("in its way")
    for text in (NEW, "run rm old.txt"):
        with pytest.raises(UserError, match="UNDO_DAYS=0 turns undo off"):
            await say(thread, text)
    assert read(place.workspace) == FIRST
    store.unlink()  # or no thread of this process can be deleted, in other tests neither


async def test_a_store_in_the_workspace_is_none(place: UserFolders) -> None:
    inside = place.workspace / "data/checkpoints.sqlite"
    async with open_agent(place.settings(checkpoints=inside)) as agents:
        thread = agents.thread()
        await say(thread, NEW)
        with pytest.raises(UserError, match="nothing is kept"):
            await thread.undo()
    assert not Path(f"{inside}.undo").exists()


def test_the_audit_has_what_was_undone(place: UserFolders, run: Run) -> None:
    async def begin() -> str:
        async with open_agent(place.settings()) as agents:
            thread = agents.thread()
            await say(thread, NEW)
            done = await undo(thread)
            entries = await read_entries(place.settings().open_database(), thread.id)
            assert [*find_breaks(entries)] == []
            assert [entry.values["kind"] for entry in entries] == ["call", "undo"]
            assert entries[-1].values["files"] == done["files"] == {"old.txt": "is deleted"}
            return thread.id

    shown = run("audit", "--thread", asyncio.run(begin())).text
    assert "undo  (ask, manual)\n   old.txt is deleted\n" in shown


@pytest.mark.parametrize("says", ["hello", None], ids=["a message", "an undo"])
@pytest.mark.parametrize(
    ("left", "where"), [(0, "file"), (1, "file"), (2, "file"), (0, "fork"), (0, "behind")]
)
async def test_a_kill_in_the_middle_undoes_all_or_nothing_and_is_told(
    left: int, where: str, says: str | None, place: UserFolders
) -> None:
    for name in ("a.txt", "b.txt"):
        place.rule(name, "old")
    before = read(place.workspace)
    async with open_agent(place.settings()) as agents:
        thread = agents.thread()
        await say(thread, "hello")
        await say(thread, "write a.txt: new & write b.txt: new & write c.txt: new")
        after = read(place.workspace)
        history = len(await thread.history())
    command = ("tests.clients.killed_undo", thread.id, str(left), where)
    killed = prefork.run(*command, env=place.environment())
    assert killed.returncode == -9, killed.stderr
    is_done = where == "behind"
    assert (read(place.workspace) == after) is (left == 0 and where == "file")
    async with open_agent(place.settings()) as agents:
        thread = agents.thread(thread.id)
        if says:
            await thread.say(says)
            notices = (await thread.state()).values["notices"]
            assert any("did nothing" in notice for notice in notices) is not is_done
        else:
            stays = (await thread.undo())["stays"]
            assert any("did nothing" in text for text in stays) is not is_done
        assert read(place.workspace) == (before if is_done else after)
        kept = len(await thread.history()) - (2 if says else 0)
        assert kept == (2 if is_done else history)
        if not is_done and not says:
            await undo(thread)
            assert read(place.workspace) == before
