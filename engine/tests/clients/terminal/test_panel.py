"""The lines below the output: the list of decisions, the input while the agent works, the bar."""

import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from modeshift.terminal.cards import list_comments
from modeshift.terminal.conversation import POSTPONED
from modeshift.terminal.pager import edit_text, show_pages
from modeshift.terminal.screen import Markdown, measure
from modeshift.testing.plugin import Snapshot
from tests.clients.terminal.terminal import (
    ASK,
    BACKSPACE,
    CODE,
    CTRL_C,
    DOWN,
    ENTER,
    ESC,
    UP,
    Terminal,
    chatting,
    in_code,
)
from tests.clients.terminal.test_chat import CALL, SWITCH, WHY
from tests.harness.server import Server

KEPT = "Kept, sent after this: list\ncode>"


@pytest.fixture
def pipe(clone: Server) -> Path:
    """What a command waits for, until somebody writes into it."""
    path = clone.workspace / "pipe"
    if not path.exists():
        os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    ("keys", "is_allowed"),
    [
        *(((DOWN, ENTER), True), ((*[UP] * 4, ENTER), True), (("2",), True), (("y",), True)),
        *(((ENTER,), False), (("1",), False), (("n",), False), ((ESC,), False)),
    ],
)
def test_keys_of_the_list(
    code: Terminal, clone: Server, keys: tuple[str, ...], is_allowed: bool
) -> None:
    code.say("write listed.txt: x", CALL)
    for key in keys:
        code.press(key)
    if not is_allowed:
        code.until(WHY)
        code.play(ESC, CALL, "n", WHY, ENTER, CODE)
    code.until(CODE)
    file = clone.workspace / "listed.txt"
    assert file.exists() == is_allowed
    file.unlink(missing_ok=True)


@pytest.mark.parametrize("words", ["always", "yes please", "why?", "n", "no"])
def test_words_typed_at_a_question_answer_nothing(
    code: Terminal, clone: Server, words: str
) -> None:
    """Not even those that begin with the letter of a choice; a message goes on without the call."""
    code.say("write typed.txt: x", CALL)
    for key in f"{words} x":  # one by one, as somebody types
        code.press(key)
    code.until_sent(f"Typed: {words} x · Enter approves nothing and keeps it")
    assert "▸ 1 No (r, n)" in code.screen
    code.press("\x7f")
    code.until_sent(f"Typed: {words}  · Enter" if words.endswith(" ") else f"Typed: {words}")
    code.press(ENTER)
    code.until(f"{POSTPONED}\n\ncode> {words}")
    code.play(f"{BACKSPACE * 20}list", "list", ENTER, CODE)
    assert not (clone.workspace / "typed.txt").exists()
    assert "Ask first" in code.bar


def test_a_message_is_kept_while_it_works_and_sent_at_the_end(code: Terminal, pipe: Path) -> None:
    code.play("run cat pipe", CALL, "y", "Esc stops\ncode>", "list", KEPT)
    pipe.write_text("through\n")
    code.until_sent("\n\ncode> list\n")
    seen = code.until(CODE, after="▸ Yes")
    assert "\n  through\n  [exit code 0]\n" in seen
    assert "Kept" not in seen


def test_a_kept_message_neither_answers_nor_closes_a_question(
    code: Terminal, clone: Server, pipe: Path
) -> None:
    code.press("run cat pipe\nwrite never.txt: x\r")
    code.until(CALL)
    code.play("y", "Esc stops\ncode>", "list", KEPT)
    code.press("yyy")
    code.until("code> yyy")
    pipe.write_text("through\n")
    code.until(CALL, after="through")
    assert "Kept, sent when the question is answered: list\n" in code.text
    assert not (clone.workspace / "never.txt").exists()
    code.play(CTRL_C, "code> yyy", CTRL_C, "Kept, sent when the question is answered: list\ncode>")
    code.play(ENTER, CALL, "n", WHY)
    code.press(ENTER)
    code.until_sent("\n\ncode> list\n")
    code.until(CODE)
    assert not (clone.workspace / "never.txt").exists()


@pytest.mark.parametrize("key", [ESC, CTRL_C])
def test_a_stop_gives_back_what_was_kept(code: Terminal, pipe: Path, key: str) -> None:
    code.play("run cat pipe", CALL, "y", "Esc stops\ncode>", "list", KEPT)
    code.until_sent("\n$ cat pipe · ")
    code.play(key, "code> list")
    assert "Stopped while it ran" in code.text
    code.play(CTRL_C, "\n\ncode>")


def test_several_lines_completion_and_the_next_mode(code: Terminal, clone: Server) -> None:
    (clone.workspace / ".gitignore").write_text("py-hidden.txt\n")
    for name in ("py-shown.txt", "py-hidden.txt"):
        (clone.workspace / name).write_text("")
    os.system(f"git init -q {clone.workspace}")  # noqa: S605  # so that it heeds what is ignored
    code.press("one\n\x1b\rtwo @py-")
    code.until("code> one\n\ntwo @py-")
    code.until_sent("@py-shown.txt")
    assert "py-hidden.txt" not in code.screen
    code.play(CTRL_C, CODE, "\x1b[Z", "\n\ndebug>", "\x1b[Z", ASK)
    assert "Ask first" in code.bar
    code.press("/appr")
    code.until_sent("/approvals  show what runs unasked")
    code.play("\t", "ask> /approvals", CTRL_C, ASK)


def test_a_thread_that_is_opened_in_a_subtask(tmp_path: Path) -> None:
    clone, last = Server(tmp_path), ("--thread", "last")
    begun = "\n> task in code: write sub.txt: x\n\nSub-task in Code mode\n\n> write sub.txt: x\n"
    ended = "  Created sub.txt (1 character).\n\nHere is how it went:\n- write sub.txt: x: "
    with chatting(clone, shows=ASK) as terminal:
        terminal.play("task in code: write sub.txt: x", SWITCH, "y", CALL)
        assert "▸ Yes\n\nSub-task in Code mode\n\nWrite" in terminal.text
        assert terminal.bar.startswith("── code / sub-task · Ask first · ")
    with chatting(clone, *last, shows=CALL) as terminal:
        assert begun in terminal.text
        terminal.play(CTRL_C, "\n\ncode / sub-task>", ENTER, CALL, "y", ASK)
        assert "\nThe sub-task in Code mode has ended.\nNow in Ask mode.\n" in terminal.text
    with chatting(clone, *last) as terminal:
        seen = terminal.until(ASK)
        assert begun in seen
        assert ended in seen.partition(begun)[2]
        assert "The sub-task in Code mode has ended.\n\nHere is how it went:" in seen
        terminal.play("task in code: hello", SWITCH, "y", ASK)
        assert terminal.bar.startswith("── ask · Ask first · ")


def test_what_auto_accept_turns_on_is_said_and_it_is_offered_once(chat: Terminal) -> None:
    seen = chat.say("switch to code", SWITCH)
    assert "Yes, and auto-accept. Edits of files run unasked; commands ask, as" in seen
    other, debug = "Another mode (m)", "\n\ndebug>"
    chat.play("u", CODE)
    assert "Auto-accept" in chat.bar
    chat.play("/ask", ASK, "switch to code", other, "m", "mode>", "2", debug)
    chat.play("/approvals manual", debug, "list", debug)
    assert "Ask first" in chat.bar


def test_what_was_always_allowed_is_listed_and_taken_back(code: Terminal) -> None:
    seen = code.play("/allowed", CODE, "write al.txt: 1", CALL, "t", CODE)
    assert 'No "always" of yours holds in this thread.' in seen
    told = "write_file, exactly 'al.txt', in Code mode"
    assert f"Runs unasked from now on: {told}. /allowed takes it back." in " ".join(seen.split())
    code.play("write bl.txt: 1", CALL, "p", "pattern> bl.txt")
    seen = code.play("\x7f\x7f\x7f*", "pattern> bl.*", ENTER, CODE)
    assert seen.count("Runs unasked from now on: ") == 2
    code.play("write al.txt: 2", CODE)
    listed = code.say("/allowed", "All of these")
    assert f"Take back what runs unasked\n▸ 1 Nothing\n  2 {told}\n  3 write_file, wh" in listed
    code.play(ESC, CODE, "write al.txt: 3", CODE, "/allowed", "All of these", "2", CODE)
    code.play("write al.txt: 4", CALL, "n", WHY, ENTER, CODE)
    assert told not in code.say("/allowed", "All of these").rpartition("Take back")[2]
    code.play("3", CODE, "/allowed", CODE)
    assert code.text.count('No "always" of yours') == 2


def test_a_question_rings_the_bell_and_sets_the_title(code: Terminal) -> None:
    before = len(code.received)
    code.play("list", CODE)
    assert b"\x07" not in code.received[before:]
    code.say("write bell.txt: 1", CALL)
    assert code.title == "Modeshift waits for you"
    assert b"\x07\x07" in code.received[before:]  # the title's end, and the bell
    code.play("n", WHY, ENTER, CODE)
    assert code.title == ""


def test_long_output_is_folded_and_paged(clone: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    clone.workspace.mkdir(exist_ok=True)
    (clone.workspace / "long.txt").write_text("".join(f"line {n}\n" for n in range(100)))
    with in_code(clone, PAGER="cat") as terminal:
        terminal.play("run cat long.txt", CALL, "y", CODE)
        folded = "  line 3\n  ... 89 more lines; v shows all\n  line 93\n"
        assert folded in terminal.text
        terminal.press("\x0f")
        terminal.until_sent("  line 50\n")
        terminal.play("run sed s/line/other/ long.txt", CALL, "y", CODE)
        terminal.press(f"v{ENTER}")
        terminal.until_sent("  other 50\n")
        written = r"\n".join(f"x{n}" for n in range(100))
        seen = terminal.play(f"write long.txt: {written}", CALL)
        assert "\n      -line 28\n  ... 142 more lines; v shows all\n   72 +x71\n" in seen
        assert "\nlong.txt  +100 -100 · v shows all\n▸ 1 No (r, n)\n" in seen
        terminal.press("v")
        terminal.until_sent("\n   51 +x50\n")
        terminal.until(CALL)  # no key counts before the list is there again
        terminal.play("y", CODE)
    for name, value in {"PATH": "", "PAGER": "'", "VISUAL": "'", "EDITOR": "no-such"}.items():
        monkeypatch.setenv(name, value)
    assert "There is no pager" in show_pages("text")
    assert edit_text("text") is None


def test_a_message_is_written_in_an_editor(tmp_path: Path) -> None:
    clone = Server(tmp_path)
    given: dict[str, Any] = {"VISUAL": "no-such-editor", "EDITOR": "sed -i s/one/two/"}
    with in_code(clone, **given) as terminal:
        terminal.play("a one\x18\x05", "code> a two")
    with in_code(clone, PATH="", VISUAL="", EDITOR="'") as terminal:
        terminal.press("a one\x18\x05")
        terminal.until_sent("There is no editor: set EDITOR to one")
        terminal.until("code> a one")


def test_threads_are_chosen_by_what_was_said(tmp_path: Path) -> None:
    clone, last = Server(tmp_path), ("--thread", "last")
    with chatting(clone, *last) as terminal:
        assert terminal.wait() == 1
        assert "there is no thread yet" in terminal.text
    for text, shown in (("list", CODE), ("write a.txt: a", CALL)):
        with in_code(clone) as terminal:
            terminal.say(text, shown)
    with chatting(clone, *last, "--mode", "code") as terminal:
        terminal.until(CODE)
        listed = terminal.say("/threads", " · code")
        listed = listed.rpartition("Go on with which thread?\n")[2]
        assert re.match(r"▸ 1 Stay in this one\n  2 list · .* · code$", listed)
        terminal.play("2", CODE, "/approvals", CODE, "/diff", CODE)
        seen = terminal.text.rpartition("▸ list")[2]
        assert "\n> list\n" in seen
        assert "manual: Ask first. Whatever is not read-only asks," in seen
        assert "This thread has changed no file." in seen
        listed = terminal.say("/threads", " · code · waits for you")
        terminal.play("2", CALL, "y", CODE, "/diff", CODE)
        assert "  a.txt  +1 -0\n  1 +a\n" in terminal.text.rpartition("/diff")[2]
        terminal.resize(40)
        terminal.press("x")
        terminal.until("code> x")
        assert len(terminal.bar) < 40


ANSWER = """\
Some *italic*, _too_, **bold**, `code`, snake_case_name, 2 * 3 * 4, ![a link](https://x.example/a).
| Name | What it does | 漢字 |
|------|:------------:|
| a \\| b | **does** it |
| 漢 | y | z | w |
|| no table
"""


@pytest.mark.parametrize("width", [80, 24])
def test_tables_and_links_of_an_answer(
    width: int, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((width + 1, 50)))
    markdown = Markdown()
    lines = [line for piece in ANSWER for line in markdown.feed(piece)]
    shown = "\n".join([*lines, *markdown.end()])
    plain = re.sub("\x1b\\[[0-9;]*m", "", shown)
    snapshot(f"answer-{width}.txt", plain + "\n")
    assert max(measure(line) for line in plain.split("\n")) <= width


@pytest.mark.parametrize("piece", ["[", "*", "_", "*a ", "|", "[a](", "[a](b", "a*b", "`", "|a"])
def test_no_answer_takes_long(piece: str) -> None:
    begun = time.process_time()
    for line in (piece * 100_000, f"|{piece * 100_000}|\n|-|"):
        markdown = Markdown()
        markdown.feed(f"{line}\n")
        markdown.end()
    assert time.process_time() - begun < 20, "it took hours where it is not linear"


def test_only_colours_that_can_be_read_on_light_and_dark(code: Terminal) -> None:
    """xterm's yellow is too light on white, its blue too dark on black; Solarized's bright black
    is its dark background."""
    begin = len(code.received)
    code.play("write coloured.py: def f(): return 'x'  # y", CALL, "n", WHY, ENTER, CODE)
    sent = re.findall(rb"\x1b\[([\d;]+)m", code.received[begin:])
    used = {int(each) for codes in sent for each in codes.split(b";")}
    assert {2, 32, 35, 36} <= used <= {0, 1, 2, 3, 31, 32, 35, 36, 39, 49}


@pytest.mark.parametrize("settings", [{"NO_COLOR": "1"}, {"term": "dumb"}])
def test_a_terminal_without_colours(tmp_path: Path, settings: dict[str, Any]) -> None:
    with chatting(Server(tmp_path), "--mode", "code", **settings) as terminal:
        ready, call = ("code> ", "No'> ") if "term" in settings else (CODE, CALL)
        terminal.until(ready.rstrip())
        terminal.press("write plain.txt: " + r"x\n" * 80 + ENTER)
        terminal.until(call.rstrip())
        terminal.press("y" if call == CALL else f"y{ENTER}")
        terminal.until_sent("Created plain.txt")
        assert not re.search(rb"\x1b\[[0-9;]*(3[0-7]|9[0-7])[;m]", terminal.received)
        if "term" in settings:
            assert "\r\n  41 +x\r\n" in terminal.received.decode(), "nothing is left out"
            assert not re.search(rb"\x1b\[\d*[A-KST]", terminal.received), "erased"
    assert (tmp_path / "workspace/plain.txt").read_text() == "x\n" * 80


def test_without_a_cursor_a_sentence_is_the_next_message_too(tmp_path: Path) -> None:
    with chatting(Server(tmp_path), "--mode", "code", term="dumb", shows="code>") as terminal:
        terminal.press(f"write never.txt: x{ENTER}")
        terminal.until("No'>")
        terminal.press(f"yes, go on{ENTER}")
        terminal.until("\ncode> yes, go on")
        assert POSTPONED in terminal.text
        terminal.press(f" then{ENTER}")
        terminal.until("\ncode>")
        assert "yes, go on then" in terminal.text
    assert not (tmp_path / "workspace/never.txt").exists()


@pytest.mark.parametrize("columns", [40, 80])
def test_screens(tmp_path: Path, snapshot: Snapshot, columns: int) -> None:
    clone, shown = Server(tmp_path), []
    costs = "{input: 9000, output: 9000, cache_read: 0, cache_write: 0}"
    (clone.home / "prices.yaml").write_text(f"offline: {costs}\n")
    options: dict[str, Any] = {"columns": columns, "CONTEXT_WINDOW": "9000"}
    with chatting(clone, "--mode", "code", **options) as terminal:

        def show(state: str, *steps: str) -> None:
            terminal.play(*steps)
            seen = re.sub(r"\d+ s ·", "0 s ·", terminal.screen).split("\n")[-16:]
            shown.append("\n".join([f"=== {state}", *seen, ""]))

        terminal.until(CODE)
        text = ", ".join(["a 漢字 of many words"] * 6)
        terminal.play(f"write wide.txt: {text}", CALL)
        show("a question")
        show("why", "n", WHY)
        show("back", ESC, CALL)
        show("done", "y", CODE)
        os.mkfifo(clone.workspace / "pipe")
        terminal.play("run cat pipe", CALL)
        terminal.press("y")
        terminal.until_sent("\n$ cat pipe · ")
        show("while it works", "and then", "Kept, sent after this: and then\ncode>")
    snapshot(f"terminal-{columns}.txt", "\n".join(shown))


def test_a_plan_is_commented_line_by_line_in_an_editor(tmp_path: Path) -> None:
    clone = Server(tmp_path)
    text = r"# Plan\n\n> Speak.\n\n## Files\n\n- `a.py`"
    editor = 'sed -i "s/^> Speak.$/&\\n> Sing./;s/^- .*$/&\\n>and b.py/;1i> Why?"'
    plans, no = "\n\narchitect>", SWITCH
    with chatting(clone, "--mode", "architect", EDITOR=editor, VISUAL="") as terminal:
        terminal.until(plans)
        terminal.play(f"write PLAN.md: {text}", CALL)
        terminal.play("y", plans)
        seen = terminal.play("switch to code: go", no)
        assert "names what may be changed: a.py." in seen
        seen = terminal.play("e", plans)
        assert "all — Why?" in seen
        assert "line 3: > Speak. — Sing." in seen
        assert "line 7: - `a.py` — and b.py" in seen
        terminal.play("switch to code: go", no)
        seen = terminal.play("c", CODE)
        assert seen.count("Created PLAN.md") == 2, "as a result and in the answer, each once"
        seen = terminal.play("switch to ask: back", no, "y", "\n\nask>")
        assert seen.count("Created PLAN.md") == 2


@pytest.mark.parametrize(
    ("edited", "message"),
    [("a\n> b\nc", ""), ("a\n> x\n> b\n>y\nc\n>", "line 1: a — x\nline 2: > b — y\nline 3: c — ")],
)
def test_what_is_a_comment(edited: str, message: str) -> None:
    assert list_comments("a\n> b\nc", edited) == message
