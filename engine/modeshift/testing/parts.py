"""The generated parts of README.md and docs/, from catalog and chart; run by ``make renew``.

A part stands between ``<!-- name -->`` and ``<!-- /name -->``, on any page; where there are no such
marks, there is none.
"""

from collections.abc import Mapping
from pathlib import Path

from modeshift.modes.catalog import Catalog
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.machine import Machine
from modeshift.project import load_project
from modeshift.testing.modes import load_modes


def modes_table(catalog: Catalog) -> str:
    """The modes, as a Markdown table."""
    lines = ["| mode | tool groups | for |", "|---|---|---|"]
    for slug, mode in catalog.items():
        default = " (the default)" if slug == catalog.default else ""
        limits = [(grant.group, grant.file_regex or grant.sandbox) for grant in mode.groups]
        groups = ", ".join(f"{group} (`{limit}`)" if limit else group for group, limit in limits)
        lines.append(f"| `{slug}`{default} | {groups} | {mode.description} |")
    return "\n".join(lines)


def make_parts(catalog: Catalog) -> dict[str, str]:
    """What is generated, by the name in the marks; the diagram is a Mermaid code block."""
    machine = Machine(catalog, [], load_project().chart)
    return {
        "modes": modes_table(catalog),
        "diagram": f"```mermaid\n{machine.chart.mermaid()}\n```",
    }


def with_parts(name: str, text: str, parts: Mapping[str, str]) -> str:
    """The page ``name`` with these parts between their marks.

    Raises ``ConfigurationError`` for a mark without its end.
    """
    for part, made in parts.items():
        begin, end = f"<!-- {part} -->\n", f"<!-- /{part} -->"
        if begin not in text:
            continue
        head, _, rest = text.partition(begin)
        _, found, tail = rest.partition(end)
        if not found:
            raise ConfigurationError(
                f"{name} has {begin.strip()} without {end}: add it; nothing was written"
            )
        text = f"{head}{begin}{made}\n{end}{tail}"
    return text


def write_parts(root: Path) -> None:
    """Write README and docs, all pages or none: raises as ``with_parts`` does."""
    parts = make_parts(load_modes().catalog)
    made = {
        page: with_parts(page.relative_to(root).as_posix(), page.read_text("utf-8"), parts)
        for page in (root / "README.md", *root.glob("docs/**/*.md"))
        if page.exists()
    }
    for page, text in made.items():
        page.write_text(text, encoding="utf-8")
