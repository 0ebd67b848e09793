"""Thinking blocks as the newest models bind them: to all that was sent before them.

A real signature is sealed. This one spells out what it is bound to: the digest of system
prompt, tools and messages before the block, and the thinking block before it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from tests.provider.script import Ids

BETA = "thinking-binding-controls-2026-08-01"
CHECKED = re.compile(r"claude-((fable|mythos)-5-[12]|(opus|sonnet|haiku)-5-5)(-20\d{6})?")
"""The models that check. Others know neither field nor header here, as on Google Cloud."""
THINKING = {"thinking": "signature", "redacted_thinking": "data"}
SIZE = 16


def signature(body: dict[str, Any], ids: Ids) -> str:
    """For a block of the answer to ``body``."""
    lost = mismatched(body)
    kept = [seal for path, _, seal in _thinking(body) if path not in lost]
    before = _digest(kept[-1]) if kept else "0" * SIZE
    return ids.new("EqE", 20) + _prefix(body, len(body["messages"])) + before


def mismatched(body: dict[str, Any]) -> list[str]:
    """The paths of the first block that does not fit any more, and of all behind it."""
    found: list[str] = []
    last: str | None = None
    for path, number, seal in _thinking(body):
        is_next = last is None or seal[-SIZE:] == _digest(last)
        if found or not is_next or seal[-2 * SIZE : -SIZE] != _prefix(body, number):
            found.append(path)
        last = seal
    return found


def problem(headers: Mapping[str, str], body: dict[str, Any]) -> str | None:
    """Why the service would refuse the request, or None."""
    thinking = body.get("thinking") or {}
    has_header = BETA in headers.get("anthropic-beta", "").split(",")
    is_checked = CHECKED.fullmatch(body["model"]) is not None
    if has_header and not is_checked:
        return (
            f"Unexpected value(s) `{BETA}` for the `anthropic-beta` header. Please consult our "
            "documentation at docs.anthropic.com or try again without the header."
        )
    if "block_binding" in thinking and not has_header:
        return f"thinking.{thinking['type']}.block_binding: Extra inputs are not permitted"
    lost = mismatched(body) if is_checked else []
    if not lost or _behavior(body) == "drop_block":
        return None
    more = f" That setting requires the `{BETA}` value in the `anthropic-beta` header."
    return (
        f"{lost[0]}: Invalid `signature` in `thinking` block. The block is bound to a different "
        "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` "
        f'to "drop_block".{"" if has_header else more}'
    )


def transformations(body: dict[str, Any]) -> dict[str, Any]:
    """What an answer says of the blocks that were dropped; only whoever sets the field is told."""
    if _behavior(body) is None:
        return {}
    kind, reason = "thinking_dropped", "prefix_binding_mismatch"
    entries = [{"type": kind, "path": path, "reason": reason} for path in mismatched(body)]
    return {"input_transformations": entries}


def _behavior(body: dict[str, Any]) -> Any:
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    return binding.get("prefix_mismatch_behavior")


def _thinking(body: dict[str, Any]) -> Iterator[tuple[str, int, str]]:
    """Of each block: its path, the number of its message, what it is bound with."""
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(_blocks(message)):
            if key := THINKING.get(block["type"]):
                yield f"messages.{number}.content.{index}", number, str(block[key])


def _prefix(body: dict[str, Any], number: int) -> str:
    """The digest of what stands before a message, thinking and ``cache_control`` apart."""
    messages = [
        {**message, "content": [one for one in _blocks(message) if one["type"] not in THINKING]}
        for message in body["messages"][:number]
    ]
    return _digest(_plain([body.get("system"), body.get("tools"), messages]))


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(one) for key, one in value.items() if key != "cache_control"}
        case list():
            return [_plain(one) for one in value]
        case _:
            return value


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:SIZE]
