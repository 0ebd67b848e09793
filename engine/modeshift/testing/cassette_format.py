"""``get_config``: how the project's tests read, write and compare cassettes, for vcrpy.

The files are vcrpy's own, laid out for people: JSON is indented, interactions are numbered.
"""

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import NoReturn

import pytest
import yaml
from typing_extensions import override
from vcr import VCR
from vcr.filters import decode_response
from vcr.persisters.filesystem import CassetteNotFoundError, FilesystemPersister
from vcr.record_mode import RecordMode
from vcr.request import Request
from vcr.serializers import yamlserializer

from modeshift.models.provider_errors import MASK, find_secrets
from modeshift.modes.plain_data import JsonObject
from modeshift.testing.scrubbing import WrittenInstead, keep_headers, scrub, scrub_body
from modeshift.testing.strict_replay import Dumper, Response, body, decode_body


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
