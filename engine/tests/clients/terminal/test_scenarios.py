"""The scenarios in a terminal: one thread for all of them, and a key for each decision."""

import re

from tests.clients.scenarios import Scenario, of
from tests.clients.terminal.terminal import CTRL_C, ENTER, Terminal
from tests.harness.server import Server

WAITS = re.compile(
    r"\n\n\w+>$|(?:answer|mode)>$"
    r"|(?:always a pattern|changes|sandbox\.|mode|No to all|words|Yes to all) \([a-z, ]+\)$"
)
AT_ONCE, KEYS = "to all (a, y)", {"auto": "u", "always": "t", "approve": "a", "reject": "r"}


def press(terminal: Terminal, keys: str) -> None:
    """Press them, and wait for what is asked next."""
    before = terminal.text
    terminal.press(keys if keys == ENTER else keys + ENTER)
    terminal.until_match(WAITS, but=before)


def replace(terminal: Terminal, text: str) -> None:
    """Put it in the place of what an answer begins with."""
    default = terminal.text.rpartition("> ")[2]
    terminal.press("\x7f" * len(default) + text)
    terminal.until(f"> {text}")
    press(terminal, ENTER)


def decide(terminal: Terminal, words: str) -> None:
    what, _, more = words.partition(" ")
    if terminal.text.endswith(AT_ONCE):
        press(terminal, ENTER)  # one by one
    match what:
        case "to":
            press(terminal, "m")
            (number,) = re.findall(rf"(\d) {more}\n", terminal.text[-100:])
            replace(terminal, number)
        case "content":
            terminal.play("e", "path> edited.txt", ENTER, "content> model's")
            replace(terminal, more)
        case "pattern":
            terminal.play("p", "pattern> p1.txt")
            replace(terminal, more)
        case "answer":
            terminal.play("w", "answer>")
            replace(terminal, more)
        case "reject":
            terminal.play("r", "why (or nothing)>")
            press(terminal, ENTER)
        case _:
            press(terminal, KEYS[what])


@of("terminal")
def test_in_a_terminal(scenario: Scenario, open_chat: Terminal, clone: Server) -> None:
    open_chat.say(f"/{scenario.begins_in}", f"\n\n{scenario.begins_in}>")
    for line in scenario.says.split("\n"):
        open_chat.press(line)
        open_chat.until(line[-5:])
        press(open_chat, ENTER)
        decided = [*scenario.decides] if line == scenario.says.split("\n")[0] else []
        for words in decided:
            decide(open_chat, words)
    assert open_chat.text.endswith(")" if scenario.waits_for else f"\n\n{scenario.mode}>")
    assert ("Auto-accept" in open_chat.bar) == (scenario.approvals == "auto")
    if scenario.waits_for:
        open_chat.press(CTRL_C)
        open_chat.until(f"\n\n{scenario.mode}>")
    open_chat.say("/approvals manual", f"\n\n{scenario.mode}>")
    told = open_chat.text.rpartition(scenario.says.split("\n")[-1])[2]
    assert "".join(scenario.tells.split()) in "".join(told.split())
    scenario.check_files(clone.workspace)
