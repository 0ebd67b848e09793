"""Text that would run something, hide something, or come in from another page."""

import re
from functools import partial
from typing import Any

import httpx
import pytest
from playwright.sync_api import Route, expect

from tests.clients.page.browser import Person, Script
from tests.harness.conversation import SECONDS
from tests.harness.server import Server
from tests.provider.script import Answer, Call, say

pytestmark = pytest.mark.slow

EVIL = (
    "<script>window.ran=3</script><img src=x onerror=window.ran=4> <svg onload=window.ran=5> "
    "<a href='javascript:window.ran=6'>a</a> [b](javascript:window.ran=7) "
    "![c](https://evil.example/c.png) <style>*{display:none}</style> "
    "\u202egnp.exe\u202c \u200b\u2066\ufe00 \x1b]8;;https://evil.example\x07link\x1b]8;;\x07 "
    "\x1b[8mhidden"
)
AT_ONCE = """() => {
  window.taken = [];
  new MutationObserver(() => {
    const approve = document.querySelector(".card .main");
    if (approve) window.taken.push(getComputedStyle(approve).pointerEvents);
  }).observe(document.getElementById("question"), { childList: true });
}"""
"""Keeps, of each card, whether a click would count as soon as it is there."""
MOVES = """async () => {
  const main = document.getElementById("main"), say = document.getElementById("say");
  const drawn = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const moves = [];
  for (const text of ["", "no\\nrather\\nnot"]) {
    const before = main.scrollTop;
    say.value = text;
    for (let frame = 0; frame < 4; frame++) await drawn();
    moves.push(main.scrollTop - before);
  }
  return moves;
}"""
"""How far the view moves by itself, and while the message grows."""
UNSEEN = re.compile("[\ufe00\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069]")


def check_nothing_ran(person: Person) -> None:
    page = person.page
    assert page.evaluate("window.ran") is None
    assert page.locator("#center :is(img, script, style, iframe, object)").count() == 0
    links = page.eval_on_selector_all("a[href]", "all => all.map(one => one.href)")
    assert all(link.startswith(("http://", "https://", "mailto:")) for link in links), links
    assert page.locator("[onerror], [onload], [onclick]").count() == 0
    assert not UNSEEN.search(page.inner_text("body"))


def test_nothing_that_is_shown_runs_or_hides(
    person: Person, server: Server, script: Script
) -> None:
    """In a file, a title, a mode's name, an answer, a question, suggestions, a result."""
    (server.workspace / "evil.txt").write_text(EVIL)
    follow_up = [{"text": EVIL}, {"text": "x", "mode": "evil"}]
    ask = Call("ask_followup_question", {"question": EVIL, "follow_up": follow_up})
    read = Call("read_file", {"path": "evil.txt"})
    write = Call("write_file", {"path": "evil.txt", "content": f"{EVIL}\n{EVIL}"})
    wrong = Call("execute_command", {"command": ["ls"]}), Call("_file"), Call("__proto__")
    steps = [
        Answer(calls=(read, *wrong)),
        Answer(EVIL, (ask,)),
        Answer(calls=(write,)),
        say(EVIL),
    ]
    script[EVIL] = list(steps)
    check_mcp_call(person)
    person.press("New thread")
    expect(person.page.locator("#messages article")).to_have_count(0)
    person.say(EVIL, mode="scripted")
    expect(person.card).to_contain_text("onerror")
    check_nothing_ran(person)
    person.page.locator(".call summary").first.click()
    result = person.page.locator(".call .body").first
    expect(result).to_contain_text("onerror")
    expect(result).not_to_contain_text("<data-")
    check_nothing_ran(person)
    person.page.locator(".suggestions button").first.click()
    expect(person.card.locator(".diff")).to_contain_text("\\u202egnp.exe")
    expect(person.card.locator(".diff")).to_contain_text("\\u001b[8mhidden")
    check_nothing_ran(person)
    check_edit(person)
    id = person.thread
    person.go(f"/app?dropped#{id}")  # the edit does not come back
    person.press("Approve")
    expect(person.answer.locator(".markdown:not(.plain)")).to_contain_text("[picture: c")
    check_nothing_ran(person)
    httpx.patch(f"{server.url}/threads/{id}", json={"metadata": {"title": EVIL}})
    person.go(f"/app?again#{id}")
    person.sees("onerror", "#header h1")
    person.sees("onerror", "#threads")
    check_nothing_ran(person)


def check_edit(person: Person) -> None:
    person.press("Edit")
    person.press("Raw JSON")
    check_nothing_ran(person)
    person.press("Drop the edit")
    expect(person.page.get_by_role("button", name="Run it like this")).to_have_count(0)


def check_mcp_call(person: Person) -> None:
    """Of a server that describes its tool in its own way; what leaves the machine is named."""
    person.say('call mcp__remote__set {"zone": "\\u202eemoR", "more": [1]}', mode="code")
    expect(person.card).to_contain_text("calls the MCP server remote")
    expect(person.card).to_contain_text(re.compile(r"reaches 127\.0\.0\.1:\d+"))
    expect(person.card.locator("dd").first).to_have_text("\\u202eemoR")
    person.press("Edit")
    expect(person.card.locator(".field").first).to_contain_text("<img src=x onerror")
    check_nothing_ran(person)
    person.card.get_by_label("zone").fill("Rome")
    person.press("Run it like this")
    person.sees("'zone': 'Rome', 'more': [1]")


def test_all_of_a_command_is_seen_and_a_foreign_page_gets_nothing(
    person: Person, server: Server
) -> None:
    """Also the end of a long one, and what reverses or hides its text."""
    hidden = "; rm -rf ~\u202e\u2066\ufe00 # \x1b[8m"
    line = f"echo {'a' * 20_000} {hidden}"
    with httpx.Client(base_url=person.url) as client:
        thread = client.post("/modeshift/threads", json={"mode": "code"}).json()["thread_id"]
        message = {"role": "user", "content": f"run {line}"}
        run = {"assistant_id": "agent", "input": {"messages": [message]}}
        client.post(f"/threads/{thread}/runs/wait", json=run, timeout=SECONDS)
    person.go(f"/app?again#{thread}")
    shown = person.card.locator(".command")
    expect(shown).to_contain_text("; rm -rf ~\\u202e\\u2066\\ufe00 # \\u001b[8m")
    escaped = line.replace("\u202e\u2066\ufe00", "\\u202e\\u2066\\ufe00")
    assert shown.inner_text() == escaped.replace("\x1b", "\\u001b")
    style: Any = shown.evaluate("one => getComputedStyle(one)['white-space']")
    assert style == "pre-wrap"
    assert shown.evaluate("one => one.scrollHeight <= one.clientHeight"), "no scrolling inside"
    expect(person.card.locator("h2")).to_be_in_viewport()  # it is read from its beginning
    approve = person.button("Approve")
    expect(approve).not_to_be_in_viewport()
    check_foreign_page(person, server)
    person.page.mouse.move(500, 300)
    person.page.mouse.wheel(0, 1_000_000)
    expect(approve).to_be_in_viewport()
    assert person.page.evaluate(MOVES) == [0, 0], "nobody is thrown back to its beginning"


def test_a_card_comes_once_its_run_has_ended_and_takes_no_second_click(person: Person) -> None:
    """Before, a decision would be a 409, and the card go and come again under the mouse.

    The next card stands where the first one was, before anybody has read it.
    """
    told: list[str] = []

    def tell_late(route: Route) -> None:
        thread = person.thread
        runs = httpx.get(f"{person.url}/threads/{thread}/runs").json()
        if not told and runs and runs[0]["status"] == "success":
            told.append(runs[0]["run_id"])
            route.fulfill(json=runs)
        else:
            route.continue_()

    person.page.evaluate(AT_ONCE)
    person.page.route("**/runs?status=running*", tell_late)
    person.say("write late.txt: a\nwrite later.txt: b", mode="code")
    expect(person.card).to_contain_text("late.txt")
    person.press("Approve")
    expect(person.card).to_contain_text("later.txt")
    assert (len(told), person.page.evaluate("window.taken")) == (1, ["none", "none"])
    person.press("Approve")
    person.sees("Created later.txt")


def check_foreign_page(person: Person, server: Server) -> None:
    """It can neither frame the page, nor read from it, nor write into a thread."""
    body = f"""<iframe id=frame src="{server.url}/app"></iframe><script>
      window.got = [];
      const post = {{method: "POST", body: "{{}}", headers: {{"content-type": "text/plain"}}}};
      for (const [path, given] of [["/threads/search", post], ["/modes", {{}}], ["/threads", post]])
        fetch("{server.url}" + path, given).then((one) => one.text())
          .then((text) => got.push(text), () => got.push(null));
    </script>"""

    count = httpx.post(f"{server.url}/threads/count", json={}).text
    page = person.context.new_page()
    answer = partial(Route.fulfill, body=body, content_type="text/html")
    page.route("http://foreign.example/", answer)
    page.goto("http://foreign.example/")
    page.wait_for_function("window.got.length === 3")
    assert page.evaluate("window.got") == [None, None, None]
    assert page.frame_locator("#frame").locator("#say").count() == 0
    assert httpx.post(f"{server.url}/threads/count", json={}).text == count
