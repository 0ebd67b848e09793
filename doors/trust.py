"""``make trust WORKSPACE=...``: show a workspace's own modes and rules, and trust them.

REVOKE=1      trust them no more
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from graph.settings import ENV_FILE, Settings, load_settings
from modes.errors import ModeFileError, UserError
from modes.modes_file import parse_modes
from tools.project import ProjectFiles, read_project
from tools.trust import TrustFile
from tools.workspace import Workspace


def main(env_file: Path = ENV_FILE) -> None:
    """Record the trust and print what was trusted, or end with a message."""
    try:
        settings = load_settings(env_file)
        print("\n".join(_run(settings)))
    except UserError as error:
        sys.exit(f"modeshift: {error}")


def _run(settings: Settings) -> Iterator[str]:
    workspace = Workspace(settings.workspace)
    trust = TrustFile(settings.trust_file)
    if os.environ.get("REVOKE") == "1":
        had = trust.revoke(workspace.root)
        yield f"{workspace.root} {'is trusted no more' if had else 'was not trusted'}"
        return
    files = read_project(workspace)
    if not files.texts:
        yield f"{workspace.root} has no modes or rules of its own; there is nothing to trust"
        return
    trust.trust(workspace.root, files.digest)
    yield f"trusted in {workspace.root}, until one of them changes:"
    yield from _contents(files)


def _contents(files: ProjectFiles) -> Iterator[str]:
    for name, text in files.texts.items():
        yield f"  {name} ({len(text)} characters)"
        if name in files.modes:
            yield from _modes(name, text)
    for problem in files.problems:
        yield f"  left out: {problem}"


def _modes(name: str, text: str) -> Iterator[str]:
    try:
        parsed = parse_modes(text, name)
    except ModeFileError as error:
        yield f"    does not load: {error}"
        return
    for mode in parsed.modes:
        groups = ", ".join(
            grant.group + (f" on {grant.file_regex!r}" if grant.file_regex else "")
            for grant in mode.groups
        )
        yield f"    mode {mode.slug}: {groups or 'no groups'}"
        for tool, patterns in mode.permissions.items():
            for pattern, kind in patterns.items():
                yield f"      {kind} {tool} {pattern!r}"


if __name__ == "__main__":
    main()
