"""The tables of README.md and docs/ that are the engine's: the same in every clone."""

from modeshift.modes.effects import EFFECTS, ToolSpec
from modeshift.modes.policy import Approvals, verdict
from tests.harness.modes import load_catalog

CALLS = {
    "reads": ToolSpec("tool", EFFECTS["read"]),
    "edits": ToolSpec("tool", EFFECTS["edit"]),
    "commands in the sandbox": ToolSpec("tool", EFFECTS["command"], sandboxed=True),
    "commands without one": ToolSpec("tool", EFFECTS["command"]),
    "the network, MCP servers": ToolSpec("tool", EFFECTS["network"]),
    "a question": ToolSpec("tool", EFFECTS["question"]),
    "a change of mode": ToolSpec("tool", EFFECTS["switch"]),
}


def make_tables() -> dict[str, str]:
    """By the name in the marks, as for ``modeshift.testing.renew``."""
    return {"approvals": _list_approvals(), "effects": _list_effects()}


def _list_approvals() -> str:
    """What runs and what asks under each policy, in a mode that has every group."""
    catalog = load_catalog()
    lines = [f"| approvals | {' | '.join(CALLS)} |", "|---" * (len(CALLS) + 1) + "|"]
    for policy in Approvals:
        kinds = [
            verdict(catalog[catalog.default], tool, None, policy).kind for tool in CALLS.values()
        ]
        cells = " | ".join("runs" if kind == "allow" else f"{kind}s" for kind in kinds)
        is_default = " (the default)" if policy is Approvals.MANUAL else ""
        lines.append(f"| `{policy}`{is_default} | {cells} |")
    return "\n".join(lines)


def _list_effects() -> str:
    """The effects and what follows from each."""
    rows = [
        f"| `{effect.name}` | {effect.does} | {effect.asks} | {_yes(effect.can_be_remembered)} "
        f"| {_yes(effect.result_is_data)} | {_yes(effect.runs_beside_others)} |"
        for effect in EFFECTS.values()
    ]
    head = "| effect | a call | asks | can be remembered | result is data | runs beside others |"
    return "\n".join([head, "|---" * 6 + "|", *rows])


def _yes(value: bool) -> str:
    return "yes" if value else ""
