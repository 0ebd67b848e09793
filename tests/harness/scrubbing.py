"""What is removed from requests and answers before they are written to a cassette.

Headers by an allow-list, keys by their look and by the environment.
"""

from collections.abc import Iterable
from typing import Any

from graph.models.secrets import mask_secrets

KEPT_HEADERS = frozenset({"content-type", "anthropic-version", "anthropic-beta", "retry-after"})
NAMES_A_THREAD = frozenset({"prompt_cache_key"})
"""Keys in a request's body that are left out: they are other ones in each run."""
Replaced = tuple[tuple[str, str], ...]
"""Texts and what is written instead of them, such as the folder of a test."""


def scrub(value: Any, replaced: Replaced = (), secrets: tuple[str, ...] = ()) -> Any:
    """``value`` without what looks like a secret, and without the known ``secrets``."""
    match value:
        case str():
            for text, instead in replaced:
                value = value.replace(text, instead)
            return mask_secrets(value, secrets)
        case list():
            return [scrub(one, replaced, secrets) for one in value]
        case dict():
            return {
                scrub(key, replaced, secrets): scrub(one, replaced, secrets)
                for key, one in value.items()
                if key not in NAMES_A_THREAD
            }
        case _:
            return value


def keep_headers(headers: Iterable[tuple[str, str | list[str]]]) -> dict[str, str]:
    """The headers that identify nobody."""
    return {
        name.lower(): ", ".join(value) if isinstance(value, list) else value
        for name, value in headers
        if name.lower() in KEPT_HEADERS
    }
