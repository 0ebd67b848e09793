"""What each pattern means, and what is said of those that are refused."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import partial
from itertools import product
from typing import Any

import pytest

from modeshift.modes.effects import EFFECTS, ServerTool, ToolSpec
from modeshift.modes.errors import SlowPatternError
from modeshift.modes.rules import files, matching, permissions, urls
from modeshift.modes.rules.ignore_rules import IgnoreRules
from modeshift.testing.plugin import Snapshot
from tests.tables import rows

MOVE = ToolSpec("move", EFFECTS["edit"], "edit", paths=("source", "target"))
TREE = ToolSpec("tree", EFFECTS["read"], "read", paths=("path",), reads_below=True)
COMMAND = ToolSpec("run", EFFECTS["command"], "command", command="line")
FETCH = ToolSpec("fetch", EFFECTS["network"], "web", url="url")
SERVED = ToolSpec("mcp__git__log", EFFECTS["mcp"], "mcp", served=ServerTool("git", "log"))
NOTE, ASK = ToolSpec("note", EFFECTS["note"]), ToolSpec("ask", EFFECTS["question"])
REFUND = ToolSpec("refund", EFFECTS["outside"], "refunds", subject=("order", "amount"))
TOOLS = (MOVE, COMMAND, FETCH, NOTE, ASK, REFUND)
# fmt: off


def list_answers(function: Callable[..., Any], *inputs: Iterable[Any]) -> str:
    """What it gives, or raises, for each combination."""
    lines = []
    for values in product(*inputs):
        try:
            answer = repr(function(*values))
        except ValueError as error:
            answer = f"ValueError: {error}"
        lines.append(f"{', '.join(repr(value)[:60] for value in values)} -> {answer}")
    return "\n".join(lines)


def list_by_name(*functions: Callable[..., Any], inputs: Iterable[Any]) -> dict[str, str]:
    given = list(inputs)
    return {function.__name__: list_answers(function, given) for function in functions}


LINES = (
    r"""|a|a b|  a  b |a 'b c' "d"|a=1 b|'a=1'|a;b|a $(b c)|a `b`|a\ b|a "$b"|x=1 y=2 make; z=3"""
    r"""|/bin/rm a|a > b|'|a''b|"a#b"|a#b|a "~" b|(a; b)"""
)
LONG = ("a " * 4999 + "b", "a " * 5000 + "b", ";".join("a" * 100), ";".join("a" * 101))
NAMES = ("a", "a b", "-a-", "a__b", "a" * 30, "文", "a-0123abcd", "a" * 24, "_a_")
GLOBS = ("a", "", " ", "a" * 300, "a" * 301, "[a]", "a]", "a\\b", "a\n", "a*?")
TOOL_PATTERNS = ("mcp__a__b", "mcp__a*", "mcp__", "mcp", "mcp__a.b", "xmcp__a", "mcp__a__b__c", "*")


def test_names_and_commands(snapshot: Snapshot) -> None:
    words, commands = matching.command_words, matching.mentioned_commands
    said = list_by_name(words, commands, inputs=[*LINES.split("|"), "a\nb"])
    said["how many"] = "\n".join(f"{len(words(line) or ())} {len(commands(line))}" for line in LONG)
    said["names"] = list_answers(matching.name_server_tool, NAMES, ("t", "a b", "t" * 60))
    said |= list_by_name(matching.check_glob, inputs=GLOBS)
    said |= list_by_name(
        matching.check_name_pattern, matching.is_server_tool, matching.get_server_part,
        check_served_pattern, inputs=TOOL_PATTERNS,
    )
    snapshot("patterns-of-names.txt", said)


def check_served_pattern(pattern: str) -> None:
    matching.check_pattern(SERVED, pattern)


PATHS = """
    a a yes | a a/b no | a/b a no | **/a a yes | **/a x/y/a yes | **/a x/a/y no | a/** a yes
    a/**/b a/x/b/y/b yes | **/a/*/b/**/c a/x/a/y/b/c yes | **/a/*/b a/a/x/c no | a/* a/x yes
"""


@pytest.mark.parametrize("row", PATHS.strip().replace("\n", "|").split("|"))
def test_paths(row: str) -> None:
    pattern, path, matches = row.split()
    assert matching.path_matches(pattern.split("/"), path.split("/")) is (matches == "yes")


CALLS: list[tuple[ToolSpec, str, list[Any], str]] = [
    (MOVE, "source target",
     [("a", "b"), ("a/b", None), ("A/x.py", "a/y"), ("x/a/b", "a"), (None, None)],
     "* a a/ /a a/b *.py **/b a*/"),
    (TREE, "path", [".", "a", "a/b", "B"], "a/b/* b a/*/c /x B/c"),
    (COMMAND, "line", ["git log", "git", "/bin/rm x", "git log; rm x", "a=1 rm"],
     "*|git *|git log|git log *|rm *|* x|g?t"),
    (COMMAND, "line folder time", [("git log", ".", 5), ("git log", "x", None)], "git log|rm"),
    (FETCH, "url", ["https://a.example/x", "http://a.example/x", "https://b.example", None, "-"],
     "* https://a.example/* https://a.example/x https://a.example/y/*"),
    (SERVED, "", [()], "* mcp__git__* mcp__git__log mcp__x__*"),
    (REFUND, "order amount",
     [("A-1", 50), ("A-1", 50.0), ("B-1", 50.01), ("A-1", -1.5), ("A 1", "50"), ("A-1", None),
      ("A", float("nan"))],
     "*|* <=50|* >50|A-* *|* 50|* 50.0|<=50 *"),
]


def test_calls(snapshot: Snapshot) -> None:
    said = {}
    for tool, names, calls, patterns in CALLS:
        for call in calls:
            values = call if isinstance(call, tuple) else (call,)
            subject = matching.Subject(tool, dict(zip(names.split(), values, strict=True)))
            said[f"{tool.name} {call}"] = f"exact: {subject.exact}\n" + "\n".join(
                f"{pattern}: {subject.certainly_matches(pattern)}, {subject.may_match(pattern)}"
                for pattern in patterns.split("|" if "|" in patterns else None)
            )
    snapshot("patterns-of-calls.txt", said)


RULES: list[Any] = [
    {},
    {"run": {"*": "ask", "git *": "allow", "git push": "deny"}},
    *({"run": {"git *": "deny", "*": "allow"}}, {"run": {"git push": "deny", "rm *": "deny"}}),
    *({"run": {"rm *": "ask", "git *": "allow"}}, {"run": {"git *": "allow", "rm *": "ask"}}),
    *({"run": {"*": "allow", "git push": "ask"}}, {"run": {"*": "deny", "rm": "ask", "x": "deny"}}),
    {"run": {"x": "ask"}, "mcp__git__*": {"*": "ask"}, "mcp__git__log": {"*": "deny"}},
]
WRONG_RULES: list[Any] = [
    {"gone": {}}, {"mcp__a__b": {"*": "allow"}, "gone": {}},
    {"mcp__a__b": {"x": "allow"}}, {"mcp__.": {"*": "allow"}},
    {"move": {"../a": "ask"}}, {"move": {"!a": "ask"}}, {"move": {"a//b": "ask"}},
    {"move": {"./a": "ask"}}, {"move": {"/a/": "ask", "*": "ask"}}, {"move": {"a[": "ask"}},
    {"run": {"../a !b": "ask"}}, {"note": {"x": "ask"}}, {"ask": {"*": "allow"}},
    {"ask": {"*": "deny"}}, {"fetch": {"a": "ask"}},
    *({"refund": {pattern: "ask"}} for pattern in ("A-1", "* * *", "* <50", "* <=x", "[A] *")),
    {"refund": {"*": "deny", "* <=50": "ask", "A-? >0.5": "ask"}},
    *({"run": dict.fromkeys(map(str, range(n)), "ask")} for n in (501, 500)),
]


def test_rules(snapshot: Snapshot) -> None:
    subjects: dict[str, matching.Subject | None] = {"any call": None, "any of the server": None}
    for line in ("git push", "git a", "rm x; y"):
        subjects[line] = matching.Subject(COMMAND, {"line": line})
    said = {}
    for rules in RULES:
        lines = []
        for name, subject in subjects.items():
            tool = SERVED if "server" in name else COMMAND
            ruling = permissions.find_ruling(rules, tool, subject)
            lines.append(f"{name}: {ruling}, {permissions.find_denial(rules, tool, subject)}")
        said[str(rules)] = "\n".join(lines)
    said |= list_by_name(check_rules, inputs=WRONG_RULES)
    short = ({"a": "ask", "b": {"x": "deny"}}, "a", None)
    said |= list_by_name(permissions.with_patterns, inputs=short)
    snapshot("rulings.txt", said)


def check_rules(rules: Any) -> None:
    permissions.check_permissions(rules, TOOLS)


REGEXES = (
    *(r"\.md$", "a" * 1000, "a" * 1001, "(?x)a", "(?i)a", "(?R)", "(?1)", "(?P>a)", "(", "a{3"),
    *("(a{100}){100}", "a{0}" * 25, "a{1000}{1000}", "((a{50}){50}){50}", "a{9999}" + "b" * 70),
)
FILES = """
    .git .GIT/x a/.git .github/x a/Agents.md .roorules-x a/.clinerules-b/c config.toml
    mise/config.toml x/.cargo/config roorules-x .hg/hgrc a.py .env .env.local .env.example
    x/.env.sample/y a.pem a.pem.txt k/id_rsa .SSH/config service-account-1.json envrc
    x.env/.env.example
"""


def test_files(snapshot: Snapshot) -> None:
    names = ".git .x .ENV config.toml config .roorules-x xroorules-x hgrc x"
    said = list_by_name(files.check_file_regex, inputs=REGEXES)
    paths = ["", "a\nb.key", *FILES.split()]
    texts = ("a.md", "a.md\n", "é", "e", " ")
    said["found"] = list_answers(files.is_found, (r"\.md$", r"^\w$"), texts)
    said |= list_by_name(files.get_protection, files.is_secret, inputs=paths)
    folders = ("", "a/", "x/MISE/", ".cargo/", "a/.hg/")
    said["is_protected"] = list_answers(files.is_protected, folders, names.split())
    snapshot("rules-of-files.txt", said)
    with pytest.raises(SlowPatternError, match=r"\(a\|aa\)\+\$"):
        files.is_found("(a|aa)+$", "a" * 200 + "b")


URLS = """
    https://a.example:443/x?y#z http://[::1]:80/ http://1.2.3.4:8080?q https://A.b./ http://h/é
    https://docs.python.org HTTPS://DOCS.Python.ORG:443/A?b=c%20d https://docs.python.org./3/
    http://h:80/ http://h:443/ http://h/a/./b/../c http://h/../../a/.. http://h/a/%2e%2E/b
    http://h/%7euser/%c3%a9 http://h/a%2fb http://h/a#part http://h?a=../b http://127.0.0.1:80/
    http://[0:0::1]:8080/
"""
WRONG_URLS = r"""
    ftp://h http://u@h/ http://1/ http://h:99999/ http://h/%zz docs.python.org //docs.python.org/
    file:///etc/passwd https:///etc/passwd https://docs.python.org:443@evil.example/
    https://docs.python.org%40evil.example/ https://docs.python.org\@evil.example/
    https://docs.python.org/a\..\b https://docs.python.org:/ https://docs.python.org:0/
    https://docs.python.org:x/ https://docs.python.org../ https://döcs.example/ http://h/%
    https://docs。python。org/ http://2130706433/ http://0x7f.1/ http://127.1/ http://1.2.3.4.5/
    http://[::1/ http://[fe80::1%25eth0]/ http://[v1.a]/
"""
WITH_BLANKS = ["a b", "", "https://docs.python.org /", "https://docs.python.org/\n", "http://h/\x00"]
WITH_BLANKS += ["https://evil.example\t.docs.python.org/"]
LONG_URLS = (f"https://{'a' * 64}.example/", f"http://{'a' * 1994}", f"http://h/{'a' * 1992}")
URL_PATTERNS = "https://a/* https://a https://a* * https://a/*/b https://a/?b* a/*"
# Before a colon the rest of a pattern, behind it the rests of URLs.
ASKED = """
    a/*: a/ a/x a/X//y a/x; b/x a:1/x
    a/x: a/ a/x a/X//y a/x; b/x a:1/x
    a/x/*: a/x a/x/y
    docs.python.org/*: docs.python.org/ docs.python.org/3/?a=b DOCS.python.org.:443/3/
    docs.python.org/*: docs.python.org/a%2fb docs.python.org:8443/ docs.python.org.evil.com/
    docs.python.org/*: xdocs.python.org/ evil.com/?https://docs.python.org/
    docs.python.org/*: evil.com#https://docs.python.org/ docs.python.org@evil.com/
    h/docs/*: h/docs/ h/docs/a?b h/docs h/docs2/ h/docs/../private h/docs/%2e%2e/private
    h/docs/*: h/docs/..%2fprivate h/docs/%252e%252e/private h/docs/..;/private
    h/docs/*: h/docs/%c0%ae%c0%ae/private h/docs/.%00./private h/docs/..%20/private
    h/docs/*: h/docs/a.b/%20c%20d h//docs/a h/DOCS/a h/x/..%2fdocs/a h/d%6fcs/a
    h/private/*: h/private./a h/priv%09ate/a h/docs/..%2fprivate/a
    h/page: h/page h/page?a h/page/a
"""


def test_urls(snapshot: Snapshot) -> None:
    said = defaultdict[str, str](str)
    names = ("scheme", "host", "port", "path", "query", "is_address", "authority", "origin")
    for url in URLS.split():
        parsed = urls.parse_url(url)
        said["read"] += f"{url} as {parsed} {[getattr(parsed, name) for name in names]}\n"
        assert urls.parse_url(str(parsed)) == parsed, "it has one spelling"
    said |= list_by_name(urls.parse_url, inputs=[*WRONG_URLS.split(), *WITH_BLANKS, *LONG_URLS])
    said |= list_by_name(urls.check_url_pattern, inputs=URL_PATTERNS.split())
    hosts = ("a", "A:80", "a:443", "[::1]:1", "a/", "a?", "a#", "a:x")
    said |= list_by_name(urls.parse_authority, inputs=hosts)
    for line in ASKED.strip().splitlines():
        pattern, _, rests = line.strip().partition(": ")
        for scheme, rest in product(("https", "http"), rests.split()):
            subject = matching.Subject(FETCH, {"url": f"{scheme}://{rest}"})
            covers = subject.certainly_matches(f"https://{pattern}")
            meets = subject.may_match(f"https://{pattern}")
            said[f"https://{pattern}"] += f"{scheme}://{rest}: {covers}, {meets}\n"
    snapshot("urls.txt", {name: text.rstrip() for name, text in said.items()})


IGNORED = r"""# a comment
\#a|a||!b|/c|d/|e/f|**/g|h/**|i/**/j|**/k/**/l|m[a-c]n|[!o]p|[^o]q|r\*s|t[|[]u]|[\]v|[[:w:]]x
y\ |z  |../n|*.O""".replace("|", "\n")
AGAIN = "\ufeffa/*\r\n!a/b\r\n*.x\n!/a/c.x\n!q/\nq\n!q/"
IGNORE_PATHS = """
    a x/a a/x #a b c x/c d e/f x/e/f g x/g h h/x h/x/y i/j i/x/y/j k/l x/k/y/l/z mbn mdn xp op oP Xq
    r*s rxs t[ ]u y z n x.o A a/b a/c a/b.x a/c.x q q/a b.X
"""


def test_ignore_rules(snapshot: Snapshot) -> None:
    deep = ("/".join("x" * depth) for depth in (101, 102))
    paths = [*IGNORE_PATHS.split(), "y ", "z  ", "x.O\n", "a\nb", *deep]
    said = {}
    for text in (IGNORED, AGAIN):
        rules = IgnoreRules(text)
        said[f"{text[:9]} in short"] = "\n".join(rules.patterns)
        for is_folder in (True, False, None):
            name = partial(rules.name, is_folder=is_folder)
            said[f"{text[:9]} {is_folder}"] = list_answers(name, paths)
    sizes = ("a\n" * 500, "a\n" * 501, "a" * 300, "a" * 301, "")
    said["sizes"] = list_answers(lambda text: len(IgnoreRules(text).patterns), sizes)
    snapshot("ignored.txt", said)


@rows("args pattern",

        ({"order": "A-17", "amount": 49.9}, "A-17 49.9"),
        ({"order": "A 17\n", "amount": None}, "A*17* null"),
        ({"order": "", "amount": 1}, "* 1"),
        ({"order": "<=5", "amount": 1}, None),  # as a pattern it would be a limit
)
def test_a_pattern_to_widen_matches_the_call(args: dict[str, Any], pattern: str | None) -> None:
    subject = matching.Subject(REFUND, args)
    assert subject.pattern == pattern
    if pattern is not None:
        matching.check_pattern(REFUND, pattern)
        assert subject.certainly_matches(pattern)


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("word", "value", "match"),
    [
        *(("60", value, "yes") for value in (60.0, Decimal(60), Decimal("60.0"), Decimal("6E1"))),
        ("0", -0.0, "yes"), ("0", Decimal("-0"), "yes"), ("1", True, "no"), ("true", True, "yes"),
        ("2026-12-*", date(2026, 12, 24), "yes"), ("red", Colour.RED, "yes"), ("60", [60], "no"),
        (">50", Decimal("50.01"), "yes"), ("<=50", Decimal("50.01"), "no"), (">50", 10**400, "yes"),
        ("<=50", True, "maybe"), ("<=50", Decimal("NaN"), "maybe"), ("<=50", "60", "maybe"),
    ],
)
def test_a_value_is_compared_as_a_model_writes_it(
    word: str, value: object, match: matching.Match
) -> None:
    """A rule denied no decimal, no date and no member of an enumeration, and not -0.0."""
    subject = matching.Subject(REFUND, {"order": "A", "amount": value})
    assert subject.may_match(f"* {word}") == match
    assert subject.certainly_matches(f"* {word}") is (match == "yes")


def test_no_pattern_and_no_path() -> None:
    pay = ToolSpec("pay", EFFECTS["outside"], "refunds", may_be_remembered=True)
    subject = matching.Subject(pay, {"order": "A"})
    assert (subject.exact, subject.pattern) == ('order="A"', None)
    assert matching.path_matches(["**"], []), "any names or none"
