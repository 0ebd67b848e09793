"""``Sandbox``: runs a command with bubblewrap, so that it sees the machine and changes nothing.

Namespaces of its own for processes, IPC, users and the network; the file system read-only,
but for a private ``/tmp`` and, where it may, the workspace. What looks as if it held a
secret is hidden. The kernel holds it: no text of a command is looked at.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from modes.guarded import ASK, is_secret
from tools import seccomp
from tools.seccomp import filter_file
from tools.start import Start

TRY_SECONDS = 10
TMP_BYTES = 1 << 30
PRIVATE = ("/tmp", "/var/tmp", "/run")  # noqa: S108  # made anew inside
"""Folders that are empty inside: other programs' files, and the sockets of services."""
SECRETS_AT_HOME = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".vault-token"),
    *(".netrc", ".git-credentials", ".pgpass", ".my.cnf", ".pypirc", ".npmrc", ".env"),
    *(".config/git/credentials", ".config/gcloud", ".config/gh", ".config/op", ".config/rclone"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gem/credentials"),
    *(".terraform.d", ".local/share/keyrings", ".local/share/kwalletd", ".mozilla"),
    *(".config/google-chrome", ".config/chromium", ".thunderbird"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".node_repl_history"),
)
GIT_READ_ONLY = ("config", "config.worktree", "hooks", "info", "modules")
"""In ``.git`` of the workspace: what makes git run programs."""
CACHES = {  # the home folder is read-only, too
    "XDG_CACHE_HOME": "/tmp/.cache",  # noqa: S108
    "npm_config_cache": "/tmp/.npm",  # noqa: S108
    "TMPDIR": "/tmp",  # noqa: S108
}

Mounts = dict[Path, list[str]]
"""bubblewrap's options for what is mounted at a path."""


@dataclass(frozen=True)
class Bubblewrap:
    """The program, as it is on this machine."""

    program: str = ""
    version: str = ""
    problem: str = ""
    """Why it cannot be used, and what to do; empty where it can."""
    can_bound_tmp: bool = False


@cache
def bubblewrap() -> Bubblewrap:
    """Look for it and try it, once per process. Blocks."""
    program = shutil.which("bwrap")
    if program is None:
        return Bubblewrap(problem="bubblewrap is not installed (bwrap; Linux only)")
    found = Bubblewrap(
        program,
        _output([program, "--version"]).strip(),
        can_bound_tmp="--size" in _output([program, "--help"]),
    )
    if problem := _problem(found):
        return replace(found, problem=f"bubblewrap does not work here: {problem}")
    return found


def _problem(found: Bubblewrap) -> str:
    with Sandbox(found).start(Path("/usr"), Path("/usr"), "true", {}) as start:
        try:
            start.run(TRY_SECONDS)
        except subprocess.CalledProcessError as error:
            text = error.stderr.decode("utf-8", "replace").strip()
            return text or f"exit code {error.returncode}"
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    return ""


@dataclass(frozen=True)
class Sandbox:
    """How commands are run on this machine."""

    bubblewrap: Bubblewrap
    has_network: bool = False
    hidden: tuple[Path, ...] = ()
    """Files and folders of this project's own: with a provider's key, say."""

    def start(
        self,
        workspace: Path,
        folder: Path,
        line: str,
        environment: dict[str, str],
        *,
        writable: bool = False,
    ) -> Start:
        """How to run the shell's ``line`` in a folder. Blocks.

        With ``writable`` the workspace can be changed, but for the files that are there
        already and steer people or tools.
        """
        mounts = self._machine() | self._workspace(workspace, writable=writable)
        mounts |= _hiding(_sockets(workspace))
        arguments = [
            self.bubblewrap.program,
            *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"),
            *("--cap-drop", "ALL"),
        ]
        descriptors = (filter_file(),) if seccomp.is_known() else ()
        for descriptor in descriptors:
            arguments += ["--seccomp", str(descriptor)]
        if self.has_network:
            arguments.append("--share-net")
        # Parents first: what is mounted later hides what is below it.
        for path in sorted(mounts, key=lambda path: path.parts):
            arguments += mounts[path]
        arguments += ["--chdir", str(folder), "--", "/bin/sh", "-c", line]
        return Start(arguments, {**environment, **CACHES}, descriptors=descriptors)

    def _machine(self) -> Mounts:
        mounts: Mounts = {
            Path("/"): ["--ro-bind", "/", "/"],
            Path("/dev"): ["--dev", "/dev"],
            # For root /proc/sys holds the machine's own settings.
            Path("/proc"): ["--proc", "/proc", "--remount-ro", "/proc"],
        }
        size = ["--size", str(TMP_BYTES)] if self.bubblewrap.can_bound_tmp else []
        mounts[Path("/dev/shm")] = [*size, "--tmpfs", "/dev/shm"]  # noqa: S108
        for folder in map(os.path.realpath, PRIVATE):
            mounts[Path(folder)] = [*size, "--tmpfs", folder]
        if self.has_network:
            resolver = os.path.realpath("/etc/resolv.conf")  # often in /run
            mounts[Path(resolver)] = ["--ro-bind-try", resolver, resolver]
        home = Path.home()
        secrets = (home / name for name in SECRETS_AT_HOME)
        return mounts | dict(_hiding([*secrets, *self.hidden]))

    def _workspace(self, workspace: Path, *, writable: bool) -> Mounts:
        bind = "--bind" if writable else "--ro-bind"
        mounts: Mounts = {workspace: [bind, str(workspace), str(workspace)]}
        found = [workspace / name for name in os.listdir(workspace)]
        if writable:
            mounts |= dict(_steering(workspace, found))
        return mounts | dict(_hiding(path for path in found if is_secret(path.name)))


def steering_files(workspace: Path) -> set[str]:
    """The names at the top of the workspace that steer people or tools. Blocks."""
    found = {name for name in os.listdir(workspace) if name.casefold() in ASK}
    return found | {name for name in (".git", ".git/commondir") if (workspace / name).exists()}


def _steering(workspace: Path, found: Iterable[Path]) -> Iterator[tuple[Path, list[str]]]:
    protected = [path for path in found if path.name.casefold() in ASK]
    git = workspace / ".git"
    if git.is_dir() and not git.is_symlink():
        # A mount cannot be renamed, to put another one in its place.
        yield git, ["--bind", str(git), str(git)]
        (git / "hooks").mkdir(exist_ok=True)
        protected += [git / name for name in GIT_READ_ONLY]
    else:
        protected.append(git)
    for path in protected:
        if path.exists() and not path.is_symlink():
            yield path, ["--ro-bind", str(path), str(path)]


def _hiding(paths: Iterable[Path]) -> Iterator[tuple[Path, list[str]]]:
    for path in (each.resolve() for each in paths if os.path.lexists(each)):
        if path.is_dir():
            yield path, ["--tmpfs", str(path)]
        elif path.exists():
            yield path, ["--ro-bind", "/dev/null", str(path)]


def _sockets(workspace: Path) -> Iterator[Path]:
    """Where programs of this machine listen: a read-only file system forbids no connection."""
    private = [Path(os.path.realpath(folder)) for folder in PRIVATE]
    with suppress(OSError):
        text = Path("/proc/net/unix").read_text(encoding="utf-8", errors="surrogateescape")
        for line in text.splitlines():
            path = Path("/" + line.partition(" /")[2])
            is_hidden = any(path.is_relative_to(folder) for folder in private)
            if path.name and (not is_hidden or path.is_relative_to(workspace)):
                yield path


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603  # our own command
            command, capture_output=True, timeout=TRY_SECONDS, check=False, env={}
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout + done.stderr).decode("utf-8", "replace")
