"""``load_cassette``: reads the YAML file in which the traffic of a provider's client is recorded.

Bodies are stored decoded: JSON as a mapping, a stream as its text. The tests' recorder writes
the file; see docs/cassettes.md.
"""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from modes.errors import ConfigurationError
from modes.plain_text import to_one_line

MAX_VALUES = 1_000_000
# libyaml's parser would overflow the stack and crash the process.
_TOO_DEEP = re.compile(r"(?:[\[{]\s*){50}|(?:-\s+){50}|^ {1000}", re.MULTILINE)
# Ten times as fast where libyaml is available.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STRICT = ConfigDict(extra="forbid")

Json = Any


@dataclass(frozen=True, config=_STRICT)
class Header:
    """What was recorded, where and when."""

    source: str
    """The scripted provider, or the host of the real service."""
    model: str
    streamed: bool
    date: str
    """ISO 8601."""


@dataclass(frozen=True, config=_STRICT)
class Request:
    """What the client sent. A JSON body is decoded, any other is text."""

    method: str
    uri: str
    headers: dict[str, str]
    body: Json


@dataclass(frozen=True, config=_STRICT)
class Response:
    """What the client received, with the body as in ``Request``."""

    status: int
    headers: dict[str, str]
    body: Json


@dataclass(frozen=True, config=_STRICT)
class Interaction:
    """A request and its response."""

    request: Request
    response: Response


@dataclass(frozen=True, config=_STRICT)
class Recording:
    """The content of a cassette."""

    recorded: Header
    interactions: tuple[Interaction, ...]


_RECORDING = TypeAdapter(Recording)


def decode_body(body: bytes | str | None) -> Json:
    """Convert a body from the wire to the form that a cassette holds."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else body or ""
    try:
        return json.loads(text)
    except ValueError:
        return text


def encode_body(body: Json) -> bytes:
    """Convert a cassette's body to the form that goes over the wire."""
    return (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)).encode()


def load_cassette(path: Path) -> Recording:
    """Read a cassette; raises ``ConfigurationError`` if the file is not one."""
    try:
        text = path.read_text(encoding="utf-8")
        if _TOO_DEEP.search(text):
            raise ValueError("it is nested too deeply")
        data = yaml.load(text, Loader=_LOADER)  # noqa: S506  # a safe loader
        _check_size(data)
        json.dumps(data)  # refuses dates, and a value that contains itself
        return _RECORDING.validate_python(data)
    except OSError as error:
        raise ConfigurationError(
            f"the cassette {str(path)!r} cannot be read: {error.strerror}"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise _not_a_cassette(path, why) from error
    except (ValueError, TypeError, RecursionError, yaml.YAMLError) as error:
        raise _not_a_cassette(path, f"{type(error).__name__}: {error}") from error


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


def _not_a_cassette(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{str(path)!r} is not a cassette of this project: {to_one_line(why)}"
    )
