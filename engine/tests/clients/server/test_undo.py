"""Undo over HTTP: the same as in this process; ``test_auth.py`` has who may not."""

from uuid import uuid4

from tests.harness.server import Web

CODE = {"mode": "code", "approvals": "auto"}


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
        '{"digest": "0", "message": "nonsense"}': "no message 'nonsense' of yours",
        '{"digest": "0", "message": "last"}': "another undo by now",
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
