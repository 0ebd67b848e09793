"""What of a request's input the services read from their caches, and write to them.

Anthropic keeps the prefixes that end at a mark, and finds one that ends in the last blocks before
a mark. OpenAI keeps every prefix of 128 tokens, and finds the longest. Nothing grows old here.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from threading import Lock
from typing import Any

from tests.provider.binding import dropped
from tests.provider.digests import MARK, digest, tokens, unmarked
from tests.provider.tool_changes import blocks_of, plain_tools, with_definitions

Json = dict[str, Any]

LOOKBACK = 20
SMALLEST = {
    4096: re.compile(r"claude-(opus-4-[56]|haiku-4-5)\b"),
    2048: re.compile(r"claude-opus-4-7\b"),
    1024: re.compile(r"claude-(opus-4-8|sonnet-(4-\d|5(?!-5)))\b"),
    512: re.compile(""),
}
"""Tokens of the shortest prefix that is kept, by Anthropic's models."""
PIECE, LEAST = 128, 1024
"""OpenAI's, in tokens."""
PAYS_FOR_WRITES = re.compile(r"gpt-(5\.[6-9]|[6-9])")


@dataclass(frozen=True)
class Input:
    """The input of one request, in tokens."""

    plain: int = 0
    """Neither read from a cache nor written to it."""
    read: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        return self.plain + self.read + self.written


class PromptCache:
    """The caches of one service; each key of the service and each model has its own."""

    def __init__(self) -> None:
        self._kept: set[str] = set()
        self._lock = Lock()

    def anthropic(self, key: str, body: Json) -> Input:
        """The input of a request for Anthropic Messages; its prefixes are kept."""
        parts = [*_anthropic_parts(body)]
        sizes = [*accumulate(tokens(value) for value, _ in parts)]
        ends = [
            *accumulate((value for value, _ in parts), digest, initial=digest(key, body["model"]))
        ]
        marks = {end for end, (_, mark) in enumerate(parts, 1) if mark}
        if MARK in body:
            marks.add(len(parts))
        least = next(size for size, model in SMALLEST.items() if model.search(body["model"]))
        marks = {end for end in marks if sizes[end - 1] >= least}
        with self._lock:
            known = (
                near
                for end in sorted(marks, reverse=True)
                for near in range(end, max(end - LOOKBACK, 0), -1)
                if ends[near] in self._kept
            )
            read = max((sizes[end - 1] for end in known), default=0)
            self._kept |= {ends[end] for end in marks}
        last = max((sizes[end - 1] for end in marks), default=0)
        written = max(last - read, 0)
        return Input(sizes[-1] - read - written, read, written)

    def openai(self, key: str, body: Json) -> Input:
        """The input of a request for OpenAI; only those with the same cache key share."""
        text = _openai_text(body)
        total = tokens(text)
        size = 4 * PIECE
        pieces = [text[at : at + size] for at in range(0, len(text) - size + 1, size)]
        seed = digest(key, body["model"], body.get("prompt_cache_key"))
        ends = [*accumulate(pieces, digest, initial=seed)][1:] if total >= LEAST else []
        with self._lock:
            found = next((at for at, end in enumerate(ends) if end not in self._kept), len(ends))
            self._kept |= set(ends)
        read = PIECE * found if PIECE * found >= LEAST else 0
        pays = ends and PAYS_FOR_WRITES.match(body["model"])
        written = total - read if pays else 0
        return Input(total - read - written, read, written)


def _anthropic_parts(body: Json) -> Iterator[tuple[Any, Json | None]]:
    """What the model reads, in its order, each with its mark.

    Another choice of a tool, way of thinking or effort makes all messages new.
    """
    for tool in plain_tools(body):
        yield unmarked(tool), tool.get(MARK)
    for block in blocks_of({"content": body.get("system") or []}):
        yield unmarked(block), block.get(MARK)
    thinking = body.get("thinking") or {}
    settings = [body.get("tool_choice"), body.get("output_config"), thinking.get("type")]
    lost = dropped(body)
    for number, blocks in enumerate(with_definitions(body)):
        role = body["messages"][number]["role"]
        for index, block in enumerate(blocks):
            if f"messages.{number}.content.{index}" not in lost:
                before = [] if number or index else settings
                yield [*before, role, unmarked(block)], block.get(MARK)


def count_anthropic(body: Json) -> int:
    """The tokens of a request's input."""
    return sum(tokens(value) for value, _ in _anthropic_parts(body))


def count_openai(body: Json) -> int:
    return tokens(_openai_text(body))


def _openai_text(body: Json) -> str:
    """What the model reads, as one text that only grows if the history does."""
    form = body.get("text") or body.get("response_format")
    history = body["messages"] if "messages" in body else body["input"]
    parts = [body.get("tools"), form, body.get("instructions"), *history]
    return "".join(json.dumps(part, sort_keys=True, ensure_ascii=False) for part in parts)
