"""``list_changes``: what a thread has changed in files since it began, as far as that is known."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modeshift.calls.previews import FileChange, compare_texts, say_of_file
from modeshift.modes.errors import InvalidCallError, ToolFailedError
from modeshift.modes.plain_text import to_one_line
from modeshift.threads.deps import AgentDeps
from modeshift.tools.workspace.text import read_replacements

MAX_FILES = 200
ChangedFile = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The arguments of a call that changed a file, and its result's artifact."""


def list_changes(deps: AgentDeps, values: Mapping[str, object]) -> list[FileChange]:
    """The changes, by the thread's state, in this process or as a server gives it. Blocks."""
    changes: dict[str, list[ChangedFile]] = {path: [] for path in _list_written(values)}
    for path, done in _list_done(deps, values):
        changes.setdefault(path, []).append(done)
    return [_compare(deps, path, done) for path, done in list(changes.items())[:MAX_FILES]]


def _list_written(values: Mapping[str, Any]) -> Iterator[str]:
    for change in values.get("mode_changes", ()):
        yield from change.get("written", ())
    yield from values.get("written", ())


def _list_done(deps: AgentDeps, values: Mapping[str, Any]) -> Iterator[tuple[str, ChangedFile]]:
    """The changes of each file in their order: a sub-task's come before what follows it."""
    inner = {subtask["id"]: subtask["messages"] for subtask in values.get("subtasks", ())}
    parents = values.get("parents", ())
    outer = [subtask["messages"] for subtask in parents] + [values.get("messages", [])]
    for parent, messages in zip(parents, outer[1:], strict=True):
        inner[parent["call"]["id"]] = messages
    yield from _walk(deps, outer[0], inner)


def _walk(
    deps: AgentDeps, messages: Sequence[Any], inner: Mapping[str, Any]
) -> Iterator[tuple[str, ChangedFile]]:
    messages = [each if isinstance(each, Mapping) else each.model_dump() for each in messages]
    results = {each["tool_call_id"]: each for each in messages if each["type"] == "tool"}
    for message in messages:
        for call in message.get("tool_calls", ()):
            yield from _walk(deps, inner.get(call["id"], ()), inner)
            result = results.get(call["id"], {"status": "error"})
            if result["status"] != "error":
                artifact = result.get("artifact")
                artifact = artifact if isinstance(artifact, dict) else {}
                args = artifact.get("changed_to", call["args"])
                if (path := _find_path(deps, call["name"], args)) is not None:
                    yield path, (args, artifact)


def _find_path(deps: AgentDeps, name: str, args: Mapping[str, object]) -> str | None:
    try:
        tool = deps.toolbox[name]
        if not tool.spec.effect.changes_files or not tool.spec.paths:
            return None
        return str(deps.toolbox.check(tool, args)[tool.spec.paths[0]])
    except InvalidCallError:
        return None


def _compare(deps: AgentDeps, path: str, done: list[ChangedFile]) -> FileChange:
    try:
        exists = os.path.lexists(deps.toolbox.workspace.root / path)
        now = deps.toolbox.workspace.read(path) if exists else ""
    except ToolFailedError as error:
        return say_of_file(path, to_one_line(str(error)))
    try:
        before = _undo(now, done)
    except LookupError:
        return say_of_file(path, "what it was before is not known") | {"after": now[:100_000]}
    change = compare_texts(path, before, now)
    return change if exists else change | {"problem": "the file is gone"}


def _undo(now: str, done: list[ChangedFile]) -> str | None:
    """The text before the first change; raises ``LookupError``."""
    if not done:
        raise LookupError
    text: str | None = now
    for args, artifact in reversed(done):
        if "replaced" in artifact:
            text = artifact["replaced"]
            continue
        if text is None:
            raise LookupError
        if (edits := read_replacements(args)) is None:
            raise LookupError
        for old, new, replace_all in reversed(edits):
            if not new or replace_all or text.count(new) != 1:
                raise LookupError
            text = text.replace(new, old)
    return text
