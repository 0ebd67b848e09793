"""``ModeText``: a mode as files have it, in the shape of Kilo Code's and Roo Code's; ``Mode``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel
from typing_extensions import override

from modeshift.modes.edges.edges import EntryEdges, SwitchEdges
from modeshift.modes.plain_data import PlainData
from modeshift.modes.plain_text import is_plain, to_one_line
from modeshift.modes.rules.files import check_file_regex, is_found, is_found_in_every_path
from modeshift.modes.rules.matching import check_glob, word_matches
from modeshift.modes.rules.permissions import Kind, Rules, with_patterns

_SLUG = re.compile(r"[A-Za-z0-9-]+")
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|$)|[。！？])", re.DOTALL)  # noqa: RUF001  # Chinese
_NotBlank = Annotated[str, Field(pattern=r"\S")]
MODEL = r"^(offline|[^:/\s]+:\S+)$"
MAX_GROUPS = 20
MAX_NAME = 100
MAX_SENTENCE = 200


def _check_plain(name: str) -> str:
    # It is part of questions to a person: it must not pass for words of ours.
    if not is_plain(name) or len(name) > MAX_NAME:
        raise ValueError(f"is not one line of at most {MAX_NAME} printable characters")
    return name


_OneLine = Annotated[_NotBlank, AfterValidator(_check_plain)]
_Patterns = Mapping[Annotated[str, Field(min_length=1)], Kind]
_Permissions = Annotated[Mapping[str, _Patterns], BeforeValidator(with_patterns)]
_NamePattern = Annotated[str, AfterValidator(check_glob)]


Part = Literal["questions", "todos", "completion"]
_RESTRICT = {"sandbox": "command", "file_regex": "edit", "servers": "mcp", "tools": "mcp"}
"""The options of a ``Grant``, each with the group that may have it."""


class Grant(PlainData):
    """A tool group that a mode has; ``edit`` may be restricted to some files, ``mcp`` to tools.

    In YAML the group's name, or a pair of the name and a mapping with ``fileRegex`` and
    ``description``, for ``command`` with ``sandbox``, for ``mcp`` with ``servers`` and ``tools``.
    A ``fileRegex`` that is found in every path is no restriction, and None here.
    """

    group: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    file_regex: str | None = None
    description: str | None = None
    sandbox: Literal["read-only"] | None = None
    """``read-only``: commands run unasked, where they can change nothing; None for any command."""
    servers: tuple[_NamePattern, ...] | None = None
    """Names of MCP servers, with ``*`` and ``?``; None for all."""
    tools: tuple[_NamePattern, ...] | None = None
    """Names of tools as their server has them, with ``*`` and ``?``; None for all."""

    @field_validator("file_regex")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        # Only called if the file has the key: None is `fileRegex:` with nothing behind it.
        if not pattern:
            raise ValueError("an empty fileRegex restricts nothing; leave it out, or write one")
        check_file_regex(pattern)
        return None if is_found_in_every_path(pattern) else pattern

    @field_validator("sandbox", mode="before")
    @classmethod
    def _says_which(cls, sandbox: object) -> object:
        return "" if sandbox is None else sandbox  # only called if the file has the key

    @model_validator(mode="after")
    def _fits_group(self) -> Self:
        for option, group in _RESTRICT.items():
            if getattr(self, option) is not None and self.group != group:
                restricts = f"{to_camel(option)} restricts the group {group!r}"
                raise ValueError(f"{restricts}, not {self.group!r}")
        return self

    def has_server(self, server: str) -> bool:
        """Whether the grant is for the MCP server."""
        return _is_named(self.servers, server)

    def has_tool(self, tool: str) -> bool:
        """Whether the grant is for the tool, by its name at the server."""
        return _is_named(self.tools, tool)

    def permits(self, path: str) -> bool:
        """Whether the resolved ``path`` may be changed; raises ``SlowPatternError``."""
        return is_found(self.file_regex or "", path)


def _is_named(patterns: tuple[str, ...] | None, name: str) -> bool:
    return patterns is None or any(word_matches(pattern, name) for pattern in patterns)


class RulesFile(PlainData, extra="ignore"):
    """Rules that an exported mode brings along, with the path they had."""

    relative_path: str = ""
    content: str = ""


class ModePrompt(PlainData, extra="ignore"):
    """Other words for a built-in mode, whose rights stay; what is empty stays as it is."""

    role_definition: str = ""
    when_to_use: str = ""
    description: str = ""
    custom_instructions: str = ""


class ModeText(PlainData):
    """A mode as a file defines it; snake_case in Python, Kilo's camelCase in YAML."""

    slug: str = Field(max_length=MAX_NAME)
    name: _OneLine
    role_definition: _NotBlank
    when_to_use: str = ""
    description: str = ""
    custom_instructions: str = ""
    rules_files: tuple[RulesFile, ...] = ()
    groups: tuple[Grant, ...]
    permissions: _Permissions = Field(default_factory=dict)
    model: Annotated[str, Field(pattern=MODEL)] | None = None
    """``provider:name`` or ``offline``; None for the model in the settings."""
    model_parameters: Mapping[str, object] = Field(default_factory=dict)
    """For the model's client, such as ``reasoning_effort``; they win over the settings'."""
    switches: SwitchEdges | None = None
    """The modes that the model may ask for from here; None for any."""
    enter_from: EntryEdges | None = None
    """The modes from which it may come here; None for any."""
    subtasks: tuple[str, ...] | None = None
    """The modes in which it may begin sub-tasks; None for any."""
    conversation: tuple[Part, ...] = get_args(Part)
    """Which of the tools for questions, notes and the end of a turn it has."""
    then: str | None = None
    """The mode that a thread goes to when a turn ends here; None for this one."""
    default: bool = False
    """Whether new threads start in it; of the clone's modes one may say so."""
    lines: Mapping[str, int] = Field(default_factory=dict, exclude=True)
    """The line of the file in which an edge stands, by key and number: ``switches.0``."""

    @field_validator("slug")
    @classmethod
    def _plain_slug(cls, slug: str) -> str:
        if _SLUG.fullmatch(slug) is None:
            raise ValueError("has other characters than letters, digits and '-'")
        return slug

    @field_validator("groups", mode="before")
    @classmethod
    def _pairs_to_grants(cls, groups: object) -> object:
        if isinstance(groups, list) and len(groups) > MAX_GROUPS:
            raise ValueError(f"{len(groups)} groups; {MAX_GROUPS} are the limit")
        return [_as_grant(group) for group in groups] if isinstance(groups, list) else groups

    @field_validator("groups")
    @classmethod
    def _no_group_twice(cls, grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
        names = [grant.group for grant in grants]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"group {twice[0]!r} is there twice")
        return grants

    @property
    def purpose(self) -> str:
        """When to use it, for the model that chooses."""
        if text := self.when_to_use.strip() or self.description.strip():
            return text
        sentence = _SENTENCE.match(self.role_definition.strip())
        role = sentence[0] if sentence else self.role_definition
        return f"{self.name}. {to_one_line(role, MAX_SENTENCE)}"

    @property
    def instructions(self) -> str:
        """The custom instructions, and the rules that came with the mode."""
        rules = (
            f"## {to_one_line(file.relative_path, MAX_NAME)}\n\n{file.content.strip()}"
            for file in self.rules_files
            if file.content.strip()
        )
        return "\n\n".join(filter(None, [self.custom_instructions, *rules]))

    def grant(self, group: str) -> Grant | None:
        """The mode's grant of ``group``; None if the mode lacks it."""
        return next((grant for grant in self.groups if grant.group == group), None)

    def is_closed_off(self, group: str | None) -> bool:
        """Whether the mode has the group for the read-only sandbox alone."""
        grant = None if group is None else self.grant(group)
        return grant is not None and grant.sandbox is not None

    @cached_property
    def edit_limit(self) -> str | None:
        """The only files that the mode may change, in words; empty for all, None for none."""
        grant = self.grant("edit")
        if grant is None or grant.file_regex is None:
            return None if grant is None else ""
        words = f"{grant.description} " if grant.description else ""
        return f"{words}(paths that match `{grant.file_regex}`)"


def _as_grant(group: object) -> object:
    if isinstance(group, str):
        return {"group": group}
    if isinstance(group, list) and len(group) == 2 and isinstance(group[1], dict):
        name, options = group
        if "group" in options:
            raise ValueError(f"unknown key 'group' in the options of {name!r}")
        return {"group": name, **options}
    return group


class Level(StrEnum):
    """Who defined a mode; a later level replaces an earlier one's mode of the same slug."""

    BUILT_IN = "built-in"
    """The clone's own."""
    GLOBAL = "global"
    """The user's, for every workspace."""
    PROJECT = "project"
    """The workspace's, which somebody else may have written."""


@dataclass(frozen=True, slots=True)
class SourcedPermissions:
    """Permissions, and where they come from: a modes file or the user's configuration."""

    rules: Rules
    source: str


class Mode(ModeText):
    """A mode in effect: what its file says, and what a file cannot say about itself."""

    level: Level = Level.BUILT_IN
    file: str = ""
    how_to_work: str = Field("", exclude=True)
    """A built-in mode's further words, from its Markdown file."""
    denials: tuple[SourcedPermissions, ...] = ()
    """Rules whose ``deny`` always wins; their ``allow`` and ``ask`` do not count here."""
    defaults: tuple[SourcedPermissions, ...] = ()
    """Rules that apply where the mode's own permissions say nothing."""

    @override
    def model_copy(self, *, update: Mapping[str, object] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        # Pydantic hands on what was computed of the original.
        for name in ("digest", "own_rules", "edit_limit"):
            vars(copied).pop(name, None)
        return copied

    @cached_property
    def own_rules(self) -> SourcedPermissions:
        """The mode's permissions, and the file that they are in."""
        return SourcedPermissions(self.permissions, self.file)

    @cached_property
    def digest(self) -> str:
        """Changes whenever anything in the mode changes, including the user's rules for it."""
        return sha256(self.model_dump_json().encode()).hexdigest()
