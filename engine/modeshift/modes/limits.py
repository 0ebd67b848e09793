"""The host's limit: a mode that a thread's rights never exceed, whatever mode the thread is in.

Every call is judged in both modes, and the stricter verdict counts. A limit is for the host to
set and to lift; what the model asks for or a person approves does not change it.
"""

from collections.abc import Iterable
from dataclasses import replace

from modeshift.modes.effects import ToolSpec
from modeshift.modes.mode import Mode
from modeshift.modes.policy import Verdict, is_offered

_STRICTNESS = ("allow", "ask", "deny")


def make_strictest(slug: str) -> Mode:
    """The limit in place of one whose mode no longer exists: without any tool of a group."""
    return Mode.model_construct(
        slug=slug, name=repr(slug), role_definition="-", groups=(), description="no longer exists"
    )


def cut_verdict(by_mode: Verdict, limit: Mode, by_limit: Verdict) -> Verdict:
    """The stricter of the mode's verdict and the limit's."""
    if by_limit.kind == "deny" and by_mode.kind != "deny":
        reason = f"{describe_limit(limit)} {by_limit.reason}"
        return replace(by_limit, reason=reason, is_missing=False)
    stricter = max(by_mode, by_limit, key=lambda judgement: _STRICTNESS.index(judgement.kind))
    return replace(
        stricter,
        always_asks=by_mode.always_asks or by_limit.always_asks,
        is_read_only=by_mode.is_read_only or by_limit.is_read_only,
    )


def find_unheld(limit: Mode, tool: ToolSpec) -> str | None:
    """Why the tool cannot be held to a limit; None if it can. Begins with the error's name."""
    if not tool.effect.owns_tools:
        return None
    return (
        f"unsupported_mode: {tool.name} runs an agent with tools of its own, and nothing holds "
        f"that to {limit.name} mode"
    )


def is_within(mode: Mode, limit: Mode, tools: Iterable[ToolSpec]) -> bool:
    """Whether a mode offers no tool, and no file to edit, that the limit does not offer.

    A mode that is not within it may still be the thread's: then its rights are cut.
    """
    if mode.slug == limit.slug:
        return True
    return all(_is_tool_within(mode, limit, tool) for tool in tools if is_offered(mode, tool))


def _is_tool_within(mode: Mode, limit: Mode, tool: ToolSpec) -> bool:
    if not is_offered(limit, tool):
        return False
    if tool.group is None or (grant := mode.grant(tool.group)) is None:
        return True
    # The limit may offer it for a few commands alone.
    most = limit.grant(tool.group)
    return (
        most is not None
        and most.file_regex in (None, grant.file_regex)
        and most.sandbox in (None, grant.sandbox)
    )


def describe_limit(limit: Mode) -> str:
    """The limit in words for the model."""
    return f"This thread is limited to what {limit.name} mode may do, and no approval changes that."
