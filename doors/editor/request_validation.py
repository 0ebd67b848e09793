"""Which messages are passed on to the SDK, which would misread some and drop parts of others."""

import json
from typing import Any

from acp import RequestError

from modes.plain_text import to_one_line

INVALID_REQUEST = -32600
INVALID_PARAMS = -32602

_OPENING = ("session/new", "session/load", "session/resume")


def find_fault(message: Any, line: bytes) -> RequestError | None:
    """Why the message, parsed from ``line``, is not passed on; None for a valid one."""
    problem = _find_invalid_part(message) or _find_invalid_text(message, line)
    if problem is not None:
        return RequestError(INVALID_REQUEST, problem)
    if message.get("method") not in _OPENING:
        return None
    problem = _find_unsupported_param(message.get("params") or {})
    return None if problem is None else RequestError(INVALID_PARAMS, problem)


def is_response(message: Any) -> bool:
    """Whether it is a response (a result or an error), to which no error may be sent."""
    return isinstance(message, dict) and "method" not in message and "id" in message


def normalize(message: dict[str, Any]) -> dict[str, Any]:
    """Remove what would mislead the SDK.

    It spreads ``_meta`` over the checked parameters, by name. In a response it looks for a
    result first, also beside an error, and takes ``"error": null`` for a failure.
    """
    if "method" not in message:
        message.pop("error" if message.get("error") is None else "result", None)
    elif (params := message.get("params")) is not None:
        params.pop("_meta", None)
        params.pop("field_meta", None)  # the SDK accepts its Python name as well
    return message


def _find_invalid_part(message: Any) -> str | None:
    if not isinstance(message, dict):
        return "a message must be an object"
    if "method" not in message:
        has_id = isinstance(message.get("id"), int)
        has_answer = "result" in message or isinstance(message.get("error"), dict)
        return None if has_id and has_answer else "a message must have a method or be a response"
    if not isinstance(message["method"], str):
        return "a method must be a string"
    if not isinstance(message.get("params"), dict | None):
        return "params must be an object"
    if not isinstance(message.get("id"), str | int | None):
        return "an id must be a string or a number"
    return None


def _find_invalid_text(message: Any, line: bytes) -> str | None:
    if b"\\u" not in line:
        return None
    try:
        json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "a text contains a lone surrogate"
    except RecursionError:
        return "a message is nested too deeply"
    return None


def _find_unsupported_param(params: dict[str, Any]) -> str | None:
    """What is to extend a session; the SDK leaves out of the lists what it cannot parse."""
    # The SDK accepts the names in Python as well.
    if servers := params.get("mcpServers") or params.get("mcp_servers"):
        given = [*servers] if isinstance(servers, list | dict) else [servers]
        names = [one.get("name") if isinstance(one, dict) else one for one in given]
        shown = to_one_line(", ".join(map(repr, names)))
        return f"MCP servers are not supported yet ({shown}); open the session without them"
    if params.get("additionalDirectories") or params.get("additional_directories"):
        return "additional directories are not supported; cwd is the workspace"
    return None
