"""What the model is told of its mode, where it works, and what is left to do."""

import asyncio
import logging
import os
import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from itertools import takewhile

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from modeshift.messages.instructions import Instruction, group_by_message
from modeshift.messages.thinking import drop_unbound_thinking, find_last_prefix
from modeshift.modes.errors import ModelError
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import escape_invisible, to_one_line
from modeshift.threads.deps import AgentDeps
from modeshift.threads.seats import Seat
from modeshift.threads.state import State, Todo
from modeshift.tools.processes.background import Calling
from modeshift.tools.processes.process import Limits
from modeshift.tools.processes.sandboxes import Command, Sandbox
from modeshift.tools.toolbox import Toolbox
from modeshift.tools.workspace.opening import is_named
from modeshift.tools.workspace.workspace import Workspace

MAX_NAMED = 30


def describe_handover(name: str, written: Sequence[str], todos: Sequence[Todo] = ()) -> str:
    """The files written in a mode (a plan, say), and the todo list, each line begun by a break."""
    lines = []
    if written:
        more = len(written) - MAX_NAMED
        rest = f" and {more} more" if more > 0 else ""
        names = ", ".join(map(escape_invisible, written[:MAX_NAMED]))
        lines.append(f"Files written in {name} mode: {names}{rest}.")
    if todos:
        lines.append("The todo list as it stands:")
        lines += [f"- {todo['content']} ({todo['status']})" for todo in todos[:MAX_NAMED]]
        if len(todos) > MAX_NAMED:
            lines.append(f"- and {len(todos) - MAX_NAMED} more")
    return "".join(f"\n{line}" for line in lines)


def build_note(deps: AgentDeps, state: State, slug: str, text: str) -> Instruction:
    """An instruction behind the last message; nothing else that the model knows changes."""
    instructions = state.get("instructions", [])
    seat = deps.seat_in(state, slug)
    names, (way, _) = [*seat.model.names], seat.way
    new = Instruction(after="", text="", mode=slug, tools=names, words="", environment="", way=way)
    last = instructions[-1] if instructions else new
    return {**last, "after": str(state["messages"][-1].id), "text": text}


def is_told(state: State, notes: Sequence[Instruction], text: str) -> bool:
    """Whether the text is what the model was last told under the same first line."""
    placed, texts = group_by_message([*state.get("instructions", []), *notes]), list[str]()
    for message in state["messages"]:
        texts += [note["text"] for note in placed.get(message.id, ())]
        if isinstance(message, HumanMessage):  # as a note behind an answer is
            texts.append(message.text)
    subject = text.partition("\n")[0]
    same = [told for told in texts if told.partition("\n")[0] == subject]
    return same[-1:] == [text]


def has_edited(deps: AgentDeps, messages: Sequence[AnyMessage]) -> bool:
    """Whether a call of the last answer has changed a file."""
    editing = {spec.name for spec in deps.toolbox.specs if spec.effect.changes_files}
    results = takewhile(lambda message: isinstance(message, ToolMessage), reversed(messages))
    return any(
        isinstance(result, ToolMessage) and result.name in editing and result.status == "success"
        for result in results
    )


GIT_SECONDS = 3
_GIT = "git status --porcelain --untracked-files=no"
_CHANGE = re.compile(r"[ MTADRCU]{2} ")
_HEAD = "ref: refs/heads/"
_LONGEST = 1000
_PLAIN = re.compile(r"[\w.+#/-]{1,100}")


async def describe_environment(toolbox: Toolbox) -> str:
    """Workspace, system, shell, date, git's branch, as Markdown; the date alone without files."""
    workspace, sandbox = toolbox.workspace, toolbox.sandbox
    date = f"Date: {datetime.now(UTC).astimezone():%Y-%m-%d}"
    if not toolbox.has_workspace:
        return f"- {date}"
    where = "not in a sandbox"
    if sandbox is not None:
        where = f"in a sandbox with{'' if sandbox.has_network else 'out'} network"
    lines = [
        f"Workspace: {to_one_line(str(workspace.root))}",
        f"System: {platform.system()} ({platform.machine()})",
        f"Commands: run by /bin/sh, {where}",
        date,
    ]
    if branch := await workspace.use(".git/HEAD", partial(_read_branch, workspace)):
        lines.append(f"Git: {branch}{await _describe_changes(workspace, sandbox)}")
    return "\n".join(f"- {line}" for line in lines)


def _read_branch(workspace: Workspace) -> str | None:
    """From git's own file: starting git could run what a hostile repository names.

    The file may say anything, and what is said here counts as ours: only a plain name is told.
    """
    try:
        with workspace.opened_on_disk(".git/HEAD") as file:
            head = file.read(_LONGEST).decode("utf-8", "replace").strip()
    except (ModelError, OSError):
        return None
    if not head.startswith(_HEAD):
        return "no branch"
    name = head.removeprefix(_HEAD)
    return f"branch {name}" if _PLAIN.fullmatch(name) else "a branch"


async def _describe_changes(workspace: Workspace, sandbox: Sandbox | None) -> str:
    """Whether there are changes that are not committed; empty where git cannot be run safely."""
    if sandbox is None:
        return ""
    command = Command(_GIT, ".", GIT_SECONDS)
    with suppress(TimeoutError, ModelError, OSError):
        async with asyncio.timeout(GIT_SECONDS):
            ended = await sandbox.run(workspace, command, Limits(), Calling(is_read_only=True))
        if ended.exit_code == 0:
            # Among what git warns of.
            has_changes = any(map(_CHANGE.match, ended.text.splitlines()))
            return ", with changes that are not committed" if has_changes else ", clean"
    return ""


log = logging.getLogger("modeshift")
TODO_TOOL = "update_todo_list"
REMINDED_AFTER = 10
"""After so many answers the model is sent its todo list again."""


async def list_news(
    deps: AgentDeps, seat: Seat, state: State, instructions: Sequence[Instruction]
) -> list[Instruction]:
    """The instruction to add for the seat's mode; none if the model knows all of it.

    ``instructions`` are those whose message is still in the history.
    """
    messages = state["messages"]
    words, slug = seat.words, seat.mode.slug
    digest = sha256(words.encode()).hexdigest()[:16]
    parts = [] if _has_words(instructions, words, slug, digest) else [words]
    environments = ((note["environment"], note["text"]) for note in reversed(instructions))
    # As the history has it last.
    environment = known = next((told for told, text in environments if told and told in text), "")
    if not instructions or isinstance(messages[-1], HumanMessage):
        environment = await deps.describe_environment()
        if environment and environment != known:
            parts.append(f"# Where you work{' now' if known else ''}\n\n{environment}")
    parts += find_rules_at(deps, messages, instructions)
    todos = _describe_todos(state.get("todos", []))
    if todos and _is_due(todos, messages, instructions):
        parts.append(todos)
    if not parts:
        return []
    return [
        Instruction(
            after=str(messages[-1].id),
            text="\n\n".join(parts),
            mode=slug,
            tools=[*seat.model.names],
            words=digest,
            environment=environment,
            way=seat.way[0],
        )
    ]


def _has_words(instructions: Sequence[Instruction], words: str, slug: str, digest: str) -> bool:
    """Whether the mode's words are still in the history, and no other mode's behind them.

    The message that they stood behind may have been removed, and a later one with less not.
    """
    for instruction in reversed(instructions):
        if (instruction["mode"], instruction["words"]) != (slug, digest):
            return False
        if instruction["text"].startswith(words):
            return True
    return False


def _describe_todos(todos: Sequence[Todo]) -> str:
    """The todo list as the model is reminded of it; empty if nothing is left to do."""
    if all(todo["status"] == "completed" for todo in todos):
        return ""
    return "\n".join(
        ["# Your todo list", "", *(f"- {todo['content']} ({todo['status']})" for todo in todos)]
    )


def _is_due(todos: str, messages: Sequence[AnyMessage], notes: Sequence[Instruction]) -> bool:
    """Whether the list is other than the model last saw it, or that was some steps ago."""
    texts = {note["after"]: note["text"] for note in notes}
    steps = 0
    for message in reversed(messages):
        if "# Your todo list" in (text := texts.get(str(message.id), "")):
            return todos not in text
        if isinstance(message, AIMessage):
            steps += 1
            written = [call["args"] for call in message.tool_calls if call["name"] == TODO_TOOL]
            if written:
                return _describe_written(written[-1]) != todos
        if steps == REMINDED_AFTER:
            break
    return True


def _describe_written(args: JsonObject) -> str:
    """The list of a call, which its tool may have refused."""
    try:
        return _describe_todos(
            [
                Todo(content=todo["content"], status=todo.get("status", "pending"))
                for todo in args["todos"]
            ]
        )
    except (KeyError, TypeError, AttributeError):
        return ""


def drop_stale_thinking(
    deps: AgentDeps, slug: str, state: State, messages: list[AnyMessage]
) -> tuple[list[AnyMessage], list[str]]:
    """The history without the thinking that its model would refuse, and what to tell a person.

    If it is the prompt or the tools that have changed, none is sent back, which ``call_model``
    sees to.
    """
    remaining, dropped = drop_unbound_thinking(messages)
    notices = []
    if dropped:
        notices.append(
            f"{dropped} of the model's earlier thoughts are left out: a message before them was "
            "changed, or they are of another program or an older version of this one"
        )
    bound = deps.seat_in(state, slug).model
    instructions = state.get("instructions", [])
    last = find_last_prefix(remaining, bound.api)
    fields = bound.service.fields if last is None else bound.find_fields(instructions)
    is_kept = last is not None and fields.way != "rewrite"
    if is_kept and last != bound.declare(fields.way, instructions)[1]:
        also = "" if fields.thinking == "all" else ", and its earlier thoughts are left out"
        notices.append(
            "the model's prompt or tools have changed since its last answer: the provider's "
            f"cache starts anew{also}"
        )
    for notice in notices:
        log.warning("%s", notice)
    return remaining, notices


def find_rules_at(
    deps: AgentDeps, messages: Sequence[AnyMessage], instructions: Sequence[Instruction]
) -> list[str]:
    """The rules of paths that calls have named, as far as the history does not have them yet."""
    if not deps.rules_at:
        return []
    texts = [note["text"] for note in instructions]
    paths = set(_list_paths(deps, messages))
    return [
        rules
        for place, rules in deps.rules_at.items()
        if any(is_named([place], path) for path in paths)
        and not any(rules in text for text in texts)
    ]


def _list_paths(deps: AgentDeps, messages: Sequence[AnyMessage]) -> Iterator[str]:
    """The paths that calls name, as the model has written them, relative to the workspace."""
    named = {tool.name: tool.paths for tool in deps.toolbox.specs}
    root = deps.toolbox.workspace.root
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            for argument in named.get(call["name"], ()):
                if isinstance(path := call["args"].get(argument), str):
                    yield os.path.relpath(os.path.normpath(root / path), root)
