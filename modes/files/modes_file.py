"""Reading modes files, whose text may be hostile.

``.kilocodemodes``, ``.roomodes`` and the user's ``custom_modes.yaml`` have a list of modes under
``customModes``, as YAML or JSON; a file in the clone's ``modes/`` has one. The user's
``permissions.yaml`` has rules for every mode.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from modes.errors import ModeFileError
from modes.files.bounded_yaml import parse_data
from modes.mode import ModeText
from modes.plain_text import to_one_line
from modes.rules.permissions import Kind, Rules, with_patterns

# What older or other editors' files have, and has no meaning here.
OLD_GROUPS = {
    "browser": "there are no browser tools",
    "modes": "switch_mode is in every mode",
}
OLD_KEYS = {"rulesFiles": "put the rules into .kilocode/rules-{slug}/"}
IGNORED_KEYS = ("source", "iconName")
MAX_MODES = 1000
MAX_SHOWN = 100


@dataclass(frozen=True)
class ModesFile:
    """The modes in a file, and what was dropped from it."""

    modes: tuple[ModeText, ...]
    warnings: tuple[str, ...] = ()


def parse_modes(text: str, name: str) -> ModesFile:
    """The modes under ``customModes``.

    Raises ``ModeFileError`` that names the file, the mode, the field and the value.
    """
    data = parse_data(text, name)
    if data is None:
        raise ModeFileError(f"{name}: the file is empty")
    if not isinstance(data, dict) or list(data) != ["customModes"]:
        found = f"the keys {_shorten(list(data))}" if isinstance(data, dict) else _shorten(data)
        raise ModeFileError(f"{name}: the only top-level key must be 'customModes' (got {found})")
    entries = data["customModes"]
    if not isinstance(entries, list) or len(entries) > MAX_MODES:
        raise ModeFileError(
            f"{name}: customModes is a list of at most {MAX_MODES} modes (got {_shorten(entries)})"
        )
    dropped: dict[str, list[str]] = {}
    modes: dict[str, ModeText] = {}
    for number, entry in enumerate(entries):
        mode = _parse_mode(entry, name, f"customModes.{number}", dropped)
        if mode.slug in modes:
            raise ModeFileError(
                f"{name}: two modes have the slug {mode.slug!r}; rename or remove one of them"
            )
        modes[mode.slug] = mode
    return ModesFile(tuple(modes.values()), _list_warnings(name, dropped))


def parse_mode(text: str, name: str) -> ModesFile:
    """The one mode of a file of the clone; raises ``ModeFileError``."""
    data = parse_data(text, name)
    if data is None:
        raise ModeFileError(f"{name}: the file is empty")
    dropped: dict[str, list[str]] = {}
    return ModesFile((_parse_mode(data, name, "", dropped),), _list_warnings(name, dropped))


def parse_permissions(text: str, name: str) -> Rules:
    """The rules of a user's ``permissions.yaml``; raises ``ModeFileError``."""
    try:
        return _RULES.validate_python(with_patterns(parse_data(text, name) or {}))
    except ValidationError as error:
        raise ModeFileError(f"{name}: {_describe_problems(error)}") from error


_RULES: TypeAdapter[dict[str, dict[str, Kind]]] = TypeAdapter(dict[str, dict[str, Kind]])


def _parse_mode(entry: Any, name: str, place: str, dropped: dict[str, list[str]]) -> ModeText:
    slug = entry.get("slug") if isinstance(entry, dict) else None
    where = f"{name}: mode {_shorten(slug)}" if slug else f"{name}: {place}".rstrip(": ")
    if isinstance(entry, dict):
        for key in OLD_KEYS.keys() & entry.keys():
            dropped.setdefault(f"the key {key!r} is dropped: {OLD_KEYS[key]}", []).append(str(slug))
        known = (*IGNORED_KEYS, *OLD_KEYS)
        entry = {key: value for key, value in entry.items() if key not in known}
        if isinstance(entry.get("groups"), list):
            entry["groups"] = list(_drop_old_groups(entry["groups"], str(slug), dropped))
    try:
        return ModeText.model_validate(entry)
    except ValidationError as error:
        raise ModeFileError(f"{where}: {_describe_problems(error)}") from error


def _drop_old_groups(
    groups: Sequence[Any], slug: str, dropped: dict[str, list[str]]
) -> Iterator[Any]:
    for group in groups:
        name = group[0] if isinstance(group, list) and group else group
        if isinstance(name, str) and name in OLD_GROUPS:
            slugs = dropped.setdefault(f"group {name!r} is dropped: {OLD_GROUPS[name]}", [])
            slugs.append(slug)
        else:
            yield group


def _list_warnings(name: str, dropped: dict[str, list[str]]) -> tuple[str, ...]:
    """One line for each kind of thing that was dropped, not one for each mode."""
    return tuple(
        f"{name}: {what} (in {to_one_line(', '.join(dict.fromkeys(slugs)), MAX_SHOWN)})"
        for what, slugs in dropped.items()
    )


def _describe_problems(error: ValidationError) -> str:
    return "; ".join(
        f"{to_one_line('.'.join(map(str, problem['loc'])), MAX_SHOWN) or 'the mode'}: "
        f"{_describe_problem(problem)} (got {_shorten(problem['input'])})"
        for problem in error.errors()[:5]
    )


def _describe_problem(problem: Any) -> str:
    """A problem that pydantic found, in words for somebody who writes a modes file."""
    kind = problem["type"]
    if kind in ("enum", "literal_error"):
        return f"is not {problem['ctx']['expected']}"
    if kind == "string_pattern_mismatch" and problem["loc"][-1] == "model":
        return "is neither 'offline' nor 'provider:name'"
    return _TEXTS.get(kind) or to_one_line(str(problem["msg"]).removeprefix("Value error, "))


_TEXTS = {
    "extra_forbidden": "unknown key",
    "missing": "is missing",
    "string_type": "is not text",
    "string_pattern_mismatch": "is blank",
    "tuple_type": "is not a list",
    "model_type": "is not a mapping of keys",
    "model_attributes_type": "is not a mapping of keys",
    "mapping_type": "is not a mapping of keys",
    "dict_type": "is not a mapping of keys",
}


def _shorten(value: Any) -> str:
    return to_one_line(repr(value) if not isinstance(value, str) else f"'{value}'", MAX_SHOWN)
