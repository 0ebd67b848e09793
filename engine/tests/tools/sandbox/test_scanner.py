"""What has changed is protected before the next command; what ``make doctor`` tries and tells."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from modeshift.modes.errors import ToolFailedError
from modeshift.sandbox import folder_watcher
from modeshift.sandbox.bubblewrap import find_bubblewrap
from modeshift.sandbox.sandbox import TRIED
from modeshift.sandbox.scan import FolderLister, Scan, Scanner
from modeshift.tools.processes.sandboxes import (
    NoSandbox,
    SandboxCheck,
    SandboxOptions,
    find_sandbox,
)
from modeshift.tools.workspace.workspace import Workspace
from tests.tables import rows
from tests.tools.racing import repeating
from tests.tools.sandbox.commands import needs_sandbox, runner, sandbox, scan, write

CHANGES = {
    "a new file": ("touch src/.env", "src/.env"),
    "one deep in new folders": ("mkdir -p src/a/b/c; touch src/a/b/c/.env", "src/a/b/c/.env"),
    "a file renamed": ("mv src/plain src/x.pem", "src/x.pem"),
    "a file from outside": ("mv ../outside/.env src", "src/.env"),
    "a folder from outside": ("mv ../outside src/in", "src/in/deep/AGENTS.md"),
    "a folder in the place of another": ("rm -r src; mv ../outside src", "src/deep/AGENTS.md"),
    "the same above another": ("mv app old; mkdir app; mv ../outside app/sub", "app/sub/.env"),
    "two that change places": ("mv src t; mv app/sub src; mv t app/sub", "src/AGENTS.md"),
    "one moved away and back": ("mv app/sub s; touch s/.env; mv s app/sub", "app/sub/.env"),
    "a hard link": ("ln src/plain src/a.key", "src/a.key"),
    "a link": ("ln -s plain src/CLAUDE.md", "src/CLAUDE.md -> plain"),
    "a link turned": ("ln -sfn sub/x app/AGENTS.md", "app/AGENTS.md -> sub/x"),
    "a repository": ("mkdir -p src/.git", "src/.git"),
    "what leads out of one": ("touch app/.git/commondir", "app/.git/commondir"),
    "the workspace itself": ("mv $PWD ../w; cp -r ../outside $PWD", "deep/AGENTS.md"),
    "its time set back": ("touch -r src t; touch src/.env; touch -r t src", "src/.env"),
}
"""Each with what is found then."""


@pytest.fixture
def scanner(workspace: Path, tmp_path: Path) -> Scanner:
    write(workspace, "src/plain", "app/sub/AGENTS.md", "app/.git/HEAD", "app/sub/x/y")
    (workspace / "app/AGENTS.md").symlink_to("sub/AGENTS.md")
    write(tmp_path / "outside", ".env", "deep/AGENTS.md")
    scanner = Scanner(workspace, finds_secrets=True)
    take(scanner, workspace)
    return scanner


def take(scanner: Scanner, workspace: Path) -> set[str]:
    """What is found, which is no less than by a scanner that is the first."""
    found = scanner.scan(Workspace(workspace))
    assert found == scan(workspace)
    assert found == scanner.scan(Workspace(workspace))
    return found.secrets | found.deciding


def shell(workspace: Path, line: str) -> None:
    subprocess.run(["/bin/sh", "-ec", line], cwd=workspace, check=True)


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_found(scanner: Scanner, workspace: Path, change: str) -> None:
    line, found = CHANGES[change]
    assert found not in take(scanner, workspace)
    shell(workspace, line)
    assert found in take(scanner, workspace)
    # In what is new, too, the next change is seen.
    for folder in [workspace, *(path for path in workspace.rglob("*") if path.is_dir())]:
        (folder / "later.env").touch()
        take(scanner, workspace)
    shell(workspace, "find . -name .env -delete")
    assert f"{Path(found).parent}/.env" not in take(scanner, workspace)


def test_a_folder_is_watched_before_it_is_listed(workspace: Path) -> None:
    def watch(folder: int) -> int:
        os.mkdir(".env", dir_fd=folder)
        return 1

    assert ("secrets", ".env") in FolderLister(workspace, watch=watch).look_into(
        "", "", False
    ).found


@needs_sandbox
async def test_it_is_protected_before_the_next_command(workspace: Path, tmp_path: Path) -> None:
    write(workspace, "app/shut", ".rooignore", text="#")
    write(tmp_path / "outside", "a.pem", text="s3cret")
    run = runner(workspace)
    for line, file in (
        ("mkdir app/new; echo s3cret > app/new/.env", "app/new/.env"),
        ("mv ../outside app/in", "app/in/a.pem"),
        ("echo shut > .rooignore", "app/shut"),
    ):
        await run("true")
        shell(workspace, line)
        assert "ermission denied" in await run(f"cat {file}"), file


def overflow(scanner: Scanner, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(int(Path("/proc/sys/fs/inotify/max_queued_events").read_text()) // 2 + 1):
        (workspace / "src/plain").rename(workspace / "src/other")
        (workspace / "src/other").rename(workspace / "src/plain")


def leave_no_watch(scanner: Scanner, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = workspace.parent / "limit"
    limit.write_text("8")
    monkeypatch.setattr(folder_watcher, "LIMIT", limit)
    monkeypatch.setattr(folder_watcher, "_all", type(folder_watcher._all)())
    overflow(scanner, workspace, monkeypatch)
    take(scanner, workspace)
    unwatched, folders = scanner.count_unwatched()
    assert folders - unwatched == 8 // folder_watcher.SHARE


def let_a_child_read(scanner: Scanner, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(workspace, "app/before.env")
    if not (child := os.fork()):
        scanner.scan(Workspace(workspace))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def fail(scanner: Scanner, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(ToolFailedError, match="none left"):
        patch.setattr(os, "scandir", _raise)
        write(workspace, "app/before.env")
        scanner.scan(Workspace(workspace))


def _raise(_: int) -> None:
    raise OSError(24, "none left")


Lose = Callable[[Scanner, Path, pytest.MonkeyPatch], None]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("lose", [overflow, leave_no_watch, let_a_child_read, fail])
def test_where_events_are_lost_all_is_scanned(
    scanner: Scanner, workspace: Path, monkeypatch: pytest.MonkeyPatch, lose: Lose
) -> None:
    lose(scanner, workspace, monkeypatch)
    write(workspace, "src/.env", "app/sub/x/.env")
    assert {"src/.env", "app/sub/x/.env"} <= take(scanner, workspace)


MOUNTED = """
import sys
from pathlib import Path
from tests.tools.sandbox.test_scanner import Scanner, shell, take
root = Path(sys.argv[1])
scanner = Scanner(root, finds_secrets=True)
take(scanner, root)
assert not scanner.count_unwatched()[0]
for line, found in (
    ("mount -t tmpfs none app/sub; touch app/sub/.env", "app/sub/.env"),
    ("touch app/sub/b.pem", "app/sub/b.pem"),
    ("umount app/sub", "app/sub/AGENTS.md"),
    ("touch app/sub/.env; mount --bind app/sub src", "src/.env"),
    ("touch app/sub/c.pem", "src/c.pem"),
    ("mount -t ramfs none app/sub/x; touch app/sub/x/.env", "app/sub/x/.env"),
    ("touch app/sub/x/d.pem", "app/sub/x/d.pem"),
):
    assert found not in take(scanner, root), line
    shell(root, line)
    assert found in take(scanner, root), line
assert scanner.count_unwatched()[0] == 1
"""


def test_what_is_mounted_in_the_workspace(scanner: Scanner, workspace: Path) -> None:
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    script = [sys.executable, "-c", MOUNTED, str(workspace)]
    subprocess.run(
        [*command, *script], check=True, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )


@needs_sandbox
def test_doctor_says_what_is_not_watched(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_row() -> SandboxCheck:
        return next(row for row in sandbox().check(workspace) if "kernel" in repr(row))

    write(workspace, "a/x", "b/x")
    assert find_row().status == "yes"
    monkeypatch.setattr(folder_watcher, "LIMIT", workspace / "missing")
    row = find_row()
    assert row.status == "partly"
    assert "3 of 3 folders" in row.text


def make(workspace: Path, outside: Path) -> Iterator[tuple[str, str]]:
    """One thing after the other; gives the field of the findings, and what must be in it then."""
    for number in count():
        new, moved = f"src/n{number}", f"app/o{number}"
        write(workspace, f"{new}/a/b/.env")
        yield "secrets", f"{new}/a/b/.env"
        (workspace / new).rename(outside / "away")
        (outside / "away").rename(workspace / moved)
        yield "secrets", f"{moved}/a/b/.env"
        (workspace / moved / "a").rename(workspace / moved / "c")
        yield "secrets", f"{moved}/c/b/.env"
        (workspace / "turned").symlink_to(f"x{number}")
        (workspace / "turned").rename(workspace / "AGENTS.md")
        yield "links", f"AGENTS.md -> x{number}"
        (workspace / moved / "c/.git").mkdir()
        yield "repositories", f"{moved}/c/.git"
        shutil.rmtree(workspace / moved)


def test_nothing_is_missed_in_a_race(scanner: Scanner, workspace: Path, tmp_path: Path) -> None:
    """Scans are made all the time meanwhile; the first after a change must see it."""
    made: list[tuple[str, str]] = []
    seen = threading.Semaphore(1)
    steps = make(workspace, tmp_path / "outside")

    def write_on() -> None:
        if seen.acquire(timeout=0.01):
            made.append(next(steps))

    checked = during = 0
    with repeating(write_on):
        while checked < 500:
            is_made = len(made) > checked
            findings: Scan = scanner.scan(Workspace(workspace))
            during += not is_made
            if is_made:
                field, path = made[checked]
                assert path in getattr(findings, field), checked
                checked += 1
                seen.release()
    assert during > 50


needs_bubblewrap = pytest.mark.skipif(
    bool(find_bubblewrap().problem), reason=find_bubblewrap().problem
)


def check(workspace: Path, options: SandboxOptions | None = None) -> list[SandboxCheck]:
    sandbox = find_sandbox(options)
    assert not isinstance(sandbox, NoSandbox), sandbox
    return list(sandbox.check(workspace))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a program of that name can be put; bubblewrap is looked for again."""
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    find_bubblewrap.cache_clear()
    yield program
    find_bubblewrap.cache_clear()


def make_program(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@rows(
    "script problem",
    (None, "bubblewrap is not installed"),
    ("echo an old one", "an old one is too old: it has no --ro-bind-fd"),
    (  # as on a machine without user namespaces
        'case "$*" in *help*) echo --ro-bind-fd; exit;; esac\n'
        "echo 'setting up uid map: Permission denied' >&2; exit 1",
        "bubblewrap does not work here: setting up uid map: Permission denied",
    ),
)
def test_a_program_that_does_not_work(
    fake: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, problem: str
) -> None:
    if script is None:
        monkeypatch.setenv("PATH", str(fake.parent))
    else:
        make_program(fake, script)
    sandbox = find_sandbox()
    assert isinstance(sandbox, NoSandbox)
    assert problem in sandbox.problem
    assert ("AppArmor" if script else "apt install bubblewrap") in sandbox.remedies[0]


def test_what_does_not_hold_is_told(fake: Path, workspace: Path) -> None:
    """A program that starts what is tried first, and nothing else."""
    make_program(
        fake,
        'case "$*" in --help) echo --ro-bind-fd;; --version) echo fake;; *"; true") ;; '
        "*) exit 1;; esac",
    )
    tried = [row.status for row in check(workspace) if "tried" in row.text]
    assert set(tried) == {"no"}


@needs_bubblewrap
def test_what_holds_is_tried_and_hard_links_are_counted(workspace: Path, tmp_path: Path) -> None:
    tried = [row.status for row in check(workspace) if "tried just now" in row.text]
    assert tried == ["yes"] * len(TRIED)
    assert not list(workspace.iterdir())
    told = [row.text.strip() for row in check(workspace, SandboxOptions(has_network=True))]
    assert "the network is within reach: COMMAND_NETWORK=true" in told

    def find_row() -> SandboxCheck:
        return next(row for row in check(workspace) if "hard link" in row.text)

    (tmp_path / "cached").touch()
    text = "  no file outside can be changed by a hard link in the workspace"
    assert find_row() == SandboxCheck("yes", text)
    (workspace / "linked").hardlink_to(tmp_path / "cached")
    assert find_row() == SandboxCheck("yes", f"{text}; 1 are read-only")
    (workspace / ".venv").mkdir()
    (workspace / ".venv/x").hardlink_to(tmp_path / "cached")
    row = find_row()
    assert row.status == "no"
    assert "can change files outside by 1 hard links in the workspace" in row.text
    assert "'.venv/x'" in row.details[0]
