"""``Prompt``: a user's message, read from the protocol's content blocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from acp import schema, text_block
from langchain_core.messages import HumanMessage

from modeshift.editor.files import Folder
from modeshift.editor.options import COMPACT, Options
from modeshift.graph.messages.untrusted import mark_as_data
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.plain_text import escape_invisible, to_one_line

PromptBlock = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
Content = str | list[str | dict[str, Any]]
"""The content of a LangChain message."""
MAX_TITLE = 80


@dataclass(frozen=True)
class Prompt:
    """A user's message; it holds at least one of the three."""

    mode: str | None
    """The mode of a slash command that the message begins with."""
    content: Content
    compacts: bool = False
    """Whether the slash command is ``/compact``."""

    @classmethod
    def parse(cls, blocks: Sequence[PromptBlock], options: Options, folder: Folder) -> Self:
        """Raises ``InvalidInputError`` for an empty message and for what no model accepts."""
        name = None
        first = blocks[0] if blocks else None
        if isinstance(first, schema.TextContentBlock) and (
            command := options.parse_command(first.text)
        ):
            name, rest = command
            blocks = [*([text_block(rest)] if rest else []), *blocks[1:]]
        content = _parse_content(blocks, folder)
        if name is None and not content:
            raise InvalidInputError("the message is empty; say something, or attach text")
        compacts = name == COMPACT and not options.has_mode(COMPACT)
        return cls(None if compacts else name, content, compacts)

    @property
    def title(self) -> str:
        """A title for a session that begins with it."""
        return to_one_line(HumanMessage(self.content).text.strip() or "An image", MAX_TITLE)


def parse_choice(blocks: Sequence[PromptBlock], options: Options) -> tuple[str, str] | None:
    """The option and the value of a message that is nothing but a choice."""
    match blocks:
        case [schema.TextContentBlock(text=text)]:
            found = options.parse_command(text)
            if found and options.has_mode(found[0]):
                return None if found[1].strip() else ("mode", found[0])
            return (found[0], found[1].strip()) if found and found[0] != COMPACT else None
    return None


def _parse_content(blocks: Sequence[PromptBlock], folder: Folder) -> Content:
    text, images = "", list[dict[str, Any]]()
    previous: object = None
    for block in blocks:
        match block:
            case schema.TextContentBlock():
                # Text around a mentioned file brings its own spaces; two texts are two lines.
                starts_line = (
                    isinstance(previous, schema.TextContentBlock) and previous.text[-1:] != "\n"
                )
                text += f"\n{block.text}" if starts_line else block.text
            case schema.ResourceContentBlock():
                text += _name_resource(block.uri, block.name, folder)
            case schema.EmbeddedResourceContentBlock(resource=resource):
                if isinstance(resource, schema.BlobResourceContents):
                    raise InvalidInputError(f"{resource.uri} is attached as bytes; attach text")
                source = _name_resource(resource.uri, resource.uri, folder)
                text += f"\n{mark_as_data(resource.text, source, resource.uri)}\n"
            case schema.ImageContentBlock():
                image = {"type": "image", "base64": block.data, "mime_type": block.mime_type}
                images.append(image)
            case _:
                raise InvalidInputError(
                    f"a message cannot contain {block.type}; it can contain text and images"
                )
        previous = previous if isinstance(block, schema.ImageContentBlock) else block
    if not images:
        return text if text.strip() else ""
    return [*([{"type": "text", "text": text}] if text.strip() else []), *images]


def _name_resource(uri: str, name: str, folder: Folder) -> str:
    """A name under which the model finds it: a file's path in the workspace, else a link."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise InvalidInputError(f"uri {uri[:300]!r} is not valid: {error}") from error
    if parts.scheme != "file":
        return escape_invisible(f"[{name}]({uri})")
    lines = f"#{parts.fragment}" if parts.fragment else ""
    # A line break in a name must not become one in what the user says.
    return escape_invisible(f"{folder.relative(Path(unquote(parts.path)))}{lines}")
