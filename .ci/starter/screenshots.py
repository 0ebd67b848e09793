"""The pictures of README and docs, of the page as it is; run in ``engine/``:

PYTHONPATH=.:template .venv/bin/python ../.ci/starter/screenshots.py [--if-old]

Beside them stands a digest of what they are made of. Modes are not among it: they are the owner's,
and so is whether there are pictures.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from playwright.sync_api import Browser, expect
from repository import ROOT

from modeshift.modes.chart import ENGINE_NODES, list_needed
from tests.clients.page.browser import PROBLEM, Person, opened
from tests.harness.root import ENGINE
from tests.harness.server import running

PICTURES = ROOT / "docs/pictures"
MADE_OF = PICTURES / "made-of.txt"
PLAN = """\
# Plan

1. `greeting.py`: take a **name**, and greet the world without one.
2. A test for both.

## Files

- `greeting.py`
- `tests/`
"""
CODE = 'def greet():\n    return "Hello!"\n'


def digest_sources() -> str:
    """Of the page's files, of what is done on it here, and of the phases that it shows."""
    digest = sha256(repr((list(ENGINE_NODES), list(list_needed()))).encode())
    for file in (*sorted((ENGINE / "modeshift/page").iterdir()), Path(__file__)):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def are_old() -> bool:
    """Whether there are pictures, and they are made of something else."""
    has_both = MADE_OF.exists() and any(PICTURES.glob("*.png"))
    return has_both and MADE_OF.read_text(encoding="utf-8").strip() != digest_sources()


def take(
    browser: Browser, folder: Path, target: Path, schemes: Sequence[str] = ("light", "dark")
) -> Iterator[Path]:
    """Write the pictures into ``target``, of a server in the empty ``folder``."""
    target.mkdir(parents=True, exist_ok=True)
    with running(folder, MODES_FOLDER=str(ROOT / "modes")) as server:
        (server.workspace / "greeting.py").write_text(CODE)
        for scheme in schemes:
            (server.workspace / "plan.md").unlink(missing_ok=True)
            yield from take_in(browser, server.url, scheme, target)


def take_in(browser: Browser, url: str, scheme: str, target: Path) -> Iterator[Path]:
    size = {"width": 1160, "height": 840}
    person = Person(browser, url, color_scheme=scheme, viewport=size).go()
    person.page.select_option("#approvals", "auto")
    line = PLAN.replace("\n", "\\n")
    todo = "todo: plan the change; change greeting.py; test it"
    person.say(f"{todo}\nwrite plan.md: {line}\nswitch to code: The plan is done.", "architect")
    expect(person.card.locator(".plan .markdown:not(.plain)")).to_be_visible()
    yield shoot(person, target / f"switch-{scheme}.png")
    person.press("Switch to Code")
    expect(person.answer).to_contain_text("went")
    person.page.select_option("#approvals", "manual")
    person.say('replace "Hello!" with f"Hello, {name}!" in greeting.py')
    expect(person.card.locator(".diff .plus")).to_be_visible()
    yield shoot(person, target / f"edit-{scheme}.png")
    person.press("Reject")
    expect(person.page.get_by_role("button", name="Send")).to_be_visible()
    person.close()


def shoot(person: Person, file: Path) -> Path:
    person.page.evaluate("document.fonts.ready")
    person.page.screenshot(path=file, animations="disabled")
    return file


if __name__ == "__main__":
    if "--if-old" in sys.argv and not are_old():
        sys.exit()
    if PROBLEM:
        sys.exit(PROBLEM)
    os.environ.pop("MODES_FOLDER", None)
    with tempfile.TemporaryDirectory() as folder, opened() as browser:
        for file in take(browser, Path(folder), PICTURES):
            size = f"{file.stat().st_size // 1024} KiB"
            print(file.relative_to(ROOT), size)
    MADE_OF.write_text(f"{digest_sources()}\n", encoding="utf-8")
