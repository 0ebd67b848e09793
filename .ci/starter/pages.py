"""The starter's README and pages of docs."""

import re

from repository import ROOT

PAGES = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}


def read_part(name: str) -> str:
    """The code between the marks ``<!-- name -->`` on a page."""
    text = "\n".join(PAGES.values())
    match = re.search(f"<!-- {name} -->\n```\\w*\n(.*?)```\n<!-- /{name} -->", text, re.DOTALL)
    assert match is not None, name
    return match[1]
