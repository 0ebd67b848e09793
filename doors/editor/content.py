"""Content blocks of the protocol, from a user's message and into an editor's window."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    ContentToolCallContent,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
)
from langchain_core.messages import BaseMessage

from doors.editor.folder import Folder
from graph.messages.untrusted import mark_as_data, remove_marks
from modes.errors import InvalidInputError
from modes.plain_text import escaped, readable

PromptBlock = (
    TextContentBlock
    | ImageContentBlock
    | AudioContentBlock
    | ResourceContentBlock
    | EmbeddedResourceContentBlock
)
Said = str | list[str | dict[str, Any]]
"""The content of a message, as LangChain has it."""
_DATA_URL = re.compile(r"data:(image/[a-z]+);base64,(.+)", re.DOTALL)
MAX_SHOWN = 100_000


def said(blocks: Sequence[PromptBlock], folder: Folder) -> Said:
    """The content of a user's message; raises ``InvalidInputError`` for what no model takes."""
    text, images = "", list[dict[str, Any]]()
    before: object = None
    for block in blocks:
        match block:
            case TextContentBlock():
                # Around a file that is mentioned text has its own blanks; two texts are two.
                is_next = isinstance(before, TextContentBlock) and not before.text.endswith("\n")
                text += f"\n{block.text}" if is_next else block.text
            case ResourceContentBlock():
                text += _named(block.uri, block.name, folder)
            case EmbeddedResourceContentBlock(resource=resource):
                if isinstance(resource, BlobResourceContents):
                    raise InvalidInputError(f"{resource.uri} is attached as bytes; attach text")
                source = _named(resource.uri, resource.uri, folder)
                text += f"\n{mark_as_data(resource.text, source, resource.uri)}\n"
            case ImageContentBlock():
                image = {"type": "image", "base64": block.data, "mime_type": block.mime_type}
                images.append(image)
            case _:
                raise InvalidInputError(
                    f"a message takes no {block.type}; it takes text and images"
                )
        before = before if isinstance(block, ImageContentBlock) else block
    if not images:
        return text if text.strip() else ""
    return [*([{"type": "text", "text": text}] if text.strip() else []), *images]


def _named(uri: str, name: str, folder: Folder) -> str:
    """A resource, as the model can find it: a file by its path in the workspace."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise InvalidInputError(f"uri {uri[:300]!r} is none: {error}") from error
    if parts.scheme != "file":
        return escaped(f"[{name}]({uri})")
    lines = f"#{parts.fragment}" if parts.fragment else ""
    # A line break in a name is none in what the user says.
    return escaped(f"{folder.relative(Path(unquote(parts.path)))}{lines}")


def text_block(text: str) -> TextContentBlock:
    """A piece of text."""
    return TextContentBlock(type="text", text=text)


def shown(message: BaseMessage) -> Iterator[TextContentBlock | ImageContentBlock]:
    """What a message says, for a window that shows it anew."""
    content = message.content
    for block in [content] if isinstance(content, str) else content:
        match block:
            case str(text) | {"type": "text", "text": str(text)} if text:
                yield text_block(remove_marks(text))
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                found = _DATA_URL.fullmatch(url)
                if found is None:
                    yield text_block(url)
                else:
                    yield ImageContentBlock(type="image", mime_type=found[1], data=found[2])


def as_text(text: str) -> ContentToolCallContent:
    """Text, read as Markdown, on a tool call's card."""
    return ContentToolCallContent(type="content", content=text_block(text))


def as_output(text: str) -> ContentToolCallContent:
    """Somebody else's text, as it is: between fences that it cannot end, nothing unseen in it."""
    text = readable(text)
    if len(text) > MAX_SHOWN:
        half = MAX_SHOWN // 2
        left_out = f"[{len(text) - MAX_SHOWN} characters left out]"
        text = f"{text[:half]}\n{left_out}\n{text[-half:]}"
    longest = max((len(found) for found in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return as_text(f"{fence}\n{text}\n{fence}")
