"""The starter's README and pages of docs."""

import re

from repository import ROOT


def read_pages(*patterns: str) -> dict[str, str]:
    """The text of each page that matches, by its name in the repository."""
    files = (file for pattern in patterns for file in sorted(ROOT.glob(pattern)))
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


PAGES = read_pages("README.md", "docs/**/*.md")
ALL_PAGES = {
    **PAGES,
    **read_pages("CONTRIBUTING.md", "SECURITY.md", "engine/*.md", "engine/docs/*.md"),
}


def read_part(name: str) -> str:
    """The code between the marks ``<!-- name -->`` on a page."""
    text = "\n".join(PAGES.values())
    match = re.search(f"<!-- {name} -->\n```\\w*\n(.*?)```\n<!-- /{name} -->", text, re.DOTALL)
    assert match is not None, name
    return match[1]
