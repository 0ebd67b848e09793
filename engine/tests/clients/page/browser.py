"""The system's Chromium on the page, and what a person does with it."""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from langchain_core.messages import BaseMessage
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    expect,
    sync_playwright,
)

from tests.harness.conversation import SECONDS
from tests.provider.script import Driver, Step

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PROBLEM = "" if CHROMIUM else "no Chromium here; on Debian and Ubuntu: apt install chromium"
FLAGS = ["--no-sandbox", "--disable-gpu"]  # a graphics process in software costs a fifth more
expect.set_options(timeout=1000 * SECONDS)
ARRIVED = """() => new Promise((done) => {
  const question = document.querySelector("#question");
  const look = () => {
    const moves = question?.getAnimations({ subtree: true }) ?? [];
    if (moves.some((each) => each.playState === "running")) setTimeout(look, 20);
    else done(null);
  };
  look();
})"""
Script = dict[str, list[Step | Callable[[], Step]]]
"""What the model answers, one step after another, by what was said to it."""


def follow(script: Script) -> Driver:
    """A driver that answers by the script."""

    def drive(messages: Sequence[BaseMessage]) -> Step:
        last = max(n for n, message in enumerate(messages) if message.type == "human")
        step = script[messages[last].text][sum(message.type == "ai" for message in messages[last:])]
        return step() if callable(step) else step

    return drive


@contextmanager
def opened() -> Iterator[Browser]:
    """A browser, for the tests of a file."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Person:
    """Somebody at a browser of their own: nothing is shared but the server."""

    def __init__(self, browser: Browser, url: str, **options: object) -> None:
        self.url = url
        self.context: BrowserContext = browser.new_context(**options)  # type: ignore[arg-type]  # as given
        self.context.set_default_timeout(1000 * SECONDS)
        self.problems: list[str] = []
        self.requests: set[str] = set()
        self.page = self.open_tab()

    def open_tab(self) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._note)
        page.on("dialog", lambda dialog: self.problems.append(f"dialog {dialog.message}"))
        page.on(
            "request", lambda request: self.requests.add(re.sub(r"(//[^/]*).*", r"\1", request.url))
        )
        return page

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.problems.append(message.text)

    def go(self, path: str = "/app") -> "Person":
        self.page.goto(self.url + path)
        self.page.wait_for_selector("html[data-ready]")
        return self

    def say(self, text: str, mode: str | None = None) -> None:
        expect(self.button("Send")).to_be_visible()
        if mode is not None:  # once no run goes on whose end sets the mode
            self.page.select_option("#mode", mode)
        self.page.fill("#say", text)
        self.page.press("#say", "Enter")

    @property
    def card(self) -> Locator:
        return self.page.locator(".card")

    @property
    def answer(self) -> Locator:
        """The agent's newest."""
        return self.page.locator("article.ai").last

    @property
    def mode(self) -> str:
        return str(self.page.eval_on_selector("#mode", "one => one.value"))

    @property
    def thread(self) -> str:
        """The id of the open one."""
        return self.page.url.partition("#")[2]

    @property
    def path(self) -> str:
        """The address of the open thread on the server."""
        return f"{self.url}/threads/{self.thread}"

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def press(self, name: str) -> None:
        self.button(name).wait_for()
        self.settle()
        self.button(name).click()

    def settle(self) -> None:
        """Wait until a click on a card counts, which Playwright looks for twice a second."""
        self.page.evaluate(ARRIVED)

    def answered(self) -> None:
        """Wait until it is read out that the agent has answered; the next time it is so anew."""
        self.sees("The agent has answered.", "#said")
        self.page.evaluate("document.getElementById('said').textContent = ''")

    def sees(self, text: str | re.Pattern[str], where: str = "#main") -> None:
        expect(self.page.locator(where)).to_contain_text(text)

    def check(self) -> None:
        """Nothing has gone wrong, and nobody else was asked for anything."""
        # A browser writes each refusal to its console; those that a person is shown are fine.
        assert [
            problem for problem in self.problems if "the server responded with" not in problem
        ] == []
        assert self.requests <= {self.url}

    def close(self) -> None:
        self.context.close()
