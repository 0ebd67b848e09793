"""What is taken out of requests and answers before they are kept.

Headers by an allow-list, keys by their look and, when a cassette is recorded, by the
environment.
"""

from collections.abc import Iterable
from typing import Any

from graph.replay.secrets import mask_secrets

KEPT_HEADERS = frozenset({"content-type", "anthropic-version", "anthropic-beta", "retry-after"})


def scrub(
    value: Any, replaced: Iterable[tuple[str, str]] = (), secrets: tuple[str, ...] = ()
) -> Any:
    """``value`` without what looks like a secret, and without those that are known.

    ``replaced`` are texts and what stands for them: the folder of a test, say.
    """
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
            }
        case _:
            return value


def keep_headers(headers: Iterable[tuple[str, str | list[str]]]) -> dict[str, str]:
    """The headers that tell nothing about anybody."""
    return {
        name.lower(): ", ".join(value) if isinstance(value, list) else value
        for name, value in headers
        if name.lower() in KEPT_HEADERS
    }
