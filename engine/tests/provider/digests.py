"""What is sent, as digests and as tokens."""

import json
from hashlib import sha256
from typing import Any

SIZE = 16
MARK = "cache_control"


def digest(*values: Any) -> str:
    """Short and the same everywhere; the order of keys plays no part."""
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:SIZE]


def tokens(value: Any) -> int:
    """Four letters count as one: no tokenizer is known here."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return -(-len(text) // 4)


def unmarked(value: Any) -> Any:
    """``value`` without the marks of the cache, at any depth."""
    match value:
        case dict():
            return {key: unmarked(part) for key, part in value.items() if key != MARK}
        case list():
            return [unmarked(part) for part in value]
        case _:
            return value
