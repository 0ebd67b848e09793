"""What a person does while a run goes on: say more, stop it, decide by a key."""

import threading

import pytest
from playwright.sync_api import expect

from tests.clients.page.browser import Person, Script
from tests.clients.page.test_page import check_sizes
from tests.harness.conversation import SECONDS
from tests.harness.server import Server
from tests.provider.script import Answer, Call, Step, call, say

pytestmark = pytest.mark.slow


class Held:
    """An answer of the model that waits for ``go_on``."""

    def __init__(self, answer: Step) -> None:
        self.answer, self.go_on = answer, threading.Event()

    def __call__(self) -> Step:
        return self.answer if self.go_on.wait(SECONDS) else say("late")


def enter(person: Person, text: str) -> None:
    person.page.fill("#say", text)
    person.page.press("#say", "Enter")


def test_a_message_is_kept_until_the_run_has_ended(person: Person, script: Script) -> None:
    """It can be taken back, outlives a reload, and is sent once; another tab shows the same."""
    first, page = Held(say("First.")), person.page
    script["first"], script["second\nthird"] = [first], [say("Both.")]
    person.say("first", mode="scripted")
    expect(person.button("Stop")).to_be_enabled()
    page.fill("#say", "secnd")
    person.press("Send afterwards")
    person.sees("Waits until the run has ended: secnd", ".waiting")
    person.press("Take back")
    expect(page.locator("#say")).to_have_value("secnd")
    enter(person, "second")
    enter(person, "third")
    expect(page.locator("#messages article.human")).to_have_count(1)
    page.reload()
    person.sees("second\nthird", ".waiting")
    check_sizes(person)
    other = person.open_tab()
    other.goto(page.url)
    expect(other.get_by_role("button", name="Stop")).to_be_enabled()
    first.go_on.set()
    person.sees("Both.")
    expect(other.locator("article.ai").last).to_contain_text("Both.")
    expect(page.locator(".waiting")).to_be_empty()
    expect(page.locator("#messages article.human")).to_have_count(2)


def test_a_waiting_message_never_answers_or_closes_a_question(
    person: Person, script: Script
) -> None:
    """It is sent when the run after the answer has ended."""
    write = Call("write_file", {"path": "asked.txt", "content": "a"})
    asks = Held(Answer(calls=(write,)))
    script["asks"], script["more"] = [asks, say("So be it.")], [say("More.")]
    person.say("asks", mode="scripted")
    expect(person.button("Stop")).to_be_enabled()
    enter(person, "more")
    asks.go_on.set()
    expect(person.card).to_contain_text("asked.txt")
    person.sees("Waits until you have decided: more", ".waiting")
    check_sizes(person)
    expect(person.page.get_by_role("button", name="Stop and send now")).to_have_count(0)
    person.page.reload()
    expect(person.card).to_contain_text("asked.txt")
    person.press("Reject")
    person.sees("So be it.")
    expect(person.answer).to_contain_text("More.")


def test_stop_and_send_now(person: Person, script: Script) -> None:
    script["for long"] = [Answer("It has begun " + "and goes on " * 999, pause=0.5)]
    person.say("for long", mode="scripted")
    expect(person.answer).to_contain_text("begun and")
    script["for longat once"] = [say("So soon.")]
    enter(person, "at once")
    person.press("Stop and send now")
    expect(person.answer).to_contain_text("So soon.")
    expect(person.page.locator("#trouble")).to_be_empty()
    expect(person.page.locator(".status")).to_have_text("")


def test_what_one_has_stopped_is_no_alarm(person: Person, script: Script) -> None:
    """By Esc, which closes a panel first."""
    held = Held(say("Never."))
    script["stop me"] = [held, say("Went on.")]
    person.page.set_viewport_size({"width": 390, "height": 740})
    person.say("stop me", mode="scripted")
    expect(person.button("Stop")).to_be_enabled()
    enter(person, "hello")
    expect(person.button("Stop")).to_have_attribute("aria-keyshortcuts", "Escape")
    person.press("Threads")
    person.page.keyboard.press("Escape")
    expect(person.page.locator("#threads")).to_be_hidden()
    expect(person.button("Stop")).to_be_enabled()
    person.page.keyboard.press("Escape")
    person.sees("You stopped this run.", ".status")
    person.sees("Not sent yet: hello", ".waiting")
    check_sizes(person)
    expect(person.page.locator("#trouble")).to_be_empty()
    person.page.reload()
    person.sees("You stopped this run.", ".status")
    expect(person.page.locator("#trouble")).to_be_empty()
    held.go_on.set()
    person.press("Take back")
    expect(person.page.locator("#say")).to_have_value("hello")
    person.press("Go on")
    expect(person.page.locator(".status")).to_have_text("")
    expect(person.answer).to_be_visible()


def test_what_did_not_reach_the_server_is_in_the_box_alone(person: Person) -> None:
    person.say("hello")
    person.sees("offline model")
    expect(person.page.locator(".status")).to_have_text("")
    person.page.route("**/threads/**", lambda route: route.abort())
    enter(person, "not sent")
    expect(person.page.locator("#say")).to_have_value("not sent")
    expect(person.page.locator("#messages")).not_to_contain_text("not sent")
    person.sees("Reconnecting", "#trouble")
    person.page.unroute_all()
    expect(person.page.locator("#trouble")).to_be_empty()
    expect(person.page.locator("#messages")).not_to_contain_text("not sent")
    person.problems.clear()  # of the network that was gone


NEW = """() => {
  window.early = [];
  new MutationObserver(() => {
    const safe = document.querySelector(".card .safe");
    if (!safe) return;
    for (const key of ["y", "n", "e", "Enter"]) {
      const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
      early.push(safe.dispatchEvent(event));
    }
  }).observe(document.getElementById("question"), { childList: true });
}"""
"""Presses each key as soon as a card is there; keeps whether it would do anything."""


def test_a_card_is_decided_by_a_key(person: Person, server: Server) -> None:
    """Where it has the focus, and never in its first half second, nor by a key held down."""
    page = person.page
    page.evaluate(NEW)
    person.say("write keyed.txt: a\nwrite refused.txt: b\nwrite changed.txt: c", mode="code")
    for key, name in (("y", "keyed"), ("n", "refused"), ("e", "changed")):
        expect(person.card).to_contain_text(f"{name}.txt")
        expect(page.locator(":focus")).to_have_text("Reject")
        page.wait_for_timeout(600)
        page.evaluate(HELD)
        page.fill("#say", "")
        page.locator(".card .safe").focus()
        page.keyboard.press("Shift+A")
        expect(page.locator("#say")).to_have_value("A")  # no key of the card: it is a message's
        page.fill("#say", "")
        page.locator(".card .safe").focus()
        page.keyboard.press(f"Control+{key}")
        expect(person.card).to_contain_text(f"{name}.txt")
        page.keyboard.press(key)
    expect(page.get_by_label("content")).to_have_value("c")
    page.get_by_label("content").press("y")
    page.locator(".card .safe").focus()
    page.keyboard.press("y")  # its button is hidden while the edit is open
    assert page.evaluate("window.early") == [False] * 12
    person.press("Run it like this")
    person.sees("Created changed.txt")
    assert (server.workspace / "keyed.txt").exists()
    assert not (server.workspace / "refused.txt").exists()


HELD = """() => document.querySelector(".card .safe").dispatchEvent(
  new KeyboardEvent("keydown", { key: "y", bubbles: true, cancelable: true, repeat: true }))"""


def test_words_typed_at_a_card_answer_nothing(person: Person, server: Server) -> None:
    page = person.page
    person.say("write typed.txt: a", mode="code")
    expect(page.locator(":focus")).to_have_text("Reject")
    page.wait_for_timeout(600)
    for words in ("yes please", "no", "everything"):
        page.locator(".card .safe").focus()
        page.keyboard.type(words, delay=80)
        expect(page.locator("#say")).to_have_value(words)
        page.wait_for_timeout(700)  # longer than a key has to be alone
        expect(person.card).to_contain_text("typed.txt")
        assert not (server.workspace / "typed.txt").exists()
        page.fill("#say", "")


def test_what_always_allows_is_said_and_can_be_taken_back(person: Person, server: Server) -> None:
    """On a line at once, and beside the thread for as long as it holds."""
    page, panel = person.page, person.page.locator("#details .allowed")
    words = "write_file, exactly “always.txt”, in Code mode"
    for text in ("a", "b"):
        person.say(f"write always.txt: {text}", mode="code")
        page.get_by_text("Always in this thread").click()
        person.press("Always exactly this")
        person.sees(f"Runs unasked from now on: {words}", "#composer")
        person.sees("always.txt")
        expect(panel).to_contain_text(words)
        page.reload()
        expect(panel).to_contain_text(words)
        if text == "a":
            check_sizes(person)
        panel.get_by_role("button", name="Take back").click()
        expect(panel).to_be_hidden()
    person.say("write always.txt: c")
    expect(person.card).to_contain_text("always.txt")
    page.get_by_text("Always in this thread").click()
    person.press("Always what matches")
    person.sees("what matches “always.txt”", "#composer")
    page.locator("#composer").get_by_role("button", name="Take back").click()
    expect(page.locator("#composer .allowed")).to_have_count(0)
    person.say("write always.txt: d")
    expect(person.card).to_contain_text("always.txt")


def test_a_switchs_card_says_what_auto_accept_turns_on(person: Person, server: Server) -> None:
    """And offers it where it is off alone."""
    yes = person.page.get_by_role("button", name="Yes, and auto-accept")
    person.say("switch to code\nwrite unasked.txt: a", mode="ask")
    expect(person.card).to_contain_text("Auto-accept: Edits of files run unasked; commands ask")
    person.settle()
    yes.click()
    person.sees("Created unasked.txt")
    expect(person.page.locator("#approvals")).to_have_value("auto")
    person.say("switch to debug")
    expect(person.card).to_contain_text("Switch from Code to Debug mode")
    expect(yes).to_have_count(0)
    expect(person.card).not_to_contain_text("run unasked")


WATCHED = """
window.told = [];
const Real = window.Notification;
window.Notification = class extends Real {
  constructor(title, options) {
    super(title, options);
    told.push([title, options.body]);
  }
};
Object.defineProperty(document, "hidden", { get: () => window.isAway === true });
"""


def test_a_page_in_the_background_notifies_once_it_is_told_to(
    person: Person, script: Script
) -> None:
    """And says nothing of what is asked."""
    page = person.page
    person.context.grant_permissions(["notifications"], origin=person.url)
    page.add_init_script(WATCHED)
    page.reload()
    for number in range(4):
        step = call("write_file", path="secret.txt", content="x")
        script[f"write {number}"] = [step, say("Done.")]
    toggle = person.button("Notify")
    told = []
    for number, (is_away, is_on) in enumerate([(True, False), (True, True), (False, True)]):
        if is_on != (toggle.get_attribute("aria-pressed") == "true"):
            toggle.click()
            expect(toggle).to_have_attribute("aria-pressed", str(is_on).lower())
        page.evaluate(f"window.isAway = {str(is_away).lower()}")
        person.say(f"write {number}", mode="scripted")
        expect(person.button("Approve")).to_be_visible()
        told.append(page.evaluate("told.length"))
        person.press("Reject")
        person.sees("Done.")
    assert told == [0, 1, 1]
    assert page.evaluate("told") == [["Modeshift waits for you", "Scripted"]]
    toggle.click()
    expect(toggle).to_have_attribute("aria-pressed", "false")
    check_sizes(person)
