"""The page when the server is gone or asks for a token."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.clients.page.browser import PROBLEM, Person
from tests.harness.server import Server, lose_checkpoint, running

TOKEN = "of-mine-alone-0123456789"  # noqa: S105
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)]


def test_a_question_and_a_turn_outlive_a_kill_and_the_token_is_the_tabs(
    browser: Browser, tmp_path: Path
) -> None:
    """The page says so, and goes on by itself; asked for a turn that was cut off, by a button."""
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
        other.close()
        check_cut_off_turn(person, server)
        person.close()


def check_cut_off_turn(person: Person, server: Server) -> None:
    """Killed between the model's answer and the checkpoint behind it: nothing is asked."""
    person.say("write cut.txt: a")
    expect(person.card).to_contain_text("cut.txt")
    server.kill()
    person.sees("Reconnecting", "#trouble")
    lose_checkpoint(server.folder, person.thread)
    server.start(AUTH_TOKEN=TOKEN)
    person.sees("was interrupted", "#trouble")
    person.press("Go on")
    expect(person.card).to_contain_text("cut.txt")
    expect(person.page.locator("#trouble")).to_be_empty()
    person.press("Approve")
    person.sees("Created cut.txt")
