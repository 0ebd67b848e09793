"""The scenarios on the page, in a real browser: a card for each call, buttons on each card."""

import pytest
from playwright.sync_api import Locator, expect

from tests.clients.page.browser import Person
from tests.clients.scenarios import Scenario, of
from tests.harness.server import Server

pytestmark = pytest.mark.slow


def decide(card: Locator, words: str) -> None:
    what, _, more = words.partition(" ")
    match what:
        case "approve":
            card.locator(".main").first.click()
        case "reject":
            card.locator(".safe").click()
        case "auto":
            card.get_by_text("Yes, and auto-accept").click()
        case "to":
            card.get_by_label("Another mode").select_option(more)
            card.get_by_text("Take this mode instead").click()
        case "content":
            card.get_by_role("button", name="Edit", exact=True).click()
            card.get_by_label("content").fill(more)
            card.get_by_text("Run it like this").click()
        case "answer":
            card.get_by_label("Your answer").fill(more)
            card.get_by_label("Your answer").press("Enter")
        case _:
            card.get_by_text("Always in this thread").click()
            if what == "pattern":
                card.get_by_label("Pattern").fill(more)
            name = "Always what matches" if what == "pattern" else "Always exactly this"
            card.get_by_text(name).click()


@of("page")
def test_on_the_page(scenario: Scenario, person: Person, server: Server) -> None:
    page, left = person.page, [*scenario.decides]
    send = page.get_by_role("button", name="Send", exact=True)
    if scenario.limit:
        page.get_by_label("Limit").select_option(scenario.limit)
    person.say(scenario.says, mode=scenario.begins_in)
    expect(page.locator("article.human")).to_have_count(1)
    while left:
        expect(send).to_be_visible()
        expect(person.card.first).to_be_visible()
        person.settle()
        cards = person.card.all()
        page.evaluate("document.querySelectorAll('.card').forEach((one) => one.dataset.old = '')")
        for card in cards:
            decide(card, left.pop(0))
            if len(cards) > 1:
                expect(card.locator(".chosen")).not_to_be_empty()
        if len(cards) > 1:
            page.get_by_text("Send these decisions").click()
        expect(page.locator(".card[data-old]")).to_have_count(0)
    expect(send).to_be_visible()
    expect(person.card).to_have_count(1 if scenario.waits_for else 0)
    if scenario.tells:
        expect(person.answer).to_contain_text(scenario.tells)
    assert person.mode == scenario.mode
    expect(page.locator("#approvals")).to_have_value(scenario.approvals)
    scenario.check_files(server.workspace)
