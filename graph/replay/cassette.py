"""``load_cassette``: reads a cassette of vcrpy, YAML or JSON; see docs/cassettes.md."""

import json
from pathlib import Path
from typing import Any

import yaml
from vcr.filters import decode_response
from vcr.request import Request
from vcr.serialize import deserialize
from vcr.serializers import yamlserializer

from modes.errors import ConfigurationError
from modes.plain_text import to_one_line

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
        is_json = text.lstrip().startswith("{")
        data = json.loads(text) if is_json else yamlserializer.deserialize(text)
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


def _refuse(where: str, why: Exception | str) -> CassetteError:
    said = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
    return CassetteError(f"{where!r} is not a cassette: {to_one_line(said)}")
