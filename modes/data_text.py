"""YAML and JSON from files that somebody else may have written: bounded, and no key twice."""

import json
from collections.abc import Hashable
from typing import Any

import yaml

from modes.errors import ModeFileError

MAX_CHARACTERS = 1_000_000
MAX_VALUES = 100_000
MAX_DEPTH = 20

# The C parser takes a tenth of the time; a PyYAML built without it has none.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_data(text: str, name: str) -> Any:
    """The data in ``text``, JSON if it can be that and else YAML.

    Raises ``ModeFileError``, which begins with ``name``: for text that is empty, too
    long, neither of the two, or too deep; for a key that is there twice; for an alias
    that refers to itself, and for more than ``MAX_VALUES`` values, aliases written out.
    """
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise ModeFileError(f"{name}: the file is empty")
    if len(text) > MAX_CHARACTERS:
        raise ModeFileError(
            f"{name}: the file has {len(text)} characters; {MAX_CHARACTERS} are the limit"
        )
    try:
        return _json(text) if text.lstrip().startswith("{") else _yaml(text)
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        problem = " ".join(str(error).split())
        raise ModeFileError(f"{name}: neither YAML nor JSON: {problem}") from error
    except (_UnfitError, RecursionError, ValueError) as error:
        raise ModeFileError(f"{name}: {error}") from error


class _UnfitError(Exception):
    """Text that parses, and is refused all the same."""


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        try:
            return _yaml(text)  # a flow mapping of YAML begins with a brace too
        except yaml.YAMLError:
            raise error from None


def _once(pairs: list[tuple[Hashable, Any]]) -> dict[Hashable, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _UnfitError(f"the key {twice!r} is there twice")
    return data


def _yaml(text: str) -> Any:
    _refuse_depth(text)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise _UnfitError("the file is empty")
        _values(node, {}, 0)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _refuse_depth(text: str) -> None:
    """Before nodes are composed, which recurses in C without a bound."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _UnfitError(f"more than {MAX_DEPTH} levels")


def _values(node: yaml.Node | None, seen: dict[int, int], depth: int) -> int:
    """How many values the node stands for, aliases written out."""
    if depth > MAX_DEPTH:
        raise _UnfitError("an alias refers to itself")
    if id(node) in seen:
        return seen[id(node)]
    total = 1
    if isinstance(node, yaml.MappingNode):
        _once([(key.value, None) for key, _ in node.value if isinstance(key, yaml.ScalarNode)])
        total += sum(_values(part, seen, depth + 1) for pair in node.value for part in pair)
    elif isinstance(node, yaml.SequenceNode):
        total += sum(_values(part, seen, depth + 1) for part in node.value)
    if total > MAX_VALUES:
        raise _UnfitError(f"more than {MAX_VALUES} values, aliases written out")
    seen[id(node)] = total
    return total
