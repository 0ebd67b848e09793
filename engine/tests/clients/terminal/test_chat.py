"""``make chat`` in a real terminal: what is shown, what a key decides, what stops."""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest

from modeshift.calls.previews import FileChange
from modeshift.terminal.screen import Markdown, Screen
from modeshift.testing.plugin import Snapshot
from tests.clients.terminal.terminal import ASK, CODE, CTRL_C, ENTER, Terminal, chatting, in_code
from tests.harness.conversation import SECONDS
from tests.harness.root import TEMPLATE
from tests.harness.server import Server, lose_checkpoint
from tests.tools.mcp.servers import serving_toy

CALL, SWITCH, ALL = "always a pattern (p)", "sandbox. (u)", "to all (a, y)"
WHY = "why (or nothing)>"
COMMAND = "changes (e)"  # one that cannot be remembered


def wait_for_end(clone: Server) -> None:
    """Of the command that has written its process id; raises if it goes on."""
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int((clone.workspace / "pid").read_text())).wait(SECONDS)


def test_the_first_conversation(tmp_path: Path, snapshot: Snapshot) -> None:
    clone = Server(tmp_path)
    with chatting(clone, shows=ASK) as terminal:
        terminal.play("write notes.txt: hello", SWITCH, "a", CALL)
        snapshot("terminal.svg", terminal.draw("ask> "))
        terminal.play("a", CODE)
        seen = terminal.until(CODE, after="ask> ")
        snapshot("first-conversation.txt", seen + "\n")
        assert (tmp_path / "workspace/notes.txt").read_text() == "hello"
        again = terminal.leave()
    thread = again.rpartition("THREAD=")[2]
    options = ("--thread", thread, "--mode", "ask")
    with serving_toy() as port:
        entry = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}
        (clone.home / "mcp.json").write_text(json.dumps({"mcpServers": {"here": entry}}))
        with chatting(clone, *options) as terminal:
            shown = terminal.until(ASK)
            assert "> write notes.txt: hello\nNow" not in shown
            assert "Created notes.txt (5 characters).\n\nHere is how it went:" in shown
            seen = terminal.say('call mcp__here__get_time {"zone": "Rome"}', CALL)
            assert f"\n  reaches 127.0.0.1:{port}\n  zone: Rome\n" in seen
            assert "calls an MCP server: 'here'" in seen


def test_a_turn_that_a_crash_cut_off_goes_on(tmp_path: Path) -> None:
    """Killed between the model's answer and the checkpoint behind it: nothing is asked."""
    clone = Server(tmp_path)
    with in_code(clone) as terminal:
        (thread,) = re.findall(r"thread +([0-9a-f-]{36})", terminal.say("/status", CODE))
        terminal.say("write a.txt: a", CALL)
    lose_checkpoint(tmp_path, thread)
    with chatting(clone, "--thread", thread) as terminal:
        seen = terminal.until(CODE)
        assert "The last turn was interrupted. Enter goes on with it" in seen
        terminal.play(ENTER, CALL, "a", CODE)
        assert "interrupted" not in terminal.text.rpartition("Enter goes on")[2]
    assert (clone.workspace / "a.txt").read_text() == "a"


def test_enter_and_a_paste_reject(code: Terminal, clone: Server) -> None:
    paste = f"\x1b[200~a\x1b[201~x{ENTER}"
    code.play("write a.txt: a", CALL, paste, f"{CODE} x", f"\x7f{ENTER}", CALL)
    seen = code.play(ENTER, WHY, "not now", CODE)
    assert "▸ No\n  why (or nothing)> not now\n  You said no: not now\n" in seen
    assert not (clone.workspace / "a.txt").exists()


def test_what_is_typed_before_a_question_does_not_answer_it(code: Terminal, clone: Server) -> None:
    code.play(f"write ahead.txt: a{ENTER}aaaa", CALL)
    assert not (clone.workspace / "ahead.txt").exists()
    code.play(CTRL_C, f"{CODE} aaaa", CTRL_C, CODE)  # it is part of the message


def test_an_edit_runs_with_other_arguments(code: Terminal, clone: Server) -> None:
    (clone.workspace / "b.txt").write_text("one\ntwo\n")
    seen = code.say("replace two with three in b.txt", CALL)
    assert "  line 1\n  1  one\n    -two\n  2 +three\n" in seen
    edits = 'edits> [{"old": "two", "new": "three"}]'
    code.play("e", "path> b.txt", ENTER, edits)
    code.press(f"!{ENTER}")
    code.until_sent("That is not JSON")
    code.until(edits)
    seen = code.play("\x7f" * 8 + f'four"}}]{ENTER}', CODE)
    assert "  Run with your arguments: " in seen
    assert (clone.workspace / "b.txt").read_text() == "one\nfour\n"


def test_several_calls_all_at_once_or_one_by_one(code: Terminal, clone: Server) -> None:
    seen = code.say("write g1.txt: 1 & write g2.txt: 2", ALL)
    assert "1 +1" in seen and "1 +2" in seen
    code.play("a", CODE)
    assert [(clone.workspace / f"g{n}.txt").read_text() for n in (1, 2)] == ["1", "2"]
    seen = code.play("write h1.txt: 1 & write h2.txt: 2", ALL, "r", WHY, "neither", CODE)
    assert seen.count("You said no: neither") == 2
    code.say("write h1.txt: 1 & write h2.txt: 2", ALL)
    for name, keys in (("h1.txt", ENTER), ("h2.txt", f"a{ENTER}")):
        code.press(keys)
        code.until_sent(f"\n{name}  +1 -0\n▸ 1 No")
    code.play("r", WHY, ENTER, CODE)
    assert [file.name for file in clone.workspace.glob("h?.txt")] == ["h1.txt"]


def test_a_question_is_answered_in_words(chat: Terminal) -> None:
    asked = json.dumps({"question": "Which colour?\n- of these:", "follow_up": [{"text": "Red"}]})
    listed = "\n\n▸ 1 Red\n  2 In other words (w)"
    shown = f"Which colour?\n  - of these:{listed}"
    again = f"is a command; Esc leaves the question open.{listed}"
    chat.play(f"call ask_followup_question {asked}", shown, "w", "answer>", "/code", again)
    seen = chat.play("w", "answer>", "Green", ASK)
    assert ": Green" in seen


def test_ctrl_c_stops_the_run_and_its_command(code: Terminal, clone: Server) -> None:
    seen = code.play("run printf on; printf ce", COMMAND, "a", CODE)
    assert "\n  once\n  [exit code 0]\n" in seen
    code.play("run echo $$ > pid; echo begun; sleep 600", COMMAND, "a", "  begun\ncode>")
    code.press(CTRL_C)
    seen = code.until(CODE, after="▸ Yes")
    assert "  begun\nStopped while it ran: it may have taken effect" in seen
    wait_for_end(clone)


def test_ctrl_c_at_a_question_approves_nothing(code: Terminal, clone: Server) -> None:
    path = "d/" * 160 + "f.txt"
    seen = code.play(f"write {path}: f", CALL, CTRL_C, CODE)
    assert path in seen.partition("Write file")[2].replace("\n", ""), "its end, too"
    assert "Nothing is approved. Enter asks again; a message goes on without it." in seen
    code.play(ENTER, CALL, CTRL_C, CODE, "list", CODE)
    assert not (clone.workspace / "d").exists()


def test_what_others_say_cannot_act_on_the_terminal(chat: Terminal, clone: Server) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b2J\u202etxt.exe\x1b]52;c;aGk=\x07"
    (clone.workspace / "evil.txt").write_text(evil)
    before = len(chat.received)
    seen = chat.say("read evil.txt", ASK)
    assert r"\u001b]0;owned\u0007\u001b[2J\u009b2J\u202etxt.exe" in seen.replace("\n", "")
    seen = chat.play("/code", CODE, "replace txt with TXT in evil.txt", CALL)
    assert r"-\u001b]0;owned" in seen
    chat.play(CTRL_C, CODE)
    sent = chat.received[before:].decode()
    assert "owned" in sent
    sent = re.sub("\x1b\\]2;(Modeshift waits for you)?\x07", "", sent)  # our own title
    assert not re.search("\x1b\\]|\x9b|\x1b\\[2J|\u202e", sent)
    assert chat.title == ""
    shown: list[str] = []
    screen, markdown = Screen(shown.append), Markdown()  # a model's words, which nothing has read
    table = f"| {evil} | _{evil}_ |\n|-|-|\n| *{evil}* | [{evil}](http://{evil}) |"
    code = f"```{evil}\n{evil}\n```"
    for text in (evil, "&#27;[2J&#8238;", f"# **{evil}**", code, f"`{evil}`", table):
        screen.ready([*markdown.feed(f"{text}\n"), *markdown.end()])
        screen.line(text)
        screen.words(text)
        screen.result(text)
        lines = [("@", "line 1"), ("-", text), ("+", text)]
        screen.diff(FileChange(path=text, before="", after=text, lines=lines, problem=text))
    said = re.sub("\x1b\\[[0-9;]+m", "", "".join(shown))  # the colours, which are ours
    assert not re.search("\x1b|\x9b|\u202e", said)


def test_a_notice_is_told_once(tmp_path: Path) -> None:
    clone = Server(tmp_path)
    clone.workspace.mkdir()
    (clone.workspace / ".cursorrules").write_text("x")
    with chatting(clone, shows=ASK) as terminal:
        terminal.play("hello", ASK)
        (clone.workspace / "GEMINI.md").write_text("x")
        (clone.home / "custom_modes.yaml").write_text("customModes: []")  # so all is read again
        seen = terminal.play("hello", ASK, *["/compact", ASK] * 3)
        for name in (".cursorrules", "GEMINI.md"):
            assert seen.count(f"Notice: {name} is not read") == 1
        assert seen.count("Notice: The conversation could not be summarized") == 2, "an event"


def test_commands(chat: Terminal) -> None:
    assert "Esc, Ctrl-C      stop the agent" in chat.say("/help", ASK)
    assert "there is no mode or command 'kode'" in chat.say("/kode", ASK)
    chat.play("\x1b[A", "ask> /kode", CTRL_C, ASK)  # the line before, from the history
    seen = chat.say("/approvals some", ASK)
    assert "there are no approvals 'some'; type one of: manual, auto" in seen
    seen = chat.say("/status", ASK)
    assert re.search(
        r"thread     [0-9a-f-]{36}\n  now        ask · Ask first · [\d,]+ tokens · offline", seen
    )
    assert "its size is not known; CONTEXT_WINDOW sets it" in seen
    assert "\n  switches   rewrite: as MODE_CHANGES says, or as is known of the model\n" in seen


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--mode", "kode"), "there is no mode or command 'kode'; the modes are: ask,"),
        ((), "/langgraph.json/no' cannot be written: File exists; see make doctor"),
        (("--thread", f"urn:uuid:{'A' * 32}"), f"there is no thread '{UUID('a' * 32)}"),
    ],
)
def test_what_it_refuses(clone: Server, options: tuple[str, ...], said: str) -> None:
    settings: Any = {"CHECKPOINTS": str(TEMPLATE / "langgraph.json/no")} if not options else {}
    with chatting(clone, *options, **settings) as terminal:
        assert terminal.wait() == 1
        assert "".join(said.split()) in "".join(terminal.text.split()), "wrapped anywhere"
        assert "Traceback" not in terminal.text


def test_undo_is_shown_and_asked_for(tmp_path: Path) -> None:
    clone = Server(tmp_path)
    with in_code(clone) as terminal:
        terminal.play("/approvals auto", CODE, "hello", CODE, "write notes.txt: hello", CODE)
        shown = terminal.say("/undo", "Yes")
        assert "Undo: the conversation goes back; mode code, approvals auto." in shown
        assert "notes.txt is deleted" in shown
        terminal.play(ENTER, CODE)  # is no
        assert (tmp_path / "workspace/notes.txt").exists()
        terminal.play("/undo", "Yes", "2", CODE)
        assert not (tmp_path / "workspace/notes.txt").exists()
        terminal.play("/undo back", "Yes", "2", CODE)
        assert (tmp_path / "workspace/notes.txt").read_text() == "hello"
        assert "no message 'nonsense' of yours" in terminal.say("/undo nonsense", CODE)
