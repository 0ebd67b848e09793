"""``show_pages`` and ``edit_text``: a text in the person's own pager, or editor."""

import os
import shlex
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

NO_EDITOR = "  There is no editor: set EDITOR to one, or install nano.\n"


def show_pages(text: str) -> str:
    """Show the text in the first pager that is there; returns what is wrong if none is."""
    for pager in filter(None, (os.environ.get("PAGER"), "less -R", "more")):
        try:
            subprocess.run(shlex.split(pager), input=text.encode(), check=False)  # noqa: S603  # theirs
        except (OSError, ValueError, IndexError):
            continue
        return ""
    return "  There is no pager: set PAGER to one, or install less.\n"


def edit_text(text: str) -> str | None:
    """The text as the person leaves it in the first editor that is there; None if none is.

    If the editor fails, the text stays as it was.
    """
    named = (os.environ.get("VISUAL"), os.environ.get("EDITOR"), "editor", "nano", "vi")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "message.md"
        file.write_text(text, encoding="utf-8")
        for editor in filter(None, named):
            try:
                done = subprocess.run([*shlex.split(editor), str(file)], check=False)  # noqa: S603  # theirs
            except (OSError, ValueError):
                continue
            edited = file.read_text(encoding="utf-8", errors="replace").removesuffix("\n")
            return edited if done.returncode == 0 else text
    return None
