"""``Mode``: what a mode is. The shape of Kilo Code and Roo Code modes."""

import re
from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

_SLUG = re.compile(r"[A-Za-z0-9-]+")


class ToolGroup(StrEnum):
    """The groups a mode can be granted."""

    READ = "read"
    EDIT = "edit"
    COMMAND = "command"
    MCP = "mcp"


class _Data(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True
    )


class Grant(_Data):
    """One tool group that a mode has; for ``edit`` perhaps only on some files.

    In YAML either the group's name, or a pair of the name and a mapping with
    ``fileRegex`` and ``description``.
    """

    group: ToolGroup
    file_regex: str | None = None
    description: str | None = None

    @field_validator("file_regex")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return pattern

    @model_validator(mode="after")
    def _only_edit_is_restricted(self) -> Self:
        if self.file_regex is not None and self.group is not ToolGroup.EDIT:
            raise ValueError(f"fileRegex restricts the group 'edit', not {self.group.value!r}")
        return self

    def permits(self, path: str) -> bool:
        """Whether ``path``, relative to the workspace and resolved, may be changed.

        Python's ``$`` also matches before a final line break, so a path with a
        control character in it matches nothing.
        """
        if any(ord(character) < 32 for character in path):
            return False
        return self.file_regex is None or re.search(self.file_regex, path) is not None


class Mode(_Data):
    """A mode as data. Python names are snake_case, YAML has Kilo's camelCase."""

    slug: str
    name: str = Field(min_length=1)
    role_definition: str = Field(min_length=1)
    when_to_use: str = ""
    description: str = ""
    custom_instructions: str = ""
    groups: tuple[Grant, ...] = ()

    @field_validator("slug")
    @classmethod
    def _plain_slug(cls, slug: str) -> str:
        if _SLUG.fullmatch(slug) is None:
            raise ValueError(f"slug {slug!r} has other characters than letters, digits and '-'")
        return slug

    @field_validator("groups", mode="before")
    @classmethod
    def _pairs_to_grants(cls, groups: Any) -> Any:
        return [_as_grant(group) for group in groups] if isinstance(groups, list) else groups

    @field_validator("groups")
    @classmethod
    def _no_group_twice(cls, grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
        names = [grant.group.value for grant in grants]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"group {twice[0]!r} is there twice")
        return grants

    def grant(self, group: ToolGroup) -> Grant | None:
        """The mode's grant of ``group``, or None where it has none."""
        return next((grant for grant in self.groups if grant.group is group), None)


def _as_grant(group: Any) -> Any:
    if isinstance(group, str):
        return {"group": group}
    if isinstance(group, list) and len(group) == 2 and isinstance(group[1], dict):
        return {"group": group[0], **group[1]}
    return group
