"""``preview_call``: what a call will do, as data for a client that shows it to a person.

For those who decide: the diff of an edit, the tools that a switch gains, the plan it hands over.
All text is readable: characters that do not show are written out.
"""

import os
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NotRequired
from urllib.parse import urlsplit

from pydantic import BaseModel
from typing_extensions import TypedDict

from modeshift.calls.contents import apply_edit
from modeshift.calls.requests import list_other_changes, list_risks
from modeshift.calls.ways import list_suggestions
from modeshift.modes.effects import Risk
from modeshift.modes.errors import InvalidCallError, ToolFailedError
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import escape_invisible, make_readable, to_one_line
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import StateValues
from modeshift.tools.tool import Tool
from modeshift.tools.workspace.text import TextFormat
from modeshift.tools.workspace.undo_log import Held

MAX_COMPARED = 400_000
"""Characters of both texts, for a diff; of longer ones the new text is shown alone."""
MAX_LINES = 20_000
MAX_PAIRS = 4_000_000
"""Of lines of both texts; above that, lines that come often are not compared: it took minutes."""
MAX_SHOWN = 1_000_000
AROUND = 3
"""Lines around a change."""
DiffLine = tuple[str, str]
"""A sign (``+``, ``-``, a blank, or ``@`` for lines left out) and the line."""


class FileChange(TypedDict):
    """What happens to a file; ``before`` is None for a new one."""

    path: str
    before: str | None
    after: str
    lines: list[DiffLine]
    problem: NotRequired[str]


class Suggestion(TypedDict):
    """An answer to a question; ``label`` is what to respond with."""

    label: str
    mode: str | None


class SwitchPreview(TypedDict):
    """A change of mode, by slugs; ``plans`` are the Markdown files that are handed over."""

    source: str
    target: str
    gained: list[str]
    risks: dict[str, Risk]
    """The risk of each tool gained."""
    lost: list[str]
    changes: list[str]
    """What changes beside the tools, in sentences."""
    condition: NotRequired[str]
    """The condition of the edge, which is met; empty for none."""
    plans: list[FileChange]
    is_subtask: bool


class Preview(TypedDict):
    """What a call will do; which keys there are depends on the tool."""

    id: str
    arguments: JsonObject
    """The JSON schema of the tool's arguments."""
    does: str
    """What the call does, in a few words."""
    risk: Risk
    shows: list[str]
    """The names of the arguments that the rest of the preview shows in full."""
    change: NotRequired[FileChange]
    command: NotRequired[str]
    is_sandboxed: NotRequired[bool]
    host: NotRequired[str]
    server: NotRequired[str]
    """The MCP server, by the name that it was given in the configuration."""
    suggestions: NotRequired[list[Suggestion]]
    switch: NotRequired[SwitchPreview]


def preview_call(
    deps: AgentDeps, call: Mapping[str, Any], mode: str, written: Sequence[str] = ()
) -> Preview | None:
    """The preview of a call in a mode that has ``written`` files; None for no valid call. Blocks.

    ``call`` has ``id``, ``name`` and ``args``.
    """
    try:
        tool = deps.toolbox[call["name"]]
        args = deps.toolbox.check(tool, call["args"])
    except InvalidCallError:
        return None
    effect = tool.spec.effect
    shown = Preview(
        id=call["id"], arguments=_find_schema(tool), does=effect.does, risk=tool.spec.risk, shows=[]
    )
    if tool.spec.served is not None:
        shown["server"] = to_one_line(tool.spec.served.server)
        if tool.spec.served.host is not None:
            shown["host"] = to_one_line(tool.spec.served.host)
    if effect.switches_mode and mode in deps.catalog:
        shown["switch"] = _preview_switch(
            deps, mode, args["mode_slug"], written, is_subtask=effect.starts_subtask
        )
        shown["switch"]["condition"] = call.get("condition", "")
        _show_plan(shown["switch"], call.get("plan"))
    if effect.takes_answer:
        labels = list_suggestions(call["args"]).items()
        shown["suggestions"] = [Suggestion(label=label, mode=slug) for label, slug in labels]
    if tool.spec.command is not None:
        shown["command"] = make_readable(str(args[tool.spec.command]))
        shown["shows"].append(tool.spec.command)
        shown["is_sandboxed"] = deps.toolbox.sandbox is not None
    if tool.spec.url is not None:
        shown["host"] = to_one_line(urlsplit(args[tool.spec.url] or "").netloc)
    if effect.changes_files and (change := _preview_edit(deps, tool, args)) is not None:
        shown["change"] = change
        if "problem" not in change:
            shown["shows"] += [tool.spec.paths[0], "content", "edits"]
    return shown


def _find_schema(tool: Tool) -> JsonObject:
    schema = tool.runnable.args_schema
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_json_schema()
    return schema if isinstance(schema, dict) else {}  # an MCP server's is JSON already


def _preview_switch(
    deps: AgentDeps, source: str, target: str, written: Sequence[str], *, is_subtask: bool
) -> SwitchPreview:
    gained, lost = deps.machine.compare_tools(source, target)
    modes = deps.catalog[source], deps.catalog[target]
    return SwitchPreview(
        source=source,
        target=target,
        gained=gained,
        risks={name: deps.toolbox[name].spec.risk for name in gained},
        lost=lost,
        changes=[*list_other_changes(deps, *modes), *list_risks(deps, *modes)],
        is_subtask=is_subtask,
        plans=[_show_file(deps, path) for path in written if path.endswith(".md")],
    )


def _show_plan(switch: SwitchPreview, plan: JsonObject | None) -> None:
    """Show the plan first, as it is approved, whatever its file says by now."""
    if plan is not None:
        switch["changes"].append(plan["says"])
        path, text = escape_invisible(plan["path"]), make_readable(plan["text"])
        handed = [FileChange(path=path, before=None, after=text, lines=[])] if path else []
        switch["plans"] = handed + [one for one in switch["plans"] if one["path"] != path]


def _show_file(deps: AgentDeps, path: str) -> FileChange:
    try:
        text = make_readable(deps.toolbox.workspace.read(path)[:MAX_SHOWN])
    except ToolFailedError as error:
        return say_of_file(path, to_one_line(str(error)))
    return FileChange(path=escape_invisible(path), before=None, after=text, lines=[])


def _preview_edit(deps: AgentDeps, tool: Tool, args: JsonObject) -> FileChange | None:
    """For tools that are given a file's whole text, or pieces of it and their replacements."""
    try:
        edited = apply_edit(deps.toolbox.workspace, tool, args)
    except ToolFailedError as error:
        return say_of_file(args[tool.spec.paths[0]], to_one_line(str(error)))
    return None if edited is None else compare_texts(*edited)


def say_of_file(path: str, problem: str) -> FileChange:
    """Why no change of the file can be shown."""
    return FileChange(path=escape_invisible(path), before="", after="", lines=[], problem=problem)


def compare_texts(path: str, before: str | None, after: str) -> FileChange:
    """The change of a file's text, by lines."""
    shown = FileChange(
        path=escape_invisible(path),
        before=None if before is None else make_readable(before[:MAX_SHOWN]),
        after=make_readable(after[:MAX_SHOWN]),
        lines=[],
    )
    if len(after) + len(before or "") > MAX_COMPARED:
        shown["problem"] = f"{len(after)} characters, too many for a diff"
        return shown
    old, new = (_split(text) for text in (shown["before"] or "", shown["after"]))
    if len(old) + len(new) > MAX_LINES:
        shown["problem"] = f"{len(new)} lines, too many for a diff"
        return shown
    shown["lines"] = _compare(old, new)
    if before and after and before.endswith("\n") != after.endswith("\n"):
        shown["lines"].append(
            ("@", f"{'a' if after.endswith(chr(10)) else 'no'} line break at the end")
        )
    return shown


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _compare(old: list[str], new: list[str]) -> list[DiffLine]:
    lines = list[DiffLine]()
    matcher = SequenceMatcher(None, old, new, autojunk=len(old) * len(new) > MAX_PAIRS)
    for group in matcher.get_grouped_opcodes(AROUND):
        lines.append(("@", f"line {group[0][3] + 1}"))
        for tag, start, end, begin, stop in group:
            if tag == "equal":
                lines += [(" ", line) for line in old[start:end]]
            else:
                lines += [("-", line) for line in old[start:end]]
                lines += [("+", line) for line in new[begin:stop]]
    return lines


MAX_FILES = 200
UNKNOWN = "what it was before is not known"


def list_changes(deps: AgentDeps, thread: str, values: StateValues) -> list[FileChange]:
    """The files that a thread has changed, by its state, of this process or a server. Blocks."""
    changes = [*values.get("mode_changes", ()), values]
    before: dict[str, Held | None] = {
        path: None for each in changes for path in each.get("written", ())
    }
    for call in deps.undo_log.list_calls(thread) if deps.undo_log else ():
        for path, file in call.files.items():
            before[path] = before.get(path) or file.before
    listed = (_find_change(deps, thread, path, held) for path, held in before.items())
    return [change for change in listed if change is not None][:MAX_FILES]


def _find_change(deps: AgentDeps, thread: str, path: str, held: Held | None) -> FileChange | None:
    """The change of a file; None for one that is as it was."""
    workspace, log, before = deps.toolbox.workspace, deps.undo_log, None
    if held is not None and workspace.find_held(path)[0] == held[0]:
        return None
    try:
        exists = os.path.lexists(workspace.root / path)
        now = workspace.read(path) if exists else ""
        data = log.find(thread, held[0]) if log and held else None
        before = None if data is None else TextFormat.of(data).decode(data)
    except ToolFailedError as error:
        return say_of_file(path, to_one_line(str(error)))
    if before is None and (held is None or held[0] is not None):
        return say_of_file(path, UNKNOWN) | {"after": now[:100_000]}
    change = compare_texts(path, before, now)
    return change if exists else change | {"problem": "the file is gone"}
