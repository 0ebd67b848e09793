"""``find_edge_lines``: where in a file the edges of a mode stand, for messages about them."""

from collections.abc import Collection, Sequence
from typing import Any

import yaml
from pydantic.alias_generators import to_camel

# The C parser is ten times as fast; not every PyYAML is built with it.
Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


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
