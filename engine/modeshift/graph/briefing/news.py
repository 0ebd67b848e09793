"""What the model is told before it is asked, and what of its own it is not sent any more."""

import logging
import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.instructions import Instruction
from modeshift.graph.messages.thinking import drop_unbound_thinking, find_last_prefix
from modeshift.graph.records.switches import Todo
from modeshift.graph.state import State, get_depth

log = logging.getLogger("modeshift")
TODO_TOOL = "update_todo_list"
REMINDED_AFTER = 10
"""Answers of the model, after which it is sent its todo list again."""


async def list_news(
    deps: AgentDeps, slug: str, state: State, told: Sequence[Instruction]
) -> list[Instruction]:
    """The instruction to add for the mode ``slug``; none if the model knows all of it.

    ``told`` are those whose message is still in the history.
    """
    messages = state["messages"]
    limit, depth = state.get("limit"), get_depth(state)
    words = deps.mode_words(slug, limit, depth)
    digest = sha256(words.encode()).hexdigest()[:16]
    parts = [] if _has_words(told, words, slug, digest) else [words]
    environment = known = _find_environment(told)
    if not told or isinstance(messages[-1], HumanMessage):
        environment = await deps.describe_environment()
        if environment and environment != known:
            parts.append(f"# Where you work{' now' if known else ''}\n\n{environment}")
    parts += find_rules_at(deps, messages, told)
    todos = _describe_todos(state.get("todos", []))
    if todos and _is_due(todos, messages, told):
        parts.append(todos)
    if not parts:
        return []
    return [
        Instruction(
            after=str(messages[-1].id),
            text="\n\n".join(parts),
            mode=slug,
            tools=[*deps.bound_model(slug, limit, depth).names],
            words=digest,
            environment=environment,
        )
    ]


def _has_words(told: Sequence[Instruction], words: str, slug: str, digest: str) -> bool:
    """Whether the mode's words are still in the history, and no other mode's behind them.

    The message that they stood behind may have been removed, and a later one with less not.
    """
    for one in reversed(told):
        if (one["mode"], one["words"]) != (slug, digest):
            return False
        if one["text"].startswith(words):
            return True
    return False


def _find_environment(told: Sequence[Instruction]) -> str:
    """The environment as the history has it last; empty if it has none."""
    given = ((one["environment"], one["text"]) for one in reversed(told))
    return next((known for known, text in given if known and known in text), "")


def _describe_todos(todos: Sequence[Todo]) -> str:
    """The todo list as the model is reminded of it; empty if nothing is left to do."""
    if all(todo["status"] == "completed" for todo in todos):
        return ""
    return "\n".join(
        [
            "# Your todo list",
            "",
            *(f"- {todo['content']} ({todo['status']})" for todo in todos),
        ]
    )


def _is_due(todos: str, messages: Sequence[AnyMessage], told: Sequence[Instruction]) -> bool:
    """Whether the list is other than the model last saw it, or that was some steps ago."""
    texts = {one["after"]: one["text"] for one in told}
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


def _describe_written(args: dict[str, Any]) -> str:
    """The list of a call, which its tool may have refused."""
    try:
        return _describe_todos(
            [
                Todo(content=one["content"], status=one.get("status", "pending"))
                for one in args["todos"]
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
    kept, dropped = drop_unbound_thinking(messages)
    notices = []
    if dropped:
        notices.append(
            f"{dropped} of the model's earlier thoughts are left out: a message before them was "
            "changed, or they are of another program or an older version of this one"
        )
    bound = deps.bound_model(slug, state.get("limit"), get_depth(state))
    fields = bound.service.fields
    last = find_last_prefix(kept, bound.api)
    if last is not None and fields.way != "rewrite":
        told = state.get("instructions", [])
        if last != bound.declare(fields.way, told)[1]:
            also = "" if fields.thinking == "all" else ", and its earlier thoughts are left out"
            notices.append(
                "the model's prompt or tools have changed since its last answer: the provider's "
                f"cache starts anew{also}"
            )
    for notice in notices:
        log.warning("%s", notice)
    return kept, notices


def find_rules_at(
    deps: AgentDeps, messages: Sequence[AnyMessage], told: Sequence[Instruction]
) -> list[str]:
    """What the history's calls make due, and is not in it yet."""
    if not deps.rules_at:
        return []
    texts = [one["text"] for one in told]
    paths = set(_list_paths(deps, messages))
    return [
        rules
        for place, rules in deps.rules_at.items()
        if any(_is_at(path, place) for path in paths) and not any(rules in text for text in texts)
    ]


def _is_at(path: str, place: str) -> bool:
    return f"{path}/".startswith(place) if place.endswith("/") else path == place


def _list_paths(deps: AgentDeps, messages: Sequence[AnyMessage]) -> Iterator[str]:
    """As the model has written them, relative to the workspace."""
    named = {tool.name: tool.paths for tool in deps.toolbox.specs}
    root = deps.toolbox.workspace.root
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            for argument in named.get(call["name"], ()):
                if isinstance(path := call["args"].get(argument), str):
                    yield os.path.relpath(os.path.normpath(root / path), root)
