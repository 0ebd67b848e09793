"""The generated parts of README.md and docs/, from catalog and chart; run by ``make renew``.

A part stands between ``<!-- name -->`` and ``<!-- /name -->``. The tests run the same functions
and compare.
"""

import re
from collections.abc import Callable, Mapping

from graph.chart import CHART
from modeshift.modes.catalog import Catalog
from modeshift.modes.effects import EFFECTS, ToolSpec
from modeshift.modes.machine import Machine
from modeshift.modes.mode import Mode
from modeshift.modes.policy import Approvals, verdict
from tests.harness.modes import load_catalog
from tests.harness.root import ROOT


def modes_table(catalog: Catalog) -> str:
    """The modes, as a Markdown table."""
    rows = [
        f"| `{slug}`{' (the default)' if slug == catalog.default else ''} "
        f"| {_groups(catalog[slug])} | {catalog[slug].description} |"
        for slug in catalog
    ]
    return "\n".join(["| mode | tool groups | for |", "|---|---|---|", *rows])


def _groups(mode: Mode) -> str:
    return ", ".join(
        grant.group + (f" (`{grant.file_regex}`)" if grant.file_regex else "")
        for grant in mode.groups
    )


def diagram(catalog: Catalog) -> str:
    """The state machine, as a Mermaid code block."""
    return f"```mermaid\n{Machine(catalog, [], CHART).chart.mermaid()}\n```"


def approvals_table(catalog: Catalog) -> str:
    """What runs and what asks under each policy, in a mode that has every group."""
    heads = " | ".join(_CALLS)
    lines = [f"| approvals | {heads} |", "|---" * (len(_CALLS) + 1) + "|"]
    for policy in Approvals:
        kinds = [
            verdict(catalog[catalog.default], tool, None, policy).kind for tool in _CALLS.values()
        ]
        cells = " | ".join("runs" if kind == "allow" else f"{kind}s" for kind in kinds)
        is_default = " (the default)" if policy is Approvals.MANUAL else ""
        lines.append(f"| `{policy}`{is_default} | {cells} |")
    return "\n".join(lines)


_CALLS = {
    "reads": ToolSpec("tool", EFFECTS["read"]),
    "edits": ToolSpec("tool", EFFECTS["edit"]),
    "commands in the sandbox": ToolSpec("tool", EFFECTS["command"], sandboxed=True),
    "commands without one": ToolSpec("tool", EFFECTS["command"]),
    "the network, MCP servers": ToolSpec("tool", EFFECTS["network"]),
    "a question": ToolSpec("tool", EFFECTS["question"]),
    "a change of mode": ToolSpec("tool", EFFECTS["switch"]),
}


def effects_table(_: Catalog) -> str:
    """The effects and what follows from each, as a Markdown table."""
    rows = [
        f"| `{effect.name}` | {effect.does} | {effect.asks} | {_yes(effect.can_be_remembered)} "
        f"| {_yes(effect.result_is_data)} | {_yes(effect.runs_beside_others)} |"
        for effect in EFFECTS.values()
    ]
    head = "| effect | a call | asks | can be remembered | result is data | runs beside others |"
    return "\n".join([head, "|---" * 6 + "|", *rows])


def _yes(value: bool) -> str:
    return "yes" if value else ""


def with_parts(name: str, text: str, catalog: Catalog) -> str:
    """The page ``name`` with its generated parts made anew."""
    for part, make in PARTS[name].items():
        pattern = re.compile(f"(<!-- {part} -->\n).*?(<!-- /{part} -->)", re.DOTALL)
        new = f"\\g<1>{make(catalog).replace(chr(92), chr(92) * 2)}\n\\g<2>"
        text, count = pattern.subn(new, text)
        assert count == 1, f"{name} has {count} places for {part!r}; it needs one"
    return text


PARTS: Mapping[str, Mapping[str, Callable[[Catalog], str]]] = {
    "README.md": {"modes": modes_table, "approvals": approvals_table},
    "docs/modes.md": {"diagram": diagram, "effects": effects_table},
}
"""What is generated, by page."""


def read_part(name: str) -> str:
    """The code between the marks ``<!-- name -->`` in README.md or a page of docs."""
    pages = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    match = re.search(f"<!-- {name} -->\n```\\w*\n(.*?)```\n<!-- /{name} -->", text, re.DOTALL)
    assert match is not None, name
    return match[1]


if __name__ == "__main__":
    for name in PARTS:
        page = ROOT / name
        page.write_text(with_parts(name, page.read_text(), load_catalog()))
