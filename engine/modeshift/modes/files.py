"""``parse_modes``: the modes in a file of YAML or JSON, which may be hostile."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from modeshift.modes.errors import ModeFileError
from modeshift.modes.facts import ProjectTests
from modeshift.modes.mode import MODEL, Level, Mode, ModePrompt, ModeText
from modeshift.modes.plain_data import (
    Loader,
    PlainData,
    UnfitError,
    check_size,
    clean_layout,
    clean_name,
    parse_data,
)
from modeshift.modes.plain_text import to_one_line
from modeshift.modes.rules.matching import EVERY
from modeshift.modes.rules.permissions import Kind, Rules, with_patterns

# What older or other editors' files have, and has no meaning here.
OLD_GROUPS = {"browser": "there are no browser tools", "modes": "switch_mode is in every mode"}
IGNORED_KEYS = ("source", "iconName")
KEYS = {key for name in ModeText.model_fields if name != "lines" for key in (name, to_camel(name))}
EDGES = ("switches", "enterFrom", "subtasks", "then")
_TO_RIGHTS = {name.lower(): name for name in ("permissions", "conversation", *EDGES)}
"""Keys that decide on rights: what is nearly one of them is refused."""
MODES, PROMPTS = "customModes", "customModePrompts"
MAX_MODES = 1000
MAX_PARSED = 16
"""The most files whose parsed modes are kept."""
MAX_SHOWN = 100
MAX_WARNINGS = 20

_Dropped = dict[str, list[str]]
"""What was dropped, in words, with the modes that had it."""


@dataclass(frozen=True)
class ModesFile:
    """The modes in a file, and what was left out of it."""

    modes: tuple[Mode, ...]
    warnings: tuple[str, ...] = ()
    """What was dropped."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why a mode was left out, by its slug."""
    prompts: Mapping[str, ModePrompt] = field(default_factory=dict)
    """Other words for built-in modes, by slug."""


@lru_cache(MAX_PARSED)  # of the text itself: another text is parsed, whatever the clock says
def parse_modes(text: str, name: str, level: Level = Level.PROJECT) -> ModesFile:
    """The modes under ``customModes``; one that cannot be used is left out alone.

    Raises ``ModeFileError`` for a file without any; like ``refused`` it names the file, the mode,
    the field and the value.
    """
    data = parse_data(clean_layout(text), name)
    if data is None:
        raise ModeFileError(f"{name}: the file is empty")
    if not isinstance(data, dict) or not data.keys() & {MODES, PROMPTS}:
        content = f"the keys {_shorten(list(data))}" if isinstance(data, dict) else _shorten(data)
        raise ModeFileError(f"{name}: there is no list of modes under {MODES!r} (got {content})")
    dropped: _Dropped = {}
    for key in data.keys() - {MODES, PROMPTS}:
        _drop_key(key, "the file", dropped)
    entries = data.get(MODES) or []
    if not isinstance(entries, list) or len(entries) > MAX_MODES:
        raise ModeFileError(
            f"{name}: customModes is a list of at most {MAX_MODES} modes (got {_shorten(entries)})"
        )
    slugs = [_find_slug(entry) or f"{MODES}.{number}" for number, entry in enumerate(entries)]
    modes: list[Mode] = []
    refused: dict[str, str] = {}
    for slug, count in Counter(slugs).items():
        if count > 1:
            refused[slug] = f"{name}: two modes have the slug {slug!r}; rename or remove one"
    for number, (slug, entry) in enumerate(zip(slugs, entries, strict=True)):
        try:
            if slug not in refused:
                modes.append(_parse_mode(entry, name, level, dropped, text, MODES, number))
        except ModeFileError as error:
            refused[slug] = str(error) if _find_slug(entry) else f"{error} ({slug})"
    prompts = _parse_prompts(data.get(PROMPTS, {}), dropped)
    return ModesFile(tuple(modes), _list_warnings(name, dropped), refused, prompts)


@lru_cache(MAX_PARSED)
def parse_mode(text: str, name: str) -> ModesFile:
    """The one mode of a file of the clone; raises ``ModeFileError``."""
    data = parse_data(text, name)
    if data is None:
        raise ModeFileError(f"{name}: the file is empty")
    dropped: _Dropped = {}
    return ModesFile(
        (_parse_mode(data, name, Level.BUILT_IN, dropped, text),), _list_warnings(name, dropped)
    )


def parse_permissions(text: str, name: str) -> Rules:
    """The rules of a user's ``permissions.yaml``; raises ``ModeFileError``."""
    try:
        return _RULES.validate_python(with_patterns(parse_data(text, name) or {}))
    except ValidationError as error:
        raise ModeFileError(f"{name}: {_describe_problems(error)}") from error


PROJECT = "project.yaml"
PROPERTIES = "properties.yaml"
NO_MODES = (PROJECT, PROPERTIES)
"""Files in the folder of the clone's modes that hold no mode."""


class _Project(PlainData):
    tests: ProjectTests | None = None


def parse_project(text: str, name: str) -> ProjectTests | None:
    """The owner's tests in ``modes/project.yaml``; raises ``ModeFileError``."""
    data = parse_data(text, name) or {}
    try:
        return _Project.model_validate(data).tests
    except ValidationError as error:
        raise ModeFileError(f"{name}: {_describe_problems(error, 'the file')}") from error


_RULES: TypeAdapter[dict[str, dict[str, Kind]]] = TypeAdapter(dict[str, dict[str, Kind]])
_PROMPTS: TypeAdapter[dict[str, ModePrompt]] = TypeAdapter(dict[str, ModePrompt])


def _find_slug(entry: object) -> str:
    slug = entry.get("slug") if isinstance(entry, dict) else None
    return clean_name(slug) if isinstance(slug, str) else ""


def _parse_mode(
    entry: object, name: str, level: Level, dropped: _Dropped, text: str, *place: str | int
) -> Mode:
    """``place`` is the path of the entry in ``text``."""
    slug, lines = _find_slug(entry), dict[str, int]()
    where = f"{name}: mode {_shorten(slug)}" if slug else name
    try:
        if isinstance(entry, dict):
            entry = _clean_entry(entry, slug, dropped)
            if entry.keys() & {*EDGES, "enter_from"}:
                lines = _find_edge_lines(text, place)
                entry["lines"] = lines
        written = ModeText.model_validate(entry)
        return Mode.model_construct(**dict(written), level=level, file=name)
    except ValidationError as error:
        at = ".".join(map(str, error.errors()[0]["loc"][:2]))
        line = lines.get(at) or lines.get(at.partition(".")[0])
        where = where.replace(name, f"{name}, line {line}", 1) if line else where
        raise ModeFileError(f"{where}: {_describe_problems(error)}") from error
    except ValueError as error:
        raise ModeFileError(f"{where}: {error}") from error


def _find_edge_lines(text: str, place: Sequence[str | int]) -> dict[str, int]:
    """The line in which each edge of a mode stands, by its key, and by that and its number."""
    try:
        node: Any = yaml.compose(text.removeprefix("\ufeff"), Loader=Loader)
    except yaml.YAMLError:  # JSON that is not YAML, too
        return {}
    for step in place:
        node = node.value[step] if isinstance(step, int) else _list_values(node, step)[0]
    lines = dict[str, int]()
    for key, value in node.value:
        if (name := to_camel(key.value)) in EDGES:
            lines[name] = key.start_mark.line + 1
            edges = value.value if isinstance(value, yaml.SequenceNode) else ()
            for number, edge in enumerate(edges):
                lines[f"{name}.{number}"] = edge.start_mark.line + 1
    return lines


def _clean_entry(entry: Mapping[str, object], slug: str, dropped: _Dropped) -> dict[str, object]:
    """What a mode has of the keys that there are; raises ``ValueError`` for one near to a right."""
    kept: dict[str, object] = {}
    for key, value in entry.items():
        if key == "model" and value is not None and not re.fullmatch(MODEL, str(value)):
            why = "is neither 'offline' nor 'provider:name'; MODEL is used"
            _drop(f"the model {_shorten(value)} {why}", slug, dropped)
        elif key in KEYS:
            kept[key] = value
            if key in ("slug", "name") and isinstance(value, str):
                kept[key] = clean_name(value)
        elif near := get_close_matches(key.lower(), _TO_RIGHTS, 1, cutoff=0.85):
            raise ValueError(f"unknown key {_shorten(key)}; write {_TO_RIGHTS[near[0]]!r}")
        elif "permission" in key.lower():
            raise ValueError(f"unknown key {_shorten(key)}; write 'permissions'")
        elif key not in IGNORED_KEYS:
            _drop_key(key, slug, dropped)
    if isinstance(groups := kept.get("groups"), list):
        kept["groups"] = list(_clean_groups(groups, slug, dropped))
    return kept


def _clean_groups(groups: Sequence[object], slug: str, dropped: _Dropped) -> Iterator[object]:
    for group in groups:
        name, options = (
            (group[0], group[1:]) if isinstance(group, list) and group else (group, None)
        )
        if isinstance(name, str):
            name = clean_name(name)
        if isinstance(name, str) and name in OLD_GROUPS:
            _drop(f"group {name!r} is dropped: {OLD_GROUPS[name]}", slug, dropped)
        else:
            yield name if options is None else [name, *options]


def _parse_prompts(entries: object, dropped: _Dropped) -> dict[str, ModePrompt]:
    """Words carry no rights, so those that do not fit are dropped."""
    try:
        return _PROMPTS.validate_python(entries or {})
    except ValidationError as error:
        _drop(f"the key {PROMPTS!r} is dropped: {_describe_problems(error)}", "the file", dropped)
        return {}


def _drop_key(key: str, slug: str, dropped: _Dropped) -> None:
    _drop(f"the key {_shorten(key)} is dropped: it means nothing here", slug, dropped)


def _drop(what: str, slug: str, dropped: _Dropped) -> None:
    dropped.setdefault(what, []).append(slug)


def _list_warnings(name: str, dropped: _Dropped) -> tuple[str, ...]:
    """One line for each kind of thing that was dropped, not one for each mode."""
    lines = [
        f"{name}: {what} (in {to_one_line(', '.join(dict.fromkeys(slugs)), MAX_SHOWN)})"
        for what, slugs in dropped.items()
    ]
    if (more := len(lines) - MAX_WARNINGS) > 0:
        lines[MAX_WARNINGS:] = [f"{name}: {more} more keys are dropped"]
    return tuple(lines)


def _describe_problems(error: ValidationError, subject: str = "the mode") -> str:
    return "; ".join(
        f"{to_one_line('.'.join(map(str, problem['loc'])), MAX_SHOWN) or subject}: "
        f"{_describe_problem(problem)} (got {_shorten(problem['input'])})"
        for problem in error.errors()[:5]
    )


def _describe_problem(problem: ErrorDetails) -> str:
    """A problem that pydantic found, in words for somebody who writes a modes file."""
    kind = problem["type"]
    if kind in ("enum", "literal_error"):
        return f"is not {problem['ctx']['expected']}"
    if kind.startswith("model_") and problem["loc"][:1] == ("groups",):
        return "is neither a group's name nor a list of it and one mapping of options"
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


def _shorten(value: object) -> str:
    return to_one_line(repr(value) if not isinstance(value, str) else f"'{value}'", MAX_SHOWN)


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
