"""How a model is told that it has other tools now: one table, by what the model takes.

What a request begins with, the system prompt and the tools, should stay as it is for a thread's
whole life: providers keep it in a cache, and the newest models take their thinking back only
behind the very same beginning. Whatever a model is told, a call of a tool that its mode lacks is
refused.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any, Literal

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, SystemMessage

from modeshift.graph.messages.instructions import (
    Instruction,
    append_instructions,
    insert_instructions,
)

Way = Literal["tool_changes", "allowed_tools", "rewrite"]
"""All tools are declared, and a system message names those added and removed; or each request
names those of the mode; or each declares these alone, and the last message holds the words."""
TOOL_CHANGES_BETA = "mid-conversation-tool-changes-2026-07-01"
_DATE = re.compile(r"-20\d{6}$")


def choose_way(model: BaseChatModel, wanted: str = "auto") -> Way:
    """The way for ``model``; ``wanted`` is the setting ``MODE_CHANGES``.

    It is for models of which nothing is known: without it, they get ``rewrite``, which all take.
    What the model's client cannot put into a request is not chosen.
    """
    classes = {kind.__name__ for kind in type(model).__mro__}
    if "ChatAnthropic" in classes:
        best: Way = "tool_changes"
        is_known = bool(_find_profile(model).get("mid_conversation_tools"))
    elif "BaseChatOpenAI" in classes:
        best = "allowed_tools"
        is_known = bool(getattr(model, "use_responses_api", False))
    else:
        return "rewrite"
    if wanted != best and not (wanted == "auto" and is_known):
        return "rewrite"
    if best == "tool_changes":
        # Otherwise the client raises ValueError for a system message that is not the first.
        profile: Any = {**_find_profile(model), "mid_conversation_system_messages": True}
        model.profile = profile
    return best


def _find_profile(model: BaseChatModel) -> dict[str, Any]:
    """What LangChain knows of the model; a date behind its name makes no other of it."""
    name = str(getattr(model, "model", ""))
    if not model.profile and (plain := _DATE.sub("", name)) != name:
        known = init_chat_model(plain, model_provider="anthropic", api_key="none").profile
        return dict(known or {})
    return dict(model.profile or {})


def defer_tools(tools: Sequence[dict[str, Any]], first: Collection[str]) -> list[dict[str, Any]]:
    """Anthropic's declared tools; those that the thread's first mode lacks are not shown yet."""
    return [tool if tool["name"] in first else {**tool, "defer_loading": True} for tool in tools]


def choose_tools(way: Way, names: Sequence[str], *, is_responses: bool) -> dict[str, Any]:
    """The arguments of a request that say which of the declared tools the model may call."""
    if way != "allowed_tools":
        return {}
    kind = "function"
    if is_responses:
        listed = [{"type": kind, "name": name} for name in names]
        return {"tool_choice": {"type": way, "mode": "auto", "tools": listed}}
    chosen = {"mode": "auto", "tools": [{"type": kind, kind: {"name": name}} for name in names]}
    return {"tool_choice": {"type": way, way: chosen}}


def add_instructions(
    way: Way,
    messages: Sequence[AnyMessage],
    instructions: Sequence[Instruction],
    declared: Collection[str],
) -> list[AnyMessage]:
    """The history with the instructions, as a model that is changed in this way takes them."""
    if way == "rewrite":
        return append_instructions(messages, instructions)

    def build(one: Instruction, before: Instruction) -> SystemMessage:
        if way == "tool_changes":
            return _build_change(one, before, declared)
        # The newest of OpenAI's models call the role so; all of them take it.
        return SystemMessage(one["text"], additional_kwargs={"__openai_role__": "developer"})

    return list(insert_instructions(messages, instructions, build))


def _build_change(
    one: Instruction, before: Instruction, declared: Collection[str]
) -> SystemMessage:
    had = before["tools"]
    changes = [
        *(("tool_removal", name) for name in had if name not in one["tools"]),
        *(("tool_addition", name) for name in one["tools"] if name not in had),
    ]
    blocks: list[str | dict[Any, Any]] = [
        {"type": kind, "tool": {"type": "tool_reference", "name": name}}
        for kind, name in changes
        if name in declared  # the service refuses a request that names any other
    ]
    return SystemMessage([*blocks, {"type": "text", "text": one["text"]}])
