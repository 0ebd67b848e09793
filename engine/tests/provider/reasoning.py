"""Reasoning of OpenAI's, encrypted: the newest models bind it to all that was sent before it.

What does not fit any more is not refused but left out, and the answer says so.
"""

import re
from typing import Any

from tests.provider.digests import SIZE, digest
from tests.provider.script import Ids

Json = dict[str, Any]

ENCRYPTED = "gAAAAAB"
"""How what was reasoned begins, once it is encrypted."""
CHECKED = re.compile(r"gpt-(6\.[2-9]|[7-9])")


def encrypt(body: Json, ids: Ids) -> str:
    """For an item of the answer to ``body``."""
    return ids.new(ENCRYPTED, 40) + _prefixes(body)[-1]


def dropped(body: Json) -> list[str]:
    """The ids of the items that the model is not shown: the first that does not fit, and later."""
    if not CHECKED.match(body["model"]):
        return []
    items = [
        (item, prefix)
        for item, prefix in zip(body["input"], _prefixes(body), strict=False)
        if item.get("type") == "reasoning"
    ]
    fits = [item["encrypted_content"][-SIZE:] == prefix for item, prefix in items]
    first = fits.index(False) if False in fits else len(fits)
    return [str(item.get("id")) for item, _ in items[first:]]


def transformations(body: Json) -> Json:
    """What an answer says of them."""
    entry = {"type": "reasoning", "action": "removed", "reason": "prefix_mismatch"}
    lost = [{"id": id, **entry} for id in dropped(body)]
    return {"input_transformations": lost} if CHECKED.match(body["model"]) else {}


def _prefixes(body: Json) -> list[str]:
    """The digests of what stands before each item, and of all; what was reasoned apart."""
    digests = [digest(body.get("tools"), body.get("text"))]
    for item in body["input"]:
        is_reasoning = item.get("type") == "reasoning"
        digests.append(digests[-1] if is_reasoning else digest(digests[-1], item))
    return digests
