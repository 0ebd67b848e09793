"""``Printed``: what a program prints for a terminal, as plain text."""

import re

from modes.plain_text import readable

MAX_SEQUENCE = 2000
"""Characters; one that goes on is none, so that it swallows nothing."""
_TEXT = rf"[^\x07\x1b\n]{{0,{MAX_SEQUENCE}}}"
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]{0,99}[ -/]{0,9}[@-~]"  # colours, the place of the cursor
    rf"|\x1b[]PX^_]{_TEXT}(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[ -/]{1,9}[0-~]|\x1b[0-OQ-WYZ`-~]"  # character sets, the terminal's modes
)
_BEGUN = re.compile(
    rf"\x1b(?:\[[0-?]{{0,99}}[ -/]{{0,9}}|[]PX^_]{_TEXT}\x1b?|[ -/]{{0,9}})?\Z",
)
_LONGEST = MAX_SEQUENCE + 3


class Printed:
    """Without what only a terminal understands; each state of a progress bar has its line."""

    def __init__(self) -> None:
        self._held = ""

    def take(self, text: str, *, is_last: bool = False) -> str:
        """What of it can be told by now; a piece may end within a sequence."""
        text = self._held + text
        self._held = ""
        if text.endswith("\r") and not is_last:
            text, self._held = text[:-1], "\r"
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        begun = None if is_last else _BEGUN.search(text, max(len(text) - _LONGEST, 0))
        if begun is not None:
            text, self._held = text[: begun.start()], begun[0] + self._held
        return readable(_SEQUENCE.sub("", text))
