"""``make bench``: the page's bytes, how soon it can be used, how soon a token is on the screen."""

import gzip
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from tests.clients.page.browser import PROBLEM, Person, opened
from tests.harness.root import ENGINE
from tests.harness.server import Server, running
from tests.provider.script import Answer
from tests.provider.server import KEY, ScriptedProvider, serving

ROUNDS = 5
SLOW = Answer("one two three four five six seven eight", pause=0.2)
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
    files = [file.read_bytes() for file in sorted((ENGINE / "modeshift/page").iterdir())]
    whole, packed = sum(map(len, files)), sum(len(gzip.compress(file)) for file in files)
    print(f"\nThe page: {len(files)} files, {whole:,} bytes ({packed:,} packed)")
    if PROBLEM:
        print(f"  not timed: {PROBLEM}")
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(lambda _: SLOW) as provider,
        running(
            Path(folder),
            MODEL="openai:gpt-6.2",
            OPENAI_API_KEY=KEY,
            OPENAI_BASE_URL=f"{provider.url}/v1",
        ) as server,
    ):
        time_page(server, provider)


def time_page(server: Server, provider: ScriptedProvider) -> None:
    """Print how long it takes, in a browser of its own each time."""
    with opened() as browser:
        cold, warm, token = list[float](), list[float](), list[float]()
        for _ in range(ROUNDS):
            person = Person(browser, server.url)
            for times in (cold, warm):
                person.go()
                times.append(person.page.evaluate("performance.now()"))
            person.page.evaluate(WATCH)
            with sampling(lambda: provider.last_event) as sent:
                person.say("go on")
                person.sees("eight")
            offset = time.time() - time.monotonic()
            for shown in person.page.evaluate("shown"):
                before = [(one + offset) * 1000 for one in sent if (one + offset) * 1000 <= shown]
                token.append(shown - max(before))
            person.close()
    for what, times in (
        ("ready to type, first visit", cold),
        ("ready to type, again", warm),
        ("from the model's token to the screen", token),
    ):
        middle = statistics.median(times)
        print(f"  {what:<40} {middle:6.0f} ms (of {min(times):.0f}-{max(times):.0f})")


@contextmanager
def sampling(read: Callable[[], float]) -> Iterator[set[float]]:
    """The values that there were during the block."""
    found, is_over = set[float](), Event()

    def sample() -> None:
        while not is_over.wait(0.001):
            found.add(read())

    thread = Thread(target=sample)
    thread.start()
    yield found
    is_over.set()
    thread.join()


if __name__ == "__main__":
    main()
