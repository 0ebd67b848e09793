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
from modeshift.commands.usage import read_threads
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
REMEMBER = {**APPROVE, "remember": True}
NOT_KNOWN = "what it changed is not known"


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


async def undo(thread: Thread, message: str = LAST) -> dict[str, Any]:
    preview = await thread.undo(message)
    done = await thread.undo(message, preview["digest"])
    assert done == {**preview, "stays": done["stays"]}
    return done


async def list_said(thread: Thread) -> list[Any]:
    return [each for each in await thread.history() if each.type == "human"]


async def show(thread: Thread) -> dict[str, Any]:
    return (await thread.state()).values


@dataclass
class Work:
    """A thread of an agent in a workspace with files, and what is kept to undo it."""

    agents: Agents
    workspace: Path
    store: Path

    def __post_init__(self) -> None:
        self.thread = self.agents.thread()

    @property
    def files(self) -> dict[str, str]:
        return read(self.workspace)

    async def say(self, *texts: str, **host: str) -> None:
        await say(self.thread, *texts, **host)

    async def undo(self, message: str = LAST) -> dict[str, Any]:
        return await undo(self.thread, message)

    async def refuses(self, words: str, message: str = LAST, digest: str | None = None) -> None:
        with pytest.raises(UserError, match=words):
            await self.thread.undo(message, digest)

    def find_kept(self, data: bytes) -> Path:
        """The file of the store that has what a file of the workspace held."""
        (kept,) = [f for f in self.store.rglob("*") if f.is_file() and f.read_bytes() == data]
        return kept


@pytest.fixture
async def work(place: UserFolders) -> AsyncIterator[Work]:
    for name, text in FIRST.items():
        place.rule(name, text)
    (place.workspace / "run.sh").chmod(0o755)
    async with open_agent(place.settings(sandbox="auto")) as agents:
        yield Work(agents, place.workspace, Path(f"{place.settings().checkpoints}.undo"))


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
    case: Case, work: Work, place: UserFolders
) -> None:
    names = ("outside", "outside.d/in.txt", "outside.d/b.txt")
    outside = {place.root / name: "outside" for name in names}
    (place.root / "outside.d").mkdir()
    for file, text in outside.items():
        file.write_text(text)
    (place.workspace / "large").write_bytes(bytes(2_000_000))
    place.rule(".gitignore", "ignored.txt\n")
    place.rule("ignored.txt", "x")
    before = work.files
    await work.say("hello", case.says)
    after = work.files
    case.meddles(place.workspace)
    now = work.files
    done = await work.undo()
    path, _, words = case.stays.partition(" ")
    kept = {name: does for name, does in done["files"].items() if "stays as it is" in does}
    assert [*kept] == [path] * bool(path)
    assert all(words in does for does in kept.values())
    left = work.files
    if not case.stays:
        assert left == before
        assert (place.workspace / "run.sh").stat().st_mode & 0o777 == 0o755
    for name, text in now.items():
        assert after.get(name) == text or left[name] == text  # what somebody else did
    assert {file: file.read_text() for file in outside} == outside
    assert [message.type for message in await work.thread.history()] == ["human", "ai"]


async def test_nothing_that_is_hidden_or_secret_is_ever_kept(
    work: Work, place: UserFolders
) -> None:
    hidden = ("private/a.txt", "built/a.txt", ".env", "key.pem", "node_modules/a.js", ".git/config")
    for name, text in ((".rooignore", "private\n"), (".gitignore", "built\n")):
        place.rule(name, text)
    for name in hidden:
        place.rule(name, f"HIDDEN {name}")
    await work.say("run echo shown > a.txt", "write .env: HIDDEN7", "write .env: HIDDEN8")
    kept = [file.read_bytes() for file in work.store.rglob("*") if file.is_file()]
    assert b"old" in kept
    assert not any(b"HIDDEN" in data for data in kept)
    preview = await work.thread.undo()
    assert preview["files"] == {".env": "stays as it is: it may hold secrets"}
    modes = {file.stat().st_mode & 0o777 for file in (work.store, *work.store.rglob("*"))}
    assert modes == {0o700, 0o600}


async def test_turns_go_back_one_by_one_and_forth(work: Work) -> None:
    texts = ("write a.txt: 1", "write a.txt: 2", "run echo 3 > a.txt; rm old.txt")
    states = [work.files]
    for text in texts:
        await work.say(text)
        states.append(work.files)
    for n in (2, 1, 0):
        await work.undo()
        assert work.files == states[n]
        assert [each.text for each in await list_said(work.thread)] == [*texts[:n]]
    await work.refuses("no message 'last' of yours")
    for state in (states[1], states[0]):
        await work.undo(BACK)  # only the last one goes back
        assert work.files == state
    await work.say("write a.txt: 4")
    await work.undo(BACK)  # with what was done since
    assert work.files == states[1]
    assert [each.text for each in await list_said(work.thread)] == [texts[0]]


async def test_several_turns_go_back_at_once(work: Work) -> None:
    before, thread = work.files, work.thread
    await work.say("write a.txt: 1", "run echo 2 > a.txt", "write old.txt: 3", "run mv a.txt b")
    first, after = (await list_said(thread))[0], work.files
    await work.undo(str(first.id))
    assert (work.files, await thread.history()) == (before, [])
    await work.undo(BACK)
    assert (work.files, len(await list_said(thread))) == (after, 4)


async def test_it_is_refused_in_one_line_and_changes_nothing(work: Work) -> None:
    await work.refuses("no message 'last' of yours")
    await work.say("hello", NEW)
    preview, before = await work.thread.undo(), work.files
    digest, another = preview["digest"], "another undo by now"
    await work.refuses("there is no undo", BACK)
    answer = next(each for each in await work.thread.history() if each.type == "ai")
    for wrong in (str(uuid4()), "", "nonsense", str(answer.id), "../last"):
        await work.refuses("no message", wrong)
    for wrong in ("", "0" * 16, digest.upper() + "x"):
        await work.refuses(another, LAST, wrong)
    (work.workspace / "old.txt").write_text("mine")
    await work.refuses(another, LAST, digest)
    (work.workspace / "old.txt").write_text("new")
    await work.say("hello again")
    await work.refuses(another, LAST, digest)
    assert work.files == before


async def test_a_turn_that_runs_is_not_undone_and_one_that_was_stopped_is(work: Work) -> None:
    before = work.files
    run = asyncio.ensure_future(work.say("run rm old.txt; echo > began; sleep 600"))
    await until((work.workspace / "began").exists)
    for digest in (None, "0"):
        await work.refuses("a run goes on", LAST, digest)
    await work.thread.stop()
    await asyncio.wait({run})
    assert ((await work.undo())["stays"], work.files) == ([], before)


async def test_what_cannot_go_back_is_named(place: UserFolders) -> None:
    place.rule("old.txt", "old")
    with serving_toy() as port:
        entry = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}
        (place.home / "mcp.json").write_text(json.dumps({"mcpServers": {"here": entry}}))
        async with open_agent(place.settings(sandbox="off")) as agents:
            thread = agents.thread()
            await say(thread, "run echo new > old.txt", 'call mcp__here__get_time {"zone": "Rome"}')
            done = await undo(thread, str((await thread.history())[0].id))
    assert (done["files"], done["stays"]) == (
        {},
        [
            "execute_command echo new > old.txt: it ran without a sandbox",
            "mcp__here__get_time: it calls an MCP server",
        ],
    )
    assert (place.workspace / "old.txt").read_text() == "new\n"


BEHIND = '{"command": "echo > began", "background": true}'


async def test_what_a_tool_writes_past_the_workspace_or_behind_the_run_is_named(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    await work.say(f"call execute_command {BEHIND}")
    stays = ["execute_command echo > began: it ran in the background"]
    assert (await work.undo())["stays"] == stays
    monkeypatch.setattr(undo_log.CallRecord, "note_write", lambda *_: None)
    await work.say(NEW)
    done = await work.undo()
    assert (done["files"], done["stays"]) == ({}, [f"write_file old.txt: {NOT_KNOWN}"])


async def test_among_very_many_files_edits_go_back_and_commands_are_named(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_log, "MAX_LOOKED", 3)
    await work.say(f"run echo new > new.txt\n{NEW}")
    done = await work.undo()
    assert done["files"] == {"old.txt": "goes back to what it held"}
    assert done["stays"] == [f"execute_command echo new > new.txt: {NOT_KNOWN}"]
    assert (work.workspace / "new.txt").exists()
    monkeypatch.undo()
    monkeypatch.setattr(undo_log, "SECONDS_TOO_LARGE", 0)
    await work.say("run echo newer > newer.txt")
    assert (await work.undo())["files"] == {"newer.txt": "is deleted"}


async def test_what_a_subtask_did_goes_back(work: Work) -> None:
    before = work.files
    await work.say("hello", "task in code: write a.txt: 1 | run rm old.txt")
    assert (work.workspace / "a.txt").exists()
    await work.undo()
    assert work.files == before
    assert [each.type for each in await work.thread.history()] == ["human", "ai"]


async def test_in_the_question_of_a_subtask_its_outer_message_goes_back(work: Work) -> None:
    before, thread = work.files, work.thread
    await work.say("hello")
    question = await thread.say("task in code: write a.txt: 1 | run rm old.txt", approvals="manual")
    while question is not None and not (work.workspace / "a.txt").exists():
        question = await thread.answer(question, [APPROVE])
    assert question is not None and (await show(thread))["subtask"]
    await work.refuses("no message", str((await show(thread))["messages"][0].id))
    await work.undo()
    assert (work.files, await thread.question()) == (before, None)
    assert not (await show(thread)).get("subtask")
    with pytest.raises(UserError, match="no longer open"):
        await thread.answer(question, [APPROVE])
    await work.refuses("a sub-task went on then", BACK)


async def test_a_question_that_was_open_then_is_not_open_again(work: Work) -> None:
    thread = work.thread
    question = await thread.say("write a.txt: 1", mode="code", approvals="manual")
    assert question is not None
    await thread.say("no, write b.txt: 1", approvals="auto")
    await work.undo()
    assert (await thread.question(), (await thread.state()).next) == (None, ())
    with pytest.raises(UserError, match="no longer open"):
        await thread.answer(question, [APPROVE])
    assert work.files == FIRST
    assert await thread.say("hello") is None
    assert work.files == FIRST


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


@pytest.mark.parametrize(
    ("then", "now", "after", "is_said"),
    [*((*row, True) for row in RIGHTS), *((*RIGHTS[n], False) for n in (0, 3, 7))],
)
async def test_no_right_comes_back(
    then: Any, now: Any, after: Any, is_said: bool, work: Work
) -> None:
    thread = work.thread
    await thread.set(**{**CODE, **then})
    await thread.say("hello")
    await thread.say("undo this")
    await thread.set(**now)
    if is_said:
        await thread.say("and this")
    done = await work.undo(str((await list_said(thread))[1].id))
    for _ in range(2):
        values = await show(thread)
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
    then: Any, now: Any, after: Any, approvals: str, work: Work
) -> None:
    def make(name: str | None) -> Any:
        plan = {"path": "plan.md", "digest": "x", "text": "", "paths": [name]}
        return None if name is None else plan

    thread = work.thread
    await work.say("hello")
    writes_anything.set(True)  # as a switch does
    agent = await thread.load()
    await agent.aupdate_state(thread.config, {"approved_plan": make(then)}, as_node="intake")
    await work.say("undo this")
    await agent.aupdate_state(thread.config, {"approved_plan": make(now)}, as_node="intake")
    done = await work.undo()
    assert (await show(thread))["approved_plan"] == make(after)
    assert done["rights"]["approvals"] == approvals


async def test_what_was_remembered_then_and_taken_back_since_stays_away(work: Work) -> None:
    thread = work.thread

    async def remember(text: str) -> None:
        question = await thread.say(text, mode="code", approvals="manual")
        assert question is not None
        await thread.answer(question, [REMEMBER])

    await remember("run printf 1")
    await remember("run printf 2")
    one, two = await thread.remembered()
    await remember("run printf 3")
    await thread.set(forget=[one["id"]])
    await work.undo()
    assert await thread.remembered() == [two]  # not the third, of the message that is undone
    assert await thread.say("run printf 1") is not None


async def test_facts_are_not_known_nobody_sets_them_and_what_was_spent_is(work: Work) -> None:
    await work.say("hello")
    await work.say("write a.txt: 1")
    values = await show(work.thread)
    assert "files_changed" in values["facts"]["mode"]
    await work.undo()
    after = await show(work.thread)
    assert after["facts"]["mode"] == ["?files_changed"]
    assert after["usage"]["thread"] == values["usage"]["thread"]
    agent = await work.thread.load()
    for key, value in (("facts", {"mode": []}), ("undo_from", 1)):
        with pytest.raises(UserError, match=key):
            await agent.aupdate_state(work.thread.config, {key: value})


async def test_another_threads_changes_stay(work: Work) -> None:
    other, changed = work.agents.thread(), "stays as it is: somebody else has changed it since"
    await work.say("write a.txt: 1", "write b.txt: 1")
    await say(other, "run echo 2 > a.txt; echo 2 > c.txt")
    done = await work.undo(str((await work.thread.history())[0].id))
    assert done["files"] == {"a.txt": changed, "b.txt": "is deleted"}
    await work.say("write c.txt: 3", "write c.txt: 4")
    await say(other, "write c.txt: 5")
    await work.say("write c.txt: 6")
    done = await work.undo(str((await list_said(work.thread))[0].id))
    assert (done["files"], work.files["c.txt"]) == ({"c.txt": changed}, "6")


async def test_what_another_thread_writes_while_a_command_runs_is_not_the_commands(
    work: Work,
) -> None:
    line = "run echo 1 > a.txt; until test -e go; do sleep 0.01; done"
    run = asyncio.ensure_future(work.say(line))
    await until((work.workspace / "a.txt").exists)
    await say(work.agents.thread(), "write old.txt: theirs")
    (work.workspace / "go").touch()
    await run
    files = (await work.undo())["files"]
    assert files["old.txt"] == "stays as it is: another thread changed it meanwhile"
    assert (files["a.txt"], work.files["old.txt"]) == ("is deleted", "theirs")


async def test_many_files_of_a_command_go_back(work: Work) -> None:
    await work.say("run seq 40 | while read n; do echo $n > $n; done")
    before = work.files
    await work.say("run for n in [1-9]*; do echo changed > $n; done; rm 1*")
    assert (len((await work.undo())["files"]), work.files) == (40, before)


async def test_a_tampered_store_gives_back_nothing(work: Work) -> None:
    await work.say(NEW)
    work.find_kept(b"old").write_text("evil")
    done = await work.undo()
    assert done["files"] == {"old.txt": "stays as it is: what it held is not kept"}


async def test_what_a_power_failure_emptied_is_kept_again_before_it_is_deleted(work: Work) -> None:
    await work.say("hello", "run printf mine > a.txt")
    after = work.files
    work.find_kept(b"mine").write_bytes(b"")
    await work.undo()
    await work.undo(BACK)
    assert work.files == after


async def test_what_a_person_allowed_to_be_spent_does_not_come_back(work: Work) -> None:
    async def allow(**amounts: str) -> None:
        writes_anything.set(True)  # as a ceiling does
        values = {"usage": {"allowed": amounts}}
        await agent.aupdate_state(work.thread.config, values, as_node="intake")

    agent = await work.thread.load()
    await work.say("hello")
    await allow(thread="9", turn="1")
    await work.say("undo this")
    await allow(thread="10")
    for message, allowed in ((LAST, {"thread": "9"}), (LAST, {}), (BACK, {})):
        await work.undo(message)
        assert (await show(work.thread))["usage"]["allowed"] == allowed


async def test_a_deleted_thread_leaves_nothing_and_a_copy_undoes_only_its_own(work: Work) -> None:
    thread, copy, store = work.thread, work.agents.thread(), work.store
    await work.say(NEW)
    saver: Any = (await thread.load()).checkpointer
    await saver.acopy_thread(thread.id, copy.id)
    for is_later in (False, True):
        if is_later:
            await say(copy, "write a.txt: 1")
            await undo(copy)
            assert work.files == {**FIRST, "old.txt": "new"}
        with pytest.raises(UserError, match="not kept here"):
            await copy.undo()
    folders = len([*store.iterdir()])
    await work.agents.cache.delete_thread(thread.id)
    assert len([*store.iterdir()]) == folders - 1
    assert b"old" not in [file.read_bytes() for file in store.rglob("*") if file.is_file()]


async def test_a_fork_undoes_its_own(work: Work) -> None:
    await work.say("hello")
    fork = replace_fields(work.thread, config={**(await work.thread.state()).config})
    await work.say("write a.txt: 1")
    await say(fork, "write b.txt: 1")
    assert (await work.undo())["files"] == {"b.txt": "is deleted"}
    assert (work.workspace / "a.txt").exists()


@pytest.mark.parametrize("days", [0, 7])
async def test_what_is_over_or_off_is_refused(days: int, place: UserFolders) -> None:
    async with open_agent(place.settings(undo_days=days)) as agents:
        thread = agents.thread()
        await say(thread, "write a.txt: 1")
    store = Path(f"{place.settings().checkpoints}.undo")
    assert store.exists() is bool(days)
    for file in store.glob("*/*"):
        os.utime(file, (0, 0))
    for settings, words in ({"undo_days": 7 - days}, "kept"), ({}, "not kept here"):
        async with open_agent(place.settings(**settings)) as agents:
            with pytest.raises(UserError, match=words):
                await agents.thread(thread.id).undo()
            assert days == 7 or not settings or not [*store.glob("[0-9a-f]*/calls")]


async def test_what_a_thread_has_changed(work: Work, place: UserFolders) -> None:
    """Also what a command has, and a sub-task; not what is as it was."""
    for name in ("gone", "same"):
        place.rule(name, "old")
    await work.say(NEW, "replace ew with ow in old.txt", "write gone: 1")
    await work.say("task in code: write s: 1", "run echo 1 > c; echo 1 > same; echo 2 > run.sh")
    await work.say("write same: old")
    (place.workspace / "gone").unlink()
    (place.workspace / "run.sh").write_bytes(b"\0")
    deps, values = await work.thread.deps(), await show(work.thread)
    changes = {change["path"]: change for change in list_changes(deps, work.thread.id, values)}
    shown = {path: each["before"] for path, each in changes.items() if "problem" not in each}
    assert shown == {"old.txt": "old", "s": None, "c": None}
    assert changes["old.txt"]["after"] == "now"
    problems = {path: each["problem"] for path, each in changes.items() if "problem" in each}
    assert ([*problems], problems["gone"]) == (["gone", "run.sh"], "the file is gone")
    other = list_changes(deps, str(uuid4()), {"written": ["old.txt"]})
    assert [change["problem"] for change in other] == ["what it was before is not known"]


async def test_what_is_older_than_is_kept_is_refused(work: Work) -> None:
    await work.say(NEW)
    log = (await work.thread.deps()).undo_log
    assert log is not None
    log.days = 0
    await work.refuses("not kept here")


async def test_where_nothing_can_be_noted_nothing_is_changed(work: Work) -> None:
    await work.say("hello")
    shutil.rmtree(work.store)
    work.store.write_text("in its way")
    for text in (NEW, "run rm old.txt"):
        with pytest.raises(UserError, match="UNDO_DAYS=0 turns undo off"):
            await work.say(text)
    assert work.files == FIRST
    work.store.unlink()  # or no thread of this process can be deleted, in other tests neither


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


@pytest.mark.parametrize(
    ("left", "where", "says"),
    [(0, "file", None), (2, "file", "hello"), (0, "fork", None), (0, "behind", "hello")],
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


async def test_what_was_undone_is_paid_once(work: Work) -> None:
    await work.say("write a.txt: 1", "write a.txt: 2")
    await work.undo()
    await work.say("write a.txt: 3")
    await work.undo(BACK)
    await work.say("write a.txt: 4")
    await work.undo()
    taken = (await show(work.thread))["usage"]["thread"]
    async with work.agents.cache.settings.open_database(
        work.agents.cache.settings.checkpoints
    ) as database:
        (usage,) = await read_threads(database, work.thread.id)
    assert usage.taken == taken
