"""``make diagram``: the state machine of the modes as they hold, as Mermaid.

OUT=file      write it there instead of printing it
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from doors.commands.cli import run
from graph.configuration.loading import AgentLoader
from graph.settings import load_settings
from modes.errors import ConfigurationError


def main() -> Iterator[str]:
    """The diagram, or where it was written; raises ``UserError``."""
    deps = AgentLoader(load_settings()).deps()
    for notice in deps.notices:
        print(f"modeshift: {notice}", file=sys.stderr)
    drawn = deps.machine.mermaid()
    out = os.environ.get("OUT")
    if not out:
        yield drawn
        return
    try:
        Path(out).write_text(f"{drawn}\n", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"OUT={out!r} cannot be written: {error.strerror}") from error
    yield f"{out}: written"


if __name__ == "__main__":
    run(main, __doc__)
