"""Changing files of the workspace for a model, and what clients get to know of it."""

from collections.abc import Sequence

from typing_extensions import TypedDict

from modeshift.modes.rules.files import is_secret
from modeshift.tools.workspace.text import Replacement, find_places, is_utf8, replace
from modeshift.tools.workspace.workspace import Workspace, Written

MAX_KEPT = 200_000
"""Characters of replaced text: they stay in the thread for good."""


class Edited(TypedDict, total=False):
    """The ``artifact`` of a result: for clients, not for the model."""

    replaced: str | None
    """The text that was replaced as a whole; None for a new file. Missing if it was long, not
    UTF-8, or looked as if it held a secret."""
    line: int
    """The first line that was changed, counted from 1."""


def write_text(workspace: Workspace, path: str, text: str) -> tuple[str, Edited]:
    """Create a file, or replace the whole of one; what the model is told, and the artifact."""
    done = workspace.write(path, text)
    told = f"{'Created' if done.is_new else 'Replaced'} {path} ({len(text)} characters)."
    return told, _kept(path, done)


def replace_text(
    workspace: Workspace, path: str, edits: Sequence[Replacement]
) -> tuple[str, Edited]:
    """Make all of the edits in a file, or none, where one does not fit or the file has changed."""
    text = workspace.read(path)
    places = find_places(path, text, edits)
    workspace.write(path, replace(text, places), instead_of=text)
    line = text.count("\n", 0, places[0].start) + 1
    many = "s" if len(places) > 1 else ""
    return f"Edited {path}: {len(places)} place{many}.", Edited(line=line)


def _kept(path: str, done: Written) -> Edited:
    text = done.replaced
    if done.is_new:
        return Edited(replaced=None)
    if text is None or len(text) > MAX_KEPT or not is_utf8(text) or is_secret(path):
        return Edited()
    return Edited(replaced=text)
