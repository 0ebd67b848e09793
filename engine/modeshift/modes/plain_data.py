"""``parse_data``: the plain data in a text of YAML or JSON, which may be hostile."""

import json
import re
from collections.abc import Iterable
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from modeshift.modes.errors import ModeFileError
from modeshift.modes.plain_text import to_one_line

JsonObject = dict[str, Any]
"""A JSON object, such as the arguments of a call: LangChain has its values as ``Any``."""
# The C parser is ten times as fast; not every PyYAML is built with it.
Loader: type[yaml.BaseLoader] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
# A line up to its first word, and behind its key.
_LAYOUT = re.compile(
    '^[ \u00a0\u200b\u2060\ufeff-]*(?:"?[\\w-]+"?:\u00a0+)?', re.MULTILINE | re.ASCII
)
_CLEANED = {0x00A0: " ", 0x200B: None, 0x200C: None, 0x2060: None, 0xFEFF: None}
# A joiner is part of many emoji, and of nothing else in a name.
_STRAY_JOINER = re.compile(r"\u200d(?=\w)|(?<=\w)\u200d|^\u200d|\u200d$")


class PlainData(BaseModel):
    """What a file says: snake_case in Python, camelCase in the file, and no other keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True
    )


def clean_layout(text: str) -> str:
    """``text`` with plain spaces where YAML takes nothing else."""
    return text if text.isascii() else _LAYOUT.sub(lambda match: match[0].translate(_CLEANED), text)


def clean_name(name: str) -> str:
    """``name`` without invisible characters and outer blanks."""
    return _STRAY_JOINER.sub("", name.translate(_CLEANED)).strip()


MAX_CHARACTERS = 1_000_000
MAX_VALUES = 150_000
MAX_DEPTH = 20


def parse_data(text: str, name: str) -> Any:
    """The data in ``text``, read as JSON if it can be that, else as YAML; None if it is empty.

    Raises ``ModeFileError``, which begins with ``name``, for text that is too long, too deep or
    neither of the two, for a key that is there twice, for an alias that refers to itself, and for
    more than ``MAX_VALUES`` values, counting every use of an alias.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_CHARACTERS:
        raise ModeFileError(
            f"{name}: the file has {len(text)} characters; {MAX_CHARACTERS} are the limit"
        )
    try:
        data = _parse_json(text) if text.lstrip().startswith("{") else _parse_yaml(text)
        json.dumps(data, ensure_ascii=False).encode()  # half a character cannot be stored
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        raise ModeFileError(f"{name}: neither YAML nor JSON: {to_one_line(str(error))}") from error
    except (UnfitError, RecursionError, ValueError, TypeError) as error:
        raise ModeFileError(f"{name}: {to_one_line(str(error))}") from error
    return data


class UnfitError(Exception):
    """Text that parses and is refused nevertheless."""


def _parse_json(text: str) -> object:
    try:
        return json.loads(
            text, object_pairs_hook=_build_dict, parse_int=str, parse_float=str, parse_constant=str
        )
    except json.JSONDecodeError as error:
        try:
            return _parse_yaml(text)  # a flow mapping of YAML begins with a brace too
        except yaml.YAMLError:
            raise error from None


def _build_dict(pairs: list[tuple[str, object]]) -> dict[str, object]:
    _refuse_twice((key, "") for key, _ in pairs)
    return dict(pairs)


def _refuse_twice(keys: Iterable[tuple[str, str]]) -> None:
    """Each key comes with where it is, in words."""
    seen = set[str]()
    for key, where in keys:
        if key in seen:
            raise UnfitError(f"the key {key!r} is there twice{where}")
        seen.add(key)


def _parse_yaml(text: str) -> object:
    check_size(text)
    loader = Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _count_values(node, {}, 0)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def check_size(text: str) -> None:
    """Checked before nodes are composed, which recurses in C without a limit."""
    depth = values = 0
    for event in yaml.parse(text, Loader=Loader):
        values += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise UnfitError(f"more than {MAX_DEPTH} levels")
        if values > MAX_VALUES:
            raise UnfitError(f"more than {MAX_VALUES} values")


def _count_values(node: yaml.Node, seen: dict[int, int], depth: int) -> int:
    """How many values the node stands for, every use of an alias counted; long text is several."""
    if depth > MAX_DEPTH:
        raise UnfitError("an alias refers to itself")
    if id(node) in seen:
        return seen[id(node)]
    total = 1
    if isinstance(node, yaml.ScalarNode):
        total += len(node.value) // 10
    elif isinstance(node, yaml.MappingNode):
        _refuse_twice(
            (key.value, f", again in line {key.start_mark.line + 1}")
            for key, _ in node.value
            if isinstance(key, yaml.ScalarNode)
        )
        total += sum(_count_values(part, seen, depth + 1) for pair in node.value for part in pair)
    elif isinstance(node, yaml.SequenceNode):
        total += sum(_count_values(part, seen, depth + 1) for part in node.value)
    if total > MAX_VALUES:
        raise UnfitError(f"more than {MAX_VALUES} values, aliases written out")
    seen[id(node)] = total
    return total
