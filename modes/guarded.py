"""Files that steer people, tools or the agent itself: no policy, rule or memory lifts the guard.

Whoever writes them decides what runs next: git by its settings and hooks, an editor by
its tasks, a shell by its start-up files, this agent by its modes and rules.
"""

from typing import Literal

NEVER = frozenset({".git"})
"""Names below which no file tool writes."""
ASK = frozenset(
    {
        *(
            ".kilocodemodes",
            ".roomodes",
            ".kilocode",
            ".roo",
            "agents.md",
            "claude.md",
            "gemini.md",
        ),
        *(".claude", ".cursor", ".cursorrules", ".clinerules", ".windsurf", ".zed", ".mcp.json"),
        *(".vscode", ".idea", ".devcontainer", ".github", ".gitlab-ci.yml", ".circleci"),
        *(".gitattributes", ".gitmodules", ".gitconfig", ".husky", ".pre-commit-config.yaml"),
        *(".envrc", ".env", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".npmrc", ".yarnrc"),
    }
)
"""Names, in small letters, for which a person is asked before a write."""


def guard(path: str) -> Literal["ask", "deny"] | None:
    """What holds at least for a write to ``path``, resolved and relative to the workspace."""
    names = set(path.casefold().split("/"))
    if NEVER & names:
        return "deny"
    return "ask" if ASK & names else None
