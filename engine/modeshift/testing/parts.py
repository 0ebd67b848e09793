"""The generated parts of README.md and docs/, from catalog and chart; run by ``make renew``.

A part stands between ``<!-- name -->`` and ``<!-- /name -->``, on any page; where there are no such
marks, there is none.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from modeshift.modes.catalog import Catalog
from modeshift.modes.effects import EFFECTS, ToolSpec
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.machine import Machine
from modeshift.modes.mode import Mode
from modeshift.modes.policy import Approvals, verdict
from modeshift.project import load_project
from modeshift.testing.modes import load_modes


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
    machine = Machine(catalog, [], load_project().chart)
    return f"```mermaid\n{machine.chart.mermaid()}\n```"


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


PARTS: Mapping[str, Callable[[Catalog], str]] = {
    "modes": modes_table,
    "approvals": approvals_table,
    "diagram": diagram,
    "effects": effects_table,
}
"""What is generated, by the name in the marks."""


def with_parts(name: str, text: str, catalog: Catalog) -> str:
    """The page ``name`` with its generated parts as they are now.

    Raises ``ConfigurationError`` for a mark without its end.
    """
    for part, make in PARTS.items():
        begin, end = f"<!-- {part} -->\n", f"<!-- /{part} -->"
        if begin not in text:
            continue
        head, _, rest = text.partition(begin)
        _, found, tail = rest.partition(end)
        if not found:
            raise ConfigurationError(
                f"{name} has {begin.strip()} without {end}: add it; nothing was written"
            )
        text = f"{head}{begin}{make(catalog)}\n{end}{tail}"
    return text


def find_pages(root: Path) -> Iterator[Path]:
    """The README and the pages of docs, if there are any."""
    yield from (file for file in (root / "README.md", *root.glob("docs/**/*.md")) if file.exists())


def write_parts(root: Path) -> None:
    """Write all pages, or none: raises ``ConfigurationError`` as ``with_parts`` does."""
    catalog = load_modes().catalog
    made = {
        page: with_parts(page.relative_to(root).as_posix(), page.read_text("utf-8"), catalog)
        for page in find_pages(root)
    }
    for page, text in made.items():
        page.write_text(text, encoding="utf-8")
