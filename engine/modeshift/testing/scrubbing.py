"""What is removed from requests and answers before they are written to a cassette.

Headers by an allow-list, keys by their look and by the environment.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from kingfisher_sdk import Rules, Scanner

from modeshift.models.provider_errors import MASK, MIN_LENGTH, mask_secrets
from modeshift.testing.strict_replay import Json, decode_body

KEPT_HEADERS = frozenset(
    {"content-type", "anthropic-version", "anthropic-beta", "retry-after", "server"}
)
WrittenInstead = tuple[tuple[str, str], ...]
"""Texts and what is written instead of them, such as the folder of a test."""
_INDEXES = ("index", "output_index", "content_index", "summary_index")


def scrub_body(body: bytes | str | None, *options: Any, is_masked: bool = True) -> bytes | None:
    """``scrub`` for a body: what it finds in JSON is JSON afterwards."""
    if body is None:
        return None
    old = decode_body(body)
    new = scrub(old, *options, is_masked=is_masked)
    text = new if isinstance(new, str) else json.dumps(new, ensure_ascii=False)
    return text.encode() if new != old or isinstance(body, str) else body


def scrub(
    value: object,
    replaced: WrittenInstead = (),
    secrets: tuple[str, ...] = (),
    *,
    is_masked: bool = True,
) -> Json:
    """``value`` with each text of ``replaced`` replaced.

    If it ``is_masked``, also without what looks like a secret and without the known ``secrets``.
    """
    if isinstance(value, dict):
        pairs = [list(pair) for pair in value.items()]
        return dict(scrub(pairs, replaced, secrets, is_masked=is_masked))
    if isinstance(value, list):
        return [scrub(one, replaced, secrets, is_masked=is_masked) for one in value]
    if isinstance(value, str):
        for text, instead in replaced:
            value = value.replace(text, instead)
        return _mask_by_rules(mask_secrets(value, secrets)) if is_masked else value
    return value


@cache
def _make_scanner() -> Scanner:
    """A scanner with the less certain rules as well: a false alarm only masks too much."""
    return Scanner(Rules(confidence="low"))


def _mask_by_rules(text: str) -> str:
    if len(text) < MIN_LENGTH:
        return text
    content = text.encode(errors="replace")
    for found in _make_scanner().scan(content.decode()):
        if found.is_base64_encoded:  # the secret is not there as it is
            place = slice(found.location["start_offset"], found.location["end_offset"])
            secret = content[place].decode(errors="replace")
        else:
            secret = found.secret
        text = text.replace(secret, MASK) if secret else text
    return text


def keep_headers(headers: Iterable[tuple[str, str | list[str]]]) -> dict[str, list[str]]:
    """The headers that identify nobody."""
    return {
        name.lower(): value if isinstance(value, list) else [value]
        for name, value in headers
        if name.lower() in KEPT_HEADERS
    }


def join_stream(stream: Json) -> list[str]:
    """The texts of a stream, each joined over its events, so that a secret in pieces is found.

    Texts that come side by side, such as the arguments of two calls, have an index; where they
    have none, texts of one name are joined.
    """
    texts = dict[object, str]()
    for line in stream.splitlines() if isinstance(stream, str) else ():
        for where, text in _list_texts(decode_body(line.removeprefix("data: "))):
            for key in (where, where[-1]):
                texts[key] = texts.get(key, "") + text
    return list(texts.values())


def _list_texts(
    value: Json, where: tuple[object, ...] = ("",)
) -> Iterator[tuple[tuple[object, ...], str]]:
    match value:
        case dict():
            indexes = tuple(str(value.get(name)) for name in _INDEXES)
            for name, one in value.items():
                yield from _list_texts(one, (*where, indexes, name))
        case list():
            for one in value:
                yield from _list_texts(one, where)
        case str():
            yield where, value
