"""The offline model's command language: one command a line, each line a step."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

HELP = """\
I am Modeshift's offline model: no language model, only a small command language, \
so that everything works without a key. One command a line; " & " joins several in one step:

    list [path]                              read <path>
    search <regex> [in <path>]               write <path>: <text>   (\\n is a line break)
    replace <old> with <new> in <path>       run <command line>
    switch to <mode>[: <reason>]             todo: <item>; <item>
    ask: <question>                          done: <summary>
    task in <mode>: <command> | <command>    call <tool> [<arguments as JSON>]

For a real model set MODEL in .env, such as MODEL=anthropic:claude-sonnet-5-5 with \
ANTHROPIC_API_KEY, and start again; .env.example says more."""

Call = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""
_EDITS = ("write_file", "edit_file")
_KEYWORDS = ("write", "chang", "file", "run", "command")
_MARKDOWN_KEYWORDS = ("write", "plan", "markdown")


@dataclass(frozen=True)
class Step:
    """One line, and the calls that it makes in one message."""

    line: str
    calls: tuple[Call, ...]

    @property
    def keywords(self) -> tuple[str, ...]:
        """Beginnings of words by which to recognize a mode that can take the step."""
        is_markdown = all(
            name in _EDITS and args["path"].endswith(".md") for name, args in self.calls
        )
        return _MARKDOWN_KEYWORDS if is_markdown else _KEYWORDS


def parse(text: str) -> list[Step]:
    """The steps in ``text``; none if any line is not a command, so that nothing is half done."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    steps = [Step(line, tuple(_parse_line(line))) for line in lines]
    return steps if all(step.calls for step in steps) else []


def _parse_line(line: str) -> list[Call]:
    """The calls of one line; none if a part of it is not a command."""
    # " & " joins commands only if a command follows it; else it belongs to the text.
    parts: list[str] = []
    for piece in line.split(" & "):
        if parts and _parse_command(piece) is None:
            parts[-1] += f" & {piece}"
        else:
            parts.append(piece)
    calls = [_parse_command(part) for part in parts]
    return [call for call in calls if call is not None] if all(calls) else []


def _parse_command(command: str) -> Call | None:
    for pattern, build in _COMMANDS:
        if match := pattern.fullmatch(command.strip()):
            return build(match.groupdict())
    return None


_Build = Callable[[dict[str, str]], Call | None]


def _tool(name: str) -> _Build:
    return lambda given: (name, {k: v for k, v in given.items() if v is not None})


def _write(given: dict[str, str]) -> Call:
    text = given["content"].replace("\\n", "\n")
    return "write_file", {"path": given["path"].strip(), "content": text}


def _replace(given: dict[str, str]) -> Call:
    edit = {"old": given["old"], "new": given["new"]}
    return "edit_file", {"path": given["path"], "edits": [edit]}


def _switch(given: dict[str, str]) -> Call:
    reason = given["reason"] or "You told me to."
    return "switch_mode", {"mode_slug": given["mode_slug"], "reason": reason}


def _task(given: dict[str, str]) -> Call:
    lines = [line.strip() for line in given["commands"].split(" | ")]
    return "new_task", {"mode_slug": given["mode_slug"], "message": "\n".join(lines)}


def _call(given: dict[str, str]) -> Call | None:
    try:
        return given["tool"], json.loads(given["args"] or "{}")
    except (ValueError, RecursionError):
        return None


def _todo(given: dict[str, str]) -> Call:
    items = [item.strip() for item in given["items"].split(";")]
    todos = [{"content": item, "status": "pending"} for item in items if item]
    return "update_todo_list", {"todos": todos}


_COMMANDS: tuple[tuple[re.Pattern[str], _Build], ...] = tuple(
    (re.compile(pattern), build)
    for pattern, build in (
        (r"list(?: +(?P<path>\S.*))?", _tool("list_files")),
        (r"read +(?P<path>\S.*)", _tool("read_file")),
        (r"search +(?P<regex>\S.*?)(?: +in +(?P<path>\S+))?", _tool("search_files")),
        (r"write +(?P<path>[^:]*[^:\s])\s*: ?(?P<content>.*)", _write),
        (
            r"replace +(?P<old>\S.*?) +with +(?P<new>.*?) +in +(?P<path>\S+)",
            _replace,
        ),
        (r"run +(?P<command>\S.*)", _tool("execute_command")),
        (r"switch to +(?P<mode_slug>[^\s:]+)(?:\s*:\s*(?P<reason>\S.*))?", _switch),
        (r"task in +(?P<mode_slug>[^\s:]+)\s*: *(?P<commands>\S.*)", _task),
        (r"call +(?P<tool>[\w-]+)(?: +(?P<args>\{.*\}))?", _call),
        (r"todo: *(?P<items>\S.*)", _todo),
        (r"ask: *(?P<question>\S.*)", _tool("ask_followup_question")),
        (r"done: *(?P<result>\S.*)", _tool("attempt_completion")),
    )
)
