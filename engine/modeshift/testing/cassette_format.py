"""``get_config``, ``StrictReplay``: how tests write cassettes, without secrets, and play them.

The files are vcrpy's own, laid out for people: JSON is indented, interactions are numbered.
"""

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml
from kingfisher_sdk import Rules, Scanner
from typing_extensions import override
from vcr import VCR
from vcr.cassette import Cassette
from vcr.filters import decode_response
from vcr.matchers import get_matchers_results
from vcr.persisters.filesystem import CassetteNotFoundError, FilesystemPersister
from vcr.record_mode import RecordMode
from vcr.request import Request
from vcr.serializers import yamlserializer

from modeshift.models.provider_errors import MASK, MIN_LENGTH, find_secrets, mask_secrets
from modeshift.modes.plain_data import JsonObject

Json = Any
Response = JsonObject
"""A response as vcrpy holds it: ``status``, ``headers``, ``body`` with its ``string`` in bytes."""
MAX_LINES = 120


class StrictReplay:
    """Answers in place of ``cassette``, whose ``match_on`` says which requests are equal.

    vcrpy plays any interaction that matches, and reports a difference as an exception, which the
    client takes for a failed connection.
    """

    def __init__(self, cassette: Cassette) -> None:
        self.cassette = cassette
        self.refused: list[str] = []
        """Why requests were refused."""
        cassette.can_play_response_for = lambda sent: cassette.filter_request(sent) is not None
        cassette.play_response = self.play

    @property
    def unplayed(self) -> list[int]:
        """The indexes of the interactions that were not asked for."""
        return [n for n in range(len(self.cassette)) if not self.cassette.play_counts[n]]

    def play(self, request: Request) -> Response:
        """The next response, or a refusal that says what differs."""
        if difference := self._find_difference(self.cassette.filter_request(request)):
            self.refused.append(
                f"{self.cassette.path}: {difference}\n"
                "If you meant this change, record again: make record (docs/own/cassettes.md)"
            )
            return build_refusal(self.refused[-1])
        index = self.unplayed[0]
        self.cassette.play_counts[index] += 1
        response: Response = self.cassette.responses[index]
        return response

    def _find_difference(self, request: Request) -> str:
        total = len(self.cassette)
        if not self.unplayed:
            body = (request.body_bytes or b"").decode(errors="replace")
            return f"one request more than the {total} that were recorded: {body[:2000]}"
        number = self.unplayed[0]
        matchers: Any = self.cassette._match_on  # there is no other way to them
        _, failed = get_matchers_results(request, self.cassette.requests[number], matchers)
        head = f"request {number + 1} of {total} is not as recorded:"
        return "\n".join([head, *(f"{name}: {why}" for name, why in failed)]) if failed else ""


def build_refusal(text: str) -> Response:
    """A response, as the service would send one, with ``text`` as its error.

    The clients treat an exception as a failed connection, try again, and lose its text.
    """
    headers = {"content-type": ["application/json"], "x-should-retry": ["false"]}
    body = json.dumps({"error": {"message": text}}, ensure_ascii=False).encode()
    status = {"code": 422, "message": "Unprocessable Entity"}
    return {"status": status, "headers": headers, "body": {"string": body}}


def decode_body(body: Json) -> Json:
    """The JSON of a request's or response's body, else its text."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else body or ""
    try:
        return json.loads(text)
    except ValueError:
        return text


def body(sent: Request, recorded: Request) -> None:
    """JSON must be equal, but for the order of keys; the difference is an ``AssertionError``.

    To vcrpy's own matcher ``true`` and ``1`` are equal, and a prompt is one long line.
    """
    bodies = [decode_body(request.body_bytes) for request in (recorded, sent)]
    first, second = (json.dumps(content, sort_keys=True) for content in bodies)
    if first != second:
        old, new = map(_list_lines, bodies)
        lines = list(difflib.unified_diff(old, new, "recorded", "sent", lineterm=""))
        if len(lines) > MAX_LINES:
            lines[MAX_LINES:] = [f"... and {len(lines) - MAX_LINES} more lines"]
        raise AssertionError("\n".join(lines))


def _list_lines(content: Json) -> list[str]:
    text: str = yaml.dump(content, Dumper=Dumper, allow_unicode=True, width=1000)
    return text.splitlines()


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_BASE: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class Dumper(_BASE):  # type: ignore[misc]  # whichever is available
    """Writes texts of several lines as they are, and repeats what is equal in full."""

    yaml_representers = {**_BASE.yaml_representers, str: _represent_text}  # noqa: RUF012

    @override
    def ignore_aliases(self, data: object) -> bool:  # PyYAML's signature
        """Write no alias for what is repeated."""
        return True


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
    """``value`` with each text of ``replaced`` replaced, as it is written to a cassette.

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


def configure(vcr: VCR) -> None:
    """Let ``vcr`` write and compare cassettes as this project does."""
    vcr.register_serializer("yaml", _Serializer)
    vcr.register_matcher("body", body)
    vcr.register_persister(_NewFile if vcr.record_mode == RecordMode.ALL else _OldFile)


def get_config(replaced: WrittenInstead, mode: str, path: Path) -> JsonObject:
    """The options of vcrpy's ``use_cassette`` for tests of this project."""
    is_replay = mode == "none"
    # What was not masked when recorded is not masked now: a new secret would change a request.
    is_masked = not is_replay or (path.exists() and MASK in path.read_text(encoding="utf-8"))
    secrets = () if is_replay else find_secrets()

    def clean_request(request: Request) -> Request:
        request.uri = scrub(request.uri, replaced, secrets, is_masked=is_masked)
        request.headers = keep_headers(request.headers.items())
        request.body = scrub_body(request.body_bytes, replaced, secrets, is_masked=is_masked)
        return request

    def clean_response(response: Response) -> Response:
        if is_replay:
            return response
        response = decode_response(response)
        body = scrub_body(response["body"]["string"], replaced, secrets)
        headers = keep_headers(response["headers"].items())
        return {**response, "headers": headers, "body": {"string": body}}

    return {
        "match_on": ["method", "uri", "body"],
        "before_record_request": clean_request,
        "before_record_response": clean_response,
        # It names the thread, and so differs in each run.
        "filter_post_data_parameters": ["prompt_cache_key"],
    }


class _Serializer:
    """Replaces vcrpy's YAML serializer, which can read what this writes."""

    deserialize = staticmethod(yamlserializer.deserialize)

    @staticmethod
    def serialize(data: JsonObject) -> str:
        data = deepcopy(data)
        for one in data["interactions"]:
            one["request"]["body"] = _indent(one["request"]["body"])
            one["response"]["body"]["string"] = _indent(one["response"]["body"]["string"])
        text = yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
        head, *parts = re.split(r"^(?=- request:)", text, flags=re.MULTILINE)
        # No empty line before the comment: a stream's text ends with some, and they count.
        numbered = (f"# {number} of {len(parts)}\n{part}" for number, part in enumerate(parts, 1))
        return "".join([head, *numbered])


def _indent(content: str | bytes) -> str | bytes:
    """JSON on many lines; anything else, such as a stream, as it is."""
    data = decode_body(content)
    return content if isinstance(data, str) else json.dumps(data, indent=1, ensure_ascii=False)


class _NewFile(FilesystemPersister):  # type: ignore[misc]  # vcrpy has no types
    """Reads nothing of the old recording, which may be broken."""

    @classmethod
    @override
    def load_cassette(cls, cassette_path: str, serializer: object) -> NoReturn:
        raise CassetteNotFoundError


class _OldFile(FilesystemPersister):  # type: ignore[misc]  # vcrpy has no types
    """Says which file is no cassette, and the line where its YAML is broken."""

    @classmethod
    @override
    def load_cassette(cls, cassette_path: str, serializer: object) -> object:
        try:
            return super().load_cassette(cassette_path, serializer)
        except (yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f"{cassette_path}:{mark.line + 1}" if mark else str(cassette_path)
            why = getattr(error, "problem", None) or repr(error)
            pytest.fail(f"{where!r} is not a cassette: {why}", pytrace=False)
