"""What Anthropic's service takes beside messages and tools, and which thinking it takes back.

``cache_control`` keeps the history so far in the cache. The newest models check that the system
prompt, the tools and the messages before a thinking block are those that it was written after. A
switch of the mode changes them, so an earlier mode's blocks are not sent back. ``block_binding``
is for other changes, such as an edited prompt: with it the service drops the blocks that do not
fit, and would otherwise refuse the request. The field also has to name the kind of thinking, the
one that those models use anyway.
"""

import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage

log = logging.getLogger("modeshift")

BETA = "thinking-binding-controls-2026-08-01"
CHECKING = frozenset(
    {
        *("claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-1", "claude-mythos-5-2"),
        *("claude-haiku-5-5", "claude-opus-5-5", "claude-sonnet-5-5"),
    }
)
"""The models that check; the same name with a date behind it is the same model."""
_DATE = re.compile(r"-20\d{6}$")
_USERS_BETAS = re.compile(r"^\s*anthropic-beta\s*:\s*(\S.*?)\s*$", re.I | re.M)
_OTHER_CONVERSATION = "bound to a different conversation"
_ABOUT_THINKING = re.compile(
    rf"block_binding|{BETA}|anthropic-beta|adaptive|thinking[\w.]*: extra inputs", re.I
)
_THINKING = frozenset({"thinking", "redacted_thinking"})
_MODE = "mode"
"""The key in the metadata of an answer with thinking: the mode that it was written in."""

Thinking = Literal["all", "of this mode", "none"]
CacheTTL = Literal["5m", "1h"]


@dataclass(frozen=True)
class OptionalFields:
    """What a request holds beside messages and tools."""

    caches: bool = False
    ttl: CacheTTL = "5m"
    drops: bool = False
    """Whether the service is asked to drop thinking blocks that do not fit."""
    thinking: Thinking = "all"
    """The blocks that are sent back: all, or those written since the mode last changed."""

    @classmethod
    def of(cls, name: str, ttl: CacheTTL = "5m") -> "OptionalFields":
        """The fields for the model ``provider:name``, as far as is known before it is asked."""
        provider, _, model = name.partition(":")
        if provider != "anthropic":
            return cls()
        if _DATE.sub("", model) not in CHECKING:
            return cls(caches=True, ttl=ttl)
        # If it were sent an earlier mode's blocks, the service would drop all later ones too.
        return cls(caches=True, ttl=ttl, drops=True, thinking="of this mode")

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The arguments for the model's client."""
        arguments: dict[str, Any] = {}
        if self.caches:
            ttl = {} if self.ttl == "5m" else {"ttl": self.ttl}  # 5m is the service's own
            arguments["cache_control"] = {"type": "ephemeral", **ttl}
        if self.drops:
            binding = {"prefix_mismatch_behavior": "drop_block"}
            arguments["thinking"] = {"type": "adaptive", "block_binding": binding}
            # The client would put this in the place of the user's own.
            users = _USERS_BETAS.findall(os.environ.get("ANTHROPIC_CUSTOM_HEADERS", ""))
            arguments["betas"] = [*users, BETA]
        return arguments

    def without(self, error: Exception) -> "OptionalFields | None":
        """The fields without what ``error`` refuses; None if it is about something else."""
        if getattr(error, "status_code", None) not in (400, 422):
            return None
        text = str(error)
        # First, because its text also names the field and the header.
        if _OTHER_CONVERSATION in text and self.thinking != "none":
            less: Thinking = "of this mode" if self.thinking == "all" else "none"
            return replace(self, drops=False, thinking=less)
        if self.drops and _ABOUT_THINKING.search(text):
            return replace(self, drops=False, thinking="of this mode")
        if self.caches and "cache_control" in text:
            return replace(self, caches=False)
        return None


class Service:
    """What the service behind one model takes, as far as is known by now."""

    def __init__(self, name: str, ttl: CacheTTL = "5m") -> None:
        """``name`` is the model's, as the user wrote it."""
        self.fields = OptionalFields.of(name, ttl)
        """For the next request."""
        self._name = name

    def without(self, error: Exception, sent: OptionalFields) -> OptionalFields | None:
        """What to send in the place of ``sent`` if ``error`` refuses a part of it, else None.

        The part is left out from now on; but leaving out all thinking is for this history alone,
        which was edited.
        """
        less = sent.without(error)
        if less is not None and less.thinking != "none" and less != self.fields:
            # Another request may have learned something in the meantime.
            self.fields = self.fields.without(error) or less
            is_cache = less.caches != sent.caches
            what = "cache_control" if is_cache else "block_binding, or thinking of an earlier mode"
            log.warning("the provider of %r refuses %s: not sent from now on", self._name, what)
        return less


def record_mode(answer: AIMessage, mode: str) -> AIMessage:
    """``answer`` with the mode noted in its metadata if it holds thinking."""
    if not _has_thinking(answer):
        return answer
    metadata = {**answer.response_metadata, _MODE: mode}
    return answer.model_copy(update={"response_metadata": metadata})


def select_thinking(messages: list[AnyMessage], kept: Thinking, mode: str) -> list[AnyMessage]:
    """``messages`` with the thinking that is to be sent back in ``mode``.

    What was written before another mode's stays away for good: the service accepts that blocks
    are left out from some point on, but not that they come back.
    """
    if kept == "all":
        return messages
    return [*_strip_backwards(messages, mode if kept == "of this mode" else None)][::-1]


def _strip_backwards(messages: Sequence[AnyMessage], mode: str | None) -> Iterator[AnyMessage]:
    """The messages from the last to the first; thinking is kept until another mode's comes."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and _has_thinking(message):
            if mode is not None and message.response_metadata.get(_MODE) == mode:
                yield message
                continue
            mode = None
            content: Any = [block for block in message.content if not _is_thinking(block)]
            yield message.model_copy(update={"content": content})
        else:
            yield message


def _has_thinking(message: AIMessage) -> bool:
    return isinstance(message.content, list) and any(map(_is_thinking, message.content))


def _is_thinking(block: str | dict[Any, Any]) -> bool:
    return isinstance(block, dict) and block.get("type") in _THINKING
