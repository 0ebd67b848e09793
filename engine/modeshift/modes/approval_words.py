"""``word_approvals``: the name and the sentence by which people know each value of approvals."""

from collections.abc import Iterable
from dataclasses import dataclass

from modeshift.modes.effects import ToolSpec
from modeshift.modes.policy import Approvals


@dataclass(frozen=True, slots=True)
class ApprovalWords:
    """One value of approvals in words."""

    value: str
    name: str
    sentence: str


def word_approvals(tools: Iterable[ToolSpec]) -> dict[str, ApprovalWords]:
    """The words by value; for ``auto`` they depend on the tools, and whether there is a sandbox."""
    affected = [tool for tool in tools if tool.effect.asks == "under manual"]
    edits = any(not tool.effect.runs_programs for tool in affected)
    sandboxed = {tool.sandboxed for tool in affected if tool.effect.runs_programs}
    unasked = ["edits of files"] * edits + ["commands in the sandbox"] * (True in sandboxed)
    auto = f"{' and '.join(unasked)} run unasked" if unasked else "nothing more runs unasked"
    auto = auto[0].upper() + auto[1:]
    if False in sandboxed:
        auto += "; commands ask, as there is no sandbox"
    manual = 'Whatever is not read-only asks, unless a rule or an "always" of yours allows it.'
    words = (
        ApprovalWords(Approvals.MANUAL.value, "Ask first", manual),
        ApprovalWords(Approvals.AUTO.value, "Auto-accept", f"{auto}."),
    )
    return {each.value: each for each in words}
