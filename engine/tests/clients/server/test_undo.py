"""Undo over HTTP: the same as in this process; ``test_auth.py`` has who may not."""

import asyncio
from uuid import uuid4

import pytest

from modeshift import APPROVE, UserError, open_agent
from tests.harness.conversation import until
from tests.harness.place import UserFolders
from tests.harness.server import Server, Web

CODE = {"mode": "code", "approvals": "auto"}


async def test_a_message_goes_back_and_forth(server: Server, place: UserFolders) -> None:
    file = server.workspace / f"{uuid4()}.txt"
    async with open_agent(place.settings(), address=server.url) as agents:
        thread = agents.thread()
        for text in ("hello", f"write {file.name}: 1", f"write {file.name}: 2"):
            assert await thread.say(text, **CODE) is None
        for left in ("1", None):
            preview = await thread.undo()
            assert [*preview["files"]] == [file.name]
            assert await thread.undo("last", preview["digest"]) == preview
            assert (file.read_text() if file.exists() else None) == left
        values = (await thread.state()).values
        assert [each.text for each in values["messages"] if each.type == "human"] == ["hello"]
        assert values["facts"]["mode"] == ["?files_changed"]
        preview = await thread.undo("back")
        await thread.undo("back", preview["digest"])
        assert file.read_text() == "1"
        assert await thread.say("and on") is None
        with pytest.raises(UserError, match="no message 'nonsense' of yours"):
            await thread.undo("nonsense")
        with pytest.raises(UserError, match="another undo by now"):
            await thread.undo("last", preview["digest"])


async def test_a_message_goes_back_by_its_routes_alone(web: Web) -> None:
    """And facts are still not taken from outside, nor a body that is none, or another page's."""
    file, http = web.file(f"{uuid4()}.txt"), web.http
    thread = await web.say("hello", **CODE)
    await thread.say(f"write {file.name}: 1", **CODE)
    path = f"/threads/{thread.id}"
    for message, is_there, said in (("last", False, 1), ("back", True, 2)):
        shown = await web.get(thread, f"undo?message={message}")
        assert [*shown.get("files", shown)] == [file.name], shown
        body = {"message": message, "digest": shown["digest"]}
        assert (await http.post(f"{path}/undo", json=body)).json() == shown
        assert file.exists() is is_there
        values = await thread.values()
        assert [each["type"] for each in values["messages"]].count("human") == said
        assert values["facts"]["mode"] == ["?files_changed"]
    answer = await http.post(f"{path}/state", json={"values": {"facts": {"mode": ["x"]}}})
    assert "code computes it" in answer.text
    as_json = {"content-type": "application/json"}
    for wrong, problem in {
        "[]": "the body is an object with: message, digest",
        "no": "the body is not JSON",
        '{"message": "last"}': "the body has no digest",
        '{"digest": "0", "message": ["last"]}': "no message",
    }.items():
        answer = await http.post(f"{path}/undo", content=wrong, headers=as_json)
        assert (answer.status_code, problem in answer.text) == (422, True), answer.text
    foreign = {"origin": "https://evil.example"}
    assert (await http.get(f"{path}/undo", headers=foreign)).status_code == 403
    for id in (uuid4(), "nonsense"):
        assert (await http.get(f"/threads/{id}/undo")).status_code == 404
    store = web.server.folder / "checkpoints.sqlite.undo"
    kept = len([*store.glob("*/calls")])
    await web.client.threads.delete(thread.id)
    assert len([*store.glob("*/calls")]) == kept - 1


async def test_a_run_that_goes_on_is_not_undone(place: UserFolders, web: Web) -> None:
    began = web.file(str(uuid4()))
    async with open_agent(place.settings(), address=web.server.url) as agents:
        thread = agents.thread()
        question = await thread.say(f"run touch {began.name}; sleep 600", **CODE)
        assert question is not None
        events = aiter(thread.answer(question, [APPROVE]))
        run = asyncio.ensure_future(anext(events))
        await until(began.exists)
        for digest in (None, "0"):
            with pytest.raises(UserError, match="a run goes on"):
                await thread.undo("last", digest)
        await run
        await events.aclose()  # type: ignore[attr-defined]  # which stops it
        while (await web.http.get(f"/threads/{thread.id}")).json()["status"] == "busy":
            await asyncio.sleep(0.05)
        stays = (await thread.undo())["stays"]
        assert any("without a sandbox" in text for text in stays)
    assert began.exists()
