"""Lines that are several commands, URLs as rules see them, and ``fileRegex`` without a limit."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from modeshift.modes.effects import EFFECTS, ToolSpec
from modeshift.modes.mode import Mode, SourcedPermissions
from modeshift.modes.policy import Approvals, verdict
from modeshift.modes.rules.command_lines import MAX_PARTS, split_line
from modeshift.modes.rules.files import is_found, is_found_in_every_path
from modeshift.modes.rules.matching import Subject, check_pattern, command_words
from modeshift.modes.rules.permissions import Kind
from modeshift.modes.rules.urls import parse_authority
from tests.tables import rows

SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]


@rows(
    "line parts",
    ("make test && git diff", ["make test", "git diff"]),
    ("make test||git diff ;ls", ["make test", "git diff", "ls"]),
    ("make test;\n\n", []),  # one command
    ("make test\ngit diff", ["make test", "git diff"]),
    (" make test &&\n  git diff", ["make test", "git diff"]),
    ("echo 'a && b; c' && ls", ["echo 'a && b; c'", "ls"]),
    ('echo "a; b" ; ls -la', ['echo "a; b"', "ls -la"]),
)
def test_lines_of_several_commands(line: str, parts: list[str]) -> None:
    assert [*split_line(line)] == parts


# Two blanks are between them.
UNCERTAIN = r"""
a > f  a >> f  a < f  a 2>&1  a &> f  a <<< x  >f  a $x  a "$x"  a ${x}  a $(b)  a `b`  a "`b`"
a $((1))  a <(b)  a >(b)  x=1  x=1 a  PATH=. a  x+=1 a  a[0]=1  export x=1  local x  declare x
f() { a; }  function f { a; }  alias a=b  unalias a  enable -n a  hash -p b a  a | b  a |& b  a & b
a &  ! a  (a)  { a; }  coproc a  time a  if a; then b; fi  for x in a; do b; done
while a; do b; done  case a in b) c;; esac  [[ a ]]  ((1))  select x in a; do b; done
until a; do b; done  cd b  pushd b  . b  source b  eval b  exec b  command b  builtin b  trap b
chdir b  printf -v PATH b  test -v 'a[PATH=1]'  set -e  umask 0  ulimit -n 1  read x  wait  exit
return  shopt -s x  a *  a ?  a [b]  a {b,c}  a ~  a ~/b  a #b  a \; b  a !b  a "b  a 'b  a $'b'
a $"b"  a é  ;  &&  |  )
"""


@rows(
    "part",
    *("a <<E\nx\nE", "a \\\nb", "a\rb", "a\x00b", "a\tb", ""),
    *re.split("  |\n", UNCERTAIN.strip()),
)
def test_what_is_not_certain(part: str) -> None:
    for line in (f"ls && {part}", f"{part}; ls", f"ls\n{part}\nls"):
        assert part not in split_line(line)
        assert set(split_line(line)) <= {"ls"}, "what is left is the line without it"


@pytest.mark.parametrize("blank", ["\r", "\v", "\f"])
def test_what_is_blank_to_the_grammar_and_not_to_a_shell(blank: str) -> None:
    """It is part of a command's name, of another program then."""
    for line in ("{}ls; ls", "ls{}; ls", "ls; {}ls", "ls{}\nls", "ls &&{}./a", "ls; ls{}"):
        assert split_line(line.format("")) or "a" in line
        assert not split_line(line.format(blank))


def test_a_line_is_not_endless() -> None:
    assert len(split_line(" && ".join(["ls"] * MAX_PARTS))) == MAX_PARTS
    assert not split_line(" && ".join(["ls"] * (MAX_PARTS + 1)))
    assert not split_line("ls;" + " " * 10_000 + "ls")
    assert not split_line("(" * 5000 + "; ls")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_runs_these_and_no_others(tmp_path: Path, shell: str) -> None:
    """Each program writes down how it was called; lines are made of pieces, at random."""
    log = tmp_path / "log"
    for name in "abc":
        program = tmp_path / name
        # Its own name, and each argument, ended by bytes that no argument has.
        program.write_text(f'#!/bin/sh\nprintf "%s\\037" {name} "$@" >> {log}\necho >> {log}\n')
        program.chmod(0o755)
    pieces = [
        *("a", "b", "c", " ", " ", " ", "&&", "||", ";", "\n", "'", '"', "x", "=", "-y", "&", "#")
    ]
    chance, split = random.Random(5), 0
    for _ in range(20_000):
        line = "".join(chance.choices(pieces, k=chance.randint(3, 14)))
        if not (parts := split_line(line)):
            continue
        split += 1
        log.write_text("")
        env = {"PATH": str(tmp_path)}
        subprocess.run(
            [shutil.which(shell) or shell, "-c", line], env=env, capture_output=True, check=False
        )
        ran = [tuple(each.split("\x1f")[:-1]) for each in log.read_text().splitlines()]
        assert set(ran) <= {command_words(part) for part in parts}, line
        if split == 50:
            return
    raise AssertionError("too few lines were split")


FETCH = ToolSpec("fetch_url", EFFECTS["network"], "web", url="url")
DOCS = "https://docs.python.org/*"


def mode(permissions: dict[str, Kind], denied: str | None = None) -> Mode:
    denials = (SourcedPermissions({"fetch_url": {denied: "deny"}}, "mine"),) if denied else ()
    definition = {"slug": "a", "name": "A", "roleDefinition": "x", "groups": ["web"]}
    return Mode.model_validate(
        definition | {"permissions": {"fetch_url": permissions}, "denials": denials}
    )


PATTERNS = """
    docs.python.org https://*.python.org/* https://docs.python.org* https://docs.python.org/*/a
    https://docs.python.org/** https://user@docs.python.org/* https://docs.python.org:443/*
    https://DOCS.python.org/* https://docs.python.org/a/../* https://docs.python.org/?next=/*
    http* docs/**
"""


@pytest.mark.parametrize("pattern", ["", *PATTERNS.split()])
def test_a_pattern_that_would_match_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="the pattern"):
        check_pattern(FETCH, pattern)


@pytest.mark.parametrize("policy", list(Approvals))
def test_the_network_asks_unless_it_is_allowed(policy: Approvals) -> None:
    def kind(mode: Mode, url: str, *patterns: str, exact: str = "") -> str:
        remembered = [*((pattern, False) for pattern in patterns), (exact, True)]
        return verdict(mode, FETCH, {"url": url}, policy, remembered).kind

    page, other = "https://docs.python.org/3/", "https://docs.python.org.evil.com/3/"
    assert kind(mode({}), page) == kind(mode({}), other) == "ask"
    ruled = mode({DOCS: "allow"})
    assert (kind(ruled, page), kind(ruled, other)) == ("allow", "ask")
    assert (kind(mode({}), page, DOCS), kind(mode({}), other, DOCS)) == ("allow", "ask")
    site = Subject(FETCH, {"url": page}).exact
    assert site == DOCS
    assert kind(mode({}), "https://docs.python.org/2/", exact=site) == "allow"
    assert kind(mode({}), other, exact=site) == "ask"
    denied = mode({"*": "allow"}, DOCS)
    assert (kind(denied, page), kind(denied, other)) == ("deny", "allow")
    assert kind(denied, "http://docs.python.org/3/") == "ask"
    assert verdict(denied, FETCH, {"url": "http://docs.python.org/"}, policy).always_asks
    without = mode({}).model_copy(update={"groups": ()})
    assert kind(without, page, "*") == "deny"


def test_what_is_no_url_and_which_hosts_have_names() -> None:
    subject = Subject(FETCH, {"url": "https://a@b/"})
    assert (subject.certainly_matches(DOCS), subject.may_match(DOCS)) == (False, "maybe")
    assert subject.exact is None
    assert not Subject(FETCH, {"url": None}).certainly_matches(DOCS)
    assert parse_authority("LOCALHOST:8080") == "localhost:8080"
    for host in ("intranet.example", "intranet.example:80", "[::1]:9000"):
        assert parse_authority(host) == host
    for wrong in ("a/b", "a?", "a@b", "http://a", "*"):
        with pytest.raises(ValueError, match=r".+"):
            parse_authority(wrong)


PATHS = ("a", "/", ".x", "src/app.py", "Makefile", "^", "a b", "文档.md")


IN_EVERY_PATH = r".* .+ . ^.*$ ^.+ (.*)$ .*? [\s\S]* \.* (a|b)? .*|x $ ^"


@pytest.mark.parametrize("pattern", IN_EVERY_PATH.split())
def test_which_patterns_are_found_in_every_path(pattern: str) -> None:
    assert is_found_in_every_path(pattern)
    assert all(is_found(pattern, path) for path in PATHS)


@rows(
    "pattern",
    *("a", r"\.md$", r".*\..*", ".*/.*", "[.*]", r"\.", "^.$", "^.", ".$", "^$", "^a*$", "^a?"),
    *("(?!a)", "(?<!.)", "(?<=a)?", r"\b", r"\B", r"\A", r"\Ga*", r"a*\b", "(?i)", "(?:a)?"),
)
def test_in_doubt_a_pattern_restricts(pattern: str) -> None:
    """Also some that restrict nothing: then the mode's commands only read."""
    assert not is_found_in_every_path(pattern)
