"""How the commands of this project begin and end: ``--help``, one line for an error."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator

from modes.errors import UserError


def run(main: Callable[[], Iterator[str]], description: str | None) -> None:
    """Print the lines of ``main``, all or none; end with a message for a ``UserError``."""
    argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    try:
        lines = list(main())
    except UserError as error:
        sys.exit(f"modeshift: {error}")
    try:
        print("\n".join(lines), flush=True)
    except BrokenPipeError:  # `make modes | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
