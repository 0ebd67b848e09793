"""Files of other programs' conventions that are not read, and what to do instead: one table."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from modeshift.graph.configuration.prompt_rules import AGENTS

_RULES = f"put what holds for every agent into {AGENTS}, or rules into .kilocode/rules/"
_IGNORES = "it protects nothing here; .rooignore and .kilocodeignore do"
_COMMANDS = "there are no commands of a project's own; a mode or a skill can say as much"
_SKILLS = "skills are read from .kilocode/skills, .agents/skills and .claude/skills"
_MCP = "MCP servers are read from .kilocode/mcp.json"
_DENIALS = (
    "modes are read from .kilocodemodes, MCP servers from .kilocode/mcp.json; what its permissions "
    "deny is not denied here: deny it in permissions.yaml in your configuration folder"
)
_IN_KILO = {"agent": _DENIALS, "mode": _DENIALS, "command": _COMMANDS, "skill": _SKILLS}
UNREAD = {
    **{
        f"{folder}{name}": _DENIALS
        for folder in ("", ".kilo/", ".kilocode/", ".opencode/")
        for name in ("kilo.json", "kilo.jsonc", "opencode.json", "opencode.jsonc")
    },
    **{
        f"{folder}/{name}": instead
        for folder in (".kilo", ".kilocode", ".opencode")
        for singular, instead in _IN_KILO.items()
        for name in (singular, f"{singular}s")
        if f"{folder}/{name}" != ".kilocode/skills"
    },
    "CLAUDE.md": f"make {AGENTS} a link to it, or move it there",
    "CLAUDE.local.md": _RULES,
    "AGENT.md": f"its name here is {AGENTS}",
    "AGENTS.local.md": "put rules of your own into rules/ in your configuration folder",
    "GEMINI.md": _RULES,
    ".cursorrules": _RULES,
    ".cursor/rules": _RULES,
    ".windsurfrules": _RULES,
    ".windsurf/rules": _RULES,
    ".github/copilot-instructions.md": _RULES,
    ".github/instructions": _RULES,
    ".goosehints": _RULES,
    ".junie/guidelines.md": _RULES,
    ".continue/rules": _RULES,
    ".kilo/rules": _RULES,
    ".kilo/rules-*": "put what holds in a mode into .kilocode/rules-<mode>/",
    **dict.fromkeys((".kilo/mcp", ".kilo/mcp.json", ".kilocode/mcp"), _MCP),
    ".claude/agents": "modes are read from .kilocodemodes",
    ".kilocode/workflows": _COMMANDS,
    ".kilo/workflows": _COMMANDS,
    ".clinerules/workflows": _COMMANDS,
    ".roo/commands": _COMMANDS,
    ".claude/commands": _COMMANDS,
    ".cursorignore": _IGNORES,
    ".clineignore": _IGNORES,
    ".geminiignore": _IGNORES,
    ".aiexclude": _IGNORES,
}
"""By path in the workspace, which may have a ``*``."""


def find_unread(root: Path, users: Iterable[Path]) -> Iterator[str]:
    """A notice for each of them that is there, and for skills in the user's folders. Blocks."""
    agents = os.path.realpath(root / AGENTS)
    for pattern, instead in UNREAD.items():
        for file in sorted(root.glob(pattern)) if "*" in pattern else [root / pattern]:
            if os.path.lexists(file) and os.path.realpath(file) != agents:
                yield f"{file.relative_to(root)} is not read: {instead}"
    for skills in (one for folder in users for one in sorted(folder.glob("skills*/"))):
        yield f"{skills} is not read: no tool reads outside the workspace; copy what it needs there"
