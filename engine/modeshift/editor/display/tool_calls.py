"""``ToolCallView``: a tool call as an editor shows it."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from acp import (
    image_block,
    schema,
    text_block,
    tool_content,
    tool_diff_content,
    tool_terminal_ref,
    update_tool_call,
)
from acp.schema import ContentToolCallContent, FileEditToolCallContent
from langchain_core.messages import BaseMessage, ToolCall, ToolMessage
from pydantic import ConfigDict

from modeshift.calls.requests import build_title
from modeshift.editor.files import Folder
from modeshift.messages.normal_form import get_call_id
from modeshift.messages.repair import remove_marks, show_result
from modeshift.modes.effects import NO_EFFECT, Effect
from modeshift.modes.errors import InvalidCallError
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import make_readable, to_one_line
from modeshift.threads.deps import AgentDeps
from modeshift.threads.state import Subtask
from modeshift.tools.toolbox import BROKEN
from modeshift.tools.workspace.text import read_replacements

MAX_SHOWN = 100_000
_MARKUP = re.compile(
    r"[\\`*<>\[\]|~&$]|(?<![^\W_])_|_(?![^\W_])|^[ \t]*(?:#|[-+=]{2,})", re.MULTILINE
)
"""Text that could be a picture, a link, a heading or an entity; a list's dash may stay."""
_DATA_URL = re.compile(r"data:(image/[a-z]+);base64,(.+)", re.DOTALL)


def content_blocks(
    message: BaseMessage,
) -> Iterator[schema.TextContentBlock | schema.ImageContentBlock]:
    """The blocks that show a stored message."""
    content = message.content
    for block in [content] if isinstance(content, str) else content:
        match block:
            case str(text) | {"type": "text", "text": str(text)} if text:
                yield text_block(remove_marks(text))
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                match = _DATA_URL.fullmatch(url)
                yield text_block(url) if match is None else image_block(match[2], match[1])


def as_text(text: str) -> schema.ContentToolCallContent:
    """Our own text on a tool call; the editor reads it as Markdown."""
    return tool_content(text_block(text))


def as_prose(text: str) -> schema.ContentToolCallContent:
    """Other people's prose, escaped so that nothing in it acts as Markdown."""
    lines = _MARKUP.sub(r"\\\g<0>", make_readable(text)).splitlines()
    return as_text("  \n".join(lines))  # two blanks keep the line break


def as_output(text: str, most: int = MAX_SHOWN) -> schema.ContentToolCallContent:
    """Other people's text as it is, in a fence that it cannot close, with nothing invisible."""
    text = make_readable(text)
    if len(text) > most:
        half = most // 2
        omitted = f"[{len(text) - most} characters left out]"
        text = f"{text[:half]}\n{omitted}\n{text[-half:]}"
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return as_text(f"{fence}\n{text}\n{fence}")


MAX_DIFF = 1_000_000
ShownContent = ContentToolCallContent | FileEditToolCallContent


def show_edit(args: Mapping[str, object], file: Path) -> Iterator[ShownContent]:
    """What a call with these arguments writes; the file itself is not read.

    For tools that take a file's whole text, or pieces of it with their replacements.
    """
    if isinstance(text := args.get("content"), str):
        yield as_output(text)
    for edit in read_replacements(args) or ():
        yield from show_diff(file, edit.old, edit.new)
        if edit.replace_all:
            yield as_text("In all places where the old text stands.")


def show_diff(file: Path, old: str | None, new: str) -> Iterator[ShownContent]:
    """A diff, or only the new text if they are long."""
    if len(new) + len(old or "") > MAX_DIFF:
        yield as_text(f"{len(new)} characters, too many for a diff:")
        yield as_output(new)
        return
    texts = make_readable(new), None if old is None else make_readable(old)
    yield tool_diff_content(str(file), *texts)
    if texts != (new, old):
        yield as_text("Invisible characters are written out here; the file has them as is.")


SECONDS = 0.2
"""The least time between two updates of what a call prints."""
MAX_OUTPUT = 20_000
_EXIT = re.compile(r"\[exit code (-?\d+)\]")


class LiveOutput:
    """The output of a session's calls that have not ended; mutable."""

    def __init__(self, offered: schema.ClientCapabilities) -> None:
        """``offered`` is what the editor can do."""
        self._has_terminals = (offered.field_meta or {}).get("terminal_output") is True
        self._printed: dict[str, str] = {}
        self._unsent: dict[str, str] = {}
        """Output that the editor's terminal does not show yet, by the call's id."""
        self._sent_at = 0.0

    def begin(self, id: str, folder: str) -> dict[str, object]:
        """The additional fields of the update that says that a command begins."""
        if not self._has_terminals:
            return {}
        self._unsent[id] = ""
        info = {"terminal_info": {"terminal_id": id, "cwd": folder}}
        return {"content": [tool_terminal_ref(id)], "field_meta": info}

    def add(self, id: str, text: str) -> schema.ToolCallProgress | None:
        """Add what a call has printed; returns the update to send, if it is time for one."""
        self._printed[id] = (self._printed.get(id, "") + text)[-MAX_OUTPUT:]
        if id in self._unsent:
            self._unsent[id] += make_readable(text)
        now = time.monotonic()
        if now - self._sent_at < SECONDS:
            return None
        self._sent_at = now
        if id in self._unsent:
            return update_tool_call(id).model_copy(update={"field_meta": self._take(id)})
        return update_tool_call(id, status="in_progress", content=[as_output(self._printed[id])])

    def end(
        self, update: schema.ToolCallProgress, ended: str, *, keeps_text: bool = False
    ) -> schema.ToolCallProgress:
        """The last update about a call; ``ended`` says how it ended.

        A terminal keeps what it shows; without one, ``keeps_text`` keeps what was printed.
        """
        id = update.tool_call_id
        printed, has_terminal = self._printed.pop(id, ""), id in self._unsent
        content: list[ShownContent] = [*([as_output(printed)] if printed and keeps_text else [])]
        if not has_terminal:
            return update.model_copy(update={"content": [*content, *(update.content or [])]})
        code = _EXIT.fullmatch(ended)
        exited = {"terminal_id": id, "exit_code": int(code[1]) if code else None, "signal": None}
        more: dict[str, object] = {"field_meta": {**self._take(id), "terminal_exit": exited}}
        if printed:
            more["content"] = [tool_terminal_ref(id), as_text(ended)]
        del self._unsent[id]
        return update.model_copy(update=more)

    def _take(self, id: str) -> dict[str, object]:
        text, self._unsent[id] = self._unsent[id], ""
        return {"terminal_output": {"terminal_id": id, "data": text}} if text else {}


_ENDED = re.compile(r"\[(?:exit code (?!0\])|ended)")
"""How the last line of a command's result begins if it failed; see ``tools.processes``."""


class _Start(schema.ToolCallStart):
    """The start of a call, with a field that the SDK does not know yet."""

    model_config = ConfigDict(use_attribute_docstrings=False)  # they take 36 ms to find
    name: str


@dataclass(frozen=True)
class ToolCallView:
    """One call that has not ended."""

    id: str
    name: str
    """The tool's name, in one line."""
    title: str
    kind: schema.ToolKind = "other"
    effect: Effect = NO_EFFECT
    files: tuple[Path, ...] = ()
    args: object = None
    """The arguments as the model gave them."""
    edit: tuple[ShownContent, ...] = ()
    """What the call writes into the first of its files."""
    is_running: bool = False

    @classmethod
    def of(cls, deps: AgentDeps, folder: Folder, call: ToolCall) -> Self:
        """View a call, by its arguments alone."""
        id, name = get_call_id(call), to_one_line(call["name"])
        try:
            tool = deps.toolbox[call["name"]]
        except InvalidCallError:
            title = build_title(deps, call["name"], {})
            return cls(id, name, title, args=call["args"])
        files, edit = tuple[Path, ...](), tuple[ShownContent, ...]()
        try:
            args = deps.toolbox.check(tool, call["args"])
        except InvalidCallError:
            args = {name: value for name, value in call["args"].items() if name != BROKEN}
        else:
            names = [args[name] for name in tool.spec.paths if args.get(name) is not None]
            files = tuple(map(folder.file, names))
            if tool.spec.effect.changes_files and files:
                edit = tuple(show_edit(args, files[0]))
        effect = tool.spec.effect
        return cls(
            id,
            name,
            build_title(deps, call["name"], args),
            "search" if tool.spec.reads_below else effect.shown_as,
            effect,
            files if effect.reads_files or effect.changes_files else (),
            call["args"],
            edit,
        )

    def of_subtask(self, deps: AgentDeps, subtask: Subtask | None) -> Self:
        """The view with the sub-task's mode before its title: the protocol nests no calls."""
        if subtask is None or subtask["mode"] not in deps.catalog:
            return self
        return replace(self, title=f"{deps.catalog[subtask['mode']].name}: {self.title}")

    def start(self) -> schema.ToolCallStart:
        """The first update about the call."""
        return _Start(session_update="tool_call", name=self.name, **self._describe())

    def progress(self) -> schema.ToolCallProgress:
        """An update that repeats all that is known of the call."""
        return update_tool_call(**self._describe())

    def question(self, content: list[ShownContent]) -> schema.ToolCallUpdate:
        """The call as a permission request carries it."""
        return schema.ToolCallUpdate(**self._describe() | {"content": content})

    def ended(self, message: ToolMessage) -> schema.ToolCallProgress:
        """The update with the call's result."""
        return update_tool_call(self.id, **self._describe_result(message))

    def failed(self, why: str) -> schema.ToolCallProgress:
        """The update for a call that does not run, or not to its end."""
        return update_tool_call(self.id, status="failed", content=[as_text(why)])

    def replayed(self, message: ToolMessage) -> schema.ToolCallStart:
        """The one update about a call of the past."""
        return self.start().model_copy(update=self._describe_result(message))

    def _describe_result(self, message: ToolMessage) -> JsonObject:
        facts = message.artifact if isinstance(message.artifact, dict) else {}
        text, is_error = show_result(message), message.status == "error"
        # A person is shown that a command has failed, too, if it did not end with 0.
        has_failed = self.effect.runs_programs and _ENDED.match(text.rpartition("\n")[2])
        shown: Iterable[ShownContent] = ()
        if not is_error and facts.get("changed_to", self.args) == self.args:
            match facts, self.args:
                case {"replaced": str() | None as old}, {"content": str(new)} if self.files:
                    shown = show_diff(self.files[0], old, new)
                case _:
                    shown = self.edit
        return {
            "raw_output": {"output": text},
            "status": "failed" if is_error or has_failed else "completed",
            "content": [*shown]
            or [as_output(text) if self.effect.result_is_data else as_text(text)],
            "locations": self._locate(facts.get("line")),
        }

    def _describe(self) -> JsonObject:
        return {
            "tool_call_id": self.id,
            "title": self.title,
            "kind": self.kind,
            "status": "in_progress" if self.is_running else "pending",
            "locations": self._locate(),
            "raw_input": self.args,
            "content": list(self.edit) or None,
        }

    def _locate(self, line: int | None = None) -> list[schema.ToolCallLocation]:
        """The call's files; ``line`` is in the first of them, counted from 1."""
        return [
            schema.ToolCallLocation(path=str(file), line=None if number else line)
            for number, file in enumerate(self.files)
        ]
