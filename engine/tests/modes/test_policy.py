"""Every answer of ``policy``, with its reason, on modes and calls of each kind."""

from dataclasses import asdict, replace
from itertools import product
from typing import Any

from modeshift.modes.approval_words import word_approvals
from modeshift.modes.effects import EFFECTS, ServerTool, ToolSpec
from modeshift.modes.limits import (
    cut_verdict,
    describe_limit,
    find_unheld,
    is_within,
    make_strictest,
)
from modeshift.modes.mode import Level, Mode, SourcedPermissions
from modeshift.modes.policy import (
    Approvals,
    Verdict,
    find_edit_restriction,
    has_only_read_tools,
    list_free_commands,
    verdict,
)
from modeshift.testing.plugin import Snapshot
from tests.tables import rows

MARKDOWN = ["edit", {"fileRegex": r"\.md$", "description": "Markdown only"}]
MCP = ["mcp", {"servers": ["git*"], "tools": ["get_*"]}]
FREE = {"execute_command": {"ls *": "allow", "cat *": "allow", "rm": "deny"}}
OWN_RULES = {
    "write_file": {"*": "ask", "docs": "allow", "docs/private": "deny"},
    "execute_command": {"*": "deny", "make": "allow", "make test": "ask"},
    "mcp__github__get_*": "ask",
    "fetch": {"https://a.example/*": "allow"},
}
USERS = SourcedPermissions({"write_file": {"*.lock": "deny", "x": "allow"}}, "permissions.yaml")
FOR_ALL = SourcedPermissions({"write_file": {"src": "allow"}, "read_file": {"*": "ask"}}, "mine")


def mode(slug: str, *groups: Any, **keys: Any) -> Mode:
    words = {"name": slug.title(), "role_definition": "x", "description": f"For {slug}."}
    return Mode.model_validate({"slug": slug, "groups": list(groups)} | words | keys)


MODES = (
    *(mode("worker", "read", "edit", "command", "mcp", "web"), mode("bare")),
    *(mode("reader", "read", "mcp", permissions=FREE), mode("writer", "read", MARKDOWN, MCP)),
    mode("plain", "read", ["edit", {"fileRegex": r"\.md$"}]),
    mode("docs", "read", ["edit", {"fileRegex": "^docs/"}]),
    mode(
        "ruled", "read", "edit", "command", "mcp", "web", permissions=OWN_RULES, file="modes.yaml"
    ),
    mode("alien", "read", "edit", "command", permissions=OWN_RULES, level=Level.PROJECT),
    mode("stranger", "read", level=Level.PROJECT, permissions={"execute_command": {"ls": "allow"}}),
    mode("user", "read", "edit", denials=(USERS,), defaults=(FOR_ALL,)),
    mode("runner", "command", "mcp"),
    mode("looking", "read", "mcp", ["command", {"sandbox": "read-only"}]),
    mode("asking", "edit", permissions={"write_file": {"a": "ask"}}),
)


def tool(name: str, effect: str, group: str | None = None, **keys: Any) -> ToolSpec:
    return ToolSpec(name, EFFECTS[effect], group, **keys)


READ = tool("read_file", "read", "read", paths=("path",))
WRITE = tool("write_file", "edit", "edit", paths=("path",))
MOVE = tool("move_file", "edit", "edit", paths=("source", "target"))
COMMAND = tool("execute_command", "command", "command", command="command", sandboxed=True)
FETCH = tool("fetch", "network", "web", url="url")
SERVED = [
    tool(f"mcp__{server}__{name}", "mcp", "mcp", served=ServerTool(server, name, reads))
    for server, name, reads in (
        ("github", "get_issue", True),
        ("github", "get_out", False),
        ("github", "push", True),
        ("other", "get_it", True),
    )
]
SWITCH = {"mode_slug": "worker", "reason": "x"}


NO_OR_ANY: list[dict[str, Any] | None] = [None, {}]


def paths(*names: str) -> list[dict[str, Any] | None]:
    return [{"path": name} for name in names]


CALLS: list[tuple[ToolSpec, list[dict[str, Any] | None]]] = [
    (READ, [None, *paths("a.py", "k.pem", ".github/x.yml")]),
    (WRITE, [None, *paths("a.py", "a.md", "docs/a", "docs/private/a", ".git/x", ".env")]),
    (WRITE, paths("x.lock", "src/a", "x.pem")),
    (MOVE, [{"source": "a.md", "target": target} for target in (None, "b.md", "b.py", ".git/b")]),
    (tool("hide", "edit", "edit"), [{}]),
    (tool("read_url", "read", "read"), [{}]),
    (
        COMMAND,
        [None, *({"command": line} for line in ("ls", "ls -l", "make", "make test", "a; b"))],
    ),
    (replace(COMMAND, sandboxed=False), [None, {"command": "make"}]),
    (replace(COMMAND, way_out="../other"), [{"command": line} for line in ("make", "ls")]),
    (FETCH, [None, {"url": "https://a.example/x"}, {"url": "https://b.example/"}]),
    *((served, NO_OR_ANY) for served in SERVED),
    (tool("agent", "agent"), [{}]),
    (tool("update_todo_list", "note"), [{}]),
    (tool("ask_followup_question", "question"), [{}]),
    (tool("switch_mode", "switch"), [None, SWITCH]),
    (tool("new_task", "subtask"), [SWITCH]),
    (tool("attempt_completion", "complete"), [{}]),
]
TOOLS = list({spec.name: spec for spec, _ in reversed(CALLS)}.values())


def describe(judgement: Verdict) -> str:
    """The verdict with all that is not as it is by default."""
    usual = asdict(Verdict("deny", ""))
    more = [
        f"{name}={getattr(value, '__name__', value)}"
        for name, value in asdict(judgement).items()
        if name not in ("kind", "reason") and value != usual[name]
    ]
    return " ".join([judgement.kind.upper(), judgement.reason, *more])


def judge_all(judged_in: Mode) -> dict[str, str]:
    """The verdicts by call; of the policy auto where it is another one."""
    said = {}
    for spec, calls in CALLS:
        place = "" if spec.sandboxed >= spec.effect.runs_programs else " unsandboxed"
        for args in calls:
            shown = "" if args is None else " ".join(map(str, args.values())) or "-"
            verdicts = (verdict(judged_in, spec, args, approvals) for approvals in Approvals)
            words = [spec.name + place, *([spec.way_out] if spec.way_out else []), shown]
            said[" ".join(words)] = " | auto: ".join(dict.fromkeys(map(describe, verdicts)))
    return said


def test_verdicts_and_their_reasons(snapshot: Snapshot) -> None:
    """Of all but the first two modes those that are not as in one of the two."""
    most, least = map(judge_all, MODES[:2])
    said = {}
    for each in MODES:
        known = [] if each in MODES[:2] else [most, least]
        said[each.slug] = "\n".join(
            f"{call}: {text}"
            for call, text in judge_all(each).items()
            if text not in [verdicts[call].replace("Bare", each.name) for verdicts in known]
        )
    snapshot("verdicts.txt", said)


@rows(
    "spec args remembered kind",
    (WRITE, {"path": "docs/a"}, [("docs", False)], "allow"),
    (WRITE, {"path": "docs/a"}, [("docs", True)], "ask"),
    (WRITE, {"path": "docs/a"}, [("src", False), ("docs/a", True)], "allow"),
    (WRITE, {"path": "a*"}, [("b", False), ("a*", True)], "allow"),
    (WRITE, {"path": ".env"}, [("*", False)], "ask"),
    (WRITE, None, [("*", False)], "ask"),
    (tool("agent", "agent"), {}, [("*", False)], "ask"),
    (COMMAND, {"command": "make x"}, [("make *", True)], "ask"),
    (COMMAND, {"command": "make x"}, [("make *", False)], "allow"),
)
def test_what_is_remembered(
    spec: ToolSpec, args: dict[str, Any] | None, remembered: list[tuple[str, bool]], kind: str
) -> None:
    judgement = verdict(mode("w", "edit", "command"), spec, args, Approvals.MANUAL, remembered)
    assert judgement.kind == kind
    if kind == "allow":
        assert judgement.reason == f"always allowed in this thread: {remembered[-1][0]!r}"


def test_what_is_said_of_whole_modes(snapshot: Snapshot) -> None:
    """And which mode is within which other one."""
    said = {}
    for each in (*MODES, make_strictest("gone")):
        within = [limit.slug for limit in MODES if is_within(each, limit, TOOLS)]
        said[each.slug] = "\n".join(
            [
                f"{each.name}: {each.role_definition} {each.description} {describe_limit(each)}",
                f"edits: {find_edit_restriction(each, TOOLS)}",
                f"only read tools of servers: {has_only_read_tools(each)}",
                f"free commands: {list_free_commands(each, COMMAND)}",
                f"within: {', '.join(within)}",
                *(unheld for spec in TOOLS if (unheld := find_unheld(each, spec))),
            ]
        )
    snapshot("modes-in-words.txt", said)


ALLOW, ASK = Verdict("allow", "allowed"), Verdict("ask", "asks")
ALWAYS = Verdict("ask", "always asks", always_asks=True)
READ_ONLY = Verdict("allow", "reads", is_read_only=True)
DENY = Verdict("deny", "denied", is_missing=True)


def test_the_stricter_of_two_verdicts(snapshot: Snapshot) -> None:
    verdicts = (ALLOW, READ_ONLY, ASK, ALWAYS, DENY)
    said = {
        f"{by_mode.reason}, limit: {by_limit.reason}": describe(
            cut_verdict(by_mode, MODES[1], by_limit)
        )
        for by_mode, by_limit in product(verdicts, verdicts)
    }
    snapshot("limits.txt", said)


NO_SANDBOX = "commands ask, as there is no sandbox."


@rows(
    "effects sandboxed says",
    ("edit command", True, "Edits of files and commands in the sandbox run unasked."),
    ("edit command", False, "Edits of files run unasked; commands ask, as there is no sandbox."),
    ("edit read", True, "Edits of files run unasked."),
    ("command", False, f"Nothing more runs unasked; {NO_SANDBOX}"),
    ("command", True, "Commands in the sandbox run unasked."),
    ("read network", True, "Nothing more runs unasked."),
)
def test_what_auto_does_is_said(effects: str, sandboxed: bool, says: str) -> None:
    tools = [ToolSpec(name, EFFECTS[name], sandboxed=sandboxed) for name in effects.split()]
    assert word_approvals(tools)["auto"].sentence == says
    allowed = [
        tool.effect.does
        for tool in tools
        if verdict(MODES[0], tool, None, Approvals.AUTO).kind == "allow"
        and verdict(MODES[0], tool, None, Approvals.MANUAL).kind == "ask"
    ]
    assert bool(allowed) == (not says.startswith("Nothing"))
