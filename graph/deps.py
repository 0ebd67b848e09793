"""What the nodes share: ``AgentDeps``, built once for the modes' files as they are."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from uuid import uuid4

from langchain_core.messages import SystemMessage
from langchain_core.messages.utils import count_tokens_approximately

from graph.models.bound_model import BoundModel
from graph.models.loading import Models
from graph.state import TAKEN_NAMES
from modes.catalog import Catalog
from modes.machine import Configuration, Machine, Phase
from modes.mode import Mode
from modes.policy import Approvals
from modes.rights import find_edit_restriction, list_free_commands
from prompts import render_mode_words, render_system_prompt
from tools.processes.background import BackgroundCommands
from tools.toolbox import Toolbox


class StartedCalls:
    """The world-changing calls that this process has started: none runs twice. One per process.

    A checkpoint keeps what a finished call wrote. Of a call that a crash cut off it knows only
    that it was due, so a run that continues would run it anew: a second commit, a second mail. So
    would a second click that names the checkpoint of the first one.
    """

    def __init__(self) -> None:
        self.process_id = uuid4().hex[:16]
        """Stored in each plan that this process makes."""
        self._digests = set[str]()
        self.background = BackgroundCommands()
        """Those of them that may still run."""

    def begin(self, digest: str, process_id: str | None) -> bool:
        """Record the call with this ``Judged.digest`` as started; False if it may have run before.

        In a plan that another process made, any call may have run. Digests are never dropped:
        that a tool has ended does not mean that its result is stored.
        """
        if process_id != self.process_id or digest in self._digests:
            return False
        self._digests.add(digest)
        return True


async def no_environment() -> str:
    """Where the model is not told where it works."""
    return ""


def no_prompt_rules(_: str | None) -> str:
    """The prompt rules of a workspace that has none."""
    return ""


@dataclass(frozen=True)
class AgentDeps:
    """The parts around the model; only ``started_calls`` and what is made at first use change."""

    catalog: Catalog
    toolbox: Toolbox
    models: Models
    approvals: Approvals = Approvals.MANUAL
    """The policy that a new thread starts with."""
    prompt_rules: Callable[[str | None], str] = no_prompt_rules
    """The project's rules for one mode, by its slug; for None, those for every mode."""
    describe_environment: Callable[[], Awaitable[str]] = no_environment
    """Where the agent works, as the model is told at a turn's start if it has changed."""
    notices: tuple[str, ...] = ()
    """What a person should know about the modes' files."""
    bound_answers: bool = False
    """Whether a decision must name the question it answers."""
    started_calls: StartedCalls = field(default_factory=StartedCalls)
    machine: Machine = field(init=False)
    _bound_models: dict[str, BoundModel] = field(init=False, default_factory=dict)
    _words: dict[str, str] = field(init=False, default_factory=dict)
    _sizes: dict[str, int] = field(init=False, default_factory=dict)
    _environments: dict[str, str] = field(init=False, default_factory=dict)
    _restrictions: dict[str, str | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        machine = Machine(self.catalog, self.toolbox.specs, TAKEN_NAMES)
        object.__setattr__(self, "machine", machine)

    def bound_model(self, slug: str) -> BoundModel:
        """The mode's model and its tools; made at their first use, for there may be many modes."""
        if slug not in self._bound_models:
            self._bound_models[slug] = self._bind_model(self.catalog[slug])
        return self._bound_models[slug]

    def environment_digest(self, slug: str) -> str:
        """A digest of the mode (with the permissions for it), the workspace and the sandbox."""
        if slug not in self._environments:
            environment = f"{self.catalog[slug].digest}\0{self.toolbox.environment}"
            self._environments[slug] = sha256(environment.encode()).hexdigest()
        return self._environments[slug]

    def edit_restriction(self, slug: str) -> str | None:
        """Why the mode and its commands may not change every file; None where they may."""
        if slug not in self._restrictions:
            found = find_edit_restriction(self.catalog[slug], self.toolbox.specs)
            self._restrictions[slug] = found
        return self._restrictions[slug]

    def _bind_model(self, mode: Mode) -> BoundModel:
        return BoundModel(
            SystemMessage(self.system_prompt),
            self.models[mode],
            {tool.name: self.toolbox[tool.name].runnable for tool in self.toolbox.specs},
            self.machine.bound_tools(Configuration(mode.slug, Phase.THINKING)),
            mode.model or self.models.default,
            self.models.service(mode),
            self.models.window(mode),
        )

    @cached_property
    def system_prompt(self) -> str:
        """What the model is told in every mode."""
        modes = [self.catalog[slug] for slug in self.catalog]
        return render_system_prompt(
            {mode.slug: mode.when_to_use or mode.description for mode in modes},
            self.prompt_rules(None),
        )

    def mode_words(self, slug: str) -> str:
        """What the model is told when it enters the mode; made at its first use."""
        if slug not in self._words:
            mode = self.catalog[slug]
            self._words[slug] = render_mode_words(
                name=mode.name,
                role_definition=mode.role_definition,
                tools=self.bound_model(slug).names,
                how_to_work=mode.how_to_work,
                edit_limit=describe_edit_limit(mode),
                command_limit=self._describe_command_limit(mode),
                custom_instructions=mode.custom_instructions,
                rules=self.prompt_rules(slug),
            )
        return self._words[slug]

    def prompt_size(self, slug: str) -> int:
        """About how many tokens of each request the prompt, the mode's words and tools take."""
        if slug not in self._sizes:
            bound = self.bound_model(slug)
            told = [bound.prompt, SystemMessage(self.mode_words(slug))]
            tools = [bound.tools[name] for name in bound.names]
            self._sizes[slug] = count_tokens_approximately(told, tools=tools)
        return self._sizes[slug]

    def _describe_command_limit(self, mode: Mode) -> str:
        lines = [line for tool in self.toolbox.specs for line in list_free_commands(mode, tool)]
        return ", ".join(f"`{line}`" for line in lines)


def describe_edit_limit(mode: Mode) -> str:
    """The only files that the mode may change, in words; empty for no limit."""
    grant = mode.grant("edit")
    if grant is None or grant.file_regex is None:
        return ""
    words = f"{grant.description} " if grant.description else ""
    return f"{words}(paths that match `{grant.file_regex}`)"
