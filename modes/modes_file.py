"""Modes files: text, which may be hostile, to modes.

``.kilocodemodes``, ``.roomodes`` and the user's ``custom_modes.yaml`` hold a list of
modes under ``customModes``, as YAML or JSON; a file of the clone's ``modes/`` holds one.
The user's ``permissions.yaml`` holds rules for every mode.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from modes.data_text import parse_data
from modes.errors import ModeFileError
from modes.mode import ModeText
from modes.permissions import Kind, Rules, with_patterns

# Of older or other editors' files, without a meaning here.
OLD_GROUPS = {
    "browser": "there are no browser tools",
    "modes": "switch_mode is in every mode",
}
IGNORED_KEYS = ("source", "iconName")
MAX_SHOWN = 200


@dataclass(frozen=True)
class ModesFile:
    """What a file holds."""

    modes: tuple[ModeText, ...]
    warnings: tuple[str, ...] = ()


def parse_modes(text: str, name: str) -> ModesFile:
    """The modes under ``customModes``.

    Raises ``ModeFileError`` that names the file, the mode, the field and the value.
    """
    data = parse_data(text, name)
    if not isinstance(data, dict) or list(data) != ["customModes"]:
        found = f"the keys {list(data)}" if isinstance(data, dict) else _shown(data)
        raise ModeFileError(f"{name}: the one top key is 'customModes' (got {found})")
    entries = data["customModes"]
    if not isinstance(entries, list):
        raise ModeFileError(f"{name}: customModes is a list of modes (got {_shown(entries)})")
    warnings: list[str] = []
    modes: dict[str, ModeText] = {}
    for number, entry in enumerate(entries):
        mode = _mode(entry, name, f"customModes.{number}", warnings)
        if mode.slug in modes:
            raise ModeFileError(
                f"{name}: two modes have the slug {mode.slug!r}; rename or remove one of them"
            )
        modes[mode.slug] = mode
    return ModesFile(tuple(modes.values()), tuple(warnings))


def parse_mode(text: str, name: str) -> ModesFile:
    """The one mode of a file of the clone; raises ``ModeFileError``."""
    warnings: list[str] = []
    return ModesFile((_mode(parse_data(text, name), name, "", warnings),), tuple(warnings))


def parse_permissions(text: str, name: str) -> Rules:
    """The rules of a user's ``permissions.yaml``; raises ``ModeFileError``."""
    try:
        return _RULES.validate_python(with_patterns(parse_data(text, name)))
    except ValidationError as error:
        raise ModeFileError(f"{name}: {_problems(error)}") from error


_RULES: TypeAdapter[dict[str, dict[str, Kind]]] = TypeAdapter(dict[str, dict[str, Kind]])


def _mode(entry: Any, name: str, place: str, warnings: list[str]) -> ModeText:
    slug = entry.get("slug") if isinstance(entry, dict) else None
    where = f"{name}: mode {slug!r}" if isinstance(slug, str) else f"{name}: {place}".rstrip(": ")
    where = where[:MAX_SHOWN]
    if isinstance(entry, dict):
        entry = {key: value for key, value in entry.items() if key not in IGNORED_KEYS}
        if isinstance(entry.get("groups"), list):
            entry["groups"] = list(_current(entry["groups"], where, warnings))
    try:
        return ModeText.model_validate(entry)
    except ValidationError as error:
        raise ModeFileError(f"{where}: {_problems(error)}") from error


def _current(groups: Sequence[Any], where: str, warnings: list[str]) -> Iterator[Any]:
    for group in groups:
        group_name = group[0] if isinstance(group, list) and group else group
        if isinstance(group_name, str) and group_name in OLD_GROUPS:
            warnings.append(f"{where}: group {group_name!r} is dropped: {OLD_GROUPS[group_name]}")
        else:
            yield group


def _problems(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'the mode'}: "
        f"{problem['msg'].removeprefix('Value error, ')} (got {_shown(problem['input'])})"
        for problem in error.errors()[:5]
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
