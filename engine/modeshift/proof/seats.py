"""``Seats``: what may be done in a mode under a limit, so deep in sub-tasks, under a policy."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any, NamedTuple

from langchain_core.messages.tool import tool_call

from modeshift.calls.judging import (
    CallContext,
    Judged,
    find_problem,
    find_verdict,
    list_switch_targets,
)
from modeshift.calls.plans import PlanLimit
from modeshift.calls.running import describe_call
from modeshift.calls.ways import Values
from modeshift.modes.effects import ToolSpec
from modeshift.modes.facts import APPROVED, BUILT_IN, Done, end_unseen
from modeshift.modes.phases import Phase
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.policy import Approvals, Verdict
from modeshift.modes.rules.matching import EVERY, list_samples
from modeshift.proof.decisions import Decided, list_decided
from modeshift.proof.places import Pending, Place, build_facts, read_true_facts
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import CHANGED, follow
from modeshift.tools.processes.background import Ran
from modeshift.tools.tool import Tool

_NO_FACTS = frozenset({frozenset[str]()})
_ENDS = (True, False), (0, 1, None), (True, False)
PATHS = ("a.txt", "src/a.py", "plan.md", "Makefile", "AGENTS.md", ".env")
"""Files of which an edit limit may name some; the last ones always ask."""
PHASES = frozenset(Phase)
"""The engine's phases."""
CLOSED_OFF = 1
"""The right to run a command that can change nothing, asked about or not."""
STRICTNESS = {"deny": 0, "ask": 2, "allow": 3}


class Probe(NamedTuple):
    """A call that stands for others like it."""

    tool: Tool
    args: JsonObject

    def __str__(self) -> str:
        values = (str(value) for value in self.args.values() if value is not None)
        return " ".join([self.tool.spec.name, *values])


class Seats:
    """The verdicts that the nodes would get, each computed once."""

    def __init__(self, deps: AgentDeps, facts: frozenset[str]) -> None:
        self.deps = deps
        self.facts = facts
        own = {name for name in facts if deps.facts[name] not in BUILT_IN}
        self._open = own | ({CHANGED, APPROVED} & facts)
        """Facts that others decide: functions of the clone, and people and programs outside."""
        specs = [(deps.toolbox[tool.name], tool) for tool in deps.toolbox.specs]
        self.probes = [
            Probe(tool, args)
            for tool, spec in specs
            if not (spec.effect.switches_mode or spec.effect.takes_answer)
            for args in self._list_args(spec)
        ]
        self._switching = [tool for tool, spec in specs if spec.effect.switches_mode]
        self.free: frozenset[frozenset[str]] | None = None
        self._rights: dict[tuple[str, str | None, str], tuple[int, ...]] = {}
        self._decided: dict[object, list[Decided]] = {}
        self._tasks: dict[object, list[Pending]] = {}
        self._outcomes: dict[object, frozenset[frozenset[str]]] = {}
        self._done: dict[object, set[Done]] = {}
        self.files: dict[str, Any] = {}
        """What ``properties`` has read in each mode's file."""

    def _list_args(self, spec: ToolSpec) -> list[JsonObject]:
        files = (file for name in sorted(self.facts) for file in self.deps.facts[name].files)
        paths: list[str | None] = [None] if spec.command else [*PATHS, *files]
        values: dict[str, list[Any]] = dict.fromkeys(spec.paths, paths)
        if spec.url is not None:
            values[spec.url] = ["https://example.com/"]
        if spec.command is not None:
            values[spec.command] = self._list_lines(spec.name)
        for index, argument in enumerate(spec.subject if spec.is_known_by_subject else ()):
            words = [pattern.split()[index] for pattern in self._list_patterns(spec.name)]
            values[argument] = ["-", *chain.from_iterable(map(list_samples, words))]
        number = max(map(len, values.values()), default=1)
        return [
            {name: options[index % len(options)] for name, options in values.items()}
            for index in range(number)
        ]

    def _list_lines(self, tool: str) -> list[str | None]:
        """Command lines: one that writes, the owner's tests, and those that a mode names."""
        tests = [self.deps.tests.command] if self.deps.tests else []
        lines = (line for line in self._list_patterns(tool) if "*" not in line)
        facts = (line for name in sorted(self.facts) for line in self.deps.facts[name].lines)
        return ["touch a.txt", *tests, *facts, *lines]

    def _list_patterns(self, tool: str) -> list[str]:
        rules = (self.deps.catalog[slug].permissions for slug in self.deps.catalog)
        return sorted({pattern for rule in rules for pattern in rule.get(tool, {})} - {EVERY})

    def rights(self, place: Place) -> tuple[int, ...]:
        """For each probe, whether it is denied, can change nothing, is asked about or allowed."""
        key = place.mode, place.limit, place.approvals
        if key not in self._rights:
            context, values = self._context(place), self.values(place)
            verdicts = (self._judge(context, *probe, values) for probe in self.probes)
            self._rights[key] = tuple(
                CLOSED_OFF if verdict.is_closed_off else STRICTNESS[verdict.kind]
                for verdict in verdicts
            )
        return self._rights[key]

    def judge(
        self, place: Place, tool: Tool, args: JsonObject, plan: PlanLimit | None = None
    ) -> Verdict:
        """The verdict that the nodes would get for such a call, under a plan."""
        return self._judge(replace(self._context(place), plan=plan), tool, args, self.values(place))

    def _context(self, place: Place) -> CallContext:
        seat = self.deps.seat(place.mode, place.limit, place.depth)
        return CallContext(seat, Approvals(place.approvals))

    def _judge(self, context: CallContext, tool: Tool, args: JsonObject, values: Values) -> Verdict:
        targets = list_switch_targets(tool.spec.effect, args)
        if problem := find_problem(self.deps, context, tool, targets, values):
            return Verdict("deny", problem)
        return find_verdict(self.deps, context, tool, args, values)

    def may_switch_again(self, place: Place, target: str) -> bool:
        """Whether the mode can be asked for, in a turn that has had as many switches as it may."""
        context = replace(self._context(place), switched=self.deps.max_switches)
        asked = (tool for tool in self._switching if not tool.spec.effect.starts_subtask)
        true = dict.fromkeys(self.facts, True)
        return any(not find_problem(self.deps, context, tool, [target], true) for tool in asked)

    def values(self, place: Place) -> Values:
        """The facts of a place, as conditions get them."""
        return {name: name in place.facts for name in self.facts}

    def decided(self, place: Place) -> list[Decided]:
        """All decisions on what the model can ask for in the place."""
        key = place.mode, place.limit, place.depth, place.facts
        if key not in self._decided:
            facts = build_facts(self.deps, place.facts)
            context = replace(self._context(place), facts=facts)
            self._decided[key] = [*list_decided(self.deps, context, self._switching)]
        return self._decided[key]

    def tasks(self, place: Place) -> list[Pending]:
        """The sub-tasks that the model may ask for in the place."""
        key = place.mode, place.limit, place.depth, place.facts
        if key not in self._tasks:
            wishes = dict.fromkeys(decided.meant for decided in self.decided(place))
            asked = (wish for wish in wishes if wish is not None and wish.is_task)
            self._tasks[key] = [wish for wish in asked if not (wish.how or wish.approvals)]
        return self._tasks[key]

    def free_facts(self) -> frozenset[frozenset[str]]:
        """Have any call lead, from now on, to any facts that a call can make true in some mode."""
        starts = (
            Place(slug, Phase.ACTING, None, policy)
            for slug, policy in product(self.deps.catalog, Approvals)
        )
        after = [facts for place in starts for facts in self.outcomes(place)]
        self.free = _list_subsets(self.answered(Place("", "", None, "")).union(*after))
        return self.free

    def outcomes(self, place: Place) -> frozenset[frozenset[str]]:
        """The facts that can hold after a call that may run here, or a command of an own node."""
        if not self.facts:
            return _NO_FACTS
        if self.free is not None:
            return self.free
        is_own = place.phase not in PHASES
        key = place.mode, place.limit, place.approvals, place.facts, is_own
        if key not in self._outcomes:
            before = build_facts(self.deps, place.facts)
            due = self._list_commands(place) if is_own else self._list_done(place)
            after = {read_true_facts(follow(self.deps, before, done)) & self.facts for done in due}
            self._outcomes[key] = frozenset(
                facts - self._open | known
                for facts, known in product({place.facts, *after}, _list_subsets(self._open))
            )
        return self._outcomes[key]

    def answered(self, place: Place) -> frozenset[str]:
        """The facts after a person has answered a question."""
        if not self.facts:
            return place.facts
        done = Done(tool="", mode="", is_success=True, is_answer=True)
        return (
            read_true_facts(follow(self.deps, build_facts(self.deps, place.facts), done))
            & self.facts
        )

    def _list_done(self, place: Place) -> set[Done]:
        key = place.mode, place.limit, place.approvals
        if key not in self._done:
            self._done[key] = {end_unseen(place.mode)}  # in a process that is gone
            for probe, right in zip(self.probes, self.rights(place), strict=True):
                if not probe.tool.spec.effect.runs_beside_others:
                    self._done[key].update(self.describe(place, probe, is_run=bool(right)))
        return self._done[key]

    def describe(self, place: Place, probe: Probe, *, is_run: bool) -> Iterator[Done]:
        """The possible ends of a call, as the nodes describe them."""
        spec, context = probe.tool.spec, self._context(place)
        call = tool_call(name=spec.name, args=probe.args, id="")
        judged = Judged(call, self.judge(place, *probe), probe.tool, probe.args)
        line = probe.args.get(spec.command or "", "")
        for is_success, code, was_alone in product(*_ENDS) if is_run else ():
            ran = [Ran(line, ".", code)] if spec.command else []
            done = describe_call(self.deps, context.seat, judged, ran, is_success)
            yield replace(done, was_alone=was_alone)
        grant = context.seat.mode.grant(spec.group or "")
        if grant is not None and grant.file_regex is not None and spec.name in context.seat.tools:
            # The call names some file, whether or not the probes have one.
            slug, file = place.mode, ("-",)
            yield Done(
                tool=spec.name,
                mode=slug,
                is_success=True,
                written=file,
                in_limit=file,
                may_have_written=True,
            )

    def _list_commands(self, place: Place) -> Iterator[Done]:
        """The possible ends of a command that a node of the clone's own runs."""
        for runs_tests, code, was_alone, may_write in product(*_ENDS, (True, False)):
            yield Done(
                tool="",
                mode=place.mode,
                is_success=True,
                may_have_written=may_write,
                line="-",
                exit_code=code,
                was_alone=was_alone,
                runs_tests=runs_tests and self.deps.tests is not None,
            )


def _list_subsets(names: Collection[str]) -> frozenset[frozenset[str]]:
    sizes = range(len(names) + 1)
    subsets = chain.from_iterable(combinations(sorted(names), size) for size in sizes)
    return frozenset(map(frozenset, subsets))
