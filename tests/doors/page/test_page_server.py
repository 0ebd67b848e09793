"""The page when the server is gone, asks for a token, or has a great deal to show."""

import time
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.doors.page.browser import PROBLEM, Person
from tests.doors.page.screenshots import PICTURES, take
from tests.harness.server import Server, running

TOKEN = "of-mine-alone-0123456789"  # noqa: S105
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)]


def test_a_question_outlives_a_kill_and_the_token_is_the_tabs(
    browser: Browser, tmp_path: Path
) -> None:
    """Killed while a question waits; the page says so, and goes on by itself."""
    with running(tmp_path, AUTH_TOKEN=TOKEN) as server:
        person = Person(browser, server.url)
        person.page.goto(f"{server.url}/app")
        field = person.page.get_by_label("Token", exact=True).and_(person.page.locator("input"))
        field.fill("wrong")
        person.press("Continue")
        field.fill(TOKEN)
        person.press("Continue")
        person.say("write kept.txt: k", mode="code")
        expect(person.card).to_contain_text("kept.txt")
        server.kill()
        person.sees("Reconnecting", "#trouble")
        person.page.fill("#say", "what is lost?")
        server.start(AUTH_TOKEN=TOKEN)
        expect(person.page.locator("#trouble")).to_be_empty()
        assert person.page.input_value("#say") == "what is lost?"
        person.press("Approve")
        person.sees("Created kept.txt")
        assert person.page.evaluate("Object.keys(localStorage).length") == 0
        assert TOKEN not in person.page.content()
        other = person.open_tab()
        other.goto(person.page.url)
        expect(other.get_by_label("Token", exact=True).first).to_be_visible()
        person.close()


def test_a_long_thread_stays_responsive(browser: Browser, server: Server) -> None:
    """2,000 messages, and one result of 10 MB."""
    calls = [{"name": "read_file", "args": {"path": "a"}, "id": "call_1", "type": "tool_call"}]
    messages: list[dict[str, object]] = []
    for number in range(1000):
        messages += [
            {"type": "human", "content": f"question {number}"},
            {"type": "ai", "content": f"**answer** {number}\n\n- a\n- b"},
        ]
    messages += [
        {"type": "ai", "content": "", "tool_calls": calls},
        {"type": "tool", "content": "0123456789\n" * 1_000_000, "tool_call_id": "call_1"},
    ]
    with httpx.Client(base_url=server.url, timeout=60) as client:
        thread = client.post("/threads", json={}).json()["thread_id"]
        given = {"messages": [{"role": "user", "content": "hello"}]}
        client.post(
            f"/threads/{thread}/runs/wait", json={"assistant_id": "agent", "input": given}
        ).raise_for_status()
        client.post(
            f"/threads/{thread}/state", json={"values": {"messages": messages}}
        ).raise_for_status()
    person = Person(browser, server.url)
    begin = time.monotonic()
    person.page.goto(f"{server.url}/app#{thread}")
    person.page.wait_for_selector(".call summary")
    assert time.monotonic() - begin < 20
    assert person.page.locator("article").count() > 2000
    person.page.locator(".call summary").click()
    expect(person.page.get_by_role("button", name="Show more")).to_be_visible()
    person.page.fill("#say", "")
    took = person.page.evaluate(
        """async () => {
          const begin = performance.now();
          document.querySelector("#main").scrollTop = 0;
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          return performance.now() - begin;
        }"""
    )
    assert took < 1500
    expect(person.page.locator("article.ai .markdown strong").first).to_be_visible()
    # What comes in at the end moves nobody who reads at the beginning.
    httpx.post(
        f"{server.url}/threads/{thread}/runs/wait",
        json={"assistant_id": "agent", "input": given},
        timeout=60,
    )
    expect(person.page.get_by_role("button", name="Latest")).to_be_visible()
    expect(person.answer).to_contain_text("offline model")
    assert person.page.evaluate("document.querySelector('#main').scrollTop") == 0
    person.check()
    person.close()


def test_the_pictures_can_be_made(browser: Browser, tmp_path: Path) -> None:
    """``make screenshots``; small enough to be kept."""
    (tmp_path / "clone").mkdir()
    files = list(take(browser, tmp_path / "clone", tmp_path / "pictures"))
    assert {one.name for one in files} == {one.name for one in PICTURES.iterdir()}
    for file in (*files, *PICTURES.iterdir()):
        assert file.read_bytes().startswith(b"\x89PNG")
        assert file.stat().st_size < 150_000
