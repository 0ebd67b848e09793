"""Which ``fileRegex`` restricts nothing; the rest is rows of ``tests/modes/verdicts.yaml``."""

import pytest

from modeshift.modes.rules.files import is_found, is_found_in_every_path

PATHS = ("a", "/", ".x", "src/app.py", "Makefile", "^", "a b", "文档.md")


IN_EVERY_PATH = r".* .+ . ^.*$ ^.+ (.*)$ .*? [\s\S]* \.* (a|b)? .*|x $ ^"


@pytest.mark.parametrize("pattern", IN_EVERY_PATH.split())
def test_which_patterns_are_found_in_every_path(pattern: str) -> None:
    assert is_found_in_every_path(pattern)
    assert all(is_found(pattern, path) for path in PATHS)


@pytest.mark.parametrize(
    "pattern",
    [
        *("a", r"\.md$", r".*\..*", ".*/.*", "[.*]", r"\.", "^.$", "^.", ".$", "^$", "^a*$", "^a?"),
        *("(?!a)", "(?<!.)", "(?<=a)?", r"\b", r"\B", r"\A", r"\Ga*", r"a*\b", "(?i)", "(?:a)?"),
    ],
)
def test_in_doubt_a_pattern_restricts(pattern: str) -> None:
    """Also some that restrict nothing: then the mode's commands only read."""
    assert not is_found_in_every_path(pattern)
