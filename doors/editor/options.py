"""What an editor's user may choose in a session: the mode, the model, the approvals."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
    UnstructuredCommandInput,
)

from modes.catalog import Catalog
from modes.errors import InvalidInputError
from modes.mode import Mode
from modes.policy import Approvals

APPROVALS = {
    Approvals.MANUAL: ("Ask first", "Every call that is not read-only asks."),
    Approvals.AUTO: ("Auto-accept", "Edits, and commands in the sandbox, run unasked."),
}

_COMMAND = re.compile(r"\s*/(\S+)[^\S\n]*\n?")
Modes = tuple[tuple[str, str, str], ...]
"""Slug, name and description of each."""


def modes_of(catalog: Catalog) -> Modes:
    """Those of a catalog."""
    return tuple((slug, catalog[slug].name, about(catalog[slug])) for slug in catalog)


@dataclass(frozen=True)
class Options:
    """What there is to choose, and what is chosen; two that are equal look the same."""

    modes: Modes
    models: tuple[str, ...]
    mode: str
    model: str
    approvals: str

    @property
    def chosen(self) -> tuple[str, str, str]:
        """What is chosen, without what there is to choose from."""
        return self.mode, self.model, self.approvals

    def check(self, option: str, value: object) -> str:
        """The value, if it is one to choose; raises ``InvalidInputError``, naming those there are.

        Of another type, or of an option that there is not, it is none either.
        """
        known = self._values()
        if option not in known:
            raise InvalidInputError(
                f"there is no option {option[:100]!r}; the options are: {', '.join(known)}"
            )
        if not isinstance(value, str) or value not in known[option]:
            raise InvalidInputError(
                f"{option} {str(value)[:100]!r} is unknown; there are: {', '.join(known[option])}"
            )
        return value

    def _values(self) -> dict[str, list[str]]:
        return {
            "mode": [slug for slug, _, _ in self.modes],
            "model": list(self.models),
            "approvals": [value.value for value in APPROVALS],
        }

    def mode_state(self) -> SessionModeState:
        """As ``modes`` in an answer: for editors that know no options yet."""
        return SessionModeState(
            current_mode_id=self.mode,
            available_modes=[
                SessionMode(id=slug, name=name, description=text) for slug, name, text in self.modes
            ],
        )

    def config(self) -> list[SessionConfigOptionSelect]:
        """The full list, as an answer and an update carry it."""
        approvals = ((value.value, *words) for value, words in APPROVALS.items())
        return [
            SessionConfigOptionSelect(
                type="select",
                id="mode",
                name="Mode",
                description="What the agent may do, and how it goes about it",
                category="mode",
                current_value=self.mode,
                options=_values(self.modes),
            ),
            SessionConfigOptionSelect(
                type="select",
                id="model",
                name="Model",
                description="For modes that name none of their own",
                category="model",
                current_value=self.model,
                options=_values((name, name, "") for name in self.models),
            ),
            SessionConfigOptionSelect(
                type="select",
                id="approvals",
                name="Approvals",
                description="What runs without asking",
                current_value=self.approvals,
                options=_values(approvals),
            ),
        ]

    def commands(self) -> list[AvailableCommand]:
        """The slash commands: one for each mode."""
        hint = UnstructuredCommandInput(hint="what to do there (or nothing, to switch only)")
        return [
            AvailableCommand(
                name=slug,
                description=f"Switch to {name} mode. {text}".strip(),
                input=AvailableCommandInput(hint),
            )
            for slug, name, text in self.modes
        ]

    def command(self, text: str) -> tuple[str, str] | None:
        """The mode of a slash command, and what stands behind it; None for any other text."""
        found = _COMMAND.match(text)
        if found is None or found[1] not in self._values()["mode"]:
            return None
        return found[1], text[found.end() :]


def about(mode: Mode) -> str:
    """What a mode is for, in a line."""
    return " ".join((mode.description or mode.when_to_use).split())


def _values(triples: Iterable[tuple[str, str, str]]) -> list[SessionConfigSelectOption]:
    return [
        SessionConfigSelectOption(value=value, name=name, description=text or None)
        for value, name, text in triples
    ]
