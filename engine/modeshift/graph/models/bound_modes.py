"""``BoundModes``: what a mode is in a thread, under the host's limit and within sub-tasks.

Its model with the tools it may have there, and what the model is told of it. All is made at its
first use, for there may be many modes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

from langchain_core.messages import SystemMessage
from langchain_core.messages.utils import count_tokens_approximately

from modeshift.graph.models.bound_model import BoundModel
from modeshift.graph.models.loading import Models
from modeshift.mcp.managed import ManagedServer
from modeshift.modes.catalog import Catalog
from modeshift.modes.chart import Configuration
from modeshift.modes.limit import describe_limit, find_unheld, is_offered, is_within, make_strictest
from modeshift.modes.machine import Machine
from modeshift.modes.mode import Mode
from modeshift.modes.phases import ChartData, Phase
from modeshift.modes.rights import describe_edit_limit, find_edit_restriction, list_free_commands
from modeshift.modes.toolspec import ToolSpec
from modeshift.project import load_project
from modeshift.prompts import render_mode_words, render_system_prompt
from modeshift.tools.calls.toolbox import Toolbox


def no_prompt_rules(_: str | None) -> str:
    """The prompt rules of a workspace that has none."""
    return ""


_Seat = tuple[str, str | None, int]
"""A mode, the host's limit, and how many sub-tasks deep it is."""


@dataclass(frozen=True)
class BoundModes:
    """The parts that modes are bound with; only what is made at first use changes."""

    catalog: Catalog
    toolbox: Toolbox
    models: Models
    prompt_rules: Callable[[str | None], str] = field(default=no_prompt_rules, kw_only=True)
    """The user's and the project's rules for a mode, by its slug; for None, those for all."""
    servers: tuple[ManagedServer, ...] = field(default=(), kw_only=True)
    """The MCP servers whose tools modes may have; the toolbox has those that are known by now."""
    subtask_depth: int = field(default=1, kw_only=True)
    """How deep sub-tasks may be nested."""
    chart: ChartData = field(default_factory=lambda: load_project().chart, kw_only=True)
    """The clone's phases and edges."""
    taken_names: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Names that the graph uses for something other than a mode's node."""
    _bound_models: dict[_Seat, BoundModel] = field(init=False, default_factory=dict)
    _words: dict[_Seat, str] = field(init=False, default_factory=dict)
    _sizes: dict[tuple[str, int], int] = field(init=False, default_factory=dict)
    _environments: dict[tuple[str, str | None], str] = field(init=False, default_factory=dict)
    _restrictions: dict[tuple[str, str | None], str | None] = field(
        init=False, default_factory=dict
    )

    @cached_property
    def machine(self) -> Machine:
        """Decides which node is next, and which tools a mode has."""
        return Machine(self.catalog, self.toolbox.specs, self.chart, self.taken_names)

    def limit_mode(self, slug: str | None) -> Mode | None:
        """The mode of the host's limit; the strictest there can be if it no longer exists."""
        if slug is None:
            return None
        return self.catalog[slug] if slug in self.catalog else make_strictest(slug)

    def why_withheld(self, tool: ToolSpec, limit: Mode | None, depth: int) -> str | None:
        """Why no mode has the tool under the limit, and so deep in sub-tasks; 0 is in none."""
        if limit is not None and (unheld := find_unheld(limit, tool)):
            return f"{unheld}, the host's limit."
        is_too_deep = depth >= self.subtask_depth if tool.effect.starts_subtask else depth > 0
        if not tool.effect.switches_mode or not is_too_deep:
            return None
        where = f"a sub-task at depth {depth}" if depth else "this project"
        return f"There is no {tool.name} in {where}; go on without it."

    def find_limit_problem(self, limit: Mode | None, target: str) -> str | None:
        """Why the host's limit excludes a switch to the mode ``target``; None if it does not."""
        if limit is None or is_within(self.catalog[target], limit, self.toolbox.specs):
            return None
        return f"{self._describe_host_limit(limit)} {target!r} is beyond it."

    def bound_model(self, slug: str, limit: str | None = None, depth: int = 0) -> BoundModel:
        """The mode's model and its tools; made at their first use, for there may be many modes."""
        seat = slug, limit, depth
        if seat not in self._bound_models:
            bound = self._bind_model(self.catalog[slug], self.limit_mode(limit), depth)
            self._bound_models[seat] = bound
        return self._bound_models[seat]

    def environment_digest(self, slug: str, limit: str | None = None) -> str:
        """A digest of the mode (with the permissions for it), the workspace and the sandbox."""
        if (slug, limit) not in self._environments:
            parts = [self.catalog[slug].digest, self.toolbox.environment]
            parts += [server.server.identify() for server in self.servers]
            environment = "\0".join(parts)
            if (cut := self.limit_mode(limit)) is not None:
                environment += f"\0{cut.digest}"
            self._environments[slug, limit] = sha256(environment.encode()).hexdigest()
        return self._environments[slug, limit]

    def edit_restriction(self, slug: str, limit: str | None = None) -> str | None:
        """Why the mode and its commands may not change every file; None where they may."""
        if (slug, limit) not in self._restrictions:
            modes = [self.catalog[slug], self.limit_mode(limit)]
            found = (find_edit_restriction(one, self.toolbox.specs) for one in modes if one)
            self._restrictions[slug, limit] = next(filter(None, found), None)
        return self._restrictions[slug, limit]

    def list_tools(self, slug: str) -> tuple[str, ...]:
        """The names of the mode's tools."""
        return self.machine.bound_tools(Configuration(slug, Phase.THINKING))

    def _bind_model(self, mode: Mode, limit: Mode | None, depth: int) -> BoundModel:
        specs = [self.toolbox[name].spec for name in self.list_tools(mode.slug)]
        return BoundModel(
            SystemMessage(self.system_prompt),
            self.models[mode],
            {tool.name: self.toolbox[tool.name].runnable for tool in self.toolbox.specs},
            tuple(
                tool.name
                for tool in specs
                if (limit is None or is_offered(limit, tool))
                and self.why_withheld(tool, limit, depth) is None
            ),
            mode.model or self.models.default,
            self.models.service(mode),
            self.models.window(mode),
        )

    @cached_property
    def system_prompt(self) -> str:
        """What the model is told in every mode."""
        modes = [self.catalog[slug] for slug in self.catalog]
        return render_system_prompt(
            {mode.slug: mode.purpose for mode in modes},
            self.prompt_rules(None),
        )

    def mode_words(self, slug: str, limit: str | None = None, depth: int = 0) -> str:
        """What the model is told when it enters the mode; made at its first use."""
        if (slug, limit, depth) not in self._words:
            mode, cut = self.catalog[slug], self.limit_mode(limit)
            rights = [mode] if cut is None else [mode, cut]
            files = dict.fromkeys(words for one in rights if (words := describe_edit_limit(one)))
            self._words[slug, limit, depth] = render_mode_words(
                name=mode.name,
                role_definition=mode.role_definition,
                tools=self.bound_model(slug, limit, depth).names,
                how_to_work=mode.how_to_work,
                edit_limit=" and ".join(files),
                command_limit=" and ".join(filter(None, map(self._describe_command_limit, rights))),
                host_limit=self._describe_host_limit(cut),
                custom_instructions=mode.instructions,
                rules=self.prompt_rules(slug),
                is_subtask=depth > 0,
            )
        return self._words[slug, limit, depth]

    def prompt_size(self, slug: str, depth: int = 0) -> int:
        """About how many tokens of each request the prompt, the mode's words and tools take."""
        if (slug, depth) not in self._sizes:
            bound = self.bound_model(slug, depth=depth)
            told = [bound.prompt, SystemMessage(self.mode_words(slug, depth=depth))]
            tools = [bound.tools[name] for name in bound.names]
            self._sizes[slug, depth] = count_tokens_approximately(told, tools=tools)
        return self._sizes[slug, depth]

    def _describe_host_limit(self, limit: Mode | None) -> str:
        if limit is None:
            return ""
        specs = self.toolbox.specs
        within = [slug for slug in self.catalog if is_within(self.catalog[slug], limit, specs)]
        return f"{describe_limit(limit)} The modes within it: {', '.join(within) or 'none'}."

    def _describe_command_limit(self, mode: Mode) -> str:
        lines = [line for tool in self.toolbox.specs for line in list_free_commands(mode, tool)]
        return ", ".join(f"`{line}`" for line in lines)
