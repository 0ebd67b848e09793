"""``PlanLimit``: what a mode may write once a person has approved a plan with the switch to it."""

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Self

from modeshift.calls.contents import digest_contents, foresee_text
from modeshift.modes.edges.edge_table import Edge, Way
from modeshift.modes.effects import ToolSpec
from modeshift.modes.errors import InvalidCallError
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import is_plain, to_one_line
from modeshift.threads.deps import AgentDeps
from modeshift.threads.state import ApprovedPlan
from modeshift.tools.workspace.opening import is_named
from modeshift.tools.workspace.text import TextFormat
from modeshift.tools.workspace.workspace import Workspace

MAX_BYTES, MAX_PATHS, MAX_SHOWN = 100_000, 100, 500
_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)[\s#]*$")
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])\s+(.*)")
_PLAIN = re.compile(r"`((?![/~\s])[^`*?{}\\]*[^`*?{}\\\s])`")


@dataclass(frozen=True)
class PlanLimit:
    """A plan that names paths, and so limits what is written."""

    plan: ApprovedPlan
    is_current: bool = False
    """Whether its file is as it was approved; until somebody has looked it is not."""

    @classmethod
    def of(cls, plan: ApprovedPlan | None) -> Self | None:
        """The limit of a plan; None without a plan, and for one that names nothing."""
        return cls(plan) if plan and plan["paths"] else None

    async def look(self, deps: AgentDeps) -> Self:
        """The limit as the plan's file is now."""
        (digest,) = (await digest_contents(deps, [self.plan["path"]])).values()
        return replace(self, is_current=digest == self.plan["digest"])

    @property
    def writable(self) -> tuple[str, ...]:
        """What commands in the sandbox may write of the workspace."""
        return tuple(self.plan["paths"]) if self.is_current else ()

    async def foresee(
        self, deps: AgentDeps, tool: ToolSpec, args: JsonObject
    ) -> ApprovedPlan | None:
        """The plan as an edit is to leave it, or None; raises ``ModelError`` as ``read_plan``."""
        place, path = deps.toolbox.workspace, self.plan["path"]
        if [args[name] for name in tool.paths] != [path]:
            return None
        data = await asyncio.to_thread(foresee_text, place, path, args)
        return None if data is None else await asyncio.to_thread(_build_plan, place, path, data)

    def find_problem(self, tool: ToolSpec, args: JsonObject | None) -> str | None:
        """Why a person must be asked about the call, whatever they allowed before."""
        plan, named = f"the plan {self.plan['path']!r}", self.plan["paths"]
        if tool.effect.runs_programs and not tool.sandboxed:
            return f"runs a command, not sandboxed, which {plan} cannot limit"
        if tool.effect.owns_tools:
            return f"runs an agent with tools of its own, which {plan} cannot limit"
        if not tool.effect.changes_files:
            return None
        paths = [args[name] for name in tool.paths if args[name] is not None] if args else []
        if self.plan["path"] in paths:
            return f"it is {plan}: what you approve takes its place"
        if not self.is_current:
            return f"{plan} is not as it was approved"
        outside = [path for path in paths or ["?"] if not is_named(named, path)]
        return f"{plan} does not name {outside[0]!r}" if outside else None


def describe_plan(plan: ApprovedPlan | None) -> str:
    """What a switch with the plan limits, in a sentence; None is no plan."""
    if plan is None:
        return "There is no plan: this mode has written no Markdown file."
    if not plan["paths"]:
        return f"The plan {plan['path']!r} has no section Files with paths, so it limits nothing."
    named = to_one_line(", ".join(plan["paths"]), MAX_SHOWN)
    more = "Any other edit asks, and commands in the sandbox can write nothing else here."
    return f"The plan {plan['path']!r} names what may be changed: {named}. {more}"


def find_edge(deps: AgentDeps, source: str, target: str) -> Edge:
    """The edge along which the model switches, which says what of plans."""
    return deps.edges.find(source, target, Way.ASK) or Edge()


def read_plan(deps: AgentDeps, slug: str, written: Sequence[str]) -> ApprovedPlan | None:
    """The plan that a mode has ``written``, the last file last; None if it has none. Blocks.

    Raises ``ModelError`` where it cannot be read, or its section of files does not fit.
    """
    grant, place = deps.catalog[slug].grant("edit"), deps.toolbox.workspace
    for path in reversed(written):
        is_there = path.endswith(".md") and (place.root / path).exists()
        if is_there and grant is not None and grant.permits(path):
            with place.open_file(path) as file:
                return _build_plan(place, path, file.read(MAX_BYTES + 1))
    return None


def _build_plan(place: Workspace, path: str, data: bytes) -> ApprovedPlan:
    text, digest = TextFormat.of(data).decode(data), sha256(data).hexdigest()
    paths = list(dict.fromkeys(_check_item(place, path, item) for item in _list_items(text)))
    if len(data) > MAX_BYTES or len(paths) > MAX_PATHS:
        most = f"{MAX_BYTES} bytes and {MAX_PATHS} paths are the most"
        raise InvalidCallError(f"the plan {path!r} is too long: {most}")
    return ApprovedPlan(path=path, digest=digest, text=text, paths=paths)


def _list_items(text: str) -> Iterator[str]:
    """The items of the lists below headings that say Files, without those below an item."""
    level, fence, indent = 0, "", MAX_BYTES
    for line in text.splitlines():
        if (mark := _FENCE.match(line)) and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        elif fence:
            continue
        elif heading := _HEADING.match(line):
            is_files, depth = heading[2].strip().lower() == "files", len(heading[1])
            level = depth if is_files else level if depth > level else 0
            indent = MAX_BYTES
        elif level and (item := _ITEM.match(line)) and len(item[1]) <= indent:
            indent = len(item[1])
            yield item[2]


def _check_item(place: Workspace, plan: str, item: str) -> str:
    """The path that an item begins with; raises ``InvalidCallError`` for none that is plain."""
    match = _PLAIN.match(item)
    path = match[1] if match else ""
    real = place.root / path
    if {"", ".", ".."} & {*path.removesuffix("/").split("/")} or not is_plain(path):
        problem = "begins with no plain path below the workspace, in backticks"
    elif os.path.realpath(real) != str(real):
        problem = "leads elsewhere by a link"
    elif real.exists() and path.endswith("/") != real.is_dir():
        problem = "is a file, not a folder" if path.endswith("/") else "is a folder: end it with /"
    else:
        return path
    shown = to_one_line(path or item, 100)
    raise InvalidCallError(f"{plan}, section Files: {shown!r} {problem}; mend it, then ask again")
