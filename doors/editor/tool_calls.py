"""``ToolCallView``: a tool call as an editor shows it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from acp.schema import (
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    ToolCallUpdate,
    ToolKind,
)
from langchain_core.messages import ToolCall, ToolMessage

from doors.editor.content import as_output, as_text
from doors.editor.diffs import Content, diff, preview_of, text_of
from doors.editor.folder import Folder
from graph.deps import AgentDeps
from graph.messages.repair import call_id
from graph.messages.untrusted import remove_marks
from modes.effects import NO_EFFECT, Effect
from modes.errors import InvalidCallError
from modes.plain_text import plain
from tools.arguments import BROKEN
from tools.tool import Tool

MAX_TITLE = 200


@dataclass(frozen=True)
class ToolCallView:
    """What does not change about it, but for a diff that is known once it is about to run."""

    id: str
    title: str
    kind: ToolKind = "other"
    effect: Effect = NO_EFFECT
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
        cls, deps: AgentDeps, folder: Folder, call: ToolCall, *, is_due: bool = False
    ) -> Self:
        """Of a call; one that ``is_due`` has yet to run, so that the old text is there."""
        return await asyncio.to_thread(cls.at_once, deps, folder, call, is_due=is_due)

    @classmethod
    def at_once(
        cls, deps: AgentDeps, folder: Folder, call: ToolCall, *, is_due: bool = False
    ) -> Self:
        """As ``of``; blocks."""
        try:
            tool = deps.toolbox[call["name"]]
        except InvalidCallError:
            return cls(call_id(call), plain(call["name"], MAX_TITLE), given=call["args"])
        files = tuple[Path, ...]()
        preview, line = tuple[Content, ...](), None
        try:
            args = deps.toolbox.check(tool, call["args"])
        except InvalidCallError:
            args = {name: value for name, value in call["args"].items() if name != BROKEN}
        else:
            names = [args[name] for name in tool.spec.paths if args.get(name) is not None]
            files = tuple(map(folder.file, names))
            if tool.spec.effect.changes_files and files:
                old = partial(text_of, deps.toolbox.workspace, names[0]) if is_due else None
                preview, line = preview_of(args, files[0], old)
        effect = tool.spec.effect
        return cls(
            call_id(call),
            plain(_title(deps, tool, args), MAX_TITLE) or call["name"],
            "search" if tool.spec.reads_below else effect.shown_as,
            effect,
            files if effect.reads_files or effect.changes_files else (),
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
                view = replace(self, line=line)
            case _:
                view = self
        start = view.start("failed" if message.status == "error" else "completed")
        return start.model_copy(update={"content": view.result(message)})

    def result(self, message: ToolMessage) -> list[Content]:
        """The content of an answer."""
        text = remove_marks(message.text)
        if message.status != "error":
            match message.artifact, self.given:
                case {"replaced": str() | None as old}, {"content": str(new)} if self.files:
                    return list(diff(self.files[0], old, new))
            if self.preview:
                return list(self.preview)
        return [as_output(text) if self.effect.result_is_data else as_text(text)]

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


def _title(deps: AgentDeps, tool: Tool, args: Mapping[str, Any]) -> str:
    spec = tool.spec
    if spec.effect.title:
        return spec.effect.title
    if spec.effect.switches_mode:
        slug = args.get("mode_slug")
        name = deps.catalog[slug].name if slug in deps.catalog else slug
        return f"Switch to {name} mode"
    if spec.effect.takes_answer:
        return str(args.get("question"))
    if spec.command is not None:
        return " ⏎ ".join(str(args.get(spec.command)).splitlines())
    if spec.effect.changes_files:
        values = [args.get(name) for name in spec.paths]
    else:
        values = list(args.values())
    words = [value for value in values if isinstance(value, str) and value != "."]
    return " ".join([spec.name.replace("_", " ").capitalize(), *words])
