"""What may be done in a seat: a mode under a limit, so deep in sub-tasks, under a policy."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any, NamedTuple

from langchain_core.messages.tool import tool_call

from modeshift.graph.act import describe_call
from modeshift.graph.approvals.judging import CallContext, Judged, find_problem, find_verdict
from modeshift.graph.approvals.ways import Values
from modeshift.graph.deps import AgentDeps
from modeshift.graph.facts import CHANGED, follow
from modeshift.modes.effects import ToolSpec
from modeshift.modes.facts import Done
from modeshift.modes.phases import Phase
from modeshift.modes.policy import Approvals, Verdict
from modeshift.proof.places import Pending, Place, build_facts, read_facts
from modeshift.tools.processes.background import Ran
from modeshift.tools.tool import Tool

_NO_FACTS = frozenset({frozenset[str]()})
PATHS = ("a.txt", "src/a.py", "plan.md", "Makefile", "AGENTS.md", ".env")
"""Files of which an edit limit may name some; the last ones always ask."""
STRICTNESS = {"deny": 0, "ask": 1, "allow": 2}


class Probe(NamedTuple):
    """A call that stands for others like it."""

    tool: Tool
    args: dict[str, Any]

    def __str__(self) -> str:
        """The tool, and what is known of its arguments."""
        values = (str(value) for value in self.args.values() if value is not None)
        return " ".join([self.tool.spec.name, *values])


class Wishes(NamedTuple):
    """Switches and sub-tasks: what needs a yes, what needs none, what a person may choose."""

    asked: list[Pending]
    by_edge: list[Pending]
    by_hand: list[Pending]


class Seats:
    """The verdicts, each asked for once; they are those that the nodes ask for."""

    def __init__(self, deps: AgentDeps, facts: frozenset[str]) -> None:
        """``facts`` are those that conditions name."""
        self.deps = deps
        self.facts = facts
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
        self._wishes: dict[Any, Wishes] = {}
        self._outcomes: dict[Any, frozenset[frozenset[str]]] = {}
        self._done: dict[Any, set[Done]] = {}

    def _list_args(self, spec: ToolSpec) -> list[dict[str, Any]]:
        paths: list[str | None] = [None] if spec.command else [*PATHS]
        values = dict.fromkeys(spec.paths, paths)
        if spec.url is not None:
            values[spec.url] = ["https://example.com/"]
        if spec.command is not None:
            values[spec.command] = self._list_lines(spec.name)
        number = max(map(len, values.values()), default=1)
        return [
            {name: given[index % len(given)] for name, given in values.items()}
            for index in range(number)
        ]

    def _list_lines(self, tool: str) -> list[str | None]:
        """Command lines: one that writes, the owner's tests, and those that a mode names."""
        tests = [self.deps.tests.command] if self.deps.tests else []
        rules = (self.deps.catalog[slug].permissions for slug in self.deps.catalog)
        lines = {line for rule in rules for line in rule.get(tool, {}) if "*" not in line}
        return ["touch a.txt", *tests, *sorted(lines)]

    def rights(self, place: Place) -> tuple[int, ...]:
        """Of each probe whether it is denied, asked about or allowed."""
        key = place.mode, place.limit, place.approvals
        if key not in self._rights:
            verdicts = (self.judge(place, *probe) for probe in self.probes)
            self._rights[key] = tuple(STRICTNESS[verdict.kind] for verdict in verdicts)
        return self._rights[key]

    def judge(self, place: Place, tool: Tool, args: dict[str, Any]) -> Verdict:
        """The verdict that the nodes would have of such a call."""
        return self._judge(self._context(place), tool, args, self.values(place))

    def _context(self, place: Place) -> CallContext:
        seat = self.deps.seat(place.mode, place.limit, place.depth)
        return CallContext(seat, Approvals(place.approvals))

    def _judge(
        self, context: CallContext, tool: Tool, args: dict[str, Any], values: Values
    ) -> Verdict:
        if problem := find_problem(self.deps, context, tool, args, values):
            return Verdict("deny", problem)
        return find_verdict(self.deps, context, tool, args, values)

    def values(self, place: Place) -> Values:
        """The facts of a place, as conditions get them."""
        return {name: name in place.facts for name in self.facts}

    def wishes(self, place: Place) -> Wishes:
        """What the model may ask for, and what a person may choose instead."""
        key = place.mode, place.limit, place.depth, place.facts
        if key not in self._wishes:
            self._wishes[key] = self._find_wishes(place)
        return self._wishes[key]

    def _find_wishes(self, place: Place) -> Wishes:
        wishes = Wishes([], [], [])
        context, values = self._context(place), self.values(place)
        by_hand = replace(context, is_by_hand=True)
        for tool in self._switching:
            asked = len(wishes.asked)
            for slug in self.deps.catalog:
                pending = Pending(slug, tool.spec.effect.starts_subtask, None)
                verdict = self._judge(context, tool, {"mode_slug": slug}, values)
                if verdict.is_by_edge:
                    wishes.by_edge.append(pending._replace(how="by edge"))
                elif verdict.kind != "deny":
                    wishes.asked.append(pending)
            if len(wishes.asked) > asked:  # there is a card
                for slug in self.deps.catalog:
                    pending = Pending(slug, tool.spec.effect.starts_subtask, None, how="by hand")
                    if self._judge(by_hand, tool, {"mode_slug": slug}, values).kind != "deny":
                        wishes.by_hand.append(pending)
        return wishes

    def free_facts(self) -> frozenset[frozenset[str]]:
        """From now on any call leads to any facts that one can make true in some mode."""
        starts = (
            Place(slug, Phase.ACTING, None, policy)
            for slug, policy in product(self.deps.catalog, Approvals)
        )
        after = [facts for place in starts for facts in self.outcomes(place)]
        names = self.answered(Place("", "", None, "")).union(*after)
        sizes = range(len(names) + 1)
        subsets = chain.from_iterable(combinations(sorted(names), size) for size in sizes)
        self.free = frozenset(map(frozenset, subsets))
        return self.free

    def outcomes(self, place: Place) -> frozenset[frozenset[str]]:
        """The facts as they can be after a call that may run here."""
        if not self.facts:
            return _NO_FACTS
        if self.free is not None:
            return self.free
        key = place.mode, place.limit, place.approvals, place.facts
        if key not in self._outcomes:
            before = build_facts(self.deps, place.facts)
            after = {place.facts}
            for done in self._list_done(place):
                follows = follow(self.deps, before, done)
                facts = read_facts(follows) & self.facts
                after.add(facts)
                if done.may_have_written and CHANGED in self.facts:
                    after |= {facts | {CHANGED}, facts - {CHANGED}}
            self._outcomes[key] = frozenset(after)
        return self._outcomes[key]

    def answered(self, place: Place) -> frozenset[str]:
        """The facts after a person has answered a question."""
        if not self.facts:
            return place.facts
        done = Done(tool="", mode="", is_success=True, is_answer=True)
        return read_facts(follow(self.deps, build_facts(self.deps, place.facts), done)) & self.facts

    def _list_done(self, place: Place) -> set[Done]:
        key = place.mode, place.limit, place.approvals
        if key not in self._done:
            rights = zip(self.probes, self.rights(place), strict=True)
            self._done[key] = {
                done
                for probe, right in rights
                if right and not probe.tool.spec.effect.runs_beside_others
                for done in self._describe(place, probe)
            }
        return self._done[key]

    def _describe(self, place: Place, probe: Probe) -> Iterator[Done]:
        """What may come of a call, as the nodes describe it."""
        spec, context = probe.tool.spec, self._context(place)
        call = tool_call(name=spec.name, args=probe.args, id="")
        judged = Judged(call, self.judge(place, *probe), probe.tool, probe.args)
        line = probe.args.get(spec.command or "", "")
        for is_success, code, was_alone in product((True, False), (0, 1, None), (True, False)):
            ran = [Ran(line, ".", code)] if spec.command else []
            done = describe_call(self.deps, context.seat, judged, ran, is_success)
            yield replace(done, was_alone=was_alone)
        grant = context.seat.mode.grant(spec.group or "")
        if grant is not None and grant.file_regex is not None:
            # Some file there is that it names, whether the probes have one or not.
            yield replace(done, is_success=True, written=("-",), in_limit=("-",))
