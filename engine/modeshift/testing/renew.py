"""``make renew``: write all that is derived anew, and say what was written and why.

The tables and the diagram between the marks of README.md and docs/, the snapshots, and of the
recordings of the scripted provider those that do not play any more. What has lost its mode or tool
is removed.
"""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from modeshift.modes.errors import ConfigurationError
from modeshift.project import find_root
from modeshift.testing.parts import write_parts

DERIVED = ("*.md", "docs/**/*.md", "tests/snapshots/**/*", "cassettes/*/*.yaml")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:xdist")


def main() -> int:
    """Run the steps; returns the exit code."""
    root = find_root()
    before = _digest_files(root)
    try:
        write_parts(root)
    except ConfigurationError as error:
        sys.stderr.write(f"modeshift: {error}\n")
        return 1
    is_well = _succeeds(root, "-k", "snapshots", WRITE="1")
    # Recordings that play stay as they are, whoever was recorded.
    played = ("-m", "recorded", "-o", "cache_dir=.pytest_cache")
    if not _succeeds(root, *played, "--prune", is_quiet=True):
        is_well &= _succeeds(root, *played, "--last-failed", "--record=scripted")
    after = _digest_files(root)
    changed = sorted(name for name, _ in {*before.items()} ^ {*after.items()})
    for name in dict.fromkeys(changed):
        why = "as what it is made of has changed" if name in after else "as nothing has it any more"
        sys.stdout.write(f"{name}: {'written' if name in after else 'removed'}, {why}\n")
    if not changed:
        sys.stdout.write("nothing has changed\n")
    return not is_well


def _succeeds(root: Path, *options: str, is_quiet: bool = False, **variables: str) -> bool:
    done = subprocess.run(  # noqa: S603  # pytest
        [*PYTEST, *options],
        cwd=root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    is_well = done.returncode in (0, 5)  # 5: there are none
    if not is_well and not is_quiet:
        sys.stdout.write(done.stdout + done.stderr)
    return is_well


def _digest_files(root: Path) -> dict[str, str]:
    files = [file for pattern in DERIVED for file in root.glob(pattern) if file.is_file()]
    return {str(file.relative_to(root)): sha256(file.read_bytes()).hexdigest() for file in files}


if __name__ == "__main__":
    sys.exit(main())
