"""Markdown as trees: what it makes of honest text, and of text that would run something."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from modeshift.server.markdown import MAX_CHARACTERS, MAX_SECONDS, render_trees


def render(text: str) -> list[Any]:
    return render_trees([text])[0]


def test_a_tree_has_what_markdown_says() -> None:
    text = "# Hi\n\n- a *b* `c`\n\n```python\nif x: y\n```\n\n[to](https://a.b/c) | d"
    heading, items, code, last = render(text)
    assert heading == ["h1", {}, ["Hi"]]
    assert items == ["ul", {}, [["li", {}, ["a ", ["em", {}, ["b"]], " ", ["code", {}, ["c"]]]]]]
    assert code[2][0][:2] == ["code", {"language": "python"}]
    assert code[2][0][2][0] == ["span", {"class": "k"}, ["if"]]
    assert last[2][0] == ["a", {"href": "https://a.b/c"}, ["to"]]


def test_no_html_and_no_script_comes_out() -> None:
    """Also not as an attribute, and no picture that a browser would fetch."""
    text = (
        "<script>alert(1)</script>\n\n<b onclick=x>b</b> [x](javascript:alert(1)) "
        "[y](data:text/html,z) [z](JaVaScRiPt:1) [w](vbscript:x) [v](vscode://run) [u](/threads) "
        "![p](https://evil.example/p.png)"
    )
    tree = json.dumps(render(text))
    assert '"href"' not in tree
    assert '"src"' not in tree
    assert '["script"' not in tree
    assert '["img"' not in tree
    assert "[picture: p https://evil.example/p.png]" in tree
    assert "<script>alert(1)</script>" in tree


@pytest.mark.parametrize(
    "text",
    [
        "[//]: # (evil)",
        "[a]: http://b 'evil'\n\n[a]",
        "[a](http://b 'evil')",
        "![a](http://b 'evil')",
        "|a|\n|---|\n|b|evil|",
        f"```python {'a ' * 50}evil\n```",
        "> " * 60 + "evil",
        "- " * 60 + "evil",
    ],
)
def test_a_word_that_markdown_would_hide_makes_it_plain_text(text: str) -> None:
    """A plan is read before it is approved."""
    assert render(text) == [text]


def test_what_hides_no_word_is_markdown() -> None:
    for text in (
        "a\\_b &amp; `c&lt;d` un*frigging*real <http://a.b/%20c> [ä](http://b/ö) ![p](http://q)",
        "1. a\n2. - [ ] b\n\n***\n\na | b\n:-:|---\n1 | \n\nhead\n===\n\n    code &nbsp; x",
        "```python title='x'\nprint('\\nfoo')\n```\n\nhard  \nbreak\\\nagain <b>html</b> [c][d]",
    ):
        assert render(text) != [text], text


def test_what_is_too_much_stays_text() -> None:
    slow = "\n" * 40_000
    assert render(f"```cpp\n{slow}```")[0][2][0][2] == [slow]
    long = "*a* " * (MAX_CHARACTERS // 4)
    assert render_trees(["*a*", long, "*b*"])[1] == [long]
    images = "![" * 30_000
    began = time.thread_time()
    assert render_trees([images] * 6) == [[images]] * 6
    assert time.thread_time() - began < 1, "it took two seconds for each of them"
    assert render("```nolanguage-of-any\n<x>\n```")[0][2][0][2] == ["<x>\n"]


def test_a_busy_machine_takes_no_colours_away() -> None:
    """What counts is the work on the texts, and not how long that has to wait for a processor."""

    class Waiting(list[str]):
        def __iter__(self) -> Iterator[str]:
            time.sleep(MAX_SECONDS + 0.01)
            return super().__iter__()

    assert "span" in json.dumps(render_trees(Waiting(["```python\nif x: y\n```"])))
