"""``write`` and others: calls of a scripted model; ``asks`` and others: what a thread then has."""

from typing import Any

from tests.harness.conversation import Conversation
from tests.harness.scripted import Call

ALWAYS = {"type": "approve", "remember": True}
QUESTION: Call = ("ask_followup_question", {"question": "?"})
DONE: Call = ("attempt_completion", {"result": "done"})


def read(path: str = "a.txt") -> Call:
    return "read_file", {"path": path}


def write(path: str = "a.txt", content: str = "x") -> Call:
    return "write_file", {"path": path, "content": content}


def replace_in(path: str, old: str, new: str = "x") -> Call:
    return "edit_file", {"path": path, "edits": [{"old": old, "new": new}]}


def run(line: str, **more: Any) -> Call:
    return "execute_command", {"command": line, **more}


def to(slug: str, reason: str = "why not") -> Call:
    return "switch_mode", {"mode_slug": slug, "reason": reason}


def task(slug: str = "code", message: str = "Do it.", **more: Any) -> Call:
    return "new_task", {"mode_slug": slug, "message": message, **more}


def suggest(slug: str) -> Call:
    follow_up = [{"text": "Yes", "mode": slug}]
    return "ask_followup_question", {"question": "?", "follow_up": follow_up}


def todo(content: str, **more: Any) -> Call:
    return "update_todo_list", {"todos": [{"content": content, **more}]}


def respond(text: str) -> dict[str, Any]:
    return {"type": "respond", "message": text}


async def asks(talk: Conversation) -> list[str]:
    """The names of what a person is asked about."""
    return [str(request["name"]) for request in await talk.waiting()]


async def result_of(talk: Conversation, id: str = "") -> str:
    """The text of this call's result, or of the last one's."""
    results = await talk.results()
    return results[id or [*results][-1]].text
