"""Custom modes, and tools of MCP servers, in the running agent: which mode has which, what asks."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command

from modeshift.messages.instructions import prepare_for_provider
from modeshift.messages.repair import VOID
from modeshift.models.loading import Models
from modeshift.modes.catalog import Catalog
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.machine import MAX_SERVER_TOOLS
from modeshift.modes.mode import Level, Mode
from modeshift.testing.plugin import Snapshot
from modeshift.threads.state import State
from tests.graph.calls import asks, suggest, to
from tests.harness.conversation import (
    APPROVE,
    REJECT,
    Conversation,
    edit,
    make_agent,
    open_thread,
    reload,
    script,
)
from tests.harness.modes import load_catalog
from tests.harness.place import UserFolders, modes_file
from tests.harness.scripted import Call, ScriptedModel, calling
from tests.tables import rows
from tests.tools.mcp.servers import managed, raw


def script_at(place: UserFolders, *steps: Call) -> Conversation:
    """A model that makes one call in each step, with the modes and rules of the place."""
    answers = [calling(call, prefix=f"step{number}") for number, call in enumerate(steps)]
    deps = replace(place.loader().deps(), models=Models(ScriptedModel(answers=answers)))
    return open_thread(deps)


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


async def test_a_modes_model_is_used(place: UserFolders, monkeypatch: pytest.MonkeyPatch) -> None:
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
    said = [message.text for message in await talk.messages() if message.name == "switch_mode"]
    (notice,) = (text for text in said if "Switched" in text)
    snapshot("switched.txt", f"{notice}\n")
    assert (await talk.values())["written"] == ["app.py"]
    await talk.say("switch to ask: done")
    await talk.decide(APPROVE)
    assert "Files written in Code mode: app.py." in str(await talk.messages())
    assert (await talk.values())["written"] == []
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


@pytest.mark.parametrize("is_asked", [True, False])
async def test_in_a_mode_that_is_gone_nothing_runs(place: UserFolders, *, is_asked: bool) -> None:
    """Its question is void, and what was due when its run was cut off."""
    place.global_modes.write_text(modes_file("mine", groups="edit"))
    talk = open_thread(place.loader(approvals="manual" if is_asked else "auto").deps())
    said = {"messages": [HumanMessage("write a: x & write b: y")], "mode": "mine"}
    await talk.send_until("mine", said)
    if is_asked:
        await talk.send(None)
        assert await talk.waiting()
    place.global_modes.unlink()
    reload(talk, place.loader().deps())
    await (talk.decide(APPROVE, APPROVE) if is_asked else talk.send(None))
    assert not list(place.workspace.iterdir())
    assert await talk.mode() == "ask"
    notices = str((await talk.values())["notices"])
    assert ("have changed since" if is_asked else "Mode 'mine' no longer exists") in notices
    assert is_asked or talk.nodes[-1] == "ask"


async def test_a_switch_is_to_the_mode_as_it_was_approved(place: UserFolders) -> None:
    def change(groups: str) -> None:
        place.global_modes.write_text(modes_file("mine", groups=groups))
        reload(talk, place.loader().deps())

    talk = open_thread(place.loader().deps())
    change("read")
    await talk.say("switch to mine: why")
    change("command")
    await talk.decide(APPROVE)
    assert await talk.mode() == "ask", "asked before it changed"
    assert await talk.waiting(), "and again after"
    await talk.send_until("review", Command(resume={"decisions": [APPROVE]}))
    change("command, edit")
    await talk.send(None)
    assert await talk.mode() == "ask", "approved before it changed"
    (request,) = await talk.waiting()
    gained = "Tools gained: write_file, edit_file, execute_command, read_output."
    assert gained in request["description"]
    await talk.decide(APPROVE)
    assert await talk.mode() == "mine"


async def test_a_switch_needs_a_model_tells_its_gain_and_can_be_denied(place: UserFolders) -> None:
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
    place.global_modes.write_text(modes_file("mine", groups="read, edit"))
    talk = open_thread(place.loader().deps())
    await talk.say("switch to mine: why", mode="architect")
    (request,) = await talk.waiting()
    said = r"Files to edit: every file instead of Markdown files only (paths that match `\.md$`)."
    assert said in request["description"]
    place.permissions.write_text("switch_mode: deny")
    talk = script_at(place, suggest("code"), to("code"))
    await talk.say("go")
    assert not await talk.waiting()
    results = [result.text for result in (await talk.results()).values()]
    assert ["must not do that: rule '*' for switch_mode" in text for text in results] == [True] * 2


GET, SET, LOOK = "mcp__raw__get_time", "mcp__raw__set_time", "mcp__raw__look"
SERVER = raw(
    "plain",
    json.dumps([{"name": "get_time"}, {"name": "set_time", "annotations": {}}, {"name": "look"}]),
)


def bound(model: ScriptedModel, request: int = -1) -> set[str]:
    """The tools of servers that a request to the model had."""
    return {name for name in model.asked[request].tools if name.startswith("mcp__")}


def with_modes(**groups: Any) -> Catalog:
    catalog = load_catalog()
    own = [
        Mode.model_validate(
            {
                "slug": slug,
                "name": slug,
                "roleDefinition": "x",
                "groups": definition[0],
                **definition[1],
            }
            | {"level": Level.GLOBAL}
        )
        for slug, definition in groups.items()
    ]
    return Catalog([*(catalog[slug] for slug in catalog), *own], "ask")


@rows(
    "change",
    {"description": "Does. Sends all files first."},
    {"inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}}},
    {"annotations": {"readOnlyHint": True, "title": "Another"}},
)
async def test_an_approval_is_for_a_tool_as_shown(workspace: Path, change: dict[str, Any]) -> None:
    """Of the user's own server, too: it changes while the question waits."""
    tool: dict[str, Any] = {}
    async with managed(workspace, raw("changes")) as servers:
        talk = script(workspace, [("mcp__raw__do", {"to": [tool]})], servers=servers)
        await talk.say("hello")
        offer = servers[0].offer
        assert offer is not None
        await servers[0].call(offer.tools[0], {"to": [change]})
        await talk.decide(APPROVE)
        assert (await talk.results())["call_0"].text == VOID


async def test_a_rule_lets_calls_run_unasked(workspace: Path) -> None:
    catalog = with_modes(eager=(["mcp"], {"permissions": {"mcp__raw__get_*": "allow"}}))
    async with managed(workspace, SERVER) as servers:
        talk = script(workspace, [(GET, {})], [(LOOK, {})], servers=servers, catalog=catalog)
        await talk.say("hello", mode="eager")
        assert await asks(talk) == [LOOK]
        assert "done with {}" in (await talk.results())["call_0"].text


async def test_which_mode_has_which(workspace: Path) -> None:
    catalog = with_modes(
        some=(["read", ["edit", {"fileRegex": "md$"}], ["mcp", {"tools": ["*_time"]}]], {}),
        other=(["command", ["mcp", {"servers": ["other"]}]], {}),
        runs=(["command", "mcp"], {"permissions": {"mcp__raw__set_*": "deny"}}),
        none=(["read"], {}),
    )
    async with managed(workspace, SERVER) as servers:
        model = ScriptedModel(answers=[])
        talk = Conversation(make_agent(workspace, model, catalog=catalog, servers=servers))
        have = {}
        for slug in ("none", "ask", "code", "some", "other", "runs"):
            await talk.say("hello", mode=slug)
            have[slug] = bound(model)
        await talk.say("hello", mode="code", limit="ask")
        have["limited"] = bound(model)
        await talk.say("hello", limit="runs")
        have["denied"] = bound(model)
    assert have["none"] == have["other"] == set()
    assert SET in have["code"]
    assert have["ask"] == have["code"] - {SET} == have["limited"]
    assert have["some"] == {GET}
    assert have["runs"] == have["denied"] == have["code"] - {SET}


async def test_a_mode_declares_so_many_tools_of_servers_and_no_more(workspace: Path) -> None:
    """Each mode for itself, the first in the order of the servers; a notice says how to choose."""
    catalog = with_modes(some=(["command", ["mcp", {"servers": ["b"], "tools": ["t1*"]}]], {}))
    offers = [{"name": f"t{number}", "annotations": {}} for number in range(MAX_SERVER_TOOLS - 1)]
    first, other = (raw("plain", json.dumps(offers), name=name) for name in "ab")
    async with managed(workspace, first, other) as servers:
        model = ScriptedModel(answers=[])
        talk = Conversation(make_agent(workspace, model, catalog=catalog, servers=servers))
        await talk.say("hello", mode="code")
        have = bound(model)
        (notice,) = (await talk.values())["notices"]
        await talk.say("hello", mode="some")
        some = bound(model)
    assert have == {*(f"mcp__a__t{number}" for number in range(MAX_SERVER_TOOLS - 1)), "mcp__b__t0"}
    assert some == {f"mcp__b__t{number}" for number in (1, *range(10, 20))}
    assert f"left out are {MAX_SERVER_TOOLS - 2} in 'code', from mcp__b__t1; " in notice
    assert "'some'" not in notice


async def test_pictures_are_shown_to_models_that_take_them(workspace: Path) -> None:
    # The beginning of one, another file, and no base64.
    pictures = ("iVBORw0KGgo=", "bm8gcGljdHVyZQ==", "!")
    content = [{"type": "image", "data": picture, "mimeType": "image/png"} for picture in pictures]
    async with managed(workspace, raw("plain")) as servers:
        talk = script(
            workspace, [("mcp__raw__do", {"result": {"content": content}})], servers=servers
        )
        await talk.say("hello")
        await talk.approve_all()
    result = (await talk.results())["call_0"]
    assert isinstance(result.content, list)
    text, picture = result.content
    assert isinstance(text, dict)
    assert isinstance(picture, dict)
    assert "[image, image/png, 10 bytes: left out]" in text["text"]
    assert "left out, as it is not base64" in text["text"]
    assert picture == {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
    history: list[Any] = [*await talk.messages()]
    assert prepare_for_provider(history, "anthropic")[2].content == result.content
    other = prepare_for_provider(history, "openai-chat")[2].content
    assert "[images that you cannot be shown: 1]" in str(other)
    assert "iVBOR" not in str(other)
