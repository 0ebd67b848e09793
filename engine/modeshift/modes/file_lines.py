"""``find_line``, ``find_edge_lines``: where in a file something stands, for messages about it."""

from collections.abc import Collection, Sequence
from typing import Any

import yaml
from pydantic.alias_generators import to_camel

# The C parser is ten times as fast; not every PyYAML is built with it.
Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def find_line(text: str, place: Sequence[str | int]) -> int | None:
    """The line of what stands at a place, or of the last on the way to it that is there.

    None for JSON that is not YAML, too.
    """
    line = 1
    try:
        node = yaml.compose(text.removeprefix("\ufeff"), Loader=Loader)
    except yaml.YAMLError:
        return None
    for step in place:
        if isinstance(node, yaml.MappingNode):
            parts = {key.value: (key, value) for key, value in node.value}
        else:
            parts = dict(enumerate((part, part) for part in getattr(node, "value", ())))
        if step not in parts:
            break
        key, node = parts[step]
        line = key.start_mark.line + 1
    return line


def find_edge_lines(text: str, place: Sequence[str | int], keys: Collection[str]) -> dict[str, int]:
    """The line in which each edge of a mode stands, by its key, and by that and its number."""
    try:
        node: Any = yaml.compose(text.removeprefix("\ufeff"), Loader=Loader)
    except yaml.YAMLError:  # JSON that is not YAML, too
        return {}
    for step in place:
        parts = node.value
        node = (
            parts[step]
            if isinstance(step, int)
            else next(value for key, value in parts if key.value == step)
        )
    lines = dict[str, int]()
    for key, value in node.value:
        if (name := to_camel(key.value)) in keys:
            lines[name] = key.start_mark.line + 1
            edges = value.value if isinstance(value, yaml.SequenceNode) else ()
            for number, edge in enumerate(edges):
                lines[f"{name}.{number}"] = edge.start_mark.line + 1
    return lines
