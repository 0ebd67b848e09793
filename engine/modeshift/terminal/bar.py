"""``build_bar``: the line below the input, with the mode and what runs unasked."""

from decimal import Decimal

from modeshift.modes.plain_text import to_one_line
from modeshift.terminal.screen import fit_to_width, measure
from modeshift.thread import find_title
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import StateValues

BEGINNING = "── "
MIN_TITLE = 10


def name_place(mode: str, values: StateValues) -> str:
    """The mode, and whether the thread is in a sub-task."""
    return f"{mode} / sub-task" if values.get("subtask") else mode


def build_bar(
    deps: AgentDeps, values: StateValues, mode: str, approvals: str,
    cost: Decimal | None, width: int,
) -> str:  # fmt: skip
    """One line of at most ``width`` columns: what matters less is left out first."""
    last = (values.get("usage") or {}).get("last") or {}
    used, window = last.get("used") or 0, last.get("window")
    parts = [
        name_place(mode, values),
        deps.approval_words[approvals].name,
        f"{used:,} tokens" + (f" ({used / window:.0%})" if window else ""),
        deps.catalog[mode].model or deps.models.default,
        "" if cost is None else f"${cost:.2f}",
    ]
    bar = BEGINNING
    for part in filter(None, parts):
        longer = f"{bar}{' · ' if bar != BEGINNING else ''}{part}"
        bar = longer if measure(longer) <= width else bar
    title, room = to_one_line(find_title(values)), width - measure(bar) - 3
    return f"{bar} · {fit_to_width(title, room)}" if title and room >= MIN_TITLE else bar
