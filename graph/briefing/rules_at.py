"""``find_rules_at``: rules of a folder, and a skill, told once a call has named what is there."""

import os
from collections.abc import Iterator, Sequence

from langchain_core.messages import AIMessage, AnyMessage

from graph.deps import AgentDeps
from graph.messages.instructions import Instruction


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
