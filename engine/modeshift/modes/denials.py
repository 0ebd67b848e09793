"""``find_denials``: what a file of modes denies, also where a mode in it cannot be used."""

import re

import yaml

from modeshift.modes.errors import ModeFileError
from modeshift.modes.files import MODES
from modeshift.modes.plain_data import Loader, UnfitError, check_size, clean_layout, clean_name
from modeshift.modes.plain_text import to_one_line
from modeshift.modes.rules.matching import EVERY
from modeshift.modes.rules.permissions import Kind, Rules

_ESCAPE = re.compile(r"\\[xuU\s]")
"""Escapes by which YAML and JSON can hide a word."""


def find_denials(text: str, name: str) -> dict[str, Rules]:
    """The rules that deny, by slug, read as widely as can be: also under misspelt or double keys.

    Raises ``ModeFileError``, which begins with ``name``, for a text with "deny" that is no YAML.
    """
    text = clean_layout(text.removeprefix("\ufeff"))
    if "deny" not in text and not _ESCAPE.search(text):
        return {}
    try:
        check_size(text)
        root = yaml.compose(text, Loader=Loader)
    except (yaml.YAMLError, UnfitError, RecursionError, ValueError) as error:
        if "deny" not in text:
            return {}
        why = f"neither YAML nor JSON: {to_one_line(str(error))}; what it denies cannot be read"
        raise ModeFileError(f"{name}: {why}, so mend it, or move it away") from error
    denials = dict[str, dict[str, dict[str, Kind]]]()
    for modes in _list_values(root, MODES):
        for mode in modes.value if isinstance(modes, yaml.SequenceNode) else ():
            slugs = [clean_name(str(node.value)) for node in _list_values(mode, "slug")]
            for key, permissions in _list_pairs(mode):
                for tool, kinds in _list_pairs(permissions) if "permission" in key.lower() else ():
                    for pattern, kind in _list_pairs(kinds) or [(EVERY, kinds)]:
                        for slug in slugs if kind.value == "deny" else ():
                            denials.setdefault(slug, {}).setdefault(tool, {})[pattern] = "deny"
    return {**denials}


def _list_pairs(node: object) -> list[tuple[str, yaml.Node]]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return [(key.value, value) for key, value in pairs if isinstance(key, yaml.ScalarNode)]


def _list_values(node: object, name: str) -> list[yaml.Node]:
    return [value for key, value in _list_pairs(node) if key == name]
