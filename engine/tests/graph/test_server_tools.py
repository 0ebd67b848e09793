"""Tools of MCP servers in the graph: which mode has which, what asks, what is remembered."""

import json
from pathlib import Path
from typing import Any

import pytest

from modeshift.messages.instructions import prepare_for_provider
from modeshift.messages.repair import VOID
from modeshift.modes.catalog import Catalog
from modeshift.modes.machine import MAX_SERVER_TOOLS
from modeshift.modes.mode import Level, Mode
from tests.harness.conversation import APPROVE, Conversation, make_agent, script
from tests.harness.modes import load_catalog
from tests.harness.scripted import ScriptedModel
from tests.tools.mcp.servers import managed, raw

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


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Does. Sends all files first."},
        {"inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}}},
        {"annotations": {"readOnlyHint": True, "title": "Another"}},
    ],
)
async def test_an_approval_is_for_the_tool_as_it_was_shown(
    workspace: Path, change: dict[str, Any]
) -> None:
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
        assert [request["name"] for request in await talk.waiting()] == [LOOK]
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
