"""``Seat``: what a mode is in a thread: its model, tools and words; ``BoundModes`` has them all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import get_type_hints

from langchain_core.messages import SystemMessage
from langchain_core.messages.utils import count_tokens_approximately

from modeshift.messages.instructions import Instruction
from modeshift.models.bound_model import BoundModel
from modeshift.models.loading import Models
from modeshift.models.service import ToolsWay
from modeshift.modes.catalog import Catalog
from modeshift.modes.chart import ChartData
from modeshift.modes.edges.edge_table import (
    MAX_TRIED,
    Edge,
    EdgeTable,
    Way,
    describe_groups,
    group_ways,
)
from modeshift.modes.effects import ToolSpec
from modeshift.modes.facts import Fact
from modeshift.modes.limits import describe_limit, find_unheld, is_within, make_strictest
from modeshift.modes.machine import Configuration, Machine
from modeshift.modes.mode import Mode
from modeshift.modes.phases import Phase
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.policy import find_edit_restriction, is_offered, list_free_commands
from modeshift.modes.rights import find_growth
from modeshift.project import load_project
from modeshift.prompts import ModeWords, render_mode_words, render_system_prompt
from modeshift.threads.mailbox import StateValues
from modeshift.tools.server_tools import ManagedServer
from modeshift.tools.toolbox import Toolbox


class Seat:
    """A mode in a thread, under its limit and at its depth; its parts are made at first use."""

    def __init__(self, shared: "BoundModes", mode: Mode, limit: Mode | None, depth: int) -> None:
        """A depth of 0 is in no sub-task."""
        self._shared = shared
        self.mode = mode
        self.limit = limit
        self.depth = depth
        self._rights = [mode] if limit is None else [mode, limit]

    def why_withheld(self, tool: ToolSpec) -> str | None:
        """Why the tool is withheld under the limit, or at this depth; None if it is not."""
        if self.limit is not None and (unheld := find_unheld(self.limit, tool)):
            return f"{unheld}, which limits this thread."
        depth = self.depth
        is_nested = depth >= self._shared.subtask_depth if tool.effect.starts_subtask else depth > 0
        if not tool.effect.switches_mode or not is_nested:
            return None
        where = f"a sub-task at depth {depth}" if depth else "this project"
        return f"There is no {tool.name} in {where}; go on without it."

    @cached_property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that the model is given."""
        shared, limit = self._shared, self.limit
        specs = [shared.toolbox[name].spec for name in shared.list_tools(self.mode.slug)]
        return tuple(
            tool.name
            for tool in specs
            if (limit is None or is_offered(limit, tool)) and self.why_withheld(tool) is None
        )

    @cached_property
    def model(self) -> BoundModel:
        """The mode's model and its tools."""
        shared, mode = self._shared, self.mode
        return BoundModel(
            SystemMessage(shared.system_prompt),
            shared.models[mode],
            shared.declared,
            self.tools,
            mode.model or shared.models.default,
            shared.models.service(mode),
            shared.models.window(mode),
        )

    @cached_property
    def way(self) -> tuple[ToolsWay, str]:
        """How the model of a new thread is told of a change of mode, and why so."""
        return self.model.service.choose_way(self._shared.all_tools_size, self.model.window)

    def describe_way(self, instructions: Sequence[Instruction] = ()) -> str:
        """In words, how a thread with these instructions is told of a change of mode, and why."""
        way, why = self.way
        kept = self.model.find_fields(instructions).way if instructions else way
        return f"{way}: {why}" if kept == way else f"{kept}: the thread began so"

    @cached_property
    def environment(self) -> str:
        """A digest of mode (with the permissions for it), limit, workspace and sandbox."""
        parts = [self.mode.digest, self._shared.toolbox.environment]
        parts += [server.server.identify() for server in self._shared.servers]
        if self.limit is not None:
            parts.append(self.limit.digest)
        return sha256("\0".join(parts).encode()).hexdigest()

    @cached_property
    def edit_restriction(self) -> str | None:
        """Why the mode and its commands may not change every file; None where they may."""
        specs = self._shared.toolbox.specs
        restrictions = (find_edit_restriction(mode, specs) for mode in self._rights)
        return next(filter(None, restrictions), None)

    def is_closed_off(self, tool: ToolSpec) -> bool:
        """Whether mode or limit has the tool's group for the read-only sandbox alone."""
        return any(mode.is_closed_off(tool.group) for mode in self._rights)

    @cached_property
    def words(self) -> str:
        """What the model is told when it enters the mode."""
        mode, shared = self.mode, self._shared
        files = dict.fromkeys(filter(None, (mode.edit_limit for mode in self._rights)))
        words = ModeWords(
            name=mode.name,
            role_definition=mode.role_definition,
            tools=self.model.names,
            how_to_work=mode.how_to_work,
            edit_limit=" and ".join(files),
            command_limit=" and ".join(
                filter(None, map(shared.describe_command_limit, self._rights))
            ),
            has_closed_commands=any(
                self.is_closed_off(shared.toolbox[name].spec) for name in self.tools
            ),
            host_limit=shared.describe_host_limit(self.limit),
            custom_instructions=mode.instructions,
            rules=shared.prompt_rules(mode.slug),
            open_modes=self._describe_ways(Way.ASK) if self.depth == 0 else "",
            task_modes=self._describe_ways(Way.TASK),
            is_subtask=self.depth > 0,
            has_files=shared.toolbox.has_workspace,
        )
        return render_mode_words(words, shared.prompts)

    def _describe_ways(self, way: Way) -> str:
        """The modes that are open from here; empty if all are, or none can be asked for."""
        shared, slug = self._shared, self.mode.slug
        tools = [spec for spec in shared.toolbox.specs if spec.effect.switches_mode]
        names = {spec.name for spec in tools if spec.effect.starts_subtask is (way is Way.TASK)}
        if not shared.edges.is_limited(slug, way) or not names & {*self.model.names}:
            return ""
        ways = shared.edges.list_ways(slug, way)
        facts = shared.edges.list_facts(slug, way)
        says = "".join(f" `{name}`: {shared.facts[name].says}" for name in facts)
        alone = [other for other in shared.edges.by_hand if other != slug and way is Way.ASK]
        hand = f" A person alone can choose: {describe_groups({'': alone})}." if alone else ""
        return f"{describe_groups(group_ways(ways))}.{hand}{says}"

    @cached_property
    def prompt_size(self) -> int:
        """About how many tokens of each request the prompt, the mode's words and tools take."""
        messages = [self.model.prompt, SystemMessage(self.words)]
        tools = [self.model.tools[name] for name in self.model.names]
        return count_tokens_approximately(messages, tools=tools)

    @property
    def first_request_size(self) -> int:
        """Its tokens as llama.cpp counts them: the JSON of tools takes more of them than prose."""
        return self.prompt_size * 5 // 4


@dataclass(frozen=True)
class BoundModes:
    """What the modes of threads are made from; nothing changes but what is made at first use."""

    catalog: Catalog
    toolbox: Toolbox
    models: Models
    prompt_rules: Callable[[str | None], str] = field(default=lambda _: "", kw_only=True)
    """The user's and the project's rules for a mode, by its slug; for None, those for all."""
    prompts: Path | None = field(default=None, kw_only=True)
    """The folder whose ``_base.md`` and ``_mode.md`` are taken instead of the clone's, if there."""
    servers: tuple[ManagedServer, ...] = field(default=(), kw_only=True)
    """The MCP servers whose tools modes may have; the toolbox has those that are known by now."""
    subtask_depth: int = field(default=1, kw_only=True)
    """How deep sub-tasks may be nested."""
    chart: ChartData = field(default_factory=lambda: load_project().chart, kw_only=True)
    """The clone's phases and edges."""
    facts: Mapping[str, Fact] = field(default_factory=lambda: load_project().facts, kw_only=True)
    """What conditions of edges may name."""
    state: type = field(default_factory=lambda: load_project().state, kw_only=True)
    """The clone's ``State``."""
    _seats: dict[tuple[str, str | None, int], Seat] = field(init=False, default_factory=dict)
    _within: dict[str, list[str]] = field(init=False, default_factory=dict)
    _growth: dict[tuple[str, str], str | None] = field(init=False, default_factory=dict)
    _ways_to: dict[tuple[str, str], list[tuple[str, Edge]]] = field(
        init=False, default_factory=dict
    )

    @cached_property
    def machine(self) -> Machine:
        """Decides which node is next, and which tools a mode has."""
        # LangGraph uses these for channels, and for another node.
        taken = frozenset({*get_type_hints(self.state), "intake"})
        return Machine(self.catalog, self.toolbox.specs, self.chart, taken)

    def seat(self, slug: str, limit: str | None = None, depth: int = 0) -> Seat:
        """The mode under the host's limit; the strictest there can be if that no longer exists."""
        key = slug, limit, depth
        if key not in self._seats:
            cut = None
            if limit is not None:
                cut = self.catalog[limit] if limit in self.catalog else make_strictest(limit)
            self._seats[key] = Seat(self, self.catalog[slug], cut, depth)
        return self._seats[key]

    def learn(self, mode: Mode) -> None:
        """Ask the server of the mode's model what it takes; seats from then on know it. Blocks."""
        self.models.learn(mode)
        self._seats.clear()

    def seat_in(self, state: StateValues, slug: str) -> Seat:
        """The mode in a thread: under its limit, and as deep in sub-tasks as it is."""
        subtask = state.get("subtask")
        return self.seat(slug, state.get("limit"), subtask["depth"] if subtask else 0)

    def find_limit_problem(self, limit: Mode | None, target: str) -> str | None:
        """Why the host's limit excludes a switch to the mode ``target``; None if it does not."""
        if limit is None or target in self.list_within(limit):
            return None
        return f"{self.describe_host_limit(limit)} {target!r} is beyond it."

    def list_within(self, limit: Mode) -> list[str]:
        """The modes to which a thread of this limit may switch."""
        if limit.slug not in self._within:
            specs, modes = self.toolbox.specs, self.catalog.items()
            within = [slug for slug, mode in modes if is_within(mode, limit, specs)]
            self._within[limit.slug] = within
        return self._within[limit.slug]

    @cached_property
    def edges(self) -> EdgeTable:
        """Which mode the model may ask for from which."""
        return self.machine.chart.edges

    def find_growth(self, source: str, target: str) -> str | None:
        """What rights a mode may have more than another; None for certainly none."""
        if (source, target) not in self._growth:
            modes = self.catalog[source], self.catalog[target]
            self._growth[source, target] = find_growth(*modes, self.toolbox.specs)
        return self._growth[source, target]

    def list_ways_to(self, source: str, tool: ToolSpec) -> list[tuple[str, Edge]]:
        """The modes with a tool, by edges from there; of many first those without an edit limit."""
        if (source, tool.name) not in self._ways_to:
            ways = self.edges.list_ways(source, Way.ASK)
            having = [way for way in ways if tool.name in self.list_tools(way[0])]
            if len(having) > MAX_TRIED:
                having.sort(key=lambda way: bool(self.catalog[way[0]].edit_limit))
            self._ways_to[source, tool.name] = having
        return self._ways_to[source, tool.name]

    def list_tools(self, slug: str) -> tuple[str, ...]:
        """The names of the mode's tools."""
        return self.machine.bound_tools(Configuration(slug, Phase.THINKING))

    @cached_property
    def system_prompt(self) -> str:
        """What the model is told in every mode."""
        return render_system_prompt(
            {slug: mode.purpose for slug, mode in self.catalog.items()},
            self.prompt_rules(None),
            self.prompts,
            has_files=self.toolbox.has_workspace,
        )

    @cached_property
    def declared(self) -> JsonObject:
        """The tools by name, as a model is told of them; without what every mode leaves out."""
        modes = self.catalog.values()
        specs = (
            spec
            for spec in self.toolbox.specs
            if spec.group or any(is_offered(mode, spec) for mode in modes)
        )
        return {spec.name: self.toolbox[spec.name].declared for spec in specs}

    @cached_property
    def all_tools_size(self) -> int:
        """About how many tokens the tools of all modes take."""
        return count_tokens_approximately([], tools=[*self.declared.values()]) * 5 // 4

    def describe_host_limit(self, limit: Mode | None) -> str:
        """The limit in words for the model; empty for none."""
        if limit is None:
            return ""
        within = ", ".join(self.list_within(limit)) or "none"
        return f"{describe_limit(limit)} The modes within it: {within}."

    def describe_command_limit(self, mode: Mode) -> str:
        """The commands that the mode runs although it lacks their group."""
        lines = [line for tool in self.toolbox.specs for line in list_free_commands(mode, tool)]
        return ", ".join(f"`{line}`" for line in lines)
