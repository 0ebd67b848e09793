"""``Harness``: everything the nodes share, built once per process."""

from dataclasses import dataclass, field

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.runnables import Runnable

from graph.once import Once
from modes.catalog import Catalog
from modes.machine import Configuration, Machine, Phase
from modes.mode import Mode, ToolGroup
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
    """The parts around the model; immutable but for ``once``."""

    catalog: Catalog
    toolbox: Toolbox
    model: BaseChatModel
    approvals: Approvals = Approvals.MANUAL
    """The policy that a new thread starts with."""
    once: Once = field(default_factory=Once)
    machine: Machine = field(init=False)
    voices: dict[str, Voice] = field(init=False)

    def __post_init__(self) -> None:
        machine = Machine(self.catalog, self.toolbox.specs)
        object.__setattr__(self, "machine", machine)
        object.__setattr__(
            self, "voices", {slug: self._voice(machine, slug) for slug in self.catalog}
        )

    def _voice(self, machine: Machine, slug: str) -> Voice:
        mode = self.catalog[slug]
        prompt = render(
            slug,
            name=mode.name,
            role_definition=mode.role_definition,
            edit_limit=_edit_limit(mode),
            custom_instructions=mode.custom_instructions,
        )
        names = machine.bound(Configuration(slug, Phase.THINKING))
        tools = [self.toolbox[name].runnable for name in names]
        return Voice(SystemMessage(prompt), self.model.bind_tools(tools))


def _edit_limit(mode: Mode) -> str:
    grant = mode.grant(ToolGroup.EDIT)
    if grant is None or grant.file_regex is None:
        return ""
    words = f"{grant.description} " if grant.description else ""
    return f"{words}(paths that match `{grant.file_regex}`)"
