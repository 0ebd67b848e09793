"""``Sender``: sends an editor updates of one session: words, thoughts, notices, todos."""

from collections.abc import Mapping, Sequence
from typing import Any

from acp import (
    plan_entry,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
)
from langchain_core.messages import AIMessage

from modeshift.editor.display.content import as_prose
from modeshift.editor.transport import Editor


class Sender:
    """Of one session; it knows which notices were shown."""

    def __init__(self, editor: Editor, session_id: str) -> None:
        self.editor = editor
        self.id = session_id
        self._notices = set[str]()

    async def send(self, update: Any) -> None:
        """Send one update."""
        await self.editor.client.session_update(session_id=self.id, update=update)

    async def say(self, text: str) -> None:
        """Send text of the agent's."""
        await self.send(update_agent_message_text(text))

    async def show_notice(self, text: str) -> None:
        """Show what a person should know, once."""
        if text not in self._notices:
            self._notices.add(text)
            await self.say(f"> Notice: {text}\n\n")

    async def show_waiting(self, descriptions: Sequence[str]) -> None:
        """Show the question that waits, without asking it."""
        for description in descriptions:
            await self.send(update_agent_message(as_prose(description).content))
        await self.say("\n\n> This waits for you, and is asked with your next message.\n\n")

    async def show_todos(self, todos: Sequence[Mapping[str, Any]]) -> None:
        """Show the todo list."""
        entries = [plan_entry(todo["content"], status=todo["status"]) for todo in todos]
        await self.send(update_plan(entries))

    def forget_notice(self, text: str) -> None:
        """Show it again the next time."""
        self._notices.discard(text)

    async def show_text(self, message: AIMessage) -> None:
        """Send the words and thoughts of an answer."""
        for block in message.content_blocks:
            if block["type"] == "reasoning" and (thought := block.get("reasoning")):
                await self.send(update_agent_thought_text(thought))
            elif block["type"] == "text" and (text := block["text"]):
                await self.say(text)
