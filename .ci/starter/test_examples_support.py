"""The second starter, a shop's support: begun by ``make start``, checked, and used twice."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from langgraph_sdk import get_client
from playwright.sync_api import expect
from repository import ROOT, lend_environment
from test_wheel import ONE_AT_A_TIME, make, serving, start

from tests.clients.page.browser import PROBLEM, Person, opened
from tests.harness.clone import git
from tests.harness.conversation import APPROVE
from tests.harness.server import Thread

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("support")]
SUPPORT = ROOT / "examples/support"
OF_FILES = re.compile(r"workspace|files?\b|folder|sandbox|shell|\bcommands?\b|\bgit\b", re.I)
API = "from api import Shop; shop = Shop(0); print(shop.url, flush=True); shop.serve_forever()"
MOST_LINES = 250
REFUND = """\
switch to refund: it came broken
call refund {"order": "A-17", "amount": 49.9}"""
"""As in its README."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("support") / "shop"
    start(folder, "FROM=support")
    lend_environment(folder)  # an example names no packages of its own
    return folder


@pytest.fixture(scope="module")
def shop(clone: Path) -> Iterator[str]:
    """The address of the shop's API, which runs beside."""
    command = [sys.executable, "-c", API]
    with subprocess.Popen(command, cwd=clone, stdout=-1, stderr=-3, text=True) as api:
        assert api.stdout is not None
        yield api.stdout.readline().strip()
        api.terminate()


@pytest.fixture(scope="module")
def server(clone: Path, shop: str) -> Iterator[str]:
    with serving(clone, SHOP=shop) as url:
        yield url


def get_refunded(shop: str, order: str) -> float:
    return float(httpx.get(f"{shop}/orders/{order}", trust_env=False).json()["refunded"])


def test_it_is_small_says_how_to_begin_and_has_no_file_of_the_coding_agent() -> None:
    names = git(SUPPORT, "ls-files", "-co", "--exclude-standard").stdout.split()
    assert "pyproject.toml" not in names
    written = [name for name in names if not re.match(r"cassettes/|tests/snapshots/", name)]
    lines = [
        line
        for name in written
        if name.endswith((".py", ".yaml", ".md"))
        for line in (SUPPORT / name).read_text().splitlines()
    ]
    assert len(lines) <= MOST_LINES
    assert REFUND in (SUPPORT / "README.md").read_text()
    own = [name for name in written if name.startswith(("modes/", "prompts/", "tests/", "tools/"))]
    assert [name for name in own if (ROOT / name).exists()] == ["tools/__init__.py"]


def test_make_check(clone: Path) -> None:
    """And what is derived of it is up to date, so that a newcomer's tree stays clean."""
    git(clone, "add", "--all")
    make(clone, ONE_AT_A_TIME, "check")
    make(clone, "renew")
    changed = git(clone, "diff", "--name-only").stdout.split()
    assert [name for name in changed if not name.startswith("docs/")] == []


async def test_the_first_refund(server: str, shop: str) -> None:
    async with get_client(url=server) as client:
        thread = await Thread.new(client)
        await thread.say(REFUND)
        for name in ("switch_mode", "refund"):
            assert [request["name"] for request in await thread.waiting()] == [name]
            assert get_refunded(shop, "A-17") == 0
            await thread.decide(APPROVE)
        assert (thread.error, await thread.mode()) == (None, "triage")
        assert get_refunded(shop, "A-17") == 49.9
        await thread.say('call refund {"order": "A-18", "amount": 50.5}', mode="refund")
        assert await thread.waiting() == []
        assert get_refunded(shop, "A-18") == 0


def test_a_refund_on_the_page(server: str, shop: str) -> None:
    if PROBLEM:
        pytest.skip(PROBLEM)
    with opened() as browser:
        person = Person(browser, server).go()
        person.say(REFUND.replace("A-17", "A-18").replace("49.9", "20"))
        person.press("Switch to Refund")
        expect(person.card.locator("h2")).to_have_text("Refund A-18 20")
        person.press("Approve")
        expect(person.page.locator(".call.done summary bdi").last).to_have_text("Refund A-18 20")
        assert get_refunded(shop, "A-18") == 20
        person.check()


def test_no_word_of_files_shells_or_sandboxes(clone: Path, server: str) -> None:
    modes = httpx.get(f"{server}/modes", trust_env=False).json()
    texts = {
        "make dev": (clone.parent / "log.txt").read_text(),
        "make doctor": make(clone, "doctor"),
        "GET /modes": str([{**mode, "file": ""} for mode in modes]).replace("'file'", ""),
    }
    for cassette in clone.glob("cassettes/*/*.yaml"):
        texts[cassette.name] = cassette.read_text().partition("  response:\n")[0]
    assert len(texts) > 6, "the first requests are among them"
    for name, text in texts.items():
        assert OF_FILES.findall(text.replace(str(clone), "")) == [], name
    assert not (clone / "workspace").exists()
