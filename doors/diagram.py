"""``make diagram``: the state machine of the modes as they hold, as Mermaid.

OUT=file      write it there instead of printing it
"""

import os
import sys
from pathlib import Path

from graph.settings import ENV_FILE, load_settings
from graph.workshop import Workshop
from modes.errors import UserError


def main(env_file: Path = ENV_FILE) -> None:
    """Write it, or end with a message."""
    try:
        harness = Workshop(load_settings(env_file)).harness()
    except UserError as error:
        sys.exit(f"modeshift: {error}")
    for notice in harness.notices:
        print(f"modeshift: {notice}", file=sys.stderr)
    drawn = harness.machine.mermaid()
    if out := os.environ.get("OUT"):
        try:
            Path(out).write_text(f"{drawn}\n", encoding="utf-8")
        except OSError as error:
            sys.exit(f"modeshift: OUT={out!r} cannot be written: {error.strerror}")
    else:
        print(drawn)


if __name__ == "__main__":
    main()
