"""Whether the model may ask for a mode now: the edge, its condition, and what is open instead."""

from collections.abc import Collection, Iterable, Mapping

from modeshift.modes.edges.edge_table import MAX_NAMED, MAX_TRIED, Edge, Way
from modeshift.modes.edges.edges import ANY
from modeshift.modes.effects import ToolSpec
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import to_one_line
from modeshift.modes.policy import Approvals, verdict
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import describe_facts, read_facts
from modeshift.threads.seats import Seat
from modeshift.threads.state import Facts, Remembered

Values = Mapping[str, bool | None]


def list_suggestions(args: JsonObject) -> dict[str, str | None]:
    """The labels to choose from, each with the mode it switches to, from a question's arguments.

    The label names the mode, so that whoever chooses it knows. An answer in other words never
    switches.
    """
    labels: dict[str, str | None] = {}
    for suggestion in args.get("follow_up") or ():
        mode_slug = suggestion.get("mode")
        text = to_one_line(suggestion["text"])
        labels[text + (f" (switch to {mode_slug})" if mode_slug else "")] = mode_slug
    return labels


async def read_fact_values(
    deps: AgentDeps, facts: Facts, source: str, targets: Iterable[str], way: Way
) -> Values:
    """The facts that decide on ways to these modes, and on others that an answer would name."""
    edges = [deps.edges.find(source, target, way) for target in targets]
    names = [name for edge in edges if edge is not None for name in edge.facts]
    shut = any(edge is None for edge in edges)
    if names or shut:
        names += deps.edges.list_facts(source, way)
    if "tests_passed" in names and deps.tests is not None and deps.tests.files:
        names.append("tests_changed")  # so that a person sees it
    return await read_facts(deps, facts, dict.fromkeys(names))


def find_way_problem(
    deps: AgentDeps, source: str, target: str, way: Way, values: Values
) -> str | None:
    """Why the model may not ask for the mode now, and what is open instead; None if it may."""
    if source == target and way is Way.ASK:
        return None
    edge, name = deps.edges.find(source, target, way), deps.catalog[source].name
    if edge is not None and edge.is_open(values):
        return None
    named = f"{target!r} is" if way is Way.ASK else f"A sub-task in {target!r} is"
    others = f" Open from here: {deps.edges.describe_others(source, target, way, values)}."
    if edge is None:
        return f"{named} not open from {name} mode; a person can still choose it.{others}"
    known = describe_facts({fact: values.get(fact) for fact in edge.facts})
    advice = f" {edge.otherwise}" if edge.otherwise else ""
    return (
        f"{named} not open from {name} mode yet: it takes `{edge.when}` ({known}).{advice}{others}"
    )


def is_free(deps: AgentDeps, seat: Seat, target: str, remembered: Iterable[Remembered]) -> bool:
    """Whether the switch needs nobody's yes: the edge says so, and no rights are gained."""
    source, rights = seat.mode.slug, (seat.mode, seat.limit)
    edge = deps.edges.find(source, target, Way.ASK)
    if edge is None or not edge.is_free or deps.find_growth(source, target) is not None:
        return False
    if any(approval["mode"] == target for approval in remembered):
        return False
    modes = (seat.mode, deps.catalog[target])
    before, after = ((mode.model, dict(mode.model_parameters)) for mode in modes)
    asked = {spec.name for spec in deps.toolbox.specs if spec.effect.switches_mode}
    rules = [rules for mode in rights if mode for rules in (mode.own_rules, *mode.defaults)]
    return before == after and not any(asked & rule.rules.keys() for rule in rules)


def list_ways_out(deps: AgentDeps, slug: str) -> list[JsonObject]:
    """Where the model may ask to go from a mode, with the condition, and whom it asks."""
    groups = dict[tuple[bool, str, str], list[str]]()
    effects = [deps.toolbox[name].spec.effect for name in deps.seat(slug).tools]
    asking = [effect.starts_subtask for effect in effects if effect.switches_mode]
    for way in (Way.TASK if is_task else Way.ASK for is_task in asking):
        for target, edge in deps.edges.list_ways(slug, way):
            asks_nobody = way is Way.ASK and is_free(deps, deps.seat(slug), target, ())
            key = way is Way.TASK, edge.when, "nobody" if asks_nobody else "a person"
            groups.setdefault(key, []).append(target)
    return [
        {"to": [ANY] if len(to) > len(deps.catalog) - 2 + is_task else to}
        | {"is_task": is_task, "when": when, "asks": asks}
        for (is_task, when, asks), to in groups.items()
    ]


def describe_condition(edge: Edge | None, values: Values) -> str:
    """The condition as a person reads it who is to say yes; empty for none."""
    if edge is None or not edge.when:
        return ""
    facts = {name: values.get(name) for name in edge.facts}
    if "tests_passed" in facts and values.get("tests_changed"):
        facts["tests_changed"] = True
    return f"Met: {edge.when} ({describe_facts(facts)})."


def find_answer_problem(deps: AgentDeps, seat: Seat, target: str) -> str | None:
    """Why no answer to a question may switch to the mode ``target``; None if one may."""
    if seat.depth:
        return "In a sub-task no answer switches the mode; ask without naming one."
    for spec in deps.toolbox.specs:
        if spec.effect.switches_mode and not spec.effect.starts_subtask:
            ruling = verdict(seat.mode, spec, {"mode_slug": target}, Approvals.MANUAL)
            return ruling.reason if ruling.kind == "deny" else None
    return None


def describe_alternatives(
    deps: AgentDeps, seat: Seat, tool: ToolSpec, args: JsonObject, approvals: Approvals,
    refused: Collection[str],
) -> str:  # fmt: skip
    """The modes that do not deny a call, as the end of its refusal in this mode."""
    if seat.depth:
        return " Go on without it: a sub-task keeps its mode. Say at its end what is undone."
    slugs, ways = list[str](), deps.list_ways_to(seat.mode.slug, tool)
    for slug, edge in ways[:MAX_TRIED]:
        if (
            slug not in refused
            and deps.find_limit_problem(seat.limit, slug) is None
            and verdict(deps.catalog[slug], tool, args, approvals).kind != "deny"
        ):
            slugs.append(f"{slug} (once `{edge.when}`)" if edge.when else slug)
        if len(slugs) > MAX_NAMED:
            break
    is_cut = len(ways) > MAX_TRIED
    if not slugs:
        none = "none of the modes that were tried" if is_cut else "there is no mode to ask for that"
        return f" Go on without it: {none} allows this call."
    more = ", or another" if is_cut or len(slugs) > MAX_NAMED else ""
    named = ", ".join(slugs[:MAX_NAMED])
    return f" Ask for one of these with switch_mode: {named}{more}."
