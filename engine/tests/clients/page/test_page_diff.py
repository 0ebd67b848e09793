"""A diff that is approved can be seen whole, with its numbers, and the buttons in sight."""

import pytest
from playwright.sync_api import expect

from tests.clients.page.browser import Person
from tests.clients.page.test_page import check_access, check_sizes
from tests.harness.server import Server

pytestmark = pytest.mark.slow
CODE = "import os  # \"why\"\n\n\ndef half(of):\n    return of / 2\n\n\nprint(half(3), 'it')\n"


def test_lines_have_numbers_and_the_languages_colours(person: Person, server: Server) -> None:
    (server.workspace / "half.py").write_text(CODE)
    changed = CODE.replace("\n", "\nimport sys\n", 1).replace("of / 2", "of / 2.5  # more")
    person.say("write half.py: " + changed.replace("\n", "\\n"), mode="code")
    diff = person.card.locator(".diff")
    expect(diff.locator(".plus")).to_have_text(["+import sys", "+    return of / 2.5  # more"])
    numbers = diff.locator("[data-n]").evaluate_all("all => all.map(one => one.dataset.n)")
    assert numbers == ["1", "2", "3", "4", "5", "5", "6", "7", "8", "9"]
    coloured = {kind: diff.locator(f".{kind}").all_text_contents() for kind in ("k", "s", "m", "c")}
    assert coloured == {
        "k": ["import", "import", "def", "return", "return"],
        "s": ["'it'"],
        "m": ["2", "2.5", "3"],
        "c": ['# "why"', "# more"],
    }
    check_sizes(person)
    expect(person.card.locator(".extent")).to_be_empty()


def test_a_long_diff_says_how_much_of_it_is_shown(person: Person) -> None:
    text = "\\n".join(f"line {number}" for number in range(1, 151))
    for size in ((1280, 800), (390, 740)):
        person.page.set_viewport_size({"width": size[0], "height": size[1]})
        if size[0] == 1280:
            person.say(f"write long.py: {text}", mode="code")
        extent = person.card.locator(".extent")
        expect(extent).to_contain_text("of 150")
        expect(person.button("Approve")).to_be_in_viewport()
        check_access(person)
    person.card.locator(".diff").evaluate("one => one.scrollTo(0, 1e6)")
    expect(extent).to_have_text("Shown up to line 150 of 150")
    assert person.card.locator(".diff [data-n]").last.get_attribute("data-n") == "150"
