"""``Options``: what an editor's user can choose in a session: mode, model, approvals."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from acp import schema

from modeshift.modes.approval_words import ApprovalWords
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.mode import Mode

COMPACT = "compact"
"""The slash command that asks for a summary; a mode of this name comes first."""
COMMANDS = {
    COMPACT: (
        "Replace the earlier messages of the conversation by a summary",
        "what to go on with (or nothing)",
    ),
    "approvals": ("Set, or show, what runs without asking", "manual, or auto"),
    "allowed": (
        'Show what an "always" of yours allows, or take it back',
        "its number, or all (or nothing, to see them)",
    ),
    "undo": (
        "Go back to before your last message, or, back, to before the last undo",
        "what it shows when it is alone, to do it (or nothing, or back)",
    ),
    "model": ("Set, or show, the model", "its name (or nothing, to see them)"),
    "status": ("Show the mode, the approvals and the model", ""),
}
"""The slash commands beside those of the modes, each with what it takes."""
_COMMAND = re.compile(r"\s*/(\S+)[^\S\n]*\n?")


@dataclass(frozen=True)
class Options:
    """The modes and models there are, and what is chosen."""

    modes: Mapping[str, Mode]
    models: tuple[str, ...]
    mode: str
    model: str
    approvals: str
    words: Mapping[str, ApprovalWords]
    """How approvals are named and explained, by value."""

    def check(self, option: str, value: object) -> str:
        """Return the value if the option has it; raises ``InvalidInputError`` with those it has."""
        known = {
            "mode": list(self.modes),
            "model": list(self.models),
            "approvals": list(self.words),
        }
        if option not in known:
            raise InvalidInputError(
                f"there is no option {option[:100]!r}; the options are: {', '.join(known)}"
            )
        if not isinstance(value, str) or value not in known[option]:
            raise InvalidInputError(
                f"{option} {str(value)[:100]!r} is unknown; there are: {', '.join(known[option])}"
            )
        return value

    def mode_state(self) -> schema.SessionModeState:
        """The modes for editors that do not know config options yet."""
        return schema.SessionModeState(
            current_mode_id=self.mode,
            available_modes=[
                schema.SessionMode(id=slug, name=mode.name, description=_describe(mode))
                for slug, mode in self.modes.items()
            ],
        )

    def config_options(self) -> list[schema.SessionConfigOptionSelect]:
        """The complete list, which every response and update has to carry."""
        modes = [(slug, mode.name, _describe(mode)) for slug, mode in self.modes.items()]
        models = [(name, name, "") for name in self.models]
        approvals = [(each.value, each.name, each.sentence) for each in self.words.values()]
        return [
            _select("mode", "What the agent may do, and how it works", self.mode, modes),
            _select("model", "For modes that name none of their own", self.model, models),
            _select("approvals", "What runs without asking", self.approvals, approvals),
        ]

    def commands(self) -> list[schema.AvailableCommand]:
        """The slash commands: one for each mode, and ``COMMANDS``."""
        hint = schema.UnstructuredCommandInput(hint="what to do there (or nothing, to switch only)")
        commands = [
            schema.AvailableCommand(
                name=slug,
                description=f"Switch to {mode.name} mode. {_describe(mode)}".strip(),
                input=schema.AvailableCommandInput(hint),
            )
            for slug, mode in self.modes.items()
        ]
        for name, (words, takes) in COMMANDS.items():
            if name not in self.modes:
                command = schema.AvailableCommand(name=name, description=words)
                if takes:
                    hint = schema.UnstructuredCommandInput(hint=takes)
                    command.input = schema.AvailableCommandInput(hint)
                commands.append(command)
        return commands

    def describe(self, option: str) -> str:
        """What is chosen for the option, or for all at any other word, as Markdown."""
        approvals = self.words[self.approvals]
        texts = {
            "mode": f"{self.modes[self.mode].name} mode.",
            "approvals": f"Approvals: {self.approvals} ({approvals.name}). {approvals.sentence}",
            "model": f"Model: {self.model}. There are: {', '.join(self.models)}.",
        }
        return texts.get(option) or "\n\n".join(texts.values())

    def parse_command(self, text: str) -> tuple[str, str] | None:
        """The name of a slash command and the text behind it; None for any other text."""
        match = _COMMAND.match(text)
        if match is None or not (match[1] in COMMANDS or match[1] in self.modes):
            return None
        return match[1], text[match.end() :]


def _describe(mode: Mode) -> str:
    return " ".join((mode.description or mode.when_to_use).split())


def _select(
    id: str, description: str, current: str, values: Iterable[tuple[str, str, str]]
) -> schema.SessionConfigOptionSelect:
    return schema.SessionConfigOptionSelect(
        type="select",
        id=id,
        name=id.capitalize(),
        description=description,
        category=id if id in ("mode", "model") else None,
        current_value=current,
        options=[
            schema.SessionConfigSelectOption(value=value, name=name, description=text or None)
            for value, name, text in values
        ],
    )
