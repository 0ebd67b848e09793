"""``tests/mutants.toml``: each change still applies, and the test exists that must fail with it."""

from tests import mutants
from tests.harness.root import ENGINE


def test_each_applies_and_names_a_test() -> None:
    rows = mutants.load()
    stale = [
        row
        for row in rows
        if row.apply((ENGINE.parent / row.file).read_text(encoding="utf-8")) is None
    ]
    assert not stale, f"what is their code now? {[f'{row.file}: {row.breaks}' for row in stale]}"
    files = {row.test.partition("::")[0] for row in rows}
    texts = {name: (ENGINE / name).read_text(encoding="utf-8") for name in files}
    missing = {
        row.test
        for row in rows
        if f"def {row.test.rpartition('::')[2]}(" not in texts[row.test.partition("::")[0]]
    }
    assert not missing, f"which tests catch now what these caught? {missing}"
    assert len(rows) > 600
