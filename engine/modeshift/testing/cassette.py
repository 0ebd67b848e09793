"""``load_cassette``: reads a cassette, and says where it is broken."""

import json
from pathlib import Path

import yaml
from vcr.filters import decode_response
from vcr.request import Request
from vcr.serialize import deserialize
from vcr.serializers import yamlserializer

from modeshift.modes.errors import ConfigurationError
from modeshift.modes.plain_text import to_one_line
from modeshift.testing.strict_replay import Json, Response, decode_body

__all__ = ["CassetteError", "Json", "Response", "decode_body", "load_cassette"]


class CassetteError(ConfigurationError):
    """A file that is not a cassette."""


def load_cassette(path: Path) -> tuple[list[Request], list[Response]]:
    """The requests and their responses, not compressed any more.

    Raises ``CassetteError``, which names the file, and the line where its YAML is broken.
    """
    try:
        requests, responses, *_ = deserialize(path.read_text(encoding="utf-8"), yamlserializer)
        # Refuses what is no text.
        json.dumps([(one.uri, len(one.body_bytes or b"")) for one in requests])
        return requests, [decode_response(one) for one in responses]
    except OSError as error:
        raise CassetteError(
            f"the cassette {str(path)!r} cannot be read: {error.strerror}"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise _refuse(where, error.problem or error) from error
    except KeyError as error:
        raise _refuse(str(path), f"{error} is missing") from error
    except (ValueError, TypeError, AttributeError, RecursionError, yaml.YAMLError) as error:
        raise _refuse(str(path), error) from error


def _refuse(where: str, why: Exception | str) -> CassetteError:
    said = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
    return CassetteError(f"{where!r} is not a cassette: {to_one_line(said)}")
