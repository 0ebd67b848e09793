"""Threads on the page: the list, what goes on in the open one, an empty one, one that is forked."""

import re

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.clients.page.browser import Person, Script
from tests.clients.page.test_page import check_sizes
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
    page.get_by_label("Search threads").fill("alph")
    expect(page.locator("#threads li")).to_have_count(1)
    expect(page.get_by_role("button", name="Rename hello Alpha")).to_have_css("opacity", "1")
    check_sizes(person)
    page.get_by_label("Search threads").fill("nothing has this")
    expect(page.locator("#threads ul")).to_have_text("No title has this in it.")
    page.get_by_label("Search threads").fill("")
    expect(page.locator("#threads ul")).to_contain_text("hello Beta")
    person.check()
    person.close()


def test_an_empty_thread_has_examples_for_its_mode_and_model(person: Person) -> None:
    page, examples = person.page, person.page.locator("#start button")
    expect(examples).to_have_text(["list", "search TODO", "hello"])
    page.select_option("#mode", "scripted")
    expect(examples.last).to_have_text("What can you do in this mode?")
    page.select_option("#mode", "code")
    expect(examples.first).to_have_text("write notes.txt: hello")
    check_sizes(person)
    examples.first.click()
    expect(page.locator("#say")).to_have_value("write notes.txt: hello")
    page.press("#say", "Enter")
    expect(person.card).to_contain_text("notes.txt")
    expect(examples).to_have_count(0)
    person.press("Reject")


def test_a_message_is_edited_and_run_again(person: Person) -> None:
    """The first one and a later one: what came after it is gone, what came before stays."""
    page, own = person.page, person.page.locator("#messages article.human .plain")
    for text in ("hello", "todo: first; second", "list"):
        person.say(text, mode="code")
        person.answered()
    for place, text, left in ((1, "todo: third", ["hello", "todo: third"]), (0, "run", ["run"])):
        page.get_by_role("button", name="Edit and run again").nth(place).click()
        field = page.get_by_role("dialog").get_by_label("Message")
        expect(field).to_have_value(("hello", "todo: first; second")[place])
        field.fill(text)
        if place:
            check_sizes(person)
        person.press("Run again")
        person.answered()
        expect(own).to_have_text(left)
        page.reload()
        expect(own).to_have_text(left)
    person.say("task in code: list")
    person.press("Start it")
    person.answered()
    page.get_by_role("button", name="Edit and run again").nth(1).click()
    page.get_by_role("dialog").get_by_label("Message").fill("list")
    person.press("Run again")
    expect(own).to_have_text(["run", "list"])
    expect(person.button("Send")).to_be_visible()
    page.reload()
    expect(own).to_have_text(["run", "list"])  # and not from a checkpoint within the sub-task
    person.say("write kept.txt: a")
    expect(person.card).to_contain_text("kept.txt")
    page.get_by_role("button", name="Edit and run again").first.click()
    expect(page.locator(".toast").last).to_have_text("First end the run, question or sub-task.")
    person.press("Reject")


def test_a_message_is_undone_with_its_files_and_that_too(person: Person, server: Server) -> None:
    page, file = person.page, server.workspace / "undone.txt"
    own = page.locator("#messages article.human .plain")
    dialog = page.get_by_role("dialog")
    person.say("hello", mode="code")
    person.answered()
    person.say("write undone.txt: a")
    person.press("Approve")
    person.answered()
    for press, is_there, left in (("Cancel", True, 2), ("Undo", False, 1)):
        page.get_by_role("button", name="Undo from here").nth(1).click()
        expect(dialog).to_contain_text("undone.txt is deleted")
        if not is_there:
            check_sizes(person)
        dialog.get_by_role("button", name=press, exact=True).click()
        expect(own).to_have_count(left)
        assert file.exists() is is_there
    dialog.get_by_role("button", name="Undo the undo").click()
    expect(dialog).to_contain_text("undone.txt is made again")
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(own).to_have_text(["hello", "write undone.txt: a"])
    assert file.read_text() == "a"
    dialog.get_by_role("button", name="Close").click()
    person.say("write asked.txt: a")
    expect(person.card).to_contain_text("asked.txt")
    page.get_by_role("button", name="Undo from here").first.click()
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(own).to_have_count(0)


def test_a_subtask_has_its_outer_conversation_and_its_ends(person: Person) -> None:
    """Below the call that began it; also where the thread is opened again inside it."""
    page = person.page
    person.say("task in code: list | write inner.txt: x", mode="ask")
    expect(person.card).to_contain_text("Sub-task in Code mode")
    person.press("Start it")
    expect(person.card).to_contain_text("inner.txt")
    expect(page.locator("article.human.depth1")).to_contain_text("write inner.txt: x")
    assert person.mode == "code"
    page.reload()
    expect(person.card).to_contain_text("inner.txt")
    shown = page.locator("#messages").inner_text()
    assert shown.index("task in code") < shown.index("Sub-task in Code mode begins")
    assert shown.index("Sub-task in Code mode begins") < shown.index("Task\n")
    person.sees("Waits for you, in the sub-task", ".status")
    check_sizes(person)
    person.press("Approve")
    person.sees("The sub-task in Code mode has ended")
    assert person.mode == "ask"
    expect(page.locator("#messages > .boundary")).to_have_count(0)
    page.locator(".call summary", has_text="Sub-task in Code mode").click()
    expect(page.locator(".subtask > :last-child")).to_have_text("Sub-task ends: completed")
    task = page.locator(".subtask article.human")
    expect(task).to_contain_text("write inner.txt: x")
    httpx.patch(f"{person.path}/mode", json={"approvals": "auto"})
    expect(page.locator("#approvals")).to_have_value("auto")
    expect(task).to_be_visible()  # what is opened stays open when the thread is read again
    check_sizes(person)


def test_the_picture_of_the_modes_has_a_legend(person: Person) -> None:
    """Each mode that is open has an arrow; phase and limit say what they are."""
    page = person.page
    legend = page.get_by_label("Legend")
    expect(legend).to_contain_text("open: you are asked")
    expect(legend).to_contain_text("once something is so")
    # Of nine modes: not to itself, nor to those that are entered from no or one other mode.
    page.select_option("#mode", "scripted")
    arrows, ways = page.locator(".machine .others path"), page.get_by_label("Open from here")
    expect(arrows).to_have_count(6)
    expect(ways).to_contain_text("Code: a person says yes")
    assert "waits for a message" in (page.locator(".phase").get_attribute("title") or "")
    limit = page.locator("label", has=page.get_by_label("Limit", exact=True))
    assert "no right" in (limit.get_attribute("title") or "")
    page.get_by_label("Limit", exact=True).select_option("ask")
    expect(arrows).to_have_count(2)  # to Ask, and one with fewer rights
    expect(ways).not_to_contain_text("Code")
    expect(ways).to_contain_text("Ask: a person says yes")
    page.get_by_label("Limit", exact=True).select_option("")
    expect(arrows).to_have_count(6)
    check_sizes(person)
