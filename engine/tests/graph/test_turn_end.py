"""``then``: where a thread goes when its turn ends, and where it does not go."""

from pathlib import Path
from typing import Any

import pytest

from modeshift.modes.catalog import Catalog
from modeshift.modes.edges.edges import EntryEdge
from tests.harness.conversation import APPROVE, Conversation, restart, run_script
from tests.harness.modes import load_with
from tests.harness.scripted import Call

THEN_ASK = load_with("code", then="ask")
WRITE: Call = ("write_file", {"path": "a.txt", "content": "x"})
DONE: Call = ("attempt_completion", {"result": "done"})


def with_modes(**changes: dict[str, Any]) -> Catalog:
    catalog = load_with("code")
    modes = (catalog[slug].model_copy(update=changes.get(slug, {})) for slug in catalog)
    return Catalog(modes, "ask")


async def last_change(talk: Conversation) -> dict[str, Any]:
    return dict((await talk.values())["mode_changes"][-1])


@pytest.mark.parametrize("end", ["hello", [DONE]])
async def test_the_next_turn_is_in_the_other_mode(workspace: Path, end: Any) -> None:
    talk = await run_script(workspace, end, [WRITE], "done", mode="code", catalog=THEN_ASK)
    assert await talk.mode() == "ask"
    change = await last_change(talk)
    assert (change["source"], change["target"]) == ("code", "ask")
    assert (change["decided_by"], change["how"]) == ("nobody", "by edge")
    await talk.say("write it")
    assert "no 'edit' tools" in str(await talk.results())
    assert not (workspace / "a.txt").exists()
    await talk.say("go", mode="code")
    assert await talk.mode() == "ask", "by hand it is entered, and left again"


async def test_what_was_written_and_was_true_ends_with_the_mode(workspace: Path) -> None:
    talk = await run_script(workspace, [WRITE], "done", mode="code", catalog=THEN_ASK)
    await talk.decide(APPROVE)
    values = await talk.values()
    assert ((await last_change(talk))["written"], values["written"]) == (["a.txt"], [])
    assert values["facts"]["mode"] == []


async def test_no_mode_is_left_before_the_turn_ends(workspace: Path) -> None:
    talk = await run_script(workspace, [WRITE], [WRITE], "done", mode="code", catalog=THEN_ASK)
    assert await talk.mode() == "code"
    await talk.say("never mind, do it so")
    assert (await talk.mode(), len(await talk.waiting())) == ("code", 1), "it was abandoned"
    await talk.decide(APPROVE)
    assert await talk.mode() == "ask"


async def test_a_summary_is_no_end_of_a_turn(workspace: Path) -> None:
    talk = await run_script(workspace, "hello", "short", mode="ask", catalog=THEN_ASK)
    await talk.send({"mode": "code", "compact": True})
    assert await talk.mode() == "code"


async def test_a_sub_task_ends_where_it_began(workspace: Path) -> None:
    task: Call = ("new_task", {"mode_slug": "code", "message": "do it"})
    talk = await run_script(workspace, [task], "its end", "done", mode="debug", catalog=THEN_ASK)
    await talk.decide(APPROVE)
    assert await talk.mode() == "debug"
    assert [each["target"] for each in (await talk.values())["mode_changes"]][1:] == [
        "code",
        "debug",
    ]


STAYS: dict[str, tuple[dict[str, Any], str]] = {
    "more rights": ({"ask": {"then": "code"}}, "ask"),
    "an own enterFrom": ({"code": {"then": "ask"}, "ask": {"enter_from": ()}}, "code"),
    "a condition": (
        {
            "code": {"then": "ask"},
            "ask": {"enter_from": (EntryEdge(source="code", when="files_changed"),)},
        },
        "code",
    ),
    "a model that is not there": (
        {"code": {"then": "ask"}, "ask": {"model": "anthropic:claude-opus-5"}},
        "code",
    ),
    "a mode that is not there": ({"code": {"then": "kode"}}, "code"),
}


@pytest.mark.parametrize("name", STAYS)
async def test_it_stays(workspace: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    changes, mode = STAYS[name]
    talk = await run_script(workspace, "hello", mode=mode, catalog=with_modes(**changes))
    assert await talk.mode() == mode


async def test_it_stays_within_the_limit(workspace: Path) -> None:
    catalog = load_with("code", then="debug")
    for limit, after in ((None, "debug"), ("code", "debug"), ("ask", "code")):
        talk = await run_script(workspace, "hello", mode="code", limit=limit, catalog=catalog)
        assert await talk.mode() == after


async def test_it_stays_where_something_is_remembered_there(workspace: Path) -> None:
    talk = await run_script(workspace, "hello", mode="ask", catalog=THEN_ASK)
    kept = {"id": "a", "mode": "ask", "tool": "read_file", "pattern": ".env", "exact": True}
    digest = talk.agent.live.deps.seat("ask").environment
    remembered = [{**kept, "digest": digest, "when": "now"}]
    await talk.agent.aupdate_state(talk.config, {"remembered": remembered})
    restart(talk, workspace, catalog=THEN_ASK, model="offline")
    await talk.say("hello", mode="code")
    assert await talk.mode() == "code"
