"""The page of an agent without files: its colours, titles and cards."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.clients.page.browser import Person
from tests.harness.server import Server
from tests.harness.shop import Api, make_shop, serving_api

pytestmark = pytest.mark.slow
OF_FILES = re.compile(r"\bfiles?\b|\bgit\b|folder", re.IGNORECASE)


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with serving_api() as api:
        yield api


@pytest.fixture(scope="module")
def server(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, api: Api
) -> Iterator[Server]:
    """On the shop instead of the template."""
    folder = tmp_path_factory.mktemp("shop")
    server = Server(folder)
    for name in ("graph", "modes", "prompts", "tools", "langgraph.json"):
        (folder / name).unlink()
    make_shop(folder)
    server.start(MODES_FOLDER=str(folder / "modes"), SHOP=api.url)
    yield server
    server.kill()


def test_money_is_shown_in_red(person: Person, server: Server, api: Api) -> None:
    """Green is what changes nothing; the title has the amount."""
    badge = person.page.locator(".badge")
    assert (person.mode, badge.get_attribute("data-risk")) == ("triage", "low")
    person.say('call find_order {"order": "A-17"}')
    expect(person.page.locator(".call summary bdi")).to_have_text("Find order A-17")
    person.say("switch to refund: the customer is owed money")
    expect(person.card).to_contain_text("At most, it then changes something outside")
    gained = person.card.locator("li[data-risk=high]")
    expect(gained).to_have_text(["send_note", "refund"])
    green = badge.evaluate("one => getComputedStyle(one).color")
    red = gained.first.evaluate("one => getComputedStyle(one).color")
    person.press("Switch to Refund")
    expect(badge).to_have_attribute("data-risk", "high")
    expect(badge).to_have_css("color", red)
    assert red != green
    person.say('call refund {"order": "A-17", "amount": 49.9, "why": "broken"}')
    expect(person.card.locator("h2")).to_have_text("Refund A-17 49.9")
    expect(person.card.locator(".tag.bad")).to_have_text("changes something outside")
    expect(person.page.get_by_text("Always in this thread")).to_have_count(0)
    person.press("Approve")
    expect(person.page.locator(".call.done summary bdi").last).to_have_text("Refund A-17 49.9")
    person.say('call send_note {"order": "A-17", "text": "sorry"}')
    person.card.get_by_text("Always in this thread").click()
    expect(person.card.get_by_text("Always exactly this")).to_be_visible()
    expect(person.card.get_by_text("Always what matches")).to_have_count(0)
    person.press("Reject")
    for part in ("Workspace", "Files"):
        expect(person.page.get_by_role("heading", name=part)).to_have_count(0)
    assert [path for _, path, *_ in api.asked] == ["/orders/A-17", "/orders/A-17/refunds"]
    assert not (server.folder / "workspace").exists()
    log = server.log.read_text()
    assert [word for word in ("workspace", "commands", "sandbox") if word in log] == []
    check_undo(person)


def check_undo(person: Person) -> None:
    """What goes back is told without files."""
    person.press("New thread")
    for text, answer in (("hello", "command language"), ('call find_order {"order": "A"}', "went")):
        person.say(text)
        expect(person.answer).to_contain_text(answer)
        expect(person.button("Send")).to_be_visible()
    dialog = person.page.locator("dialog")
    for name, press in (("Edit and run again", "Cancel"), ("Undo from here", "Undo")):
        person.page.get_by_role("button", name=name).last.click()
        expect(dialog).not_to_contain_text(OF_FILES)
        dialog.get_by_role("button", name=press, exact=True).click()
    dialog.get_by_role("button", name="Close").click()
    expect(person.answer).to_contain_text("command language")
