"""``build_bar``: the line below the input: where one is, and what runs unasked."""

from collections.abc import Mapping
from typing import Any

from modeshift.agent import find_title
from modeshift.modes.plain_text import to_one_line
from modeshift.modes.policy import Approvals
from modeshift.terminal.screen import measure
from modeshift.threads.deps import AgentDeps

MAX_TITLE = 40
APPROVALS = {
    Approvals.MANUAL: ("Ask first", "What only reads runs; all else asks."),
    Approvals.AUTO: ("Auto-accept", "Edits, and commands in the sandbox, run unasked."),
}


def build_bar(
    deps: AgentDeps,
    values: Mapping[str, Any],
    mode: str,
    approvals: str,
    cost: str | None,
    width: int,
) -> str:
    """One line of at most the width: what matters less is left out first."""
    where = f"{mode} / sub-task" if values.get("subtask") else mode
    last = (values.get("usage") or {}).get("last") or {}
    used, window = last.get("used") or 0, last.get("window")
    share = f" ({used / window:.0%})" if window else ""
    parts = [
        where,
        APPROVALS[Approvals(approvals)][0],
        f"{used:,} tokens{share}",
        deps.catalog[mode].model or deps.models.default,
        cost or "",
        to_one_line(find_title(values), MAX_TITLE),
    ]
    bar = "──"
    for part in filter(None, parts):
        longer = f"{bar} {part}" if bar == "──" else f"{bar} · {part}"
        if measure(longer) <= width:
            bar = longer
    return bar
