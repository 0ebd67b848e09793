"""How a tool of an MCP server is called: ``mcp__server__tool``, and what patterns that takes.

No name of a server can be made that a rule for another one matches.
"""

import re
from hashlib import sha256

from modeshift.modes.rules.globs import check_glob

PREFIX = "mcp__"
MAX_CHARACTERS = 64
"""What every provider takes."""
MAX_SERVER = 24
_TAKEN = re.compile(r"[^a-zA-Z0-9_-]+")
_LIKE_A_DIGEST = re.compile(r"-[0-9a-f]{8}$")
_PATTERN = re.compile(r"mcp__[a-zA-Z0-9_*?-]+")


def name_server_tool(server: str, tool: str) -> str:
    """The name under which models, rules and people know the tool."""
    plain = _LIKE_A_DIGEST.sub("", re.sub("_{2,}", "_", server).strip("_"))
    part = _shorten(server, MAX_SERVER, plain)
    return f"{PREFIX}{part}__{_shorten(tool, MAX_CHARACTERS - len(PREFIX) - len(part) - 2, tool)}"


def _shorten(given: str, limit: int, wanted: str) -> str:
    """``wanted`` in characters that are taken; with a digest of ``given`` if it is not that."""
    plain = _TAKEN.sub("-", wanted)
    if plain == given and len(plain) <= limit:
        return plain
    digest = sha256(given.encode()).hexdigest()[:8]
    return f"{plain[: limit - 9]}-{digest}"


def is_server_tool(name: str) -> bool:
    """Whether it is the name of a server's tool, or a pattern of such names."""
    return name.startswith(PREFIX)


def get_server_part(name: str) -> str:
    """What the names of all tools of one server begin with; empty for other tools."""
    return "__".join(name.split("__")[:2]) if is_server_tool(name) else ""


def check_name_pattern(pattern: str) -> None:
    """Raise ``ValueError`` for a pattern that no tool of a server can match."""
    check_glob(pattern)
    if _PATTERN.fullmatch(pattern) is None:
        raise ValueError(
            f"{pattern!r} names no tool of an MCP server: write mcp__server__tool, where "
            "'*' stands for any characters; other characters than letters, digits, '_' and '-' "
            "are '-' in it"
        )
