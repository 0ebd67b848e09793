"""``SCENARIOS``: conversations with the offline model that go the same way at every client.

Each client has a driver in ``test_scenarios.py`` beside its other tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Scenario:
    """What is said and decided, and how it is then."""

    says: str
    decides: tuple[str, ...]
    """On what is asked about, in order: ``approve``, ``reject``, ``auto`` (and switch), ``to MODE``
    instead, ``content TEXT`` instead, ``always``, ``pattern PATTERN``, ``answer TEXT``."""
    mode: str = "code"
    tells: str = ""
    """A part of the last answer."""
    writes: Mapping[str, str] = field(default_factory=dict)
    """All of its files that are there; those that are named in ``says`` have names of their own."""
    begins_in: str = "code"
    approvals: str = "manual"
    waits_for: str = ""
    """The tool of the question that is open."""
    limit: str = ""
    lacked_by: tuple[str, ...] = ()
    """The clients in which a person cannot do that."""

    def check_files(self, workspace: Path) -> None:
        """What it names is there if it ``writes`` it, and else is not."""
        for word in self.says.replace(":", " ").split():
            if word.endswith(".txt") and word not in self.writes:
                assert not (workspace / word).exists()
        for name, text in self.writes.items():
            assert (workspace / name).read_text() == text


ASK = 'call ask_followup_question {"question": "Which colour?", "follow_up": [{"text": "Red"}]}'
REJECTED = "the user rejected this call"
SCENARIOS = {
    "a switch and a call are approved": Scenario(
        "write made.txt: hello",
        ("approve", "approve"),
        begins_in="ask",
        tells="Created made.txt (5 characters).",
        writes={"made.txt": "hello"},
    ),
    "a switch is rejected": Scenario(
        "write kept.txt: x", ("reject",), "ask", REJECTED, begins_in="ask"
    ),
    "a switch without a reason": Scenario(
        'call switch_mode {"mode_slug": "code"}',
        ("to debug",),
        "debug",
        "from Ask to Debug mode",
        begins_in="ask",
    ),
    "a switch leads elsewhere": Scenario(
        "switch to code", ("to debug",), "debug", "from Ask to Debug mode", begins_in="ask"
    ),
    "a switch sets the approvals": Scenario(
        "switch to code\nwrite auto.txt: a",
        ("auto",),
        begins_in="ask",
        approvals="auto",
        tells="Created auto.txt",
        writes={"auto.txt": "a"},
    ),
    "a call is rejected": Scenario("write no.txt: a", ("reject",), tells=REJECTED),
    "a call is edited": Scenario(
        "write edited.txt: model's",
        ("content mine",),
        tells="Created edited.txt (4 characters)",
        writes={"edited.txt": "mine"},
        lacked_by=("editor",),
    ),
    "one of two calls": Scenario(
        "write one.txt: 1 & write two.txt: 2",
        ("approve", "reject"),
        tells="Created one.txt",
        writes={"one.txt": "1"},
    ),
    "a rejection voids what follows": Scenario(
        "write void.txt: 1 & write behind.txt: 2",
        ("reject", "approve"),
        tells="the user rejected",
    ),
    "a question is answered": Scenario(ASK, ("answer Red",), "ask", ": Red", begins_in="ask"),
    "this file is always allowed": Scenario(
        "write again.txt: 1\nwrite again.txt: 2",
        ("always",),
        tells="Replaced again.txt",
        writes={"again.txt": "2"},
    ),
    "a pattern is always allowed": Scenario(
        "write p1.txt: 1\nwrite p2.txt: 2",
        ("pattern p?.txt",),
        tells="Created p2.txt",
        writes={"p1.txt": "1", "p2.txt": "2"},
        lacked_by=("editor",),
    ),
    "the host's limit": Scenario(
        "write limited.txt: x",
        (),
        tells="refused: ",
        limit="ask",
        lacked_by=("editor", "terminal"),
    ),
    "a sub-task": Scenario(
        "task in code: write part.txt: x",
        ("approve", "approve"),
        "ask",
        "The sub-task in Code mode has ended",
        {"part.txt": "x"},
        begins_in="ask",
    ),
    "a command": Scenario(
        "run echo hi > ran.txt", ("approve",), tells="[exit code 0]", writes={"ran.txt": "hi\n"}
    ),
    "a question stays open": Scenario(
        "write open.txt: x", (), waits_for="write_file", lacked_by=("editor",)
    ),
}


def of(client: str) -> pytest.MarkDecorator:
    """Those that a person can do in this client, as the parameter ``scenario``."""
    rows = {name: row for name, row in SCENARIOS.items() if client not in row.lacked_by}
    return pytest.mark.parametrize("scenario", rows.values(), ids=rows)
