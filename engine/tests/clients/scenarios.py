"""``SCENARIOS``: conversations with the offline model that go the same way at every client.

Each client has a driver in ``test_scenarios.py`` beside its other tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Scenario:
    """What is said and decided, and how it is then."""

    says: str
    answers: str
    """What is decided on what is asked about, in order and separated by commas: ``approve``,
    ``reject``, ``auto`` (and switch), ``to MODE`` instead, ``content TEXT`` instead, ``always``,
    ``pattern PATTERN``, ``answer TEXT``."""
    tells: str = ""
    """A part of the last answer."""
    writes: Mapping[str, str] = field(default_factory=dict)
    """All of its files that are there; those that are named in ``says`` have names of their own."""
    mode: str = "code"
    begins_in: str = "code"
    approvals: str = "manual"
    waits_for: str = ""
    """The tool of the question that is open."""
    limit: str = ""
    lacked_by: str = ""
    """The clients in which a person cannot do that."""

    @property
    def decides(self) -> list[str]:
        return [*filter(None, self.answers.split(", "))]

    def check_files(self, workspace: Path) -> None:
        """What it names is there if it ``writes`` it, and else is not."""
        for word in self.says.replace(":", " ").split():
            if word.endswith(".txt") and word not in self.writes:
                assert not (workspace / word).exists()
        for name, text in self.writes.items():
            assert (workspace / name).read_text() == text


ASK = 'call ask_followup_question {"question": "Which colour?", "follow_up": [{"text": "Red"}]}'
REJECTED = "the user rejected this call"
from_ask = partial(Scenario, begins_in="ask")
SCENARIOS = {
    "a switch and a call are approved": from_ask(
        "write made.txt: hello", "approve, approve", "Created made.txt (5", {"made.txt": "hello"}
    ),
    "a switch is rejected": from_ask("write kept.txt: x", "reject", REJECTED, mode="ask"),
    "a switch without a reason": from_ask(
        'call switch_mode {"mode_slug": "code"}', "to debug", "from Ask to Debug mode", mode="debug"
    ),
    "a switch leads elsewhere": from_ask(
        "switch to code", "to debug", "from Ask to Debug mode", mode="debug"
    ),
    "a switch sets the approvals": from_ask(
        "switch to code\nwrite auto.txt: a",
        "auto",
        "Created auto",
        {"auto.txt": "a"},
        approvals="auto",
    ),
    "a call is rejected": Scenario("write no.txt: a", "reject", REJECTED),
    "a call is edited": Scenario(
        *("write edited.txt: model's", "content mine", "Created edited.txt (4 characters)"),
        {"edited.txt": "mine"},
        lacked_by="editor",
    ),
    "one of two calls": Scenario(
        "write one.txt: 1 & write two.txt: 2", "approve, reject", "Created one", {"one.txt": "1"}
    ),
    "a rejection voids what follows": Scenario(
        "write void.txt: 1 & write behind.txt: 2", "reject, approve", "the user rejected"
    ),
    "a question is answered": from_ask(ASK, "answer Red", ": Red", mode="ask"),
    "this file is always allowed": Scenario(
        "write again.txt: 1\nwrite again.txt: 2", "always", "Replaced again", {"again.txt": "2"}
    ),
    "a pattern is always allowed": Scenario(
        *("write p1.txt: 1\nwrite p2.txt: 2", "pattern p?.txt", "Created p2.txt"),
        {"p1.txt": "1", "p2.txt": "2"},
        lacked_by="editor",
    ),
    "the host's limit": Scenario(
        "write limited.txt: x", "", "refused: ", limit="ask", lacked_by="editor, terminal"
    ),
    "a sub-task": from_ask(
        *("task in code: write part.txt: x", "approve, approve", "sub-task in Code mode has ended"),
        {"part.txt": "x"},
        mode="ask",
    ),
    "a command": Scenario("run echo hi > ran.txt", "approve", "[exit code 0]", {"ran.txt": "hi\n"}),
    "a question stays open": Scenario(
        "write open.txt: x", "", waits_for="write_file", lacked_by="editor"
    ),
}


def of(client: str) -> pytest.MarkDecorator:
    """Those that a person can do in this client, as the parameter ``scenario``."""
    rows = {name: row for name, row in SCENARIOS.items() if client not in row.lacked_by}
    return pytest.mark.parametrize("scenario", rows.values(), ids=rows)
