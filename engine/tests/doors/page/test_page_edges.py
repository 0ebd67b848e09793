"""Edges on the page: what a person is shown of a condition, and their way around it."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.doors.page.browser import Person
from tests.harness.server import running

pytestmark = pytest.mark.slow
PLANNED = """\
customModes:
  - slug: planned
    name: Planned
    roleDefinition: You do what the plan says.
    groups: [read, edit]
    enterFrom: [{from: architect, when: plan_written}]
"""


def test_a_card_shows_the_condition_that_is_met(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/custom_modes.yaml").write_text(PLANNED)
    with running(tmp_path) as server:
        person = Person(browser, server.url).go()
        person.say("switch to planned", mode="architect")
        person.sees("not open from Architect mode yet")
        person.say("write plan.md: x")
        person.card.locator(".main").first.click()
        person.sees("Created plan.md")
        person.say("switch to planned: Met: all")
        expect(person.card).to_contain_text("Met: plan_written (plan_written: yes).")
        person.press("No, stay in Architect")
        person.say("switch to planned", mode="code")
        person.sees("not open from Code mode")
        person.say("switch to debug")
        person.card.get_by_label("Another mode").select_option("planned")
        person.card.get_by_text("Take this mode instead").click()
        expect(person.page.locator("#mode")).to_have_value("planned")
        person.close()
