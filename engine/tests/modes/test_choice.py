"""Which events a node sends, by what it knows."""

import pytest

from modeshift.modes.choice import Seen, choose
from modeshift.modes.phases import Phase

LETTERS = dict(zip("CPSIDTNF", Seen._fields, strict=True))
"""Calls, Person, Switch, In sub-task, Done, Turn, Needs summary, Failed."""
ROWS = """
idle: - reset | T reset start | TF reset start | N reset compact | TN reset start compact
idle: I reset return | IN reset return | IT reset start | ITN reset start compact
idle: ITNF reset start return
thinking: - answer | I return | C act | CI act | P review | CP review | CPNI compact
reviewing: - decided | S switch | CS act
acting: - acted | I acted | D complete | DI return | DS switch | DCS act
switching: - reset start | S switch_mode
compacting: - complete | T compacted
returning: - returned | S next
"""


@pytest.mark.parametrize("line", ROWS.strip().splitlines())
def test_the_events_of_a_node(line: str) -> None:
    phase, _, rows = line.partition(": ")
    for row in rows.split(" | "):
        knows, *events = row.split()
        seen = Seen(**{LETTERS[letter]: True for letter in knows.strip("-")})
        assert choose(Phase(phase), seen) == tuple(events), row


def test_an_unknown_phase_is_refused() -> None:
    with pytest.raises(AssertionError, match="'elsewhere'"):
        choose("elsewhere", Seen())  # type: ignore[arg-type]  # an owner's own phase
