"""Thinking blocks as the newest models bind them: to all that was sent before them.

A real signature is sealed. This one spells out what it is bound to: the digest of system
prompt, tools and messages before the block, the number of thinking blocks before it, and the
digest of the last of them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.provider.digests import SIZE, digest, unmarked
from tests.provider.script import Ids
from tests.provider.tool_changes import blocks_of, plain_tools, with_definitions

BETA = "thinking-binding-controls-2026-08-01"
UPDATES_BETA = "thinking-display-updates-2026-08-18"
CHECKED = re.compile(r"claude-((fable|mythos)-5-[12]|(opus|sonnet|haiku)-5-5)(-20\d{6})?")
"""The models that check. Others know neither field nor header here, as on Google Cloud."""
THINKING = {"thinking": "signature", "redacted_thinking": "data"}
SEAL = re.compile(rf"EqE.{{20}}(?P<prefix>\w{{{SIZE}}})(?P<last>\w{{{SIZE}}})(?P<count>\d{{4}})")


def signature(body: dict[str, Any], ids: Ids) -> str:
    """For a block of the answer to ``body``."""
    lost = mismatched(body)
    kept = [seal for path, _, seal in _thinking(body) if path not in lost]
    last = digest(kept[-1]) if kept else "0" * SIZE
    return f"{ids.new('EqE', 20)}{prefixes(body)[-1]}{last}{len(kept):04}"


def mismatched(body: dict[str, Any]) -> list[str]:
    """The paths of the first block that does not fit any more, and of all behind it.

    The blocks before one may be fewer than when it was written, if the first of them are gone:
    so they are no more, and the last of them is the same.
    """
    paths: list[str] = []
    ends = prefixes(body)
    last: str | None = None
    for count, (path, number, seal) in enumerate(_thinking(body)):
        known = SEAL.fullmatch(seal)
        is_next = known and (last is None or known["last"] == digest(last))
        if (
            paths
            or known is None
            or not is_next
            or count > int(known["count"])
            or known["prefix"] != ends[number]
        ):
            paths.append(path)
        last = seal
    return paths


def problem(headers: Mapping[str, str], body: dict[str, Any]) -> str | None:
    """Why the service would refuse the request, or None."""
    thinking = body.get("thinking") or {}
    betas = headers.get("anthropic-beta", "").split(",")
    has_header = BETA in betas
    is_checked = CHECKED.fullmatch(body["model"]) is not None
    if has_header and not is_checked:
        return unexpected_beta(BETA)
    for name, is_known in (
        ("block_binding", has_header),
        ("display", UPDATES_BETA in betas and is_checked and "haiku" not in body["model"]),
    ):
        if name in thinking and not is_known:
            return f"thinking.{thinking['type']}.{name}: Extra inputs are not permitted"
    for path, _, seal in _thinking(body):
        if not SEAL.fullmatch(seal):
            return f"{path}: Invalid `signature` in `thinking` block"
    lost = mismatched(body) if is_checked else []
    if not lost or _behavior(body) == "drop_block":
        return None
    more = f" That setting requires the `{BETA}` value in the `anthropic-beta` header."
    return (
        f"{lost[0]}: Invalid `signature` in `thinking` block. The block is bound to a different "
        "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` "
        f'to "drop_block".{"" if has_header else more}'
    )


def unexpected_beta(name: str) -> str:
    return (
        f"Unexpected value(s) `{name}` for the `anthropic-beta` header. Please consult our "
        "documentation at docs.anthropic.com or try again without the header."
    )


def transformations(body: dict[str, Any]) -> dict[str, Any]:
    """What an answer says of the blocks that were dropped; only whoever sets the field is told."""
    if _behavior(body) is None:
        return {}
    kind, reason = "thinking_dropped", "prefix_binding_mismatch"
    entries = [{"type": kind, "path": path, "reason": reason} for path in mismatched(body)]
    return {"input_transformations": entries}


def dropped(body: dict[str, Any]) -> list[str]:
    """The paths of the blocks that the model is not shown."""
    return mismatched(body) if CHECKED.fullmatch(body["model"]) else []


def _behavior(body: dict[str, Any]) -> Any:
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    return binding.get("prefix_mismatch_behavior")


def _thinking(body: dict[str, Any]) -> Iterator[tuple[str, int, str]]:
    """Of each block: its path, the number of its message, what it is bound with."""
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(blocks_of(message)):
            if key := THINKING.get(block["type"]):
                yield f"messages.{number}.content.{index}", number, str(block[key])


def prefixes(body: dict[str, Any]) -> list[str]:
    """The digests of what stands before each message, and of all; thinking and marks apart."""
    system = body.get("system")
    digests = [digest(unmarked([system, plain_tools(body)]))]
    for message, blocks in zip(body["messages"], with_definitions(body), strict=True):
        said = [block for block in blocks if block["type"] not in THINKING]
        before = digests[-1]
        digests.append(digest(before, message["role"], unmarked(said)) if said else before)
    return digests
