"""``judge``: from a tool call as the model wrote it to a verdict on it."""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Self, cast

from langchain_core.messages import AnyMessage, ToolCall

from modeshift.calls.plans import PlanLimit, find_edge, read_plan
from modeshift.calls.ways import (
    Values,
    describe_alternatives,
    describe_condition,
    find_answer_problem,
    find_way_problem,
    is_free,
    list_suggestions,
    read_fact_values,
)
from modeshift.modes.edges.edge_table import Way
from modeshift.modes.effects import NO_EFFECT, Effect
from modeshift.modes.errors import InvalidCallError, ModelError
from modeshift.modes.limits import cut_verdict
from modeshift.modes.mode import Mode
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.policy import Approvals, Verdict, verdict
from modeshift.modes.rules.matching import Subject, get_server_part
from modeshift.threads.deps import AgentDeps
from modeshift.threads.seats import Seat
from modeshift.threads.state import ActTask, ApprovedPlan, Facts, Remembered, State
from modeshift.tools.tool import Tool

PLAN_FIRST = "Call switch_mode once the plan is written, so that the user sees all of it."


@dataclass(frozen=True)
class Judged:
    """A call, and the verdict on it; what follows from the two is filled in when it is made."""

    call: ToolCall
    verdict: Verdict
    tool: Tool | None = None
    args: JsonObject | None = None
    """The arguments as the tool gets them. Both are None for a call that is invalid."""
    environment: str = ""
    """Digests of the mode, the limit and the workspace; of the mode it switches to, or of the tool
    as its MCP server describes it."""
    plan: ApprovedPlan | None = None
    """What a person approves as the plan with the call, by a switch or by an edit of its file."""
    writable: tuple[str, ...] | None = None
    """What a command may write of the workspace, where a plan limits that."""
    id: str = field(init=False)
    """The id of the call."""
    effect: Effect = field(init=False)
    """What the call does to the world; ``NO_EFFECT`` for one that is invalid."""
    resolved: Mapping[str, str | None] = field(init=False)
    """The arguments that are paths or a URL, as resolved, which is what was judged."""
    edited_paths: tuple[str, ...] = field(init=False)
    """The files that it would change, as resolved paths."""
    allowed_decisions: tuple[str, ...] = field(init=False)
    """The types of decision that a person may give on it."""
    can_be_remembered: bool = field(init=False)
    """Whether "always allow" may be offered: never where a person must be asked every time."""
    needs_person: bool = field(init=False)
    """Whether a person has to decide on it."""
    runs_beside_others: bool = field(init=False)
    """Whether it may run in parallel with its neighbours: it changes nothing, or is denied."""

    def __post_init__(self) -> None:
        effect, resolved, can_be_remembered = NO_EFFECT, dict[str, str | None](), False
        paths: tuple[str | None, ...] = ()
        if self.tool is not None and self.args is not None:
            spec = self.tool.spec
            effect, can_be_remembered = spec.effect, spec.can_be_remembered
            resolved = {name: self.args[name] for name in spec.resolved}
            paths = tuple(self.args[name] for name in spec.paths if effect.changes_files)
        answers, is_denied = ("respond", "reject"), self.verdict.kind == "deny"
        decisions = answers if effect.takes_answer else ("approve", "edit", "reject")
        filled = {
            "id": str(self.call["id"]),
            "effect": effect,
            "resolved": MappingProxyType(resolved),
            "edited_paths": tuple(path for path in paths if path is not None),
            "allowed_decisions": decisions,
            "can_be_remembered": can_be_remembered and not self.verdict.always_asks,
            "needs_person": self.verdict.kind == "ask" and not self.verdict.is_by_edge,
            "runs_beside_others": is_denied or effect.runs_beside_others,
        }
        for name, value in filled.items():
            object.__setattr__(self, name, value)

    def digest(self, *scope: str) -> str:
        """Identifies the call: changes with everything that a person's decision depends on.

        That is the tool, the arguments, the paths they resolve to, the mode and the workspace.
        ``scope`` is the thread and the message, where the digest must differ between threads:
        a copy of a thread has the same calls.
        """
        call = self.call
        more = [part for part in (self.plan, self.writable) if part is not None]
        parts = [*scope, self.environment, self.id, call["name"], call["args"], self.args, *more]
        return sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()

    def describe(self) -> dict[str, str]:
        """The call and the verdict on it, as an audit has them: arguments by digest alone."""
        return {
            "call": self.id,
            "tool": self.call["name"],
            "digest": self.digest(),
            "verdict": self.verdict.kind,
            "reason": self.verdict.reason,
        }

    @property
    def subject(self) -> Subject:
        """What a remembered approval is compared with."""
        assert self.tool is not None
        assert self.args is not None
        return Subject(self.tool.spec, self.args)


def list_switch_targets(effect: Effect, args: JsonObject) -> list[str]:
    """The modes to which a call may switch, itself or by the answer to it."""
    if effect.switches_mode:
        return [args["mode_slug"]]
    if effect.takes_answer:
        return [slug for slug in list_suggestions(args).values() if slug is not None]
    return []


@dataclass(frozen=True)
class CallContext:
    """Where and when a call is judged."""

    seat: Seat
    """The mode, the host's limit and how many sub-tasks deep it is."""
    approvals: Approvals
    is_only_call: bool = True
    """Whether the call is the only one of its message."""
    refused: Collection[str] = ()
    """Modes to which a person refused to switch, in this turn."""
    switched: int = 0
    """How often the mode was switched in this turn."""
    remembered: Sequence[Remembered] = ()
    """The approvals that a person wants to be remembered."""
    task: str = ""
    """What the sub-task is told to do; empty in none."""
    facts: Facts = field(default_factory=Facts)
    """What conditions of edges are about."""
    is_by_hand: bool = False
    """Whether a person has chosen the mode, who is above the edges."""
    written: Sequence[str] = ()
    """The files that the mode has written, the last one last."""
    plan: PlanLimit | None = None
    """What the approved plan limits; None without one."""
    messages: Sequence[AnyMessage] = field(default=(), compare=False)
    state: Mapping[str, object] = field(default_factory=dict, compare=False)
    """Of which some tools read a key, as an argument."""

    @classmethod
    def of(
        cls,
        deps: AgentDeps,
        state: State | ActTask,
        is_only_call: bool = True,
        refused: Collection[str] = (),
    ) -> Self:
        """The context that the thread's current state gives."""
        subtask, plan = state.get("subtask"), state.get("approved_plan")
        return cls(
            deps.seat_in(state, state["mode"]),
            Approvals(state["approvals"]),
            is_only_call,
            refused,
            state.get("switched", 0),
            state.get("remembered", ()),
            "" if subtask is None else subtask["message"],
            state.get("facts", {}),
            written=state.get("written", ()),
            plan=PlanLimit.of(plan) if plan else None,
            messages=cast("State", state).get("messages", ()),
            state=state,
        )

    def describe(self) -> dict[str, str | None]:
        """Where it is judged, as an audit has it."""
        limit = None if self.seat.limit is None else self.seat.limit.slug
        return {"mode": self.seat.mode.slug, "limit": limit, "approvals": self.approvals.value}


async def judge(deps: AgentDeps, context: CallContext, call: ToolCall) -> Judged:
    """Judge one call: when the model has made it, and in ``act`` just before it runs."""
    try:
        args = deps.toolbox.fill_in(call["name"], call["args"], context.state)
        tool, args = await deps.toolbox.check_call(call["name"], args)
    except InvalidCallError as error:
        return _deny(call, str(error))
    values: Values = {}
    targets, way = list_switch_targets(tool.spec.effect, args), get_way(tool.spec.effect)
    if targets and not context.is_by_hand:
        values = await read_fact_values(deps, context.facts, context.seat.mode.slug, targets, way)
    if problem := find_problem(deps, context, tool, targets, values):
        return _deny(call, problem)
    effect = tool.spec.effect
    if context.plan is not None and (effect.changes_files or effect.runs_programs):
        context = replace(context, plan=await context.plan.look(deps))
    ruling = find_verdict(deps, context, tool, args, values)
    if ruling.is_missing:
        seat, refused = context.seat, context.refused
        more = describe_alternatives(deps, seat, tool.spec, args, context.approvals, refused)
        ruling = replace(ruling, reason=ruling.reason + more)
    digests = [deps.catalog[slug].digest for slug in targets]
    if tool.spec.served is not None:
        digests.append(tool.spec.served.digest)
    plan = None
    if ruling.kind == "ask" and not context.is_by_hand:
        try:
            plan = await _find_plan(deps, context, tool, args, targets)
        except ModelError as error:
            return _deny(call, str(error))
    if plan is not None and effect.takes_answer:
        return _deny(call, "Ask for that mode with switch_mode, which shows the user the plan.")
    environment = "".join([context.seat.environment, *digests])
    writable = context.plan.writable if context.plan and effect.runs_programs else None
    return Judged(call, ruling, tool, args, environment, plan, writable)


async def _find_plan(
    deps: AgentDeps, context: CallContext, tool: Tool, args: JsonObject, targets: Sequence[str]
) -> ApprovedPlan | None:
    """What becomes the plan once a person approves the call; raises ``ModelError``."""
    slug, effect = context.seat.mode.slug, tool.spec.effect
    if targets and not effect.starts_subtask:
        if not (context.written and any(find_edge(deps, slug, each).plan for each in targets)):
            return None
        plan = await asyncio.to_thread(read_plan, deps, slug, context.written)
        if plan is not None and plan["digest"] in context.refused:
            raise InvalidCallError("The user has turned this plan down; change it, then ask again.")
        return plan
    if context.plan is None or not effect.changes_files:
        return None
    return await context.plan.foresee(deps, tool.spec, args)


def get_way(effect: Effect) -> Way:
    """Which way to a mode a call with this effect takes."""
    return Way.TASK if effect.starts_subtask else Way.ASK


async def judge_all(
    deps: AgentDeps, context: CallContext, calls: Sequence[ToolCall]
) -> list[Judged]:
    """Judge the calls of one message, all in the context in which they were written.

    One message switches the mode once, or begins sub-tasks: another such call is denied, and so is
    one behind a sub-task that would change something before it, and a switch with a plan beside an
    edit, which may be of the plan.
    """
    results: list[Judged] = []
    first: Judged | None = None
    for call in calls:
        judged = await judge(deps, context, call)
        if judged.effect.switches_mode and judged.verdict.kind == "ask":
            first = first or judged
            are_tasks = first.effect.starts_subtask and judged.effect.starts_subtask
            if judged is not first and not are_tasks:
                judged = _deny(call, "Call switch_mode once in a message, and not beside new_task.")
        elif first is not None and first.effect.starts_subtask and judged.effect.changes_the_world:
            judged = _deny(call, "Call it when the sub-task has ended, not behind new_task.")
        results.append(judged)
    if any(each.edited_paths and each.verdict.kind != "deny" for each in results):
        slug = context.seat.mode.slug
        return [
            _deny(each.call, PLAN_FIRST) if _hands_over_plan(deps, slug, each) else each
            for each in results
        ]
    return results


def _hands_over_plan(deps: AgentDeps, source: str, judged: Judged) -> bool:
    if judged.verdict.kind != "ask" or not judged.effect.switches_mode or judged.args is None:
        return False
    target, is_task = judged.args["mode_slug"], judged.effect.starts_subtask
    return not is_task and find_edge(deps, source, target).plan


def find_problem(
    deps: AgentDeps, context: CallContext, tool: Tool, targets: Sequence[str], values: Values
) -> str | None:
    """Why a call that may switch to ``targets`` is denied before any rule; None if it is not."""
    if tool.spec.effect.ends_turn and not context.is_only_call:
        return f"Call {tool.spec.name} alone."
    if withheld := context.seat.why_withheld(tool.spec):
        return withheld
    problems = (_find_switch_problem(deps, context, tool, target, values) for target in targets)
    return next((problem for problem in problems if problem is not None), None)


def find_verdict(
    deps: AgentDeps, context: CallContext, tool: Tool, args: JsonObject, values: Values
) -> Verdict:
    """What the mode says of a call without a problem, cut by the host's limit."""
    effect, limit = tool.spec.effect, context.seat.limit
    ruling = _find_verdict(deps, context, context.seat.mode, tool, args)
    if limit is not None and limit.slug != context.seat.mode.slug:
        # A switch has passed the limit before, and may well be to the limit's own mode.
        judged_args = None if effect.switches_mode else args
        ruling = cut_verdict(ruling, limit, _find_verdict(deps, context, limit, tool, judged_args))
    if context.plan is not None and ruling.kind != "deny":
        problem = None if ruling.always_asks else context.plan.find_problem(tool.spec, args)
        if problem is not None:
            ruling = Verdict("ask", problem, always_asks=True)
    if effect.runs_programs and ruling.kind != "deny" and context.seat.is_closed_off(tool.spec):
        ruling = replace(ruling, is_closed_off=True)
    if effect.switches_mode and ruling.kind == "ask":
        ruling = _add_edge(deps, context, tool, args["mode_slug"], ruling, values)
    return ruling


def _add_edge(
    deps: AgentDeps, context: CallContext, tool: Tool, target: str, ruling: Verdict, values: Values
) -> Verdict:
    """The verdict on a switch, with the edge's condition, and whether nobody need be asked."""
    if context.is_by_hand:
        return ruling
    source, way = context.seat.mode.slug, get_way(tool.spec.effect)
    return replace(
        ruling,
        condition=describe_condition(deps.edges.find(source, target, way), values),
        is_by_edge=way is Way.ASK and is_free(deps, context.seat, target, context.remembered),
    )


def _find_verdict(
    deps: AgentDeps, context: CallContext, mode: Mode, tool: Tool, args: JsonObject | None
) -> Verdict:
    """What one mode says, the thread's or the limit's, with the approvals remembered for it."""
    remembered = [
        (approval["pattern"], approval["exact"])
        for approval in context.remembered
        if _is_for(approval["tool"], tool)
        and mode.slug in deps.catalog
        and approval["digest"] == deps.seat(mode.slug).environment
    ]
    return verdict(mode, tool.spec, args, context.approvals, remembered)


def _is_for(remembered: str, tool: Tool) -> bool:
    """Whether what is remembered for a tool may hold for this one: of an MCP server, for all."""
    if tool.spec.served is None:
        return remembered == tool.spec.name
    return get_server_part(remembered) == get_server_part(tool.spec.name)


def _find_switch_problem(
    deps: AgentDeps, context: CallContext, tool: Tool, target: str, values: Values
) -> str | None:
    """Why a switch to the mode is denied without asking a person; None if it is not."""
    if target == context.seat.mode.slug and not tool.spec.effect.starts_subtask:
        return None
    if problem := deps.find_limit_problem(context.seat.limit, target):
        return problem
    if problem := _find_turn_problem(deps, context, tool, target):
        return problem
    if problem := deps.models.problem(deps.catalog[target]):
        return f"No switch to {target!r} is possible: {problem}"
    seat, way = context.seat, get_way(tool.spec.effect)
    if tool.spec.effect.takes_answer:
        problem = find_answer_problem(deps, seat, target)
    if problem or context.is_by_hand:
        return problem
    return find_way_problem(deps, seat.mode.slug, target, way, values)


def _find_turn_problem(
    deps: AgentDeps, context: CallContext, tool: Tool, target: str
) -> str | None:
    """Why there is no such switch after what the turn has had; None if there may be one."""
    if target in context.refused:
        return f"The user has refused a switch to {target!r} in this turn; go on without it."
    most, is_switch = deps.max_switches, not tool.spec.effect.starts_subtask
    if context.switched < most or context.is_by_hand or not is_switch:
        return None
    often = f"The mode was switched {context.switched} times in this turn, which is the most"
    return f"{often}; go on in {context.seat.mode.name} mode, or end your turn and say why."


def _deny(call: ToolCall, reason: str) -> Judged:
    return Judged(call, Verdict("deny", reason, InvalidCallError))
