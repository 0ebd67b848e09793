"""Conditions, the table of edges, and which mode's rights are at most another's."""

import itertools
from typing import Any

import pytest

from graph.chart import CHART
from modeshift.modes.edges.edge_table import EdgeTable, Way, describe_groups
from modeshift.modes.edges.edges import check_condition, parse_condition
from modeshift.modes.effects import EFFECTS, ServerTool, ToolSpec
from modeshift.modes.facts import BUILT_IN
from modeshift.modes.machine import Chart, Configuration
from modeshift.modes.mode import Level, Mode
from modeshift.modes.policy import Approvals, Verdict, verdict
from modeshift.modes.rights import find_growth
from modeshift.testing.plugin import Snapshot
from tests.tables import rows

FACTS = [fact.name for fact in BUILT_IN]


WRONG = "|1|'x'|a == b|a ^ b|a # b|!a|a b|a and|or a|(a|a)|()|a\nor b|In('m_0')|f(a)"


def test_what_is_no_condition(snapshot: Snapshot) -> None:
    problems = {}
    for text in (*WRONG.split("|"), "a" * 201):
        with pytest.raises(ValueError, match=r".") as caught:
            check_condition(text)
        problems[text] = str(caught.value)
    snapshot("conditions.txt", problems)
    assert check_condition("a" * 200)


@rows(
    "text",
    *("a", "not a", "a or b and not c", "(a or b) and not c", "not (a and (b or c))", "not not a"),
    *("a and b and c", "a or b or c"),
)
def test_a_condition_means_what_python_means(text: str) -> None:
    condition = parse_condition(text)
    for values in itertools.product((False, True, None), repeat=3):
        facts = dict(zip("abc", values, strict=True))
        unknown = [name for name in facts if facts[name] is None]
        outcomes = {
            eval(text, {}, facts | dict(zip(unknown, guess, strict=True)))  # noqa: S307  # ours
            for guess in itertools.product((False, True), repeat=len(unknown))
        }
        assert condition.holds(facts) == (outcomes == {True}) or None in facts.values()
        assert not condition.holds(facts) or outcomes == {True}, "what is not known opens nothing"


def test_ways_in_words() -> None:
    names = [f"m{number}" for number in range(12)]
    shown = ", ".join(names[:10])
    assert describe_groups({}) == "none"
    assert describe_groups({"": names[:10]}) == shown
    assert describe_groups({"b": ["x"], "a": names[:11], "": names}) == (
        f"{shown} and 2 more; once `a`: {shown} and 1 more; once `b`: x"
    )


def mode(slug: str, **keys: Any) -> Mode:
    return Mode.model_validate(
        {"slug": slug, "name": slug, "roleDefinition": "x", "groups": []} | keys
    )


TABLES: list[dict[str, dict[str, Any]]] = [
    {},
    {"a": {"switches": ["b"]}},
    {"a": {"switches": [{"to": "b", "when": "tests_passed"}]}},
    {"a": {"switches": [{"to": "*", "when": "tests_passed or not files_changed"}, "b"]}},
    {"a": {"switches": [{"to": "b", "ask": "never"}, "*"]}},
    {"b": {"enterFrom": [{"from": "a", "when": "plan_written"}]}},
    {"a": {"switches": [{"to": "b", "when": "tests_passed"}]}, "b": {"enterFrom": ["c", "a"]}},
    {"b": {"enterFrom": [{"from": "*", "when": "asked_user"}], "subtasks": []}},
    {"a": {"subtasks": ["b"]}, "b": {"enterFrom": [{"from": "a", "when": "not plan_written"}]}},
    {"a": {"switches": []}, "b": {"switches": [], "subtasks": ["*"]}},
]


BOTH_ENDS: dict[str, dict[str, Any]] = {
    "a": {"switches": [{"to": "b", "when": "tests_passed", "otherwise": "Run."}, "c"]},
    "b": {"enterFrom": [{"from": "a", "when": "plan_written", "otherwise": "Write."}]},
}


def test_the_table(snapshot: Snapshot) -> None:
    """What the chart and the nodes are both made of."""
    said = {}
    for tables in (*TABLES, BOTH_ENDS):
        table = EdgeTable([mode(slug, **tables.get(slug, {})) for slug in "abc"])
        lines = [
            f"{table.has_limits}, guarded: {[slug for slug in 'abc' if table.is_guarded(slug)]}"
        ]
        for way in Way:
            edges = {(source, target): table.find(source, target, way)
                     for source, target in itertools.product("abc", "abc")}  # fmt: skip
            shown = (
                f"{source}{target} {edge.when or 'open'}{' free' * edge.is_free} {edge.otherwise}"
                for (source, target), edge in edges.items()
                if edge is not None
            )
            lines += [f"{way}: {', '.join(map(str.strip, shown))}"]
            lines += [f"listed: {[''.join(edge[:2]) for edge in table.list_edges(way)]}"]
            for slug in "abc":
                limits = f"{table.has_table(slug, way)}, {table.is_limited(slug, way)}"
                others = table.describe_others(slug, "b", way, {"plan_written": True})
                lines += [f"{slug}: {limits}, {table.list_facts(slug, way)}, {others}"]
        said[str(tables)] = "\n".join(lines)
    snapshot("edge-table.txt", said)


@pytest.mark.parametrize("tables", TABLES)
def test_the_chart_allows_what_the_table_says(tables: dict[str, dict[str, Any]]) -> None:
    """And a condition that does not hold never falls through to an edge from any to any."""
    modes = [mode(slug, **tables.get(slug, {})) for slug in "abc"]
    chart, table = Chart(modes, "a", CHART), EdgeTable(modes)
    for source, target, way in itertools.product("abc", "abc", Way):
        if source == target and way is Way.ASK:
            continue
        trues = itertools.chain([()], itertools.combinations(FACTS, 1), [FACTS])
        for true, rest in itertools.product(trues, (False, None)):
            facts: dict[str, bool | None] = {name: name in true or rest for name in FACTS}
            edge = table.find(source, target, way)
            is_open = edge is not None and edge.is_open(facts)
            try:
                now = Configuration(source, "switching")
                after = chart.send(now, "switch_mode", target, way, facts)
            except Exception as error:  # noqa: BLE001  # the library's
                assert (type(error).__name__, is_open) == ("TransitionNotAllowed", False)
            else:
                assert (after, is_open) == ((target, "thinking"), True)


GROUPS: list[list[Any]] = [
    [], ["read"], ["read", "edit"], ["read", ["edit", {"fileRegex": "\\.md$"}]],
    ["read", ["edit", {"fileRegex": "\\.txt$"}]], ["read", "edit", "command"], ["read", "command"],
    ["read", ["command", {"sandbox": "read-only"}]],
]  # fmt: skip
RULES: list[dict[str, Any]] = [
    {},
    {"write_file": {"*": "deny"}},
    {"execute_command": {"git status": "allow"}},
    {"execute_command": {"git status": "allow", "ls": "allow"}},
    {"execute_command": {"git *": "allow", "git push *": "deny"}},
    {"read_file": {"a.txt": "ask"}},
]
TOOLS = (
    ToolSpec("read_file", EFFECTS["read"], "read", paths=("path",)),
    ToolSpec("write_file", EFFECTS["edit"], "edit", paths=("path",)),
    ToolSpec("execute_command", EFFECTS["command"], "command", command="command", sandboxed=True),
)
CALLS = [
    (TOOLS[0], {"path": "a.txt"}),
    (TOOLS[0], {"path": "b.md"}),
    *((TOOLS[1], {"path": path}) for path in ("a.txt", "b.md", "c")),
    *(
        (TOOLS[2], {"command": line})
        for line in ("git status", "ls", "git push x", "git log", "rm")
    ),
]
STRICTNESS = ("deny", "read-only", "ask", "allow")


def rank(judged_in: Mode, tool: ToolSpec, ruling: Verdict) -> int:
    """What can change nothing is less than what is asked about and can."""
    is_held = ruling.kind != "deny" and judged_in.is_closed_off(tool.group)
    return STRICTNESS.index("read-only" if is_held else ruling.kind)


def test_nothing_is_free_that_allows_more() -> None:
    """Of two modes of which one has no more rights, each call is judged at least as strictly."""
    modes = [
        mode("a", groups=groups, permissions=rules, level=level)
        for groups, rules, level in itertools.product(GROUPS, RULES, (Level.BUILT_IN, Level.GLOBAL))
    ]
    free = 0
    for source, target in itertools.product(modes, modes):
        if find_growth(source, target, TOOLS) is not None:
            continue
        free += 1
        for (tool, args), approvals in itertools.product(CALLS, Approvals):
            before, after = (verdict(one, tool, args, approvals) for one in (source, target))
            more = rank(target, tool, after) > rank(source, tool, before)
            assert not more, (source.groups, source.permissions, target, tool.name, args)
            is_same = before.kind == after.kind != "deny" and not target.is_closed_off(tool.group)
            is_wider = is_same and before.is_read_only and not after.is_read_only
            assert not is_wider, (source, target, args)
    assert free > len(modes) * 3, "else it would say nothing"


def test_without_the_group_is_nothing_more_and_rules_have_their_order() -> None:
    """As everywhere the last match wins, and each name may match."""
    refund = ToolSpec("refund", EFFECTS["outside"], "refunds", subject=("order", "amount"))
    limit = {"refund": {"*": "deny", "* <=50": "ask"}}
    limited = mode("a", groups=["refunds"], permissions=limit)
    without = mode("a", groups=[])
    assert find_growth(limited, without, [refund]) is None
    assert find_growth(without, limited, [refund]) is not None
    assert find_growth(limited, mode("a", groups=["refunds"]), [refund]) is not None
    served = ServerTool("docs", "write")
    tool = ToolSpec("mcp__docs__write", EFFECTS["mcp"], "mcp", served=served)
    rules = [("mcp__docs__write", "allow"), ("mcp__docs__*", "deny"), ("mcp__*", "ask")]
    orders = [dict(order) for size in range(4) for order in itertools.permutations(rules, size)]
    modes = [
        mode("a", groups=["read", "edit", "command", "mcp"], permissions=order) for order in orders
    ]
    for source, target in itertools.product(modes, modes):
        before, after = (verdict(one, tool, {}, Approvals.AUTO).kind for one in (source, target))
        if find_growth(source, target, [tool]) is None:
            assert STRICTNESS.index(after) <= STRICTNESS.index(before), (source, target)
    assert any(find_growth(*modes, [tool]) is None for modes in itertools.permutations(modes, 2))
