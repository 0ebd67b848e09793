"""Files that always ask, in every mode: no policy, rule or memory lifts that.

Some steer people, tools or the agent itself. Whoever writes them decides what runs next: git's
settings and hooks, an editor's tasks, a shell's start-up files, this agent's modes and rules.
Others look as if they held a secret.
"""

import re
from itertools import pairwise
from typing import Literal

NEVER = frozenset({".git"})
"""Names below which no tool writes."""
ASK = frozenset(
    {
        *(".kilocodemodes", ".roomodes", ".kilocode", ".roo", ".kilocodeignore", ".rooignore"),
        *("agents.md", "claude.md", "gemini.md", ".gemini", ".codex", ".ssh", ".agents", ".kilo"),
        *(".roorules", ".kilocoderules", "agent.md", "agents.local.md", "claude.local.md"),
        *(".claude", ".cursor", ".cursorrules", ".clinerules", ".windsurf", ".zed", ".mcp.json"),
        *(".travis.yml", "jenkinsfile", "azure-pipelines.yml", ".buildkite", ".ci", ".drone.yml"),
        *(".vimrc", ".exrc", ".nvim.lua", ".fleet", ".continue", ".junie", ".aider.conf.yml"),
        *(".vscode", ".idea", ".devcontainer", ".github", ".gitlab-ci.yml", ".circleci"),
        *(".gitattributes", ".gitmodules", ".gitconfig", ".husky", ".pre-commit-config.yaml"),
        *(".envrc", ".env", ".bashrc", ".bash_profile", ".bash_login", ".profile"),
        *(".zshrc", ".zshenv", ".zprofile", ".npmrc", ".yarnrc"),
        *("mcp.json", "langgraph.json", "opencode.json", "opencode.jsonc", ".opencode"),
        *(".goosehints", "bitbucket-pipelines.yml", "cloudbuild.yaml", "cloudbuild.yml"),
        *("cloudbuild.json", "appveyor.yml", "appveyor.yaml", ".appveyor.yml", ".appveyor.yaml"),
        *(".woodpecker", ".woodpecker.yml", ".woodpecker.yaml", ".gitea", ".forgejo"),
        *("mise.toml", "mise.local.toml", ".mise.toml", ".mise.local.toml", ".mise"),
        *("mise/config.toml", ".cargo/config", ".cargo/config.toml"),
        *(".hg/hgrc", ".hg/hgrc-not-shared"),
    }
)
"""Names, in lower case, that ask before a write.

With a slash it is that name in that folder only; programs write the rest of the folder.
"""
SECRETS = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
    *(".ssh", ".gnupg", ".aws", ".kube", ".password-store", ".vault-token"),
    *(".git-credentials", ".pypirc", ".npmrc", ".yarnrc.yml", "credentials.json"),
    *("secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml", "service-account*.json"),
    *("*.tfstate", "*.tfvars"),
)
"""Patterns of names, in lower case, that ask before a read."""
DEPENDENCIES = frozenset({"node_modules", "site-packages", ".venv", "venv", ".tox", ".nox"})
"""Folders of what others have written, certificates and instructions among it: nothing in them is
protected from commands, and nothing in them is told to the model."""
NO_SECRETS = frozenset({".env.example", ".env.sample", ".env.template", ".env.dist"})


def get_protection(path: str) -> Literal["ask", "deny"] | None:
    """What a write to ``path``, relative to the workspace, needs at least; None for nothing."""
    ordered = path.casefold().split("/")
    names = {*ordered, *map("/".join, pairwise(ordered))}
    if NEVER & names:
        return "deny"
    return "ask" if ASK & names or any(map(_WITH_SLUG.fullmatch, ordered)) else None


def is_protected(folder: str, name: str) -> bool:
    """Whether ``name`` is protected in ``folder``, whose path is empty or ends with a slash."""
    name = name.casefold()
    if name in ASK or name in NEVER or (name[0] == "." and _WITH_SLUG.fullmatch(name)):
        return True
    return name in _BELOW and f"{folder.casefold()[:-1].rpartition('/')[2]}/{name}" in ASK


def is_secret(path: str) -> bool:
    """Whether the file, or a folder above it, looks as if it held a secret."""
    path = path.casefold()
    # One search for all names together; only then name by name, for the exceptions.
    return _SECRET.search(path) is not None and any(map(_looks_secret, path.split("/")))


def _looks_secret(name: str) -> bool:
    return _SECRET.search(name) is not None and name not in NO_SECRETS


def _translate(name: str) -> str:
    return re.escape(name).replace(r"\*", "[^/]*")


_WITH_SLUG = re.compile(r"\.(?:roo|cline|kilocode)rules-.*")
_BELOW = frozenset(name.partition("/")[2] for name in ASK if "/" in name)
_SECRET = re.compile(rf"(?:^|/)(?:{'|'.join(map(_translate, SECRETS))})(?:/|$)")
