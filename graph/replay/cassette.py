"""``load_cassette``: reads a cassette of vcrpy, YAML or JSON, whoever recorded it.

Bounded, because a cassette may come from elsewhere. See docs/cassettes.md.
"""

import json
import re
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from vcr.filters import decode_response
from vcr.request import Request
from vcr.serialize import deserialize
from vcr.serializers import yamlserializer

from modes.errors import ConfigurationError
from modes.plain_text import to_one_line

MAX_VALUES = 1_000_000
MAX_BODY = 50_000_000
"""Bytes of a body when it is not compressed any more."""
# libyaml's parser would overflow the stack and crash the process.
_TOO_DEEP = re.compile(r"(?:[\[{]\s*){50}|(?:-\s+){50}|^ {1000}", re.MULTILINE)

Json = Any
Response = dict[str, Any]
"""As vcrpy holds one: ``status``, ``headers``, and ``body`` with its ``string`` in bytes."""


class CassetteError(ConfigurationError):
    """A file that is not a cassette."""


def load_cassette(path: Path) -> tuple[list[Request], list[Response]]:
    """The requests and their responses, not compressed any more.

    Raises ``CassetteError``, which names the file, and the line where its YAML or JSON is broken.
    """
    try:
        requests, responses, *_ = deserialize(path.read_text(encoding="utf-8"), _Serializer)
        # Refuses what is no text.
        json.dumps([(one.uri, len(one.body_bytes or b"")) for one in requests])
        for one in responses:
            _check_unpacked(one["body"]["string"])
        return requests, [decode_response(one) for one in responses]
    except OSError as error:
        raise CassetteError(
            f"the cassette {str(path)!r} cannot be read: {error.strerror}"
        ) from error
    except json.JSONDecodeError as error:
        raise _refuse(f"{path}:{error.lineno}", error.msg) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise _refuse(where, error.problem or error) from error
    except KeyError as error:
        raise _refuse(str(path), f"{error} is missing") from error
    except (ValueError, TypeError, AttributeError, RecursionError, yaml.YAMLError) as error:
        raise _refuse(str(path), error) from error


def decode_body(body: Any) -> Json:
    """The JSON of a request's or response's body, else its text."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else body or ""
    try:
        return json.loads(text)
    except ValueError:
        return text


class _Serializer:
    """What vcrpy asks for the data in a file's text."""

    @staticmethod
    def deserialize(text: str) -> Json:
        if _TOO_DEEP.search(text):
            raise ValueError("it is nested too deeply")
        is_json = text.lstrip().startswith("{")
        data = json.loads(text) if is_json else yamlserializer.deserialize(text)
        _check_size(data)
        for one in data["interactions"]:
            _take_parsed_body(one)
        return data


def _take_parsed_body(interaction: dict[str, Any]) -> None:
    """Some projects write ``parsed_body``, decoded JSON, in the place of ``body``."""
    request, response = interaction["request"], interaction["response"]
    if "parsed_body" in request:
        request["body"] = json.dumps(request.pop("parsed_body"))
    if "parsed_body" in response:
        response["body"] = {"string": json.dumps(response.pop("parsed_body"))}


def _check_size(data: Json) -> None:
    """Raise ``ValueError`` if the data, with its aliases expanded, is larger than any cassette."""
    left = [data]
    for _ in range(MAX_VALUES):
        if not left:
            return
        value = left.pop()
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
    raise ValueError(f"it holds more than {MAX_VALUES} values")


def _check_unpacked(body: bytes) -> None:
    """Raise ``ValueError`` if a compressed body would fill the memory."""
    with suppress(zlib.error):  # it is not compressed
        unpacked = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, MAX_BODY + 1)
        if len(unpacked) > MAX_BODY:
            raise ValueError(f"an answer is larger than {MAX_BODY} bytes, unpacked")


def _refuse(where: str, why: Exception | str) -> CassetteError:
    said = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
    return CassetteError(f"{where!r} is not a cassette: {to_one_line(said)}")
