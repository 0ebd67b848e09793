"""``make test T=...`` starts fast and still runs all that pytest would."""

from pathlib import Path

import pytest

from tests.harness.selection import IN_VAIN, TESTS, find_files, list_tests, main

ALL = len(list(list_tests()))
HERE = Path(__file__)
CONVERSATIONS = TESTS / "graph/replay/test_conversations.py"
VERDICTS = TESTS / "modes/test_verdict.py"


@pytest.mark.parametrize(
    ("pattern", "file", "at_most"),
    [
        ("test_parallel_reads", CONVERSATIONS, 5),
        ("parallel_READS", CONVERSATIONS, 5),
        ("test_parallel_reads[openai-whole]", CONVERSATIONS, 5),
        ("test_parallel_reads and anthropic-streamed", CONVERSATIONS, 5),
        ("test_parallel_reads and not whole", CONVERSATIONS, 5),
        ("(test_parallel_reads or test_a_wrong_name) and not (a or b)", HERE, 5),
        ("conversations", CONVERSATIONS, ALL // 2),
        ("test_row and not slow", VERDICTS, 5),
        ("anthropic-streamed", CONVERSATIONS, ALL),
        ("not slow", CONVERSATIONS, ALL),
    ],
)
def test_what_is_collected(pattern: str, file: Path, at_most: int) -> None:
    files = find_files(pattern)
    assert file in files
    assert len(files) <= at_most


def test_a_wrong_name(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = "test_parallel_reads"[:-1] + "_"
    assert main(wrong) == IN_VAIN
    said = capsys.readouterr().err
    assert said.startswith(f"No test matches T={wrong!r}: {wrong!r} stands in no file of tests")
    assert "test_parallel_reads" in said
