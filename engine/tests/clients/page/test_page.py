"""The page in a real browser, on the real server: what a person sees and does."""

import json
import os
import re
import time
from functools import partial
from typing import Any, Literal

import httpx
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page, Route, expect

from tests.clients.page.browser import Person, Script
from tests.harness.conversation import SECONDS
from tests.harness.root import ENGINE
from tests.harness.server import Server
from tests.provider.script import Answer, Call, Failure, say

pytestmark = pytest.mark.slow


def test_the_first_conversation(person: Person, server: Server) -> None:
    """As in README: the switch, the file, each with its card; the safe choice has the focus."""
    person.go("/")
    assert person.mode == "ask"
    expect(person.page.locator(":focus")).to_have_id("say")
    person.say("write notes.txt: hello")
    expect(person.card).to_contain_text("Switch from Ask to Code mode")
    expect(person.card).to_contain_text("write_file")
    expect(person.page.locator(":focus")).to_have_text("No, stay in Ask")
    expect(person.page.locator(".call")).to_have_count(0)  # the card is enough
    expect(person.page.locator("#details .phase.lit")).to_have_text("reviewing")
    person.press("Switch to Code")
    expect(person.card.locator(".diff .plus")).to_have_text(["+hello"])
    expect(person.page.locator(":focus")).to_have_text("Reject")
    person.press("Whole file")
    expect(person.card.locator(".diff pre")).to_have_text("hello")
    assert (person.mode, (server.workspace / "notes.txt").exists()) == ("code", False)
    person.press("Approve")
    person.sees("Created notes.txt (5 characters).")
    assert (server.workspace / "notes.txt").read_text() == "hello"
    expect(person.page.locator(":focus")).to_have_id("say")
    expect(person.page.locator("#details .history")).to_contain_text("Ask → Code you approved")
    person.page.locator("#details .files summary").click()
    expect(person.page.locator("#details .diff .plus")).to_have_text(["+hello"])


def test_an_edit_is_not_dropped(person: Person, server: Server) -> None:
    """While it is open, its own button is the only yes; a reload and Edit again keep its text."""
    person.say("write draft.txt: the model's", mode="code")
    person.press("Edit")
    expect(person.page.locator(".form textarea").first).to_be_focused()
    person.page.get_by_label("content").fill("mine")
    for name in ("Approve", "Always exactly this", "Always what matches"):
        expect(person.button(name)).to_have_count(0)
    expect(person.page.get_by_text("Always in this thread")).to_be_hidden()
    person.press("Edit")
    expect(person.page.get_by_label("content")).to_have_value("mine")
    person.page.reload()
    expect(person.page.get_by_label("content")).to_have_value("mine")
    expect(person.button("Approve")).to_have_count(0)
    person.press("Raw JSON")
    raw = person.page.get_by_label("Arguments as JSON")
    raw.fill('{"path": "draft.txt", "content": "mi')
    person.press("Run it like this")
    person.sees("This is not JSON")
    raw.fill('{"path": "draft.txt", "content": "mine, too"}')
    person.press("Form")
    expect(person.page.get_by_label("content")).to_have_value("mine, too")
    person.press("Run it like this")
    person.sees("changed by you")
    person.sees("Created draft.txt (9 characters).")
    assert (server.workspace / "draft.txt").read_text() == "mine, too"
    shown = person.page.locator(".call", has_text="draft.txt")
    shown.locator("summary").click()
    expect(shown.locator(".diff .plus")).to_have_text(["+mine, too"])
    expect(shown).to_contain_text("the agent had written")
    expect(shown).not_to_contain_text("do not repeat your own call")
    check_dropped_edit(person)
    assert not (server.workspace / "dropped.txt").exists()


def check_dropped_edit(person: Person) -> None:
    person.say("write dropped.txt: the model's")
    person.press("Edit")
    person.page.get_by_label("content").fill("mine")
    person.press("Drop the edit")
    person.press("Edit")
    expect(person.page.get_by_label("content")).to_have_value("the model's")
    person.press("Drop the edit")
    expect(person.page.get_by_text("Always in this thread")).to_be_visible()
    person.page.get_by_placeholder("Why not?").fill("not there")
    person.press("Reject")
    person.sees("You said no: not there")


def test_an_edit_of_one_of_several_calls(person: Person, server: Server) -> None:
    """An edit that is open takes the card's decision back, and is no part of "Approve all"."""
    person.say("write left.txt: model & write right.txt: model", mode="code")
    left, right = person.card.nth(0), person.card.nth(1)
    left.get_by_role("button", name="Approve", exact=True).click()
    right.get_by_role("button", name="Approve", exact=True).click()
    send = person.page.get_by_role("button", name="Send these decisions")
    expect(send).to_be_enabled()
    left.get_by_role("button", name="Edit", exact=True).click()
    expect(left.locator(".chosen")).to_be_empty()
    expect(send).to_be_disabled()
    expect(person.page.get_by_role("button", name="Approve all 2")).to_be_hidden()
    left.get_by_label("content").fill("mine")
    left.get_by_role("button", name="Run it like this").click()
    expect(left.locator(".chosen")).to_have_text("Approve, edited")
    left.get_by_role("button", name="Edit", exact=True).click()
    expect(left.get_by_label("content")).to_have_value("mine")
    expect(send).to_be_disabled()
    left.get_by_role("button", name="Run it like this").click()
    person.press("Send these decisions")
    person.sees("Created right.txt")
    files = [(server.workspace / name).read_text() for name in ("left.txt", "right.txt")]
    assert files == ["mine", "model"]


def test_a_question_with_suggestions_and_several_calls(person: Person, script: Script) -> None:
    follow_up = [{"text": "Red"}, {"text": "Build it", "mode": "code"}]
    ask = Call("ask_followup_question", {"question": "Which colour?", "follow_up": follow_up})
    script["colours"] = [Answer(calls=(ask,)), Answer(calls=(ask,)), say("So be it.")]
    person.say("colours", mode="scripted")
    expect(person.card).to_contain_text("Which colour?")
    expect(person.page.locator(":focus")).to_have_attribute("aria-label", "Your answer")
    person.page.eval_on_selector(".card", "card => card.dataset.old = ''")
    person.press("Red")
    expect(person.page.locator(".card[data-old]")).to_have_count(0)  # or that one is written in
    person.page.get_by_label("Your answer").fill("a dark green")
    person.page.keyboard.press("Enter")
    person.sees("So be it.")
    person.say("write three.txt: 3 & write four.txt: 4", mode="code")
    person.card.nth(0).get_by_role("button", name="Approve", exact=True).click()
    expect(person.page.get_by_role("button", name="Send these decisions")).to_be_disabled()
    person.press("Reject all 2")
    expect(person.page.locator(".call:is(.rejected, .failed)")).to_have_count(2)
    person.say("write three.txt: 3 & write four.txt: 4")
    person.press("Approve all 2")
    person.sees("Created four.txt")


def test_what_a_thread_has_stands_beside_it(person: Person, script: Script) -> None:
    """Model and tokens, notices, the todo list, the limit; an error says what to do."""
    person.context.grant_permissions(["clipboard-read", "clipboard-write"])
    todos = [{"content": "first", "status": "completed"}, {"content": "then", "status": "pending"}]
    plan, code = Call("update_todo_list", {"todos": todos}), "**So**:\n```python\nimport os\n```"
    write = Call("write_file", {"path": "limited.txt", "content": "x"})
    script["plan"] = [Answer(calls=(plan,)), say(code)]
    script["write"] = [Answer(calls=(write,)), say("I may not.")]
    script["fail"] = [Failure("key")]
    person.say("plan", mode="scripted")
    expect(person.answer.locator(".kn")).to_have_text("import")
    check_copies(person, code)
    person.sees(re.compile(r"anthropic:claude-sonnet-5-5 · [\d,]+ tokens"), "#header")
    assert 0 < float(person.page.locator("meter").get_attribute("value") or 0) < 1
    person.sees("done: first", "#todo")
    check_todo(person)
    odd = {"values": {"todos": [{"content": "odd", "status": "constructor"}]}}
    httpx.post(f"{person.path}/state", json=odd)
    person.sees("to do: odd", "#todo")
    person.sees("'everything'", "#details")
    person.page.get_by_label("Limit").select_option("ask")
    person.sees("at most Ask", "#header")
    person.say("write")
    expect(person.page.locator(".call.failed")).to_contain_text("Ask")
    person.say("fail")
    person.sees("ANTHROPIC_API_KEY", "#trouble")
    expect(person.page.get_by_role("button", name="Go on")).to_be_visible()  # it moves the other
    person.page.get_by_role("button", name="Close").hover()
    person.page.mouse.down()
    httpx.patch(f"{person.path}/mode", json={"approvals": "auto"})  # the page is drawn anew
    expect(person.page.locator("#approvals")).to_have_value("auto")
    person.page.mouse.up()
    expect(person.page.locator("#trouble")).to_be_empty()


def check_copies(person: Person, answer: str) -> None:
    person.press("Copy")
    expect(person.page.get_by_role("button", name="Copied")).to_be_visible()
    person.press("Copy this answer")
    expect(person.button("Copy this answer")).to_have_text("Copied")
    assert person.page.evaluate("navigator.clipboard.readText()") == answer


def check_todo(person: Person) -> None:
    strip = person.page.locator("#todo")
    expect(strip.locator("summary")).to_have_text("Todo, 1 of 2 done: then")
    expect(strip.get_by_text("first")).to_be_hidden()
    strip.locator("summary").click()
    expect(strip.get_by_text("first")).to_be_visible()
    check_sizes(person)


def test_two_tabs_at_once_answer_one_question(person: Person, server: Server) -> None:
    """The second click is for the same question, and approves nothing of what comes next."""
    person.say("write first.txt: 1\nwrite second.txt: 2", mode="code")
    expect(person.card).to_contain_text("first.txt")
    other = person.open_tab()
    other.goto(person.page.url)
    expect(other.locator(".card")).to_contain_text("first.txt")
    for page in (person.page, other):
        page.evaluate("window.old = document.querySelector('.card .main')")
    # What the styles keep from a mouse, a script can click: the button of the first card alone.
    for page in (person.page, other, person.page):
        page.evaluate("old.click()")
    for page in (person.page, other):
        expect(page.locator(".card")).to_contain_text("second.txt")
    other.evaluate("old.click()")
    expect(other.locator(".toast").last).to_have_text("This has been answered already.")
    assert not (server.workspace / "second.txt").exists()
    other.locator(".card .safe").click()
    for page in (other, person.page):
        expect(page.locator(".card")).to_have_count(0)
    person.sees("You said no.")


def test_cancel_rename_delete(person: Person, script: Script) -> None:
    script["for ever"] = [Answer("It has begun " + "and goes on " * 999, pause=0.5)]
    person.say("for ever", mode="scripted")
    expect(person.answer).to_contain_text("begun and")
    person.press("Stop")
    expect(person.page.get_by_role("button", name="Send")).to_be_visible()
    person.page.get_by_role("button", name="Rename for ever").click()
    person.page.get_by_label("Title").fill("Mine <b>")
    person.press("Rename")
    person.sees("Mine <b>", "#header")
    person.page.get_by_role("button", name="Delete Mine <b>").click()
    person.press("Delete")
    expect(person.page.locator("#messages article")).to_have_count(0)
    expect(person.page.locator("#threads")).not_to_contain_text("Mine <b>")


FASTAPI = '{"detail": [{"type": "int", "loc": ["query", "wait"], "msg": "no number", "input": ""}]}'
REFUSALS = {
    '{"error": "conflict", "message": "Aegra says no", "details": null}': "Aegra says no",
    FASTAPI: "query.wait: no number",
    "Internal Server Error": "Internal Server Error",
    "": "the server answered 409",
}


def test_what_is_refused_is_said_whatever_the_server(person: Person) -> None:
    """And what was to be changed stays as it is."""
    person.say("hello refusals")
    person.sees("offline model")
    for body, said in REFUSALS.items():
        answer = partial(Route.fulfill, status=409, body=body)
        person.page.route(re.compile(r"/threads/[^/]+(/runs/stream)?$"), answer)
        person.page.get_by_role("button", name="Delete hello refusals").click()
        person.press("Delete")
        expect(person.page.locator(".toast").last).to_have_text(said)
        person.say("again")
        person.sees(said, "#trouble")
        person.page.unroute_all()
        expect(person.page.locator("#say")).to_have_value("again")
        person.sees("offline model")


def test_by_keyboard_alone(person: Person) -> None:
    page = person.page
    page.keyboard.type("write keys.txt: k")
    page.keyboard.press("Enter")
    expect(page.locator(":focus")).to_have_text("No, stay in Ask")
    for name in ("Switch to Code", "Approve"):
        for _ in range(4):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == name:
                break
        page.wait_for_timeout(600)  # what is new takes no key
        page.keyboard.press("Enter")
        if name != "Approve":
            expect(page.locator(":focus")).to_have_text("Reject")
    person.sees("Created keys.txt")
    expect(page.locator("#say")).to_be_focused()


def test_everybody_can_use_it(browser: Browser, server: Server) -> None:
    """By axe-core, light and dark; also in a narrow window, in which nothing is cut off."""
    person = Person(browser, server.url, viewport={"width": 360, "height": 740}).go()
    page = person.page
    person.say("write wide.txt: " + "x" * 500)
    expect(person.card).to_be_visible()
    check_access(person)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    buttons = person.card.locator(".row > button:visible")
    expect(buttons.last).to_have_text("Switch to Code")
    boxes = [box for one in buttons.all() if (box := one.bounding_box())]
    assert min(box["width"] for box in boxes) > 270, "full width, below each other"
    assert [box["y"] for box in boxes] == sorted({box["y"] for box in boxes})
    person.press("Switch to Code")
    expect(person.card.locator(".diff")).to_be_visible()
    page.set_viewport_size({"width": 1400, "height": 900})
    check_access(person)
    person.press("Approve")
    person.sees("wide.txt (500 characters)")
    check_access(person)
    check_panels(page)
    # What streams is not read out; that it has ended is.
    assert page.locator("[aria-live], [role=log]").count() == 0
    person.sees("The agent has answered.", "[role=status]#said")
    person.check()
    person.close()


def check_panels(page: Page) -> None:
    """At 200 %, which halves the window; and narrow, where panels lie over the rest."""
    page.set_viewport_size({"width": 640, "height": 400})
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
    expect(page.locator("article.ai").last).to_be_in_viewport()
    expect(page.locator("#mode")).to_be_in_viewport()
    page.set_viewport_size({"width": 360, "height": 740})
    for name in ("Threads", "Details"):
        page.get_by_role("button", name=name).click()
        expect(page.locator(f"#{name.lower()}")).to_be_in_viewport()
        page.keyboard.press("Escape")
        expect(page.locator(f"#{name.lower()}")).to_be_hidden()


VIOLATIONS = "options => axe.run(options).then(({ violations }) => violations)"
OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""Of axe's rules those that look at colours."""


def check_access(person: Person) -> None:
    """With the colours of both schemes; all else is the same in both."""
    page, options = person.page, {"resultTypes": ["violations"]}
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    rules: dict[Literal["light", "dark"], dict[str, Any]]
    rules = {"light": {}, "dark": {"runOnly": OF_COLOURS}}
    for scheme in rules:
        page.emulate_media(color_scheme=scheme)
        violations = page.evaluate(VIOLATIONS, options | rules[scheme])
        grave = [each for each in violations if each["impact"] in ("serious", "critical")]
        told = [(each["id"], each["nodes"][:2]) for each in grave]
        assert not grave, json.dumps(told)[:3000]


def check_sizes(person: Person) -> None:
    """A state that is new, on a phone, a laptop and a large screen: nothing is cut off, either.

    The styles know no screen that is larger than a laptop's; on a phone less is shown at once.
    """
    size = person.page.viewport_size
    for width, height in ((390, 780), (1280, 800), (1920, 1080)):
        person.page.set_viewport_size({"width": width, "height": height})
        assert person.page.evaluate("document.documentElement.scrollWidth") <= width
        if width == 1280:
            check_access(person)
    person.page.set_viewport_size(size or {"width": 1280, "height": 720})


def test_what_a_call_prints_is_shown_while_it_runs_and_if_it_was_stopped(
    person: Person, server: Server
) -> None:
    page, pipe = person.page, server.workspace / "pipe"
    os.mkfifo(pipe)
    person.say("run echo begun; cat pipe", mode="code")
    expect(person.card.locator(".warning")).to_contain_text("not sandboxed. It has all")
    expect(person.card.locator(".command")).to_have_text("echo begun; cat pipe")
    person.press("Approve")
    expect(page.locator(".call.running pre.live")).to_contain_text("begun")
    pipe.write_text("\x1b[31mand done")
    person.sees(re.compile(r"begun\s+and done"))
    person.say("run echo begun; cat pipe")
    person.press("Approve")
    expect(page.locator(".call.running pre.live")).to_contain_text("begun")
    person.press("Stop")
    expect(page.locator(".call.stopped summary")).to_contain_text("stopped: Run echo begun")
    expect(page.locator(".call.running")).to_have_count(0)


def test_a_picture_that_a_tool_returns_is_shown_and_no_other_one(person: Person) -> None:
    """Only what is in the message, and only the kinds that hold no program."""
    person.say('call mcp__remote__set {"zone": "a picture"}', mode="code")
    person.press("Approve")
    shown = person.page.locator(".call", has_text="remote: set")
    expect(shown.locator("summary")).to_contain_text("1 image")
    shown.locator("summary").click()
    picture = shown.get_by_alt_text("An image")
    expect(picture).to_be_visible()
    assert picture.evaluate("one => one.decode().then(() => one.naturalWidth)") == 1
    person.answered()
    person.press("New thread")
    person.say("hello")
    person.answered()
    image = {"type": "image_url", "image_url": {"url": f"{person.url}/app/icon.svg"}}
    given = {"messages": [{"type": "human", "content": [image], "id": "picture"}]}
    httpx.post(f"{person.path}/state", json={"values": given}).raise_for_status()
    person.sees("An image that is not shown here")
    expect(person.page.locator("main img")).to_have_count(0)


def test_a_long_thread_stays_responsive(browser: Browser, server: Server) -> None:
    """2,000 messages, and one result of 10 MB."""
    calls = [{"name": "read_file", "args": {"path": "a"}, "id": "call_1", "type": "tool_call"}]
    messages: list[dict[str, object]] = []
    for number in range(1000):
        messages.append({"type": "human", "content": f"question {number}"})
        messages.append({"type": "ai", "content": f"**answer** {number}\n\n- a\n- b"})
    messages += [
        {"type": "ai", "content": "", "tool_calls": calls},
        {"type": "tool", "content": "0123456789\n" * 1_000_000, "tool_call_id": "call_1"},
    ]
    said = {"messages": [{"role": "user", "content": "hello"}]}
    run = {"assistant_id": "agent", "input": said}
    with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        thread = client.post("/threads", json={}).json()["thread_id"]
        path = f"/threads/{thread}/runs/wait"
        client.post(path, json=run).raise_for_status()
        update = {"values": {"messages": messages}}
        client.post(f"/threads/{thread}/state", json=update).raise_for_status()
    person = Person(browser, server.url)
    begin = time.monotonic()
    person.page.goto(f"{server.url}/app#{thread}")
    person.page.wait_for_selector(".call summary")
    assert time.monotonic() - begin < SECONDS
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
    assert took < 5000
    expect(person.page.locator("article.ai .markdown strong").first).to_be_visible()
    # What comes in at the end moves nobody who reads at the beginning.
    httpx.post(f"{server.url}{path}", json=run, timeout=SECONDS)
    expect(person.page.get_by_role("button", name="Latest")).to_be_visible()
    expect(person.answer).to_contain_text("offline model")
    assert person.page.evaluate("document.querySelector('#main').scrollTop") == 0
    person.check()
    person.close()


COLUMNS = 100
"""As of Python's lines; ``prettier --print-width 100`` makes what can be made by a program."""


def test_files_of_the_page_are_within_their_budget(server: Server) -> None:
    """Also as they are sent: compressed, each."""
    folder = ENGINE / "modeshift/page"
    texts = [file.read_text() for file in folder.iterdir() if file.suffix != ".html"]
    assert sum(len(text.splitlines()) for text in texts) <= 2950
    names = [file.name for file in folder.iterdir() if file.suffix in (".js", ".css")]
    sent = [httpx.get(f"{server.url}/app{name}") for name in ("", *(f"/{name}" for name in names))]
    assert {answer.headers.get("content-encoding") for answer in sent} == {"gzip"}
    assert sum(answer.num_bytes_downloaded for answer in sent) < 40_000
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\("
    for file in folder.glob("*.js"):
        text = file.read_text()
        assert not re.search(forbidden, text)
        assert max(map(len, text.splitlines())) <= COLUMNS, f"run prettier on {file.name}"


def test_a_plan_is_shown_and_its_lines_are_commented(person: Person, script: Script) -> None:
    """With its paths; what is written below a line goes with the no."""
    text = "# Plan\n\nSpeak.\n\n## Files\n\n- `a.py`\n"
    write = Call("write_file", {"path": "PLAN.md", "content": text})
    switch = Call("switch_mode", {"mode_slug": "code", "reason": "It is planned."})
    script["plan it"] = [Answer(calls=(write,)), Answer(calls=(switch,)), say("I see.")]
    script["again"] = [Answer(calls=(switch,))]
    person.say("plan it", mode="planner")
    person.press("Approve")
    expect(person.card).to_contain_text("names what may be changed: a.py.")
    person.card.get_by_text("Comment on its lines").click()
    for line, words in (("- `a.py`", "and b.py"), ("Speak.", "Sing.")):
        person.card.get_by_role("button", name=line, exact=True).click()
        person.page.keyboard.type(words)
    person.page.get_by_label("Why not").fill("Not yet.")
    person.press("No, stay in Planner")
    person.sees("Not yet. line 3: Speak. — Sing. line 7: - `a.py` — and b.py")
    person.sees("I see.")
    person.say("again")
    person.press("Switch, with the plan alone")
    expect(person.page.locator("#mode")).to_have_value("code")
    person.sees("no language model")
    person.say("switch to ask")
    expect(person.card).to_contain_text("What the approved plan limits ends with it.")


def test_the_drawing_and_the_card_show_the_condition_and_if_it_is_met(person: Person) -> None:
    """And a person's way around it, and who alone chooses."""
    page = person.page
    person.say("switch to planned", mode="architect")
    person.sees("not open from Architect mode yet")
    ways = page.get_by_label("Open from here")
    expect(ways).to_contain_text("Planned: shut until plan_written (plan_written ✗)")
    expect(ways).to_contain_text("Sealed: only you can choose it")
    edge = page.locator(".machine path.shut")
    assert edge.text_content() == "architect to planned: shut until plan_written (plan_written ✗)"
    expect(page.locator(".machine g.alone")).to_have_text("Sealed: only you can choose itSealed")
    person.say("write plan.md: x")
    person.press("Approve")
    person.sees("Created plan.md")
    expect(ways).to_contain_text("Planned: open, as plan_written (plan_written ✓)")
    expect(edge).to_have_count(0)
    person.say("switch to planned: Met: all")
    expect(person.card).to_contain_text("Met: plan_written (plan_written: yes).")
    person.press("No, stay in Architect")
    person.say("switch to planned", mode="code")
    person.sees("not open from Code mode")
    person.say("switch to debug")
    person.card.get_by_label("Another mode").select_option("planned")
    person.card.get_by_text("Take this mode instead").click()
    expect(page.locator("#mode")).to_have_value("planned")
