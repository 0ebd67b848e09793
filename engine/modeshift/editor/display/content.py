"""Content blocks to show: a stored message, our own words, other people's words."""

import re
import textwrap
from collections.abc import Iterator

from acp import image_block, schema, text_block, tool_content
from langchain_core.messages import BaseMessage

from modeshift.graph.messages.untrusted import remove_marks
from modeshift.modes.plain_text import make_readable

MAX_SHOWN = 100_000
WIDTH = 80
_MARKUP = re.compile(
    r"[\\`*<>\[\]|~&$]|(?<![^\W_])_|_(?![^\W_])|^[ \t]*(?:#|[-+=]{2,})", re.MULTILINE
)
"""What could be a picture, a link, a heading or an entity; a list's dash may stay."""
_DATA_URL = re.compile(r"data:(image/[a-z]+);base64,(.+)", re.DOTALL)


def content_blocks(
    message: BaseMessage,
) -> Iterator[schema.TextContentBlock | schema.ImageContentBlock]:
    """The blocks that show a stored message."""
    content = message.content
    for block in [content] if isinstance(content, str) else content:
        match block:
            case str(text) | {"type": "text", "text": str(text)} if text:
                yield text_block(remove_marks(text))
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                found = _DATA_URL.fullmatch(url)
                yield text_block(url) if found is None else image_block(found[2], found[1])


def as_text(text: str) -> schema.ContentToolCallContent:
    """Our own text on a tool call; the editor reads it as Markdown."""
    return tool_content(text_block(text))


def as_prose(text: str) -> schema.ContentToolCallContent:
    """Other people's prose, as wrapped Markdown in which nothing of theirs is a mark-up."""
    lines = [
        textwrap.fill(line, WIDTH, break_long_words=False, break_on_hyphens=False)
        for line in _MARKUP.sub(r"\\\g<0>", make_readable(text)).splitlines()
    ]
    return as_text("  \n".join(lines))  # two blanks keep the line break


def as_output(text: str, most: int = MAX_SHOWN) -> schema.ContentToolCallContent:
    """Foreign text, shown literally: inside a fence that it cannot close, nothing invisible."""
    text = make_readable(text)
    if len(text) > most:
        half = most // 2
        omitted = f"[{len(text) - most} characters left out]"
        text = f"{text[:half]}\n{omitted}\n{text[-half:]}"
    longest = max((len(found) for found in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return as_text(f"{fence}\n{text}\n{fence}")
