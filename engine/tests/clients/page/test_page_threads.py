"""Threads on the page: the list, what goes on in the open one, an empty one, one that is forked."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.clients.page.browser import Person, Script
from tests.clients.page.test_page import check_access
from tests.clients.page.test_page_runs import Held
from tests.harness.server import Server
from tests.provider.script import say

pytestmark = pytest.mark.slow


def test_what_runs_and_for_how_long(person: Person, server: Server, script: Script) -> None:
    """Above the input, and of the open thread in the list; also after a reload."""
    page, current = person.page, person.page.locator("#threads .current")
    (server.workspace / "wait.sh").write_text("until test -e over; do sleep 0.1; done\n")
    person.say("run sh wait.sh", mode="code")
    expect(current).to_contain_text("waits for you")
    person.press("Approve")
    person.sees(re.compile(r"Runs tools: Run sh wait\.sh · [1-9] s"), ".status")
    expect(current).to_contain_text("works")
    page.reload()
    person.sees(re.compile(r"· [2-9] s"), ".status")
    (server.workspace / "over").touch()
    expect(page.locator(".status")).to_have_text("")
    expect(current).not_to_contain_text("works")
    held = Held(say("Thought."))
    script["think"] = [held]
    person.say("think", mode="scripted")
    person.sees(re.compile(r"Thinking · \d s"), ".status")
    held.go_on.set()


def test_the_list_is_searched_and_reached_by_touch(browser: Browser, server: Server) -> None:
    person = Person(browser, server.url, has_touch=True, is_mobile=True).go()
    page = person.page
    for title in ("hello Alpha", "hello Beta"):
        page.goto(f"{server.url}/app")
        person.say(title)
        person.sees("offline model")
    if not page.locator("#threads").is_visible():
        person.press("Threads")
    page.get_by_label("Search the titles").fill("alph")
    expect(page.locator("#threads li")).to_have_count(1)
    expect(page.get_by_role("button", name="Rename hello Alpha")).to_have_css("opacity", "1")
    check_access(person)
    page.get_by_label("Search the titles").fill("nothing has this")
    expect(page.locator("#threads ul")).to_have_text("No title has this in it.")
    page.get_by_label("Search the titles").fill("")
    expect(page.locator("#threads ul")).to_contain_text("hello Beta")
    person.check()
    person.close()
