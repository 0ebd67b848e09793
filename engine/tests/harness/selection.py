"""``make test T=...``: runs the tests that match, and imports only the files that can hold one.

T is what pytest's ``-k`` takes: words of names, ``and``, ``or``, ``not``; or a test as pytest
prints it, with its file.
"""

import re
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

import pytest

from tests.harness.root import ENGINE

TESTS = ENGINE / "tests"
IN_VAIN = pytest.ExitCode.NO_TESTS_COLLECTED


def main(pattern: str) -> int:
    """Run the tests; gives the exit code."""
    if "::" in pattern:
        return pytest.main([pattern])
    try:
        files = find_files(pattern)
    except LookupError as error:
        sys.stderr.write(f"No test matches T={pattern!r}: {error}\n")
        return IN_VAIN
    return pytest.main(["-k", pattern, *map(str, files)])


def list_tests() -> Iterator[Path]:
    """All files of tests."""
    return TESTS.rglob("test_*.py")


def find_files(pattern: str) -> list[Path]:
    """The files that can hold a test that matches; raises ``LookupError`` if there is none.

    What stands behind ``not`` narrows nothing, and neither does the name of a parameter that a
    fixture brings into any test.
    """
    words = re.findall(r"[^\s()]+", re.sub(r"\bnot\s+(\(.*?\)|[^\s()]+)", "", pattern.lower()))
    texts = {path: _read(path) for path in list_tests()}
    others = "".join(path.read_text().lower() for path in TESTS.rglob("*.py") if path not in texts)
    names = set(re.findall(r"""["']([\w-]+)["']""", others))
    found = [_find(word, texts, names) for word in words if word not in ("and", "or")]
    join = set.union if "or" in words else set.intersection
    files = join(*found) if found else set(texts)
    if not files:
        raise LookupError("no file has all of it")
    return sorted(files)


def _read(path: Path) -> str:
    """The text of a file of tests, and its path."""
    return f"{path.relative_to(ENGINE).as_posix()}\n{path.read_text(encoding='utf-8')}".lower()


def _find(word: str, texts: dict[Path, str], names: set[str]) -> set[Path]:
    found = set(texts)
    # The names of parameters are joined by dashes, and numbered where there is none.
    for part in filter(None, (part.rstrip("0123456789") for part in re.split(r"[\[\]-]", word))):
        if any(part in name for name in names):
            continue
        if not any(part in text for text in texts.values()):
            tests = set(re.findall(r"def (test_\w+)", "\n".join(texts.values())))
            like = get_close_matches(part, tests, 3)
            hint = f"; there are {', '.join(like)}" if like else ""
            raise LookupError(f"{part!r} stands in no file of tests{hint}")
        found &= {path for path, text in texts.items() if part in text}
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
