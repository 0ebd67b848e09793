"""Files of other programs' conventions that are not read, and what to do instead: one table."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from graph.configuration.prompt_rules import AGENTS

_RULES = f"put what holds for every agent into {AGENTS}, or rules into .kilocode/rules/"
_IGNORES = "it protects nothing here; .rooignore and .kilocodeignore do"
_COMMANDS = "there are no commands of a project's own; a mode or a skill can say as much"
UNREAD = {
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
    ".kilo/agents": "modes are read from .kilocodemodes",
    ".kilocode/agents": "modes are read from .kilocodemodes",
    ".claude/agents": "modes are read from .kilocodemodes",
    "kilo.json": "modes are read from .kilocodemodes, and rules from .kilocode/rules/",
    "kilo.jsonc": "modes are read from .kilocodemodes, and rules from .kilocode/rules/",
    ".kilocode/workflows": _COMMANDS,
    ".kilo/commands": _COMMANDS,
    ".clinerules/workflows": _COMMANDS,
    ".roo/commands": _COMMANDS,
    ".claude/commands": _COMMANDS,
    ".kilo/skills": "skills are read from .kilocode/skills, .agents/skills and .claude/skills",
    ".cursorignore": _IGNORES,
    ".clineignore": _IGNORES,
    ".geminiignore": _IGNORES,
    ".aiexclude": _IGNORES,
}
"""By path in the workspace."""


def find_unread(root: Path, users: Iterable[Path]) -> Iterator[str]:
    """A notice for each of them that is there, and for skills in the user's folders. Blocks."""
    agents = os.path.realpath(root / AGENTS)
    for name, instead in UNREAD.items():
        file = root / name
        if os.path.lexists(file) and os.path.realpath(file) != agents:
            yield f"{name} is not read: {instead}"
    for skills in (one for folder in users for one in sorted(folder.glob("skills*/"))):
        yield f"{skills} is not read: no tool reads outside the workspace; copy what it needs there"
