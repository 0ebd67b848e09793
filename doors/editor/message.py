"""``Message``: what a user has sent, as the thread gets it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from acp.schema import TextContentBlock
from langchain_core.messages import HumanMessage

from doors.editor.content import PromptBlock, Said, said, text_block
from doors.editor.folder import Folder
from doors.editor.options import Options
from modes.errors import InvalidInputError
from modes.plain_text import plain

MAX_TITLE = 80


@dataclass(frozen=True)
class Message:
    """One of the two may be missing."""

    mode: str | None
    """Of a slash command in front."""
    content: Said

    @classmethod
    def of(cls, blocks: Sequence[PromptBlock], options: Options, folder: Folder) -> Self:
        """Raises ``InvalidInputError`` for what no model takes, and for nothing at all."""
        mode = None
        first = blocks[0] if blocks else None
        if isinstance(first, TextContentBlock) and (found := options.command(first.text)):
            mode, rest = found
            blocks = [*([text_block(rest)] if rest else []), *blocks[1:]]
        content = said(blocks, folder)
        if mode is None and not content:
            raise InvalidInputError("the message is empty; say something, or attach text")
        return cls(mode, content)

    @property
    def title(self) -> str:
        """For a session that begins with it."""
        return plain(HumanMessage(self.content).text.strip() or "An image", MAX_TITLE)
