"""``show_result``: a call's result without what is meant for the model alone."""

import re

from langchain_core.messages import ToolMessage

from graph.messages.repair import REJECTED, UNKNOWN, VOID
from graph.messages.untrusted import remove_marks

EDITED = (
    "[The user changed the arguments to {args!r} before it ran; do not repeat your own call.]\n"
)
"""What the model is told before the result."""
_EDITED = re.compile(
    r"\[The user changed the arguments to (.*?) before it ran; do not repeat your own call\.\]\n",
    re.DOTALL,
)
_WORDS = {
    VOID: "Not run: the mode, its rules or the files have changed since you were asked.",
    UNKNOWN: "Stopped while it ran: it may have taken effect, in whole, in part or not at all.",
}


def show_result(message: ToolMessage) -> str:
    """The text as a person reads it; what a tool has said stays as it is."""
    text = message.text
    if text.startswith(REJECTED):
        said = text.partition(" and said: ")[2]
        return f"Rejected: {said}" if said else "Rejected."
    if found := _EDITED.match(text):
        rest = remove_marks(text[found.end() :])
        return f"Run with your arguments: {found[1]}\n{rest}"
    return _WORDS.get(text) or remove_marks(text)
