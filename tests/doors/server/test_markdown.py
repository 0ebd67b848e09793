"""Markdown as trees: what it makes of honest text, and of text that would run something."""

import json
from typing import Any

from doors.server.markdown import MAX_CHARACTERS, render_trees


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


def test_what_is_too_much_stays_text() -> None:
    deep = ">" * 5000 + " x"
    assert len(json.dumps(render(deep))) < 20_000
    long = "*a* " * (MAX_CHARACTERS // 4)
    assert render_trees(["*a*", long, "*b*"])[1] == [long]
    assert render("```nolanguage-of-any\n<x>\n```")[0][2][0][2] == ["<x>\n"]
