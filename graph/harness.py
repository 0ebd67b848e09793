"""``Harness``: everything the nodes share, built once per process."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.runnables import Runnable

from graph.models import Models
from graph.once import Once
from graph.state import TAKEN_NAMES
from modes.catalog import Catalog
from modes.machine import Configuration, Machine, Phase
from modes.mode import Level, Mode
from modes.toolspec import ToolGroup
from modes.verdict import Approvals
from prompts import render
from tools.toolbox import Toolbox


@dataclass(frozen=True)
class Voice:
    """What a mode node speaks with."""

    prompt: SystemMessage
    model: Runnable[LanguageModelInput, AIMessage]
    """With the mode's tools bound."""


@dataclass(frozen=True)
class Harness:
    """The parts around the model; immutable but for ``once`` and what is made at first use."""

    catalog: Catalog
    toolbox: Toolbox
    models: Models
    approvals: Approvals = Approvals.MANUAL
    """The policy that a new thread starts with."""
    rules: Mapping[str, str] = field(default_factory=dict)
    """The project's rules for each mode's prompt."""
    notices: tuple[str, ...] = ()
    """What a person should know of the modes' files."""
    once: Once = field(default_factory=Once)
    machine: Machine = field(init=False)
    _voices: dict[str, Voice] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        machine = Machine(self.catalog, self.toolbox.specs, TAKEN_NAMES)
        object.__setattr__(self, "machine", machine)

    def voice(self, slug: str) -> Voice:
        """What the mode speaks with; made at its first use, for there may be many modes."""
        if slug not in self._voices:
            self._voices[slug] = self._voice(self.catalog[slug])
        return self._voices[slug]

    def _voice(self, mode: Mode) -> Voice:
        prompt = render(
            # The clone's words are for the clone's mode, and not for one that replaces it.
            mode.slug if mode.origin.level is Level.BUILT_IN else None,
            name=mode.name,
            role_definition=mode.role_definition,
            edit_limit=_edit_limit(mode),
            custom_instructions=mode.custom_instructions,
            rules=self.rules.get(mode.slug, ""),
        )
        names = self.machine.bound(Configuration(mode.slug, Phase.THINKING))
        tools = [self.toolbox[name].runnable for name in names]
        return Voice(SystemMessage(prompt), self.models[mode.model].bind_tools(tools))


def _edit_limit(mode: Mode) -> str:
    grant = mode.grant(ToolGroup.EDIT)
    if grant is None or grant.file_regex is None:
        return ""
    words = f"{grant.description} " if grant.description else ""
    return f"{words}(paths that match `{grant.file_regex}`)"
