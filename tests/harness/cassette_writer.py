"""``dump_cassette``: the text of a cassette, laid out for people.

What repeats, such as a prompt or the tools, is written once and referred to (``&`` and ``*``).
"""

import json
import re
from collections.abc import Hashable
from dataclasses import asdict, replace
from typing import Any, ClassVar

import yaml

from graph.replay.cassette import Json, Recording

SCRIPTED = "scripted provider"
"""The source of a recording that was not made at the real service."""
_FIRST = {name: rank for rank, name in enumerate(("type", "role", "id", "name", "model"))}
_REPEATED = 300
"""Values of at least this many characters are written once."""


def is_same(one: Recording, other: Recording) -> bool:
    """Whether the recordings are equal but for their dates."""
    return replace(one, recorded=replace(one.recorded, date=other.recorded.date)) == other


def dump_cassette(recording: Recording, title: str) -> str:
    """The text of a cassette; ``title`` becomes its first line, a comment."""
    found: dict[str, Any] = {}
    data = asdict(recording)
    data["interactions"] = list(data["interactions"])
    for one in data["interactions"]:
        one["request"]["body"] = _share(sort_keys(one["request"]["body"]), found)
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    total = len(recording.interactions)
    parts = re.split(r"^(?=- request:)", text, flags=re.MULTILINE)
    # No empty line before the comment: a stream's text ends with some, and they count.
    numbered = [f"# {number} of {total}\n{part}" for number, part in enumerate(parts[1:], 1)]
    return "".join([f"# {title}\n", parts[0], *numbered])


def sort_keys(value: Json) -> Json:
    """Keys in an order that does not depend on a client's version; what a reader seeks is first."""
    match value:
        case dict():
            keys = sorted(value, key=lambda key: (_FIRST.get(key, len(_FIRST)), key))
            return {key: sort_keys(value[key]) for key in keys}
        case list():
            return [sort_keys(one) for one in value]
        case _:
            return value


def _share(value: Json, found: dict[str, Json]) -> Json:
    """``value``, in which every long part that was in ``found`` is that very object."""
    text = json.dumps(value)
    if len(text) < _REPEATED:
        return value
    if text not in found:
        match value:
            case dict():
                found[text] = {key: _share(one, found) for key, one in value.items()}
            case list():
                found[text] = [_share(one, found) for one in value]
            case _:
                found[text] = value
    return found[text]


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_BASE: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_BASE):  # type: ignore[misc]  # whichever is available
    """Refers to long texts too, and writes those of several lines as they are."""

    yaml_representers: ClassVar[dict[Any, Any]] = {
        **_BASE.yaml_representers,
        str: _represent_text,
    }

    def ignore_aliases(self, data: Hashable) -> bool:
        return not isinstance(data, str | dict | list) or len(json.dumps(data)) < _REPEATED
