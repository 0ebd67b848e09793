"""``Choice``: one of the decisions that a person is shown as a list."""

from collections.abc import Sequence
from dataclasses import dataclass

from modeshift.modes.plain_text import make_readable


@dataclass(frozen=True)
class Choice:
    """One of the choices; a ``key`` of more than one character is not shown."""

    key: str
    text: str
    also: str = ""
    """Other keys for the same choice, a character each."""

    @property
    def shown(self) -> str:
        """The text with its keys."""
        keys = [key for key in (self.key, *self.also) if len(key) == 1]
        return f"{self.text} ({', '.join(keys)})" if keys else self.text


def number_choices(choices: Sequence[Choice]) -> list[str]:
    """The choices as numbered lines."""
    return [make_readable(f"{n} {choice.shown}") for n, choice in enumerate(choices, 1)]


def find_choice(choices: Sequence[Choice], key: str) -> int | None:
    """The index of the choice that a key, or a number, stands for."""
    for place, choice in enumerate(choices):
        if key and (key in (choice.key, str(place + 1)) or (len(key) == 1 and key in choice.also)):
            return place
    return None
