"""``Toolbox``: all tools by name, and the check of a call against its tool."""

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from math import isfinite
from pkgutil import resolve_name

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from modeshift.modes.catalog import Catalog
from modeshift.modes.edges.edge_table import EdgeTable
from modeshift.modes.effects import ToolSpec
from modeshift.modes.errors import ConfigurationError, InvalidCallError
from modeshift.modes.files import OLD_GROUPS
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.rules.matching import command_words
from modeshift.modes.rules.urls import parse_url
from modeshift.project import find_root, load_project
from modeshift.tools.processes.sandboxes import Commands, Sandbox
from modeshift.tools.tool import Tool, ToolDeps
from modeshift.tools.workspace.repository import find_way_out
from modeshift.tools.workspace.workspace import Workspace

MAX_DEPTH = 50
NOT_EVERY_MODE = "Not every mode is open from every other: each mode's words name those that are."
BROKEN = "not JSON"
"""The only argument of a call that arrived incomplete; its value says why."""


def find_unserializable(value: object, depth: int = 0) -> str | None:  # noqa: PLR0911  # a table
    """What in ``value`` no checkpoint and no provider can hold; None if there is nothing.

    Lone surrogates above all: a person would be shown one text, and another would be stored and
    run.
    """
    if isinstance(value, dict | list):
        if depth == MAX_DEPTH:
            return f"more than {MAX_DEPTH} levels"
        parts: list[object] = [*value, *value.values()] if isinstance(value, dict) else value
        return next(filter(None, (find_unserializable(part, depth + 1) for part in parts)), None)
    match value:
        case str() if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            return "half a character (a lone surrogate)"
        case int() if not -(2**63) <= value < 2**63:
            return "a number that is too large"
        case float() if not isfinite(value):
            return "a number that is infinite or not a number"
        case str() | int() | float() | None:
            return None
        case _:
            return f"a {type(value).__name__}"


_GROUP = re.compile(r"[a-z][a-z0-9-]*")


class Toolbox:
    """The tools of one workspace; immutable."""

    def __init__(
        self, workspace: Workspace, tools: Iterable[Tool], commands: Commands | None = None
    ) -> None:
        self.workspace = workspace
        self.commands = commands or Commands()
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            other = self._tools.setdefault(tool.spec.name, tool)
            if other is not tool:
                raise ConfigurationError(
                    f"two tools are called {tool.spec.name!r}, in {other.file} and {tool.file}; "
                    "rename one of them"
                )

    def __getitem__(self, name: str) -> Tool:
        """The tool of this name; raises ``InvalidCallError`` where there is none."""
        if name not in self._tools:
            raise InvalidCallError(f"there is no tool {name!r}; use only the tools you are given")
        return self._tools[name]

    def with_tools(self, tools: Iterable[Tool]) -> "Toolbox":
        """A toolbox that has these tools, too."""
        return Toolbox(self.workspace, (*self._tools.values(), *tools), self.commands)

    @property
    def sandbox(self) -> Sandbox | None:
        """What commands run in; None if they have the rights of whoever runs this."""
        return self.commands.sandbox

    @cached_property
    def has_workspace(self) -> bool:
        """Whether a tool works on files or runs commands; else there need be no folder."""
        return any(spec.needs_workspace for spec in self.specs)

    @property
    def environment(self) -> str:
        """Identifies where the tools work and what their commands can reach.

        Paths are relative to the clone: what is asked in one clone may be answered in another.
        """
        return f"{self.workspace.root}/\0{self.sandbox!r}".replace(f"{find_root()}/", "./")

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the rules must know of every tool."""
        return tuple(tool.spec for tool in self._tools.values())

    def check(self, tool: Tool, args: JsonObject) -> JsonObject:
        """``args`` as the verdict sees them: typed, with paths and the URL resolved. Blocks.

        Raises ``InvalidCallError`` for arguments that do not fit the tool, and for a path that
        leads out of the workspace.
        """
        return self._resolve(tool, self.validate(tool, args))

    def fill_in(self, name: str, args: JsonObject, state: Mapping[str, object]) -> JsonObject:
        """``args`` with those that are keys of the state; raises ``InvalidCallError``.

        A person who edits a call sees these too, and sends them back.
        """
        keys = self[name].spec.state
        own = to_jsonable_python({key: state.get(key) for key in keys}, fallback=str)
        for key, value in own.items():
            if value is None:
                raise InvalidCallError(f"{name}: this thread has no {key!r} yet; tell the user")
            if args.get(key, value) != value:
                raise InvalidCallError(f"{name}: {key!r} is not for you to give; leave it out")
        return {**args, **own}

    async def check_call(self, name: str, args: JsonObject) -> tuple[Tool, JsonObject]:
        """The tool, and ``args`` as by ``check``, without blocking; raises ``InvalidCallError``."""
        tool = self[name]
        checked = self.validate(tool, args)
        line = tool.spec.command and checked[tool.spec.command]
        if line and (command_words(line) or line)[0] == "git":
            way_out = await asyncio.to_thread(find_way_out, self.workspace.root)
            tool = replace(tool, spec=replace(tool.spec, way_out=way_out))
        resolved = {
            path: self.workspace.resolve_at_once(checked[path]) for path in _paths(tool, checked)
        }
        if None in resolved.values():  # it takes a closer look at the file system, which blocks
            return tool, await asyncio.to_thread(self._resolve, tool, checked)
        return tool, {**checked, **resolved}

    def _resolve(self, tool: Tool, checked: JsonObject) -> JsonObject:
        resolved = dict(checked)
        for name in _paths(tool, checked):
            path = resolved[name] = self.workspace.resolve(checked[name])
            first = path.partition("/")[0]
            is_home = first.startswith("~") and tool.spec.effect.reads_files
            # A person would be asked about a file in a folder that is not there.
            if is_home and not os.path.lexists(self.workspace.root / first):
                raise InvalidCallError(
                    f"path {path!r}: {first!r} is not in the workspace, and means no other; "
                    "give a path relative to the workspace"
                )
        return resolved

    def validate(self, tool: Tool, args: JsonObject) -> JsonObject:
        """``args`` checked against the tool's schema, with defaults, and the URL in one spelling.

        Raises ``InvalidCallError`` that names every argument that does not fit. An argument that
        the tool does not have is refused, not dropped: what a person approved is what runs.
        """
        schema = tool.runnable.args_schema
        if BROKEN in args:
            raise InvalidCallError(f"{tool.spec.name} did not run: {args[BROKEN]}")
        if misfit := find_unserializable(dict(args)):
            raise InvalidCallError(f"{tool.spec.name}: the arguments hold {misfit}")
        if tool.spec.served is not None:
            return dict(args)  # it is for the server to say whether they fit
        assert isinstance(schema, type) and issubclass(schema, BaseModel)
        if unknown := sorted(args.keys() - schema.model_fields.keys()):
            raise InvalidCallError(
                f"{tool.spec.name} has no argument {unknown[0]!r}; "
                f"it has: {', '.join(schema.model_fields)}"
            )
        try:
            checked = schema.model_validate(dict(args)).model_dump()
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']} (got {problem['input']!r})"
                for problem in error.errors()
            )
            raise InvalidCallError(f"{tool.spec.name}: {problems}") from error
        url = tool.spec.url
        if url is not None and checked[url] is not None:
            try:
                checked[url] = str(parse_url(checked[url]))
            except ValueError as error:
                problem = f"{tool.spec.name}: {checked[url]!r}: {error}"
                raise InvalidCallError(problem) from error
        return checked


def _paths(tool: Tool, checked: JsonObject) -> list[str]:
    """The arguments that name a file and have a value."""
    return [name for name in tool.spec.paths if checked.get(name) is not None]


def build_toolbox(
    workspace: Workspace,
    catalog: Catalog,
    commands: Commands | None = None,
    allowed_hosts: tuple[str, ...] = (),
) -> Toolbox:
    """All tools on ``workspace``, with the catalog's modes as those that a switch can name.

    Without ``commands``, commands run with all the rights of this process. Raises
    ``ConfigurationError`` for an error in the list of tools.
    """
    commands = commands or Commands()
    tools = make_tools(load_project().tools, ToolDeps(workspace, catalog, commands, allowed_hosts))
    if EdgeTable(catalog.values()).has_limits:
        tools = map(_add_note, tools)
    return Toolbox(workspace, tools, commands)


def _add_note(tool: Tool) -> Tool:
    """The tool, which says that not every mode is open where it leads to another."""
    if not tool.spec.effect.switches_mode:
        return tool
    text = f"{tool.runnable.description}\n\n{NOT_EVERY_MODE}"
    return replace(tool, runnable=tool.runnable.model_copy(update={"description": text}))


def tool_specs(workspace: Workspace) -> tuple[ToolSpec, ...]:
    """What the rules must know of every tool, which does not depend on the modes."""
    return tuple(tool.spec for tool in make_tools(load_project().tools, ToolDeps(workspace)))


def make_tools(listed: Iterable[tuple[str | None, str]], deps: ToolDeps) -> Iterator[Tool]:
    """The tools of a list like ``tools.TOOLS``; raises ``ConfigurationError``."""
    for group, name in listed:
        if group is not None and (not _GROUP.fullmatch(group) or group in OLD_GROUPS):
            raise ConfigurationError(
                f"tools/__init__.py: {group!r} cannot be a tool group; take small letters, digits "
                f"and dashes, and neither of: {', '.join(OLD_GROUPS)}"
            )
        try:
            make = resolve_name(name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigurationError(
                f"tools/__init__.py: {name!r} cannot be loaded: {error}; "
                "write 'tools.module:function'"
            ) from error
        for tool in make(deps):
            yield tool.in_group(group)
