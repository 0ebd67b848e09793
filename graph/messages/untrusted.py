"""Marks around what files, commands and tools say, so that the model takes it as data.

A mark enforces nothing: it lets a model tell what a file says from what the user says.
"""

import json
import re
from hashlib import sha256

MAX_SOURCE = 200
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
