"""What a request to Anthropic holds beside messages and tools, less what its service refuses.

``cache_control`` has the history so far kept in the cache. The newest models check whether system
prompt, tools and messages before a thinking block are those that it was written after, which a
switch of the mode changes: such blocks are not sent back. ``block_binding`` is for what changes
besides, a prompt's file say: the service drops the blocks that do not fit, where it would refuse
the whole request. Those models think anyhow, so that naming the kind of thinking, as the field
requires, changes nothing else.
"""

import logging
import os
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

log = logging.getLogger("modeshift")

BETA = "thinking-binding-controls-2026-08-01"
CHECKED = frozenset(
    {
        *("claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-1", "claude-mythos-5-2"),
        *("claude-haiku-5-5", "claude-opus-5-5", "claude-sonnet-5-5"),
    }
)
"""The models that check; one with a date behind its name is the same."""
_DATE = re.compile(r"-20\d{6}$")
_ALSO = re.compile(r"^\s*anthropic-beta\s*:\s*(\S.*?)\s*$", re.I | re.M)
_REFUSED = (400, 422)
_OTHER_CONVERSATION = "bound to a different conversation"
_OF_THINKING = re.compile(
    rf"block_binding|{BETA}|anthropic-beta|adaptive|thinking[\w.]*: extra inputs", re.I
)

Thoughts = Literal["all", "of this mode", "none"]


@dataclass(frozen=True)
class OptionalFields:
    """What one request holds."""

    caches: bool = False
    drops: bool = False
    """Whether the service is to drop the thinking blocks that do not fit."""
    thoughts: Thoughts = "all"
    """Which thinking blocks are sent back: all, or those written since the mode last changed."""

    @classmethod
    def of(cls, name: str) -> "OptionalFields":
        """For the model ``provider:name``."""
        provider, _, model = name.partition(":")
        if provider != "anthropic":
            return cls()
        if _DATE.sub("", model) not in CHECKED:
            return cls(caches=True)
        # The service would drop, with an earlier mode's thoughts, all that come behind them.
        return cls(caches=True, drops=True, thoughts="of this mode")

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """For the model's client."""
        found: dict[str, Any] = {}
        if self.caches:
            found["cache_control"] = {"type": "ephemeral"}
        if self.drops:
            binding = {"prefix_mismatch_behavior": "drop_block"}
            found["thinking"] = {"type": "adaptive", "block_binding": binding}
            # The client would let its own value stand in the place of the user's.
            also = _ALSO.findall(os.environ.get("ANTHROPIC_CUSTOM_HEADERS", ""))
            found["betas"] = [*also, BETA]
        return found

    def without(self, error: Exception) -> "OptionalFields | None":
        """Without what the service refuses in ``error``; None where it is about something else."""
        if getattr(error, "status_code", None) not in _REFUSED:
            return None
        text = str(error)
        # First, for its text names the field and the header, too.
        if _OTHER_CONVERSATION in text and self.thoughts != "none":
            less: Thoughts = "of this mode" if self.thoughts == "all" else "none"
            return replace(self, drops=False, thoughts=less)
        if self.drops and _OF_THINKING.search(text):
            return replace(self, drops=False, thoughts="of this mode")
        if self.caches and "cache_control" in text:
            return replace(self, caches=False)
        return None


class Service:
    """What the service behind one model takes, as far as it is known; mutable."""

    def __init__(self, name: str) -> None:
        """``name`` is the model's, as the user wrote it."""
        self.fields = OptionalFields.of(name)
        """For the next request."""
        self._name = name

    def without(self, error: Exception, sent: OptionalFields) -> OptionalFields | None:
        """For ``sent`` once more, if ``error`` refuses a part of it; left out from now on.

        Not so where all thoughts are to be left out: that is for one history, which was edited.
        """
        less = sent.without(error)
        if less is not None and less.thoughts != "none" and less != self.fields:
            # Of what is known by now: another request may have learned something meanwhile.
            self.fields = self.fields.without(error) or less
            is_cache = less.caches != sent.caches
            what = "cache_control" if is_cache else "block_binding, or thoughts of an earlier mode"
            log.warning("the provider of %r refuses %s: it gets none from now on", self._name, what)
        return less
