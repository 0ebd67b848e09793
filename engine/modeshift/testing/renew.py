"""``make renew``: write all that is derived anew, and say what was written and why.

The tables and the diagram between the marks of README.md and docs/, the snapshots, and of the
recordings of the scripted provider those that do not play any more. What has lost its mode or tool
is removed.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from modeshift.modes.catalog import Catalog
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.machine import Machine
from modeshift.project import find_root, load_project
from modeshift.testing.agent import load_modes


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
    """The page ``name`` with these parts between their marks; one without marks stays as it is.

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


DERIVED = ("*.md", "docs/**/*.md", "tests/snapshots/**/*", "cassettes/*/*.yaml")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:xdist")


def main() -> int:
    """Run the steps; returns the exit code."""
    root = find_root()
    before = _digest_files(root)
    try:
        write_parts(root)
    except ConfigurationError as error:
        sys.stderr.write(f"modeshift: {error}\n")
        return 1
    is_well = _succeeds(root, "-k", "snapshots", WRITE="1")
    # Recordings that play stay as they are, whoever was recorded.
    played = ("-m", "recorded", "-o", "cache_dir=.pytest_cache")
    if not _succeeds(root, *played, "--prune", is_quiet=True):
        is_well &= _succeeds(root, *played, "--last-failed", "--record=scripted")
    after = _digest_files(root)
    changed = sorted(name for name, _ in {*before.items()} ^ {*after.items()})
    for name in dict.fromkeys(changed):
        why = "as what it is made of has changed" if name in after else "as nothing has it any more"
        sys.stdout.write(f"{name}: {'written' if name in after else 'removed'}, {why}\n")
    if not changed:
        sys.stdout.write("nothing has changed\n")
    return not is_well


def _succeeds(root: Path, *options: str, is_quiet: bool = False, **variables: str) -> bool:
    done = subprocess.run(  # noqa: S603  # pytest
        [*PYTEST, *options],
        cwd=root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    is_well = done.returncode in (0, 5)  # 5: there are none
    if not is_well and not is_quiet:
        sys.stdout.write(done.stdout + done.stderr)
    return is_well


def _digest_files(root: Path) -> dict[str, str]:
    files = [file for pattern in DERIVED for file in root.glob(pattern) if file.is_file()]
    return {str(file.relative_to(root)): sha256(file.read_bytes()).hexdigest() for file in files}


if __name__ == "__main__":
    sys.exit(main())
