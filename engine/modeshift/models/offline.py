"""``OfflineModel``: a deterministic stand-in for a language model, without a network.

It sees what a model sees, the messages and the tools that are bound. The last user message is
its program, and the calls since then are the steps that it has taken.
"""

import json
import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import override

from modeshift.messages.instructions import remove_instructions
from modeshift.messages.repair import VOID, remove_marks
from modeshift.modes.plain_data import JsonObject
from modeshift.prompts import render_summary_request

BEGINNING = """\
I am Modeshift's offline model: no language model, only a small command language, \
so that everything works without a key. One command a line; " & " joins several in one step:
"""
END = """
For a real model set MODEL in .env, such as MODEL=anthropic:claude-sonnet-5-5 with \
ANTHROPIC_API_KEY, and start again; .env.example says more."""
FILES = """
    list [path]                              read <path>
    search <regex> [in <path>]               write <path>: <text>   (\\n is a line break)
    replace <old> with <new> in <path>       run <command line>"""
OTHERS = """
    switch to <mode>[: <reason>]             todo: <item>; <item>
    ask: <question>                          done: <summary>
    task in <mode>: <command> | <command>    call <tool> [<arguments as JSON>]
"""
HELP = BEGINNING + FILES + OTHERS + END

OfflineCall = tuple[str, JsonObject]
"""A tool's name and its arguments."""
_EDITS = ("write_file", "edit_file")
_FILE_TOOLS = (*_EDITS, "list_files", "read_file", "search_files", "execute_command")
_KEYWORDS = ("write", "chang", "file", "run", "command")
_MARKDOWN_KEYWORDS = ("write", "plan", "markdown")


@dataclass(frozen=True)
class OfflineStep:
    """One line, and the calls that it makes in one message."""

    line: str
    calls: tuple[OfflineCall, ...]

    @property
    def keywords(self) -> tuple[str, ...]:
        """Beginnings of words that describe a mode which can take the step."""
        is_markdown = all(
            name in _EDITS and args["path"].endswith(".md") for name, args in self.calls
        )
        return _MARKDOWN_KEYWORDS if is_markdown else _KEYWORDS


def parse(text: str) -> list[OfflineStep]:
    """The steps in ``text``; none if a line is no command, so that nothing is half done."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    steps = [OfflineStep(line, tuple(_parse_line(line))) for line in lines]
    return steps if all(step.calls for step in steps) else []


def _parse_line(line: str) -> list[OfflineCall]:
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


def _parse_command(command: str) -> OfflineCall | None:
    for pattern, tool in _COMMANDS:
        if match := pattern.fullmatch(command.strip()):
            return _build_call(tool, match.groupdict())
    return None


def _build_call(tool: str, groups: dict[str, str]) -> OfflineCall | None:
    """The call that a pattern's groups say; None for arguments that are no JSON."""
    args: JsonObject = {name: text for name, text in groups.items() if text is not None}
    match tool:
        case "write_file":
            text = groups["content"].replace("\\n", "\n")
            args = {"path": groups["path"].strip(), "content": text}
        case "edit_file":
            edit = {"old": groups["old"], "new": groups["new"]}
            args = {"path": groups["path"], "edits": [edit]}
        case "switch_mode":
            args["reason"] = groups["reason"] or "You told me to."
        case "new_task":
            lines = [line.strip() for line in groups["commands"].split(" | ")]
            args = {"mode_slug": groups["mode_slug"], "message": "\n".join(lines)}
        case "update_todo_list":
            items = [item.strip() for item in groups["items"].split(";")]
            args = {"todos": [{"content": item, "status": "pending"} for item in items if item]}
        case "call":
            try:
                return groups["tool"], json.loads(groups["args"] or "{}")
            except (ValueError, RecursionError):
                return None
    return tool, args


_COMMANDS = tuple(
    (re.compile(pattern), tool)
    for pattern, tool in (
        (r"list(?: +(?P<path>\S.*))?", "list_files"),
        (r"read +(?P<path>\S.*)", "read_file"),
        (r"search +(?P<regex>\S.*?)(?: +in +(?P<path>\S+))?", "search_files"),
        (r"write +(?P<path>[^:]*[^:\s])\s*: ?(?P<content>.*)", "write_file"),
        (r"replace +(?P<old>\S.*?) +with +(?P<new>.*?) +in +(?P<path>\S+)", "edit_file"),
        (r"run +(?P<command>\S.*)", "execute_command"),
        (r"switch to +(?P<mode_slug>[^\s:]+)(?:\s*:\s*(?P<reason>\S.*))?", "switch_mode"),
        (r"task in +(?P<mode_slug>[^\s:]+)\s*: *(?P<commands>\S.*)", "new_task"),
        (r"call +(?P<tool>[\w-]+)(?: +(?P<args>\{.*\}))?", "call"),
        (r"todo: *(?P<items>\S.*)", "update_todo_list"),
        (r"ask: *(?P<question>\S.*)", "ask_followup_question"),
        (r"done: *(?P<result>\S.*)", "attempt_completion"),
    )
)


MAX_RESULT = 200
"""Characters of a tool's result in the report."""
_NOT_POSSIBLE = "refused: this mode has no tool for it."
_MODES = re.compile(r"\nThe modes(?: there are)?:\n\n((?:- .*\n)*)")
_MODE = re.compile(r"^- ([\w-]+): (.*)", re.MULTILINE)
"""A mode and when to use it, in the system prompt."""


class LocalModel(BaseChatModel):
    """A model in this process, which answers at once; ``answer`` is its own."""

    @property
    @override
    def _llm_type(self) -> str:
        return self.name or type(self).__name__

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    @abstractmethod
    def answer(self, messages: Sequence[BaseMessage], tools: frozenset[str]) -> AIMessage:
        """The next message of the conversation; ``tools`` are the names of those bound."""

    @override
    def _generate(self, messages: list[BaseMessage], *_: object, **kwargs: object) -> ChatResult:
        answer = self.answer(messages, _list_names(kwargs))
        return ChatResult(generations=[ChatGeneration(message=answer)])

    @override
    async def _agenerate(
        self, messages: list[BaseMessage], *_: object, **kwargs: object
    ) -> ChatResult:
        return self._generate(messages, **kwargs)


def _list_names(options: JsonObject) -> frozenset[str]:
    return frozenset(tool["function"]["name"] for tool in options.get("tools", ()))


class OfflineModel(LocalModel):
    """Obeys the command language of ``HELP``."""

    name: str | None = "modeshift-offline"

    @override
    def answer(self, messages: Sequence[BaseMessage], tools: frozenset[str]) -> AIMessage:
        cleaned = (
            message.model_copy(update={"content": remove_instructions(message.text)})
            for message in messages
        )
        return respond([*cleaned], tools)

    @override
    async def _astream(
        self, messages: list[BaseMessage], *_: object, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _split(self.answer(messages, _list_names(kwargs))):
            yield ChatGenerationChunk(message=chunk)


def respond(messages: Sequence[BaseMessage], tools: Collection[str]) -> AIMessage:
    """The next message of the conversation; ``tools`` are the names of those bound."""
    start = max((n for n, m in enumerate(messages) if isinstance(m, HumanMessage)), default=None)
    requests = tuple(render_summary_request(has_files=has) for has in (True, False))
    if start is not None and messages[start].text.endswith(requests):
        return _build_message(messages, _retell(messages[:start]), [])
    steps = parse(messages[start].text) if start is not None else []
    if start is None or not steps:
        # Where it reaches no file and knows no mode to ask for, no word of them.
        modes = _list_modes(messages[0]) if messages else {}
        has_files = not tools or {*_FILE_TOOLS} & {*tools} or _choose_mode(modes, _KEYWORDS)
        return _build_message(messages, HELP if has_files else HELP.replace(FILES, ""), [])
    progress = _Progress(steps)
    progress.replay(messages[start + 1 :])
    calls = progress.next_calls(tools, _list_modes(messages[0]))
    return _build_message(messages, "" if calls else progress.report(), calls)


class _Progress:
    """How far the program has come, as the messages since it was written show."""

    def __init__(self, steps: list[OfflineStep]) -> None:
        self._left = list(steps)
        self._results: list[str] = []
        # About the next step:
        self._has_asked = False
        """Whether a switch was asked for."""
        self._is_refused = False
        """Whether it was refused here, although the tool is bound."""

    def replay(self, messages: Sequence[BaseMessage]) -> None:
        results = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
        for message in messages:
            if isinstance(message, AIMessage) and message.tool_calls:
                ids = [str(call["id"]) for call in message.tool_calls]
                answers = [results[id] for id in ids if id in results]
                if len(answers) == len(ids) and all(result.text == VOID for result in answers):
                    continue  # as if the calls had not been made
                self._take([(call["name"], call["args"]) for call in message.tool_calls], answers)

    def _take(self, calls: list[OfflineCall], results: list[ToolMessage]) -> None:
        while self._left:
            outcome = " ".join(map(_summarize, results))
            if calls == list(self._left[0].calls):
                is_partly_allowed = any(" tools but for " in result.text for result in results)
                if is_partly_allowed and not self._has_asked:
                    self._is_refused = True
                else:
                    self._close(outcome)
                return
            if calls[0][0] == "switch_mode" and not self._has_asked:
                self._has_asked = True
                if any(result.status == "error" for result in results):
                    self._close(outcome)
                return
            self._close(_NOT_POSSIBLE)

    def _close(self, result: str) -> None:
        self._results.append(f"- {self._left.pop(0).line}: {result}")
        self._has_asked = self._is_refused = False

    def next_calls(self, tools: Collection[str], modes: Mapping[str, str]) -> list[OfflineCall]:
        while self._left:
            step = self._left[0]
            is_refused = self._is_refused and not self._has_asked
            missing = [name for name, _ in step.calls if is_refused or name not in tools]
            if not missing:
                return list(step.calls)
            mode = _choose_mode(modes, step.keywords)
            if mode is not None and "switch_mode" in tools and not self._has_asked:
                reason = f"{step.line!r} needs {missing[0]}."
                return [("switch_mode", {"mode_slug": mode, "reason": reason})]
            self._close(_NOT_POSSIBLE)
        return []

    def report(self) -> str:
        return "\n".join(["Here is how it went:", *self._results])


def _list_modes(first: BaseMessage) -> dict[str, str]:
    match = _MODES.search(first.text) if isinstance(first, SystemMessage) else None
    return dict(_MODE.findall(match[1])) if match else {}


def _choose_mode(modes: Mapping[str, str], keywords: Sequence[str]) -> str | None:
    """The mode whose description has the most of ``keywords``; None if no mode has any."""
    counts = {
        slug: sum(f" {word}" in f" {purpose.lower()}" for word in keywords)
        for slug, purpose in modes.items()
    }
    best = max(counts, key=lambda slug: counts[slug], default=None)
    return best if best is not None and counts[best] else None


def _summarize(result: ToolMessage) -> str:
    text = " ".join(remove_marks(result.text).split())
    text = text if len(text) <= MAX_RESULT else f"{text[:MAX_RESULT]}..."
    return f"refused: {text}" if result.status == "error" else text


def _retell(messages: Sequence[BaseMessage]) -> str:
    """The summary that this model writes: the user's last messages, shortened."""
    texts = [" ".join(each.text.split()) for each in messages if isinstance(each, HumanMessage)]
    return "\n".join(["The user said:", *(f"- {text[:MAX_RESULT]}" for text in texts[-20:])])


def _build_message(
    messages: Sequence[BaseMessage], text: str, calls: Sequence[OfflineCall]
) -> AIMessage:
    # Ids must differ within a thread, and be the same when it is replayed.
    number = sum(isinstance(message, AIMessage) for message in messages)
    # Tokens are counted as words: there is no tokenizer.
    read = sum(len(message.text.split()) for message in messages)
    written = len(text.split()) + sum(len(str(args).split()) for _, args in calls)
    return AIMessage(
        text,
        tool_calls=[
            tool_call(name=name, args=args, id=f"offline_{number}_{index}")
            for index, (name, args) in enumerate(calls)
        ],
        usage_metadata=UsageMetadata(
            input_tokens=read, output_tokens=written, total_tokens=read + written
        ),
        response_metadata={"model_name": "offline"},
    )


def _split(message: AIMessage) -> Iterator[AIMessageChunk]:
    """The message in pieces: word by word, call by call, the usage last."""
    for word in re.findall(r"\s*\S+\s*$|\s*\S+", message.text):
        yield AIMessageChunk(content=word)
    for index, call in enumerate(message.tool_calls):
        args = json.dumps(call["args"])
        piece = tool_call_chunk(name=call["name"], args=args, id=call["id"], index=index)
        yield AIMessageChunk(content="", tool_call_chunks=[piece])
    yield AIMessageChunk(
        content="",
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        chunk_position="last",
    )
