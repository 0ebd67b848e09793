"""``ToolCallView``: a tool call as an editor shows it."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from acp import schema, start_tool_call, update_tool_call
from langchain_core.messages import ToolCall, ToolMessage

from modeshift.editor.display.content import as_output, as_text
from modeshift.editor.display.diffs import ShownContent, show_diff, show_edit
from modeshift.editor.files import Folder
from modeshift.graph.approvals.requests import build_title
from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.normal_form import get_call_id
from modeshift.graph.messages.untrusted import show_result
from modeshift.graph.records.subtasks import Subtask
from modeshift.modes.effects import NO_EFFECT, Effect
from modeshift.modes.errors import InvalidCallError
from modeshift.tools.calls.arguments import BROKEN

_ENDED = re.compile(r"\[(?:exit code (?!0\])|ended)")
"""How the last line of a command's result begins if it was not well; see ``modeshift.tools.processes``."""


@dataclass(frozen=True)
class ToolCallView:
    """One call that has not ended."""

    id: str
    title: str
    kind: schema.ToolKind = "other"
    effect: Effect = NO_EFFECT
    files: tuple[Path, ...] = ()
    given: Any = None
    """The arguments as the model gave them."""
    edit: tuple[ShownContent, ...] = ()
    """What it writes into the first of the files."""
    is_running: bool = False

    @classmethod
    def of(cls, deps: AgentDeps, folder: Folder, call: ToolCall) -> Self:
        """View a call, by its arguments alone."""
        try:
            tool = deps.toolbox[call["name"]]
        except InvalidCallError:
            title = build_title(deps, call["name"], {})
            return cls(get_call_id(call), title, given=call["args"])
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
            get_call_id(call),
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

    @property
    def status(self) -> schema.ToolCallStatus:
        """What a call that has not ended does."""
        return "in_progress" if self.is_running else "pending"

    def start(self) -> schema.ToolCallStart:
        """The first update about it."""
        return start_tool_call(**self._describe())

    def progress(self) -> schema.ToolCallProgress:
        """All that is known of it, again."""
        return update_tool_call(**self._describe())

    def question(self, content: list[ShownContent]) -> schema.ToolCallUpdate:
        """What a permission request carries."""
        return schema.ToolCallUpdate(**self._describe() | {"content": content})

    def ended(self, message: ToolMessage) -> schema.ToolCallProgress:
        """The update with its result."""
        return update_tool_call(self.id, **self._describe_result(message))

    def failed(self, why: str) -> schema.ToolCallProgress:
        """The update for a call that does not run, or not to its end."""
        return update_tool_call(self.id, status="failed", content=[as_text(why)])

    def replayed(self, message: ToolMessage) -> schema.ToolCallStart:
        """The one update about a call of the past."""
        return self.start().model_copy(update=self._describe_result(message))

    def _describe_result(self, message: ToolMessage) -> dict[str, Any]:
        facts = message.artifact if isinstance(message.artifact, dict) else {}
        return {
            "raw_output": {"output": show_result(message)},
            "status": self._get_status(message),
            "content": self._show_result(message, facts),
            "locations": self._locate(facts.get("line")),
        }

    def _get_status(self, message: ToolMessage) -> schema.ToolCallStatus:
        """A command that did not end with 0 has failed, for a person; the model reads why."""
        ended = show_result(message).rpartition("\n")[2]
        has_failed = self.effect.runs_programs and _ENDED.match(ended) is not None
        return "failed" if has_failed or message.status == "error" else "completed"

    def _show_result(self, message: ToolMessage, facts: dict[str, Any]) -> list[ShownContent]:
        text = show_result(message)
        if message.status != "error" and facts.get("changed_to", self.given) == self.given:
            match facts, self.given:
                case {"replaced": str() | None as old}, {"content": str(new)} if self.files:
                    return list(show_diff(self.files[0], old, new))
            if self.edit:
                return list(self.edit)
        return [as_output(text) if self.effect.result_is_data else as_text(text)]

    def _describe(self) -> dict[str, Any]:
        return {
            "tool_call_id": self.id,
            "title": self.title,
            "kind": self.kind,
            "status": self.status,
            "locations": self._locate(),
            "raw_input": self.given,
            "content": list(self.edit) or None,
        }

    def _locate(self, line: int | None = None) -> list[schema.ToolCallLocation]:
        """Its files; ``line`` is in the first of them, from 1."""
        return [
            schema.ToolCallLocation(path=str(file), line=None if number else line)
            for number, file in enumerate(self.files)
        ]
