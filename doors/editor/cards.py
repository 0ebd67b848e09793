"""``Card``: a tool call as an editor shows it."""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    ToolCallUpdate,
    ToolKind,
)
from langchain_core.messages import ToolCall, ToolMessage

from doors.editor.content import as_output, as_text
from graph.data_marks import unmarked
from graph.harness import Harness
from graph.history import call_id
from modes.errors import InvalidCallError, ToolFailedError
from modes.plain_text import plain
from modes.toolspec import Effect
from tools.arguments import BROKEN
from tools.tool import Tool
from tools.workspace import Workspace

MAX_TITLE = 200
MAX_DIFF = 1_000_000
KINDS: Mapping[Effect, ToolKind] = {
    Effect.READ: "read",
    Effect.EDIT: "edit",
    Effect.COMMAND: "execute",
    Effect.NOTE: "think",
    Effect.QUESTION: "other",
    Effect.SWITCH: "switch_mode",
    Effect.COMPLETE: "other",
}
Content = ContentToolCallContent | FileEditToolCallContent


@dataclass(frozen=True)
class Card:
    """What does not change about it, but for a diff that is known once it is about to run."""

    id: str
    title: str
    kind: ToolKind = "other"
    effect: Effect | None = None
    """None for a tool that does not exist."""
    files: tuple[Path, ...] = ()
    given: Any = None
    """The arguments as the model gave them."""
    preview: tuple[Content, ...] = ()
    """What it will do: a diff, where both texts are known."""
    is_due: bool = False
    """Whether it has yet to run, so that what it does can be told from the file."""
    line: int | None = None
    """In the first of the files, from 1."""

    @classmethod
    async def of(
        cls, harness: Harness, folder: Path, call: ToolCall, *, is_due: bool = False
    ) -> Self:
        """Of a call in the ``folder``, as the editor names the workspace.

        One that ``is_due`` has yet to run, so that the old text is there.
        """
        return await asyncio.to_thread(cls.at_once, harness, folder, call, is_due=is_due)

    @classmethod
    def at_once(
        cls, harness: Harness, folder: Path, call: ToolCall, *, is_due: bool = False
    ) -> Self:
        """As ``of``; blocks."""
        try:
            tool = harness.toolbox[call["name"]]
        except InvalidCallError:
            return cls(call_id(call), plain(call["name"], MAX_TITLE), given=call["args"])
        files = tuple[Path, ...]()
        preview, line = tuple[Content, ...](), None
        try:
            args = harness.toolbox.check(tool, call["args"])
        except InvalidCallError:
            args = {name: value for name, value in call["args"].items() if name != BROKEN}
        else:
            names = [args[name] for name in tool.spec.paths if args.get(name) is not None]
            files = tuple(folder / name for name in names)
            if tool.spec.effect is Effect.EDIT and files:
                text = partial(_text, harness.toolbox.workspace, names[0])
                preview, line = _preview(args, files[0], text, is_due=is_due)
        effect = tool.spec.effect
        looks_around = effect is Effect.READ and tool.spec.reads_below
        return cls(
            call_id(call),
            plain(_title(harness, tool, args), MAX_TITLE) or call["name"],
            "search" if looks_around else KINDS[effect],
            effect,
            files if effect in (Effect.READ, Effect.EDIT) else (),
            call["args"],
            preview,
            is_due,
            line,
        )

    def start(self, status: ToolCallStatus = "pending") -> ToolCallStart:
        """The first that the editor hears of it."""
        return ToolCallStart(session_update="tool_call", **self._whole(status))

    def progress(self, status: ToolCallStatus) -> ToolCallProgress:
        """All that is known of it, again."""
        return ToolCallProgress(session_update="tool_call_update", **self._whole(status))

    def question(self, content: list[Content]) -> ToolCallUpdate:
        """What a permission is asked for."""
        return ToolCallUpdate(**self._whole("pending") | {"content": content})

    def ended(self, message: ToolMessage) -> ToolCallProgress:
        """How it ended, and what came of it."""
        return ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=self.id,
            status="failed" if message.status == "error" else "completed",
            content=self.result(message),
        )

    def failed(self, why: str, output: str = "") -> ToolCallProgress:
        """It does not run, or not to its end."""
        return ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=self.id,
            status="failed",
            content=[*([as_output(output)] if output else []), as_text(why)],
        )

    def retold(self, message: ToolMessage) -> ToolCallStart:
        """It has ended long ago, and the editor has not heard of it."""
        match message.artifact:
            case {"line": int(line)}:
                card = replace(self, line=line)
            case _:
                card = self
        start = card.start("failed" if message.status == "error" else "completed")
        return start.model_copy(update={"content": card.result(message)})

    def result(self, message: ToolMessage) -> list[Content]:
        """The content of an answer."""
        text = unmarked(message.text)
        if message.status != "error":
            match message.artifact, self.given:
                case {"replaced": str() | None as old}, {"content": str(new)}:
                    return list(_diff(self.files[0], old, new))
            if self.preview:
                return list(self.preview)
        is_raw = self.effect in (Effect.READ, Effect.COMMAND)
        return [as_output(text) if is_raw else as_text(text)]

    def _whole(self, status: ToolCallStatus) -> dict[str, Any]:
        return {
            "tool_call_id": self.id,
            "title": self.title,
            "kind": self.kind,
            "status": status,
            "locations": [
                ToolCallLocation(path=str(file), line=None if number else self.line)
                for number, file in enumerate(self.files)
            ],
            "raw_input": self.given,
            "content": list(self.preview) or None,
        }


def _title(harness: Harness, tool: Tool, args: Mapping[str, Any]) -> str:
    spec = tool.spec
    match spec.effect:
        case Effect.SWITCH:
            slug = args.get("mode_slug")
            name = harness.catalog[slug].name if slug in harness.catalog else slug
            return f"Switch to {name} mode"
        case Effect.QUESTION:
            return str(args.get("question"))
        case Effect.NOTE:
            return "Update the todo list"
        case Effect.COMPLETE:
            return "Done"
        case Effect.COMMAND if spec.command is not None:
            return " ⏎ ".join(str(args.get(spec.command)).splitlines())
        case Effect.READ:
            values = list(args.values())
        case _:
            values = [args.get(name) for name in spec.paths]
    words = [value for value in values if isinstance(value, str) and value != "."]
    return " ".join([spec.name.replace("_", " ").capitalize(), *words])


def _preview(
    args: Mapping[str, Any], file: Path, text: Callable[[], str | None], *, is_due: bool
) -> tuple[tuple[Content, ...], int | None]:
    """Of the tools that give the whole text of a file, or a piece of it and another for it."""
    match args:
        case {"content": str(new)} if not is_due:
            return (as_output(new),), None  # whether it was new is not known any more, or yet
        case {"content": str(new)}:
            try:
                return _diff(file, text(), new), None
            except ToolFailedError as error:
                told = f"The file is there, and what is in it cannot be shown: {plain(str(error))}"
                return (as_output(new), as_text(told)), None
        case {"old": str(old), "new": str(new)}:
            diff, line = _diff(file, old, new), None
            if is_due:
                line, count = _places(text, old)
                if count > 1 and args.get("replace_all"):
                    diff += (as_text(f"In all {count} places in which the old text stands."),)
            return diff, line
    return (), None


def _diff(file: Path, old: str | None, new: str) -> tuple[Content, ...]:
    if len(new) + len(old or "") > MAX_DIFF:
        return (as_text(f"{len(new)} characters, too many for a diff:"), as_output(new))
    return (FileEditToolCallContent(type="diff", path=str(file), old_text=old, new_text=new),)


def _places(text: Callable[[], str | None], old: str) -> tuple[int | None, int]:
    """The first line in which the old text stands in the file, and how often it does."""
    try:
        whole = text() or ""
        before, found, _ = whole.partition(old)
    except (ToolFailedError, ValueError):  # it is not to be read, or old is empty
        return None, 0
    return before.count("\n") + 1 if found else None, whole.count(old)


def _text(workspace: Workspace, name: str) -> str | None:
    """The text of a file; None where there is none. Raises ``ToolFailedError``."""
    if not os.path.lexists(workspace.root / name):
        return None
    return workspace.read(name, is_real=True)
