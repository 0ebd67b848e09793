"""``make renew``: write all that is derived from modes, prompts, tools and code anew.

The tables and the diagram in README.md and docs/, the snapshots of texts, the recordings of the
scripted provider, and, with Chromium, the pictures of the page. Says which files have changed.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from tests.harness.root import CONFIG, ENGINE, ROOT

STEPS = {
    "tables and diagrams": ("tests.harness.readme",),
    "figures": ("benchmarks.stats",),
    "snapshots": ("pytest", "-q", "-n", "3", *CONFIG, "-k", "snapshots"),
    "recordings": ("tests.harness.record",),
    "pictures": ("tests.clients.page.screenshots", "--if-old"),
}


def main() -> int:
    """Run the steps; gives the exit code."""
    sys.stdout.write("This takes about a minute on two quiet cores\n")
    before = dict(_digests())
    failed = [name for name, command in STEPS.items() if not _succeeds(name, *command)]
    after = dict(_digests())
    changed = [name for name in sorted(before | after) if before.get(name) != after.get(name)]
    for name in changed:
        sys.stdout.write(f"  {name}: {'written' if name in after else 'removed'}\n")
    if not changed:
        sys.stdout.write("  nothing has changed\n")
    if failed:
        sys.stdout.write(f"not renewed, or not all of it: {', '.join(failed)}; see above\n")
    return bool(failed)


def _succeeds(name: str, *command: str) -> bool:
    sys.stdout.write(f"{name} ...\n")
    sys.stdout.flush()
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ENGINE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "WRITE": "1", "SCRIPTED": "1", "T": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.stdout.write(done.stdout + done.stderr)
    return done.returncode == 0


def _digests() -> Iterator[tuple[str, str]]:
    """Of each file that a step may write."""
    for folder, pattern in (
        (".", "*.md"),
        ("docs", "*.md"),
        ("docs/pictures", "*"),
        ("tests/snapshots", "*"),
        ("engine/tests/snapshots", "*"),
        ("cassettes", "*/*.yaml"),
        ("engine/tests/cassettes", "*/*.yaml"),
    ):
        for file in (ROOT / folder).glob(pattern):
            yield Path(file).relative_to(ROOT).as_posix(), sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
