"""Anthropic's compaction on demand: a summary, signed, that stands for the messages before it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.provider.digests import SIZE, digest
from tests.provider.script import Ids

Json = dict[str, Any]

BETA = "compact-2026-09-04"
MODELS = re.compile(
    r"(.*[/.])?claude-((fable|mythos)-5(-1)?|opus-(4-[678]|5(-5)?)|sonnet-(4-6|5(-5)?)|haiku-5-5)"
    r"(-20\d{6})?"
)
MISPLACED = "the compaction block must be first in messages, in place of those that it stands for"
SEAL = re.compile(rf"CMP.{{20}}(?P<head>\w{{{SIZE}}})(?P<end>\w{{{SIZE}}})(?P<role>\w+)")


def problems(headers: Mapping[str, str], body: Json) -> Iterator[str]:
    """Why the service would refuse to compact, or what it compacted before."""
    is_known = BETA in headers.get("anthropic-beta", "").split(",")
    if "compaction" in body:
        if not is_known or not MODELS.fullmatch(body["model"]):
            yield "compaction: Extra inputs are not permitted"
        yield from _request_problems(body)
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(message["content"]):
            if not isinstance(block, dict) or block["type"] != "compaction":
                continue
            path = f"messages.{number}.content.{index}"
            if not is_known:
                yield f"{path}: Input tag 'compaction' does not match the expected tags"
            if number or index:
                yield f"{path}: {MISPLACED}"
            if not SEAL.fullmatch(block.get("signature", "")):
                yield f"{path}: Invalid `signature` in `compaction` block"


def _request_problems(body: Json) -> Iterator[str]:
    last = body["messages"][-1]["content"]
    if isinstance(last, list) and last and last[-1]["type"] == "tool_use":
        yield "compaction: the last assistant turn ends in a tool call with no result"
    kind = (body.get("tool_choice") or {}).get("type", "auto")
    has_format = "format" in (body.get("output_config") or {})
    if kind in ("any", "tool") or "stop_sequences" in body or has_format:
        yield "compaction: cannot be combined with tool_choice, stop_sequences or a format"


def block_of(message: Json) -> Json | None:
    """The compaction block that a message begins with."""
    for first in message["content"][:1]:
        if isinstance(first, dict) and first["type"] == "compaction":
            return first
    return None


def summarize(text: str, body: Json, prefixes: list[str], ids: Ids) -> Json:
    """The block that stands for the messages of ``body``."""
    role = body["messages"][-1]["role"]
    seal = f"{ids.new('CMP', 20)}{prefixes[0]}{prefixes[-1]}{role}"
    return {"type": "compaction", "content": text, "signature": seal}


def go_on(block: Json, head: str, following: list[Json]) -> str:
    """The digest of all that the block stands for, with which what follows has to begin.

    It fits nothing else if system prompt or tools are others, or if the next message would be
    merged into the last one that is gone.
    """
    known = SEAL.fullmatch(block["signature"])
    is_merged = known and following and following[0]["role"] in (known["role"], "system")
    if known is None or known["head"] != head or is_merged:
        return digest(head, block)
    return known["end"]
