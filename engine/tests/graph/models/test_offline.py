"""The offline model: its language, and what it makes of tools, refusals and results."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from modeshift.models.offline import HELP, OfflineModel, parse, respond
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("list", "list_files {}"),
        ("read a b.txt", "read_file {'path': 'a b.txt'}"),
        ("search a in b in src", "search_files {'regex': 'a in b', 'path': 'src'}"),
        ("write a.txt: x: y", "write_file {'path': 'a.txt', 'content': 'x: y'}"),
        (r"write a.txt: x\ny", r"write_file {'path': 'a.txt', 'content': 'x\ny'}"),
        (
            "replace a b with c d in e",
            "edit_file {'path': 'e', 'edits': [{'old': 'a b', 'new': 'c d'}]}",
        ),
        ("run make && make test", "execute_command {'command': 'make && make test'}"),
        ("switch to code", "switch_mode {'mode_slug': 'code', 'reason': 'You told me to.'}"),
        ('call mcp__git__log {"n": 1}', "mcp__git__log {'n': 1}"),
        ("call mcp__git__log", "mcp__git__log {}"),
        ("ask: Why?", "ask_followup_question {'question': 'Why?'}"),
        ("done: all of it", "attempt_completion {'result': 'all of it'}"),
        (
            "read a & write b: x & y & list\n\n list",
            "read_file {'path': 'a'} & write_file {'path': 'b', 'content': 'x & y'} & "
            "list_files {}\nlist_files {}",
        ),
    ],
)
def test_lines_are_steps_and_ampersands_join_commands(text: str, steps: str) -> None:
    parsed = (" & ".join(f"{name} {args}" for name, args in step.calls) for step in parse(text))
    assert "\n".join(parsed) == steps


def test_a_todo_list() -> None:
    ((_, args),) = parse("todo: a; b;")[0].calls
    assert [each["content"] for each in args["todos"]] == ["a", "b"]


def test_anything_else_gets_help() -> None:
    no_commands = ("hello", "", "read", "switch to", "write x", "call x {a}")
    for text in (*no_commands, "list\nplease", "hello & list", "write x & list"):
        assert parse(text) == [], text
        assert OfflineModel().invoke([HumanMessage(text)]).text == HELP


async def test_a_stream_adds_up_to_the_answer() -> None:
    bound = OfflineModel().bind_tools([{"name": "list_files", "description": "", "parameters": {}}])
    for text in ("hello", "list"):
        pieces: Any = [piece async for piece in bound.astream(text)]
        assert len(pieces) > 1
        whole = pieces[0] + pieces[1:]
        said = await bound.ainvoke(text)
        assert (whole.text, whole.tool_calls) == (said.text, said.tool_calls)
        assert whole.usage_metadata == said.usage_metadata


MODES = """You work in modes.

The modes there are:

- look: To answer questions.
- draft: To write a plan.
- build: To write, change and run files.
"""


@pytest.mark.parametrize(
    ("line", "modes", "mode"),
    [
        ("write a.md: x", MODES, "draft"),
        ("write a.py: x", MODES, "build"),
        ("write a.md: x & run ls", MODES, "build"),
        (
            "write a.md: x",
            "\nThe modes there are:\n\n- make: To write anything.\n- and more: not here\n",
            "make",
        ),
        ("run ls", "no modes", None),
    ],
)
def test_it_asks_for_a_mode_that_there_is(line: str, modes: str, mode: str | None) -> None:
    """By what the modes say of themselves; None if none of them says that it has the tool."""
    answer = respond([SystemMessage(modes), HumanMessage(line)], {"switch_mode"})
    assert [call["args"]["mode_slug"] for call in answer.tool_calls] == ([mode] if mode else [])
    assert ("refused: this mode has no tool" in answer.text) is (mode is None)


async def test_a_refused_line_is_left_and_the_next_one_done(talk: Conversation) -> None:
    await talk.say("write a.txt: x\nlist")
    await talk.decide(REJECT)
    report = (await talk.messages())[-1].text
    assert "- write a.txt: x: refused: " in report
    assert "- list: . is empty." in report


async def test_a_mode_that_lacks_the_tool_too_does_not_loop(talk: Conversation) -> None:
    await talk.say("run ls\nwrite plan.md: x")
    await talk.decide(edit("switch_mode", mode_slug="architect", reason="rather"))
    assert [each["name"] for each in await talk.waiting()] == ["write_file"]
    await talk.decide(APPROVE)
    report = (await talk.messages())[-1].text
    assert "- run ls: refused: this mode has no tool for it." in report
    assert "- write plan.md: x: Created plan.md" in report
