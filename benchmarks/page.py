"""``make bench``: the page's bytes, how soon it can be used, how soon a token is on the screen."""

import gzip
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from graph.settings import ROOT
from tests.doors.page.browser import PROBLEM, Person, opened
from tests.harness.server import Server, running
from tests.provider.script import Answer
from tests.provider.server import KEY, serving

ROUNDS = 5
# Ends in the middle, with no word of its end: then the last event had text.
BROKEN_OFF = Answer("one two three four five six seven eight", ending="silent", events=6, pause=0.3)
WATCH = """() => {
  window.shown = [];
  let size = 0;
  new MutationObserver(() => {
    const text = document.querySelector("article.ai .markdown")?.textContent ?? "";
    if (text.length > size) shown.push(performance.timeOrigin + performance.now());
    size = text.length;
  }).observe(document.getElementById("messages"), {childList: true, subtree: true});
}"""


def main() -> None:
    """Print the figures."""
    files = [file.read_bytes() for file in sorted((ROOT / "doors/page").iterdir())]
    whole, packed = sum(map(len, files)), sum(len(gzip.compress(file)) for file in files)
    print(f"\nThe page: {len(files)} files, {whole:,} bytes ({packed:,} packed)")
    if PROBLEM:
        print(f"  not timed: {PROBLEM}")
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(lambda _: BROKEN_OFF) as provider,
        running(
            Path(folder),
            MODEL="openai:gpt-6.2",
            OPENAI_API_KEY=KEY,
            OPENAI_BASE_URL=f"{provider.url}/v1",
        ) as server,
    ):
        time_page(server, provider)


def time_page(server: Server, provider: Any) -> None:
    """Print how long it takes, in a browser of its own each time."""
    with opened() as browser:
        cold, warm, token = list[float](), list[float](), list[float]()
        for _ in range(ROUNDS):
            person = Person(browser, server.url)
            for times in (cold, warm):
                person.go()
                times.append(person.page.evaluate("performance.now()"))
            person.page.evaluate(WATCH)
            person.say("go on")
            person.page.wait_for_selector("#trouble p")
            sent = (provider.last_event + time.time() - time.monotonic()) * 1000
            token.append(person.page.evaluate("shown.at(-1)") - sent)
            person.close()
    for what, times in (
        ("ready to type, first visit", cold),
        ("ready to type, again", warm),
        ("from the model's token to the screen", token),
    ):
        middle = statistics.median(times)
        print(f"  {what:<40} {middle:6.0f} ms (of {min(times):.0f}-{max(times):.0f})")


if __name__ == "__main__":
    main()
