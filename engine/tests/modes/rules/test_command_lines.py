"""Which lines are certainly several commands, and what a shell makes of these."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from modeshift.modes.rules.command_lines import MAX_PARTS, split_line
from modeshift.modes.rules.matching import command_words

SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("make test && git diff", ["make test", "git diff"]),
        ("make test||git diff ;ls", ["make test", "git diff", "ls"]),
        ("make test;\n\n", []),  # one command
        ("make test\ngit diff", ["make test", "git diff"]),
        (" make test &&\n  git diff", ["make test", "git diff"]),
        ("echo 'a && b; c' && ls", ["echo 'a && b; c'", "ls"]),
        ('echo "a; b" ; ls -la', ['echo "a; b"', "ls -la"]),
    ],
)
def test_lines_of_several_commands(line: str, parts: list[str]) -> None:
    assert [*split_line(line)] == parts


@pytest.mark.parametrize(
    "part",
    [
        *("a > f", "a >> f", "a < f", "a 2>&1", "a &> f", "a <<E\nx\nE", "a <<< x", ">f"),
        *("a $x", 'a "$x"', "a ${x}", "a $(b)", "a `b`", 'a "`b`"', "a $((1))", "a <(b)", "a >(b)"),
        *("x=1", "x=1 a", "PATH=. a", "x+=1 a", "a[0]=1", "export x=1", "local x", "declare x"),
        *(
            "f() { a; }",
            "function f { a; }",
            "alias a=b",
            "unalias a",
            "enable -n a",
            "hash -p b a",
        ),
        *("a | b", "a |& b", "a & b", "a &", "! a", "(a)", "{ a; }", "coproc a", "time a"),
        *(
            "if a; then b; fi",
            "for x in a; do b; done",
            "while a; do b; done",
            "case a in b) c;; esac",
        ),
        *("[[ a ]]", "((1))", "select x in a; do b; done", "until a; do b; done"),
        *(
            "cd b",
            "pushd b",
            ". b",
            "source b",
            "eval b",
            "exec b",
            "command b",
            "builtin b",
            "trap b",
        ),
        *("chdir b", "printf -v PATH b", "test -v 'a[PATH=1]'"),
        *("set -e", "umask 0", "ulimit -n 1", "read x", "wait", "exit", "return", "shopt -s x"),
        *("a *", "a ?", "a [b]", "a {b,c}", "a ~", "a ~/b", "a #b", "a \\\nb", "a \\; b", "a !b"),
        *(
            'a "b',
            "a 'b",
            "a $'b'",
            'a $"b"',
            "a é",
            "a\rb",
            "a\x00b",
            "a\tb",
            "",
            ";",
            "&&",
            "|",
            ")",
        ),
    ],
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
        "a",
        "b",
        "c",
        " ",
        " ",
        " ",
        "&&",
        "||",
        ";",
        "\n",
        "'",
        '"',
        "x",
        "=",
        "-y",
        "&",
        "#",
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
