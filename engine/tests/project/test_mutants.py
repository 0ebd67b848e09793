"""``tests/mutants.md`` says which test guards what; the files and tests that it names exist."""

import re

from tests.harness.root import ENGINE, ROOT

ROWS = re.findall(
    r"\| `([\w./]+)` \| `(test_\w+)` \|$",
    (ENGINE / "tests/mutants.md").read_text(encoding="utf-8"),
    re.M,
)
TESTS = "\n".join(
    file.read_text(encoding="utf-8")
    for top in (ENGINE, ROOT)
    for file in (top / "tests").rglob("test_*.py")
)


def test_files_and_tests_exist() -> None:
    gone = {file for file, _ in ROWS if not (ROOT / file).exists()}
    assert not gone, f"tests/mutants.md: where is now what was in {gone}?"
    missing = {name for _, name in ROWS if f"def {name}(" not in TESTS}
    assert not missing, f"tests/mutants.md: which tests catch now what these caught? {missing}"
    assert len(ROWS) > 200
