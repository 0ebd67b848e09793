"""The file of a cassette: what a provider's client sent and got, as YAML that people read.

Bodies are decoded: JSON stands as a mapping, a stream as its text. What comes again, a prompt
or the tools, stands once and is referred to (``&`` and ``*``).
"""

import json
import re
from collections.abc import Hashable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from modes.errors import ConfigurationError
from modes.plain_text import plain

SCRIPTED = "scripted provider"
"""Where it was recorded, when it was not at the real service."""
_FIRST = {name: rank for rank, name in enumerate(("type", "role", "id", "name", "model"))}
_REPEATED = 300
"""Characters from which on what comes again is referred to."""
MAX_VALUES = 1_000_000
# The parser in C would run out of stack, and take the process with it.
_TOO_DEEP = re.compile(r"(?:[\[{]\s*){50}|(?:-\s+){50}|^ {1000}", re.MULTILINE)
# In C where there is one: ten times as fast.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STRICT = ConfigDict(extra="forbid")

Json = Any


@dataclass(frozen=True, config=_STRICT)
class Header:
    """What was recorded, where and when."""

    source: str
    """``SCRIPTED``, or the host of the real service."""
    model: str
    streamed: bool
    date: str
    """ISO 8601."""


@dataclass(frozen=True, config=_STRICT)
class Request:
    """What the client sent; a body that is JSON is decoded, any other is text."""

    method: str
    uri: str
    headers: dict[str, str]
    body: Json


@dataclass(frozen=True, config=_STRICT)
class Response:
    """What it got, the body as in ``Request``."""

    status: int
    headers: dict[str, str]
    body: Json


@dataclass(frozen=True, config=_STRICT)
class Interaction:
    """A request and its answer."""

    request: Request
    response: Response


@dataclass(frozen=True, config=_STRICT)
class Recording:
    """A cassette's content."""

    recorded: Header
    interactions: tuple[Interaction, ...]

    def is_same(self, other: "Recording") -> bool:
        """Whether only the day differs."""
        return replace(self, recorded=replace(self.recorded, date=other.recorded.date)) == other


def decode_body(body: bytes | str | None) -> Json:
    """A body as it stands in a cassette."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else body or ""
    try:
        return json.loads(text)
    except ValueError:
        return text


def encode_body(body: Json) -> bytes:
    """A body as it goes over the wire."""
    return (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)).encode()


def dump_cassette(recording: Recording, title: str) -> str:
    """The text of a cassette; ``title`` becomes its first line, a comment."""
    found: dict[str, Any] = {}
    data = asdict(recording)
    data["interactions"] = list(data["interactions"])
    for one in data["interactions"]:
        one["request"]["body"] = _shared(in_order(one["request"]["body"]), found)
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    total = len(recording.interactions)
    parts = re.split(r"^(?=- request:)", text, flags=re.MULTILINE)
    # No empty line before the comment: a stream's text ends with some, which count.
    numbered = [f"# {number} of {total}\n{part}" for number, part in enumerate(parts[1:], 1)]
    return "".join([f"# {title}\n", parts[0], *numbered])


def in_order(value: Json) -> Json:
    """Keys in an order that does not depend on a client's version; first what a reader seeks."""
    match value:
        case dict():
            keys = sorted(value, key=lambda key: (_FIRST.get(key, len(_FIRST)), key))
            return {key: in_order(value[key]) for key in keys}
        case list():
            return [in_order(one) for one in value]
        case _:
            return value


def _shared(value: Json, found: dict[str, Json]) -> Json:
    """``value`` in which every long part that came before is the very object that came before."""
    text = json.dumps(value)
    if len(text) < _REPEATED:
        return value
    if text not in found:
        match value:
            case dict():
                found[text] = {key: _shared(one, found) for key, one in value.items()}
            case list():
                found[text] = [_shared(one, found) for one in value]
            case _:
                found[text] = value
    return found[text]


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_BASE: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_BASE):  # type: ignore[misc]  # whichever there is
    """Refers to long texts too, and writes those of several lines as they are."""

    yaml_representers: ClassVar[dict[Any, Any]] = {**_BASE.yaml_representers, str: _text}

    def ignore_aliases(self, data: Hashable) -> bool:
        return not isinstance(data, str | dict | list) or len(json.dumps(data)) < _REPEATED


_READ = TypeAdapter(Recording)


def load_cassette(path: Path) -> Recording:
    """Read a cassette; raises ``ConfigurationError`` where it is none."""
    try:
        text = path.read_text(encoding="utf-8")
        if _TOO_DEEP.search(text):
            raise ValueError("it is nested too deeply")
        data = yaml.load(text, Loader=_LOADER)  # noqa: S506  # a safe one
        _check_size(data)
        json.dumps(data)  # no dates, nothing that holds itself
        return _READ.validate_python(data)
    except OSError as error:
        raise ConfigurationError(
            f"the cassette {str(path)!r} cannot be read: {error.strerror}"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _none(path, f"{where}: {first['msg']}") from error
    except (ValueError, TypeError, RecursionError, yaml.YAMLError) as error:
        raise _none(path, f"{type(error).__name__}: {error}") from error


def _check_size(data: Json) -> None:
    """Raise ``ValueError`` for more than there is in any cassette, aliases written out."""
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


def _none(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError(f"{str(path)!r} is no cassette of this project: {plain(why)}")
