"""``LiveOutput``: what calls print while they run, as text or in a terminal of the editor's.

The terminal only shows: the command runs in our sandbox as ever. Zed's convention, in ``_meta``:
the editor offers ``terminal_output``; the call names the terminal, then come what it prints and
how it ended.
"""

import re
import time
from typing import Any

from acp import schema, update_tool_call

from modeshift.editor.display.content import as_output, as_text
from modeshift.editor.display.diffs import ShownContent
from modeshift.modes.plain_text import make_readable

SECONDS = 0.2
"""The least time between two updates of what a call prints."""
MAX_OUTPUT = 20_000
_EXIT = re.compile(r"\[exit code (-?\d+)\]")


class LiveOutput:
    """Of the calls of one session that have not ended; mutable."""

    def __init__(self, offered: schema.ClientCapabilities) -> None:
        """``offered`` is what the editor can do."""
        self._has_terminals = (offered.field_meta or {}).get("terminal_output") is True
        self._printed: dict[str, str] = {}
        self._unsent: dict[str, str] = {}
        """By call with a terminal, what that does not show yet."""
        self._sent_at = 0.0

    def begin(self, id: str, folder: str) -> dict[str, Any]:
        """What the update on a command that begins has beside the rest."""
        if not self._has_terminals:
            return {}
        self._unsent[id] = ""
        info = {"terminal_info": {"terminal_id": id, "cwd": folder}}
        return {"content": [_terminal(id)], "field_meta": info}

    def add(self, id: str, text: str) -> schema.ToolCallProgress | None:
        """Take in what a call has printed; the update to send, if it is time for one."""
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
        """The last update on a call, of which ``ended`` says how it ended.

        A terminal keeps what it shows; without one, ``keeps_text`` keeps what was printed.
        """
        id = update.tool_call_id
        printed, has_terminal = self._printed.pop(id, ""), id in self._unsent
        content: list[ShownContent] = [*([as_output(printed)] if printed and keeps_text else [])]
        if not has_terminal:
            return update.model_copy(update={"content": [*content, *(update.content or [])]})
        code = _EXIT.fullmatch(ended)
        exited = {"terminal_id": id, "exit_code": int(code[1]) if code else None, "signal": None}
        more: dict[str, Any] = {"field_meta": {**self._take(id), "terminal_exit": exited}}
        if printed:
            more["content"] = [_terminal(id), as_text(ended)]
        del self._unsent[id]
        return update.model_copy(update=more)

    def _take(self, id: str) -> dict[str, Any]:
        text, self._unsent[id] = self._unsent[id], ""
        return {"terminal_output": {"terminal_id": id, "data": text}} if text else {}


def _terminal(id: str) -> schema.TerminalToolCallContent:
    return schema.TerminalToolCallContent(type="terminal", terminal_id=id)
