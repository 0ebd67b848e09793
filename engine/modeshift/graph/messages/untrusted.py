"""Marks around what files, commands and tools say, so that the model takes it as data.

A mark enforces nothing: it lets a model tell what a file says from what the user says.
"""

import json
import re
from hashlib import sha256

from langchain_core.messages import ToolMessage

from modeshift.modes.plain_text import make_readable

MAX_RESULT_CHARACTERS = 100_000
MAX_SOURCE = 200
WRITTEN_OUT = r"[characters that do not show are written out, such as \u202e]"
EDITED = (
    "[The user changed the arguments to {args!r} before it ran; do not repeat your own call.]\n"
)
"""What the model is told before the result: one line."""
_MARKED = re.compile(r"<data-([0-9a-f]{12}) source=[^\n]*>\n(.*)\n</data-\1>", re.DOTALL)


def mark_as_data(text: str, source: str, call_id: str) -> str:
    """``text`` between marks that it cannot forge, because they depend on all of it.

    The same call with the same result gets the same marks, so that it can be replayed.
    """
    name = f"data-{sha256(f'{call_id}{text}'.encode()).hexdigest()[:12]}"
    return f"<{name} source={json.dumps(source[:MAX_SOURCE])}>\n{text}\n</{name}>"


def remove_marks(text: str) -> str:
    """``text`` without its marks."""
    return _MARKED.sub(lambda found: found[2], text)


def show_result(message: ToolMessage) -> str:
    """The text as a person reads it; what a tool has said stays as it is."""
    facts = message.artifact if isinstance(message.artifact, dict) else {}
    is_changed = "changed_to" in facts
    text = message.text.partition("\n")[2] if is_changed else message.text
    text = remove_marks(facts.get("shown", text))
    return f"Run with your arguments: {facts['changed_to']!r}\n{text}" if is_changed else text


def truncate(text: str, limit: int = MAX_RESULT_CHARACTERS) -> str:
    """Bound a result, and write out what a provider refuses or a terminal would act on.

    A file may have any length, and its name any bytes.
    """
    text = text.encode("utf-8", "backslashreplace").decode()
    given = text[:limit]
    shown = make_readable(given)
    lines = [shown[:limit]]
    if left_out := len(text) - len(given) + len(shown) - len(lines[0]):
        lines.append(f"[{left_out} more characters left out]")
    if shown != given:
        lines.append(WRITTEN_OUT)
    return "\n".join(lines)
