"""``show_pages``: a long text in the person's pager."""

import os
import shlex
import subprocess


def show_pages(text: str) -> str:
    """Show it, in the next pager where one is not there; what is wrong where there is none."""
    for pager in filter(None, (os.environ.get("PAGER"), "less -R", "more")):
        try:
            subprocess.run(shlex.split(pager), input=text.encode(), check=False)  # noqa: S603  # theirs
        except (OSError, ValueError, IndexError):
            continue
        return ""
    return "  There is no pager: set PAGER to one, or install less.\n"
