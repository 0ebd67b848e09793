"""What the provider's model says, by the user's last words and what has come since."""

from collections.abc import Sequence
from threading import Semaphore

from langchain_core.messages import BaseMessage

from tests.harness.sleepers import new_mark
from tests.provider.script import Answer, Call, Failure, Step, say

GPT = "openai:gpt-5.5"
CLAUDE = "anthropic:claude-sonnet-5-5"
STORY = "Once upon a time there was an agent that worked in modes."
WRITE = Call("write_file", {"path": "a.txt", "content": "a"})
COLOUR = {"question": "Which colour?"}
COLOURS = {**COLOUR, "follow_up": [{"text": "Red"}, {"text": "Blue"}]}
TWO_LINES = f"ls # {'the files ' * 30}, then\ntouch too-much"
EDITS = [{"old": "x", "new": "y", "replace_all": True}, {"old": "one", "new": "two"}]
EVERYWHERE = {"path": "a.txt", "edits": EDITS}
MARK = new_mark()
GO_ON = Semaphore(0)
"""The rest of an answer that comes slowly; released by the test."""
BACKGROUND = {"command": f"sleep {MARK}", "background": True}
PICTURE = {
    "question": "![a picture](http://127.0.0.1/leak)",
    "follow_up": [{"text": f"Reject {n}", "mode": "code" if n == 1 else None} for n in range(9)],
}
STEPS: dict[str, Step] = {
    STORY: Answer(STORY, go_on=GO_ON),
    "think": Answer("Done.", thinking="Let me see."),
    "slowly write": Answer("I write, I write, I write, and I write.", (WRITE,), go_on=GO_ON),
    "fail": Failure("quota", retry_after="0.01"),
    "bad key": Failure("key"),
    "no permission": Failure("permission"),
    "question": Answer("", (Call("ask_followup_question", COLOURS),)),
    "open question": Answer("", (Call("ask_followup_question", COLOUR),)),
    "broken call": Answer("", (Call("write_file", '{"path": "a'),)),
    "unknown tool": Answer("", (Call("launch_rocket", {"to": "Mars"}),)),
    "declined": Answer("Half a", reason="content_filter"),
    "cut off": Answer("Half a", is_truncated=True),
    "same id": Answer("", (Call("list_files", {}, "call_0"),)),
    "same id again": Answer("", (Call("read_file", {"path": "a.txt"}, "call_0"),)),
    "long id": Answer("", (Call("list_files", {}, "call_" + "x" * 30),)),
    "long id again": Answer("", (Call("read_file", {"path": "a.txt"}, "call_" + "x" * 30),)),
    "two lines": Answer("", (Call("execute_command", {"command": TWO_LINES}),)),
    "everywhere": Answer("", (Call("edit_file", EVERYWHERE),)),
    "background": Answer("", (Call("execute_command", BACKGROUND),)),
    "picture": Answer("", (Call("ask_followup_question", PICTURE),)),
    "two writes": Answer("", (WRITE, Call("write_file", {"path": "b.txt", "content": "b"}))),
}


def answer(messages: Sequence[BaseMessage]) -> Step:
    last = messages[-1]
    text = next(m.text for m in reversed(messages) if m.type == "human")
    if last.text.startswith("<data-") and "Started in the background" in last.text:
        return Answer("", (WRITE,))
    if last.type == "tool":
        return say(f"It says: {last.text}")
    # Behind a failed turn a message goes together with the one before it.
    return STEPS.get(text) or STEPS.get(text.rpartition("\n\n")[2], say("Here I am."))
