"""``build_git_environment``: in the sandbox git shows no secret, and looks at no other folder."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from modeshift.modes.rules.files import NO_SECRETS, SECRETS
from modeshift.modes.rules.matching import command_words
from modeshift.tools.processes.process import build_environment as build_plain

ATTRIBUTES = Path(os.path.realpath("/run"), "modeshift.gitattributes")
"""Where ``build_attributes`` are mounted for a line that ``shows_changes``."""
# In a file of attributes it may mean something else.
_UNSURE = re.compile(r'[^ -~]|["\\]')


def shows_changes(line: str) -> bool:
    """Whether a line for the shell is a single git command that shows changes."""
    words = command_words(line) or ()
    return len(words) > 1 and words[0] == "git" and words[1] in ("diff", "status", "show", "log")


def build_git_environment(line: str, workspace: Path, *, is_read_only: bool) -> dict[str, str]:
    """The environment of a line in the sandbox.

    Where the line ``is_read_only``, and runs unasked, git looks at no folder but the workspace's
    repository, whatever that repository calls its work tree.
    """
    settings = {}
    if shows_changes(line):
        settings["core.attributesFile"] = str(ATTRIBUTES)
    if not is_read_only:
        return build_plain(settings)
    # In a submodule git would start another git, to look at its files.
    settings["diff.ignoreSubmodules"] = "dirty"
    environment = build_plain(settings)
    for folder in (workspace, *workspace.parents):  # as git finds its repository
        if os.path.lexists(folder / ".git"):
            return {**environment, "GIT_WORK_TREE": str(folder)}
    return environment


def build_attributes(ignored: Iterable[str] = ()) -> bytes:
    """For files that look like secrets, old ones too: git says that they differ, and not how.

    So too for what ignore files name, in any folder. A repository's own ``.gitattributes`` win
    over them.
    """
    secrets = list(map(_match_any_case, SECRETS))
    lines = [f"{name} -diff" for name in secrets]
    lines += [f"{_match_any_case(name)} !diff" for name in sorted(NO_SECRETS)]
    lines += [f"**/{name}/** -diff" for name in secrets]
    # Attributes are for files: a folder's name stands for nothing in it.
    named = [f"**/{_match_any_case(_UNSURE.sub('*', pattern))}" for pattern in ignored]
    lines += [f'"{name}{below}" -diff' for name in named for below in ("", "/**")]
    return "\n".join([*lines, ""]).encode()


def _match_any_case(name: str) -> str:
    return "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in name)
