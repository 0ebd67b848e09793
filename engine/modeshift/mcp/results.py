"""What a call returned, as content of a message: bounded, and nothing that a model cannot take."""

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from typing import Any

from mcp import types

Block = dict[str, Any]
IMAGES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""The kinds that models take, and how each begins."""
MAX_IMAGE_BYTES = 3_500_000
MAX_IMAGES = 5


def read_content(result: types.CallToolResult) -> list[Block]:
    """A text block of all that is text and, behind it, image blocks."""
    blocks = list(_read_blocks(result.content))
    if result.structured_content is not None and not any(one["type"] == "text" for one in blocks):
        blocks.insert(0, _say(json.dumps(result.structured_content, ensure_ascii=False)))
    images = [one for one in blocks if one["type"] == "image"]
    if more := len(images) - MAX_IMAGES:
        blocks += [_say(f"[{more} more images left out]")] if more > 0 else []
    texts = [one["text"] for one in blocks if one["type"] == "text"]
    if any("\ufffd" in text for text in texts):
        texts.append("[what is no character is shown as \ufffd]")
    return [*([_say("\n\n".join(texts))] if texts else []), *images[:MAX_IMAGES]]


def _read_blocks(content: Iterable[types.ContentBlock]) -> Iterator[Block]:
    for block in content:
        match block:
            case types.TextContent():
                yield _say(block.text)
            case types.ImageContent():
                yield _read_image(block.data, block.mime_type, "image")
            case types.AudioContent():
                yield _say(f"[audio, {block.mime_type}: left out]")
            case types.ResourceLink():
                yield _say(f"[resource {block.name!r}: {block.uri}] {block.description or ''}")
            case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
                yield _say(f"[resource {resource.uri}]\n{resource.text}")
            case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
                kind = resource.mime_type or "of no kind"
                yield _read_image(resource.blob, kind, f"resource {resource.uri}")


def _read_image(data: str, kind: str, name: str) -> Block:
    """What is plainly no image is left out; what only a provider finds, ``call_model`` replaces."""
    try:
        found = base64.b64decode(data, validate=True)
    except binascii.Error:
        return _say(f"[{name}, {kind}: left out, as it is not base64]")
    if kind not in IMAGES or not found.startswith(IMAGES[kind]):
        return _say(f"[{name}, {kind}, {len(found)} bytes: left out]")
    if len(found) > MAX_IMAGE_BYTES:
        return _say(f"[{name}, {kind}, {len(found)} bytes: left out, as it is too large]")
    return {"type": "image", "base64": data, "mime_type": kind}


def _say(text: str) -> Block:
    return {"type": "text", "text": text}
