"""The calls of OpenAI's Responses API where they stand in an answer: beside what was reasoned."""

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import ToolCall

Block = str | dict[str, Any]
Came = tuple[str | None, ToolCall]
"""The id that a call came with, and the call as it has become."""


def is_call(block: Block) -> bool:
    """Whether the block is a call of the Responses API."""
    return _type(block) == "function_call"


def put_calls_in_place(blocks: Sequence[Block], calls: Sequence[Came]) -> list[Block]:
    """The blocks with each call as it has become.

    What was reasoned must be followed by what came of it, or the request is refused. So it
    goes where the answer was cut off behind it.
    """
    left = list(calls)
    placed: list[Block] = []
    for block in blocks:
        if not isinstance(block, dict) or not is_call(block):
            placed.append(block)
        elif found := next((one for one in left if one[0] == block.get("call_id")), None):
            left.remove(found)
            placed.append(_rebuilt(block, found[1]))
    while placed and not left and _type(placed[-1]) == "reasoning":
        placed.pop()
    return placed


def _type(block: Block) -> object:
    return block.get("type") if isinstance(block, dict) else None


def _rebuilt(block: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    """The call, its arguments to the letter as they came if they are what the call has.

    Without the item's own id: nothing is stored under it.
    """
    arguments = block.get("arguments")
    try:
        is_same = isinstance(arguments, str) and json.loads(arguments) == call["args"]
    except (ValueError, RecursionError):
        is_same = False
    return {
        "type": "function_call",
        "call_id": call["id"],
        "name": call["name"],
        "arguments": arguments if is_same else json.dumps(call["args"], ensure_ascii=False),
    }
