"""``refusal``: requests of which the SDK would drop a part without a word."""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from doors.editor.content import PromptBlock
from modes.plain_text import plain

_OPENING = ("session/new", "session/load", "session/resume")
_BLOCK = TypeAdapter[PromptBlock](PromptBlock)


def refusal(method: str, params: dict[str, Any]) -> str | None:
    """Why the request is not taken as it is; None where nothing would be lost.

    In a list the SDK leaves out what it cannot parse: an MCP server that is to widen the
    session, say, or half of a message.
    """
    if method in _OPENING:
        return _widened(params)
    blocks = params.get("prompt")
    if method == "session/prompt" and isinstance(blocks, list):
        for number, block in enumerate(blocks):
            try:
                _BLOCK.validate_python(block)
            except ValidationError:
                return f"prompt[{number}] is no content block of the protocol"
    return None


def _widened(params: dict[str, Any]) -> str | None:
    # By the names in Python too, which the SDK takes as well.
    if servers := params.get("mcpServers") or params.get("mcp_servers"):
        given = [*servers] if isinstance(servers, list | dict) else [servers]
        names = [one.get("name") if isinstance(one, dict) else one for one in given]
        told = plain(", ".join(map(repr, names)))
        return f"MCP servers are not supported yet ({told}); open the session without them"
    if params.get("additionalDirectories") or params.get("additional_directories"):
        return "additional directories are not supported; cwd is the workspace"
    return None
