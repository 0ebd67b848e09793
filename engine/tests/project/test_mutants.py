"""``tests/mutants.md`` says which test guards what; the files and tests that it names exist."""

import re

from tests.harness.clone import REMOVABLE, is_removed
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
    rows = [(file, name) for file, name in ROWS if not is_removed(file)]
    gone = {file for file, _ in rows if not (ROOT / file).exists()}
    assert not gone, f"tests/mutants.md: where is now what was in {gone}?"
    if all((ROOT / part).is_dir() for part in REMOVABLE):  # else its tests are gone, too
        missing = {name for _, name in rows if f"def {name}(" not in TESTS}
        assert not missing, f"tests/mutants.md: which tests catch now what these caught? {missing}"
    assert len(ROWS) > 200
