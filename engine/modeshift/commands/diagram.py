"""``make diagram``: the state machine of the modes, the user's own included, as Mermaid."""

import sys
from collections.abc import Iterator
from pathlib import Path

from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.settings import load_settings
from modeshift.modes.errors import ConfigurationError


def main(out: str | None = None) -> Iterator[str]:
    """The diagram, or the file ``out`` that it was written to; raises ``UserError``."""
    deps = AgentLoader(load_settings()).deps()
    for notice in deps.notices:
        print(f"modeshift: {notice}", file=sys.stderr)
    drawn = deps.machine.chart.mermaid()
    if out is None:
        yield drawn
        return
    try:
        Path(out).write_text(f"{drawn}\n", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"OUT={out!r} cannot be written: {error.strerror}") from error
    yield f"{out}: written"
