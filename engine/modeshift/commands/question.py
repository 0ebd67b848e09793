"""``YesOrNo``: a question that a command asks; its ``main`` yields it among its lines."""

import sys
from dataclasses import dataclass


@dataclass
class YesOrNo:
    """``y`` or ``yes`` on standard input is a yes; anything else, or its end, is a no."""

    text: str
    is_yes: bool = False

    def ask(self) -> None:
        """Ask the person who runs the command."""
        try:
            answer = input(f"{self.text} [y/N] ")
        except EOFError:
            answer = ""
            print()
        except KeyboardInterrupt:
            sys.exit("\nmodeshift: nothing more is recorded")
        self.is_yes = answer.strip().lower() in ("y", "yes")
