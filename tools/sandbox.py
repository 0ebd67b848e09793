"""``Sandbox``: runs a command with bubblewrap, so that it sees the machine and changes nothing.

Namespaces of its own for processes, IPC, users and the network; the file system read-only,
but for a private ``/tmp`` and, where it may, the workspace. What looks as if it held a
secret is hidden. The kernel holds it: no text of a command is looked at.
"""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from errno import ELOOP
from functools import cache
from pathlib import Path

from modes.errors import ToolFailedError
from tools import seccomp
from tools.beneath import open_folder
from tools.start import Start
from tools.survey import MAX_FOUND, Survey

TRY_SECONDS = 10
ROOM = {"/tmp": 1 << 30, "/var/tmp": 1 << 28, "/dev/shm": 1 << 28}  # noqa: S108
"""Bytes for files of the command's own, in folders made anew."""
SECRETS_AT_HOME = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".vault-token"),
    *(".netrc", ".git-credentials", ".pgpass", ".my.cnf", ".pypirc", ".npmrc", ".env"),
    *(".config/git/credentials", ".config/gcloud", ".config/gh", ".config/op", ".config/rclone"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gem/credentials"),
    *(".terraform.d", ".local/share/keyrings", ".local/share/kwalletd", ".mozilla"),
    *(".config/google-chrome", ".config/chromium", ".thunderbird"),
    *(".claude", ".codex", ".gemini", ".config/github-copilot", ".config/pip", ".pip", ".condarc"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".node_repl_history"),
)
GIT_FOLDERS = ("hooks", "info", "modules")
GIT_READ_ONLY = ("config", "config.worktree", *GIT_FOLDERS)
"""In a ``.git``: what makes git run programs."""
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
    found = Bubblewrap(program, _output([program, "--version"]).strip())
    known = _output([program, "--help"])
    if "--ro-bind-fd" not in known:
        return replace(found, problem=f"{found.version} is too old: it has no --ro-bind-fd")
    found = replace(found, can_bound_tmp="--size" in known)
    if problem := _problem(found):
        return replace(found, problem=f"bubblewrap does not work here: {problem}")
    return found


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603  # our own command
            command, capture_output=True, timeout=TRY_SECONDS, check=False, env={}
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def _problem(found: Bubblewrap) -> str:
    with Sandbox(found).start(Path("/usr"), Survey(), Path("/usr"), "true", {}) as start:
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
    shows_secrets: bool = False
    """Whether commands may read what in the workspace looks as if it held a secret."""

    def start(
        self,
        workspace: Path,
        found: Survey,
        folder: Path,
        line: str,
        environment: dict[str, str],
        *,
        writable: bool = False,
    ) -> Start:
        """How to run the shell's ``line`` in a folder. Blocks; raises ``OSError``.

        With ``writable`` the workspace can be changed, but for what was ``found`` to
        steer people or tools.
        """
        with ExitStack() as opened:
            arguments = [
                self.bubblewrap.program,
                *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"),
                *("--cap-drop", "ALL"),
            ]
            if self.has_network:
                arguments.append("--share-net")
            descriptors = _Descriptors(opened)
            if seccomp.is_known():
                filter_file = seccomp.filter_file(has_sockets=self.has_network)
                arguments += ["--seccomp", descriptors.kept(filter_file)]
            mounts = self._machine()
            mounts[workspace] = ["--bind" if writable else "--ro-bind", *[str(workspace)] * 2]
            if not self.shows_secrets:
                mounts |= _hidden_secrets(workspace, found, list(mounts))
            for path, option in _protected(workspace, found) if writable else ():
                if workspace / path not in mounts:
                    source = descriptors.kept(_opened(workspace, path))
                    mounts[workspace / path] = [option, source, str(workspace / path)]
            arguments += _in_order(mounts)
            arguments += ["--chdir", str(folder), "--", "/bin/sh", "-c", line]
            opened.pop_all()
        return Start(arguments, {**environment, **CACHES}, descriptors=tuple(descriptors))

    def _machine(self) -> Mounts:
        mounts: Mounts = {
            Path("/"): ["--ro-bind", "/", "/"],
            Path("/dev"): ["--dev", "/dev"],
            Path("/proc"): ["--proc", "/proc"],
            Path(os.path.realpath("/run")): ["--tmpfs", "/run"],  # where services listen
        }
        for name, size in ROOM.items():
            folder = os.path.realpath(name)
            bound = ["--size", str(size)] if self.bubblewrap.can_bound_tmp else []
            mounts[Path(folder)] = ["--perms", "1777", *bound, "--tmpfs", folder]
        if self.has_network:
            resolver = os.path.realpath("/etc/resolv.conf")  # often in /run
            mounts[Path(resolver)] = ["--ro-bind-try", resolver, resolver]
        home = Path.home()
        secrets = [home / name for name in SECRETS_AT_HOME]
        return mounts | _hiding([*secrets, *self.hidden], list(mounts))


class _Descriptors(list[int]):
    """Descriptors that are closed with the stack."""

    def __init__(self, opened: ExitStack) -> None:
        super().__init__()
        self._opened = opened

    def kept(self, descriptor: int) -> str:
        """The number, as an argument."""
        self.append(descriptor)
        self._opened.callback(os.close, descriptor)
        return str(descriptor)


def _in_order(mounts: Mounts) -> Iterator[str]:
    # Parents first: what is mounted later hides what is below it.
    for place in sorted(mounts, key=lambda place: place.parts):
        yield from mounts[place]
    # At last, for mounts have been made in them. In /proc/sys root could change the machine.
    for place, how in mounts.items():
        if how[0] in ("--tmpfs", "--dev", "--proc"):
            yield from ("--remount-ro", str(place))


def _hidden_secrets(workspace: Path, found: Survey, kept: Iterable[Path]) -> Mounts:
    if len(found.secrets) > MAX_FOUND:
        raise ToolFailedError(
            f"more than {MAX_FOUND} files of the workspace look like secrets, more than the "
            "sandbox can hide; COMMAND_SECRETS=true shows them all to commands"
        )
    hidden = _hiding((workspace / path for path in found.secrets), kept)
    # A link of that name may lead to any folder: /usr, say.
    return {
        path: how
        for path, how in hidden.items()
        if how[0] != "--tmpfs" or path.is_relative_to(workspace)
    }


def _protected(workspace: Path, found: Survey) -> Iterator[tuple[str, str]]:
    """Paths in the workspace, and how they are mounted."""
    for path in found.steering:
        if not (workspace / path).is_symlink():
            yield path, "--ro-bind-fd"
    for repository in found.repositories:
        # A mount cannot be renamed, to put another one in its place.
        yield repository, "--bind-fd"
        _make_folders(workspace, repository)
        for name in GIT_READ_ONLY:
            path = f"{repository}/{name}"
            if os.path.lexists(workspace / path) and not (workspace / path).is_symlink():
                yield path, "--ro-bind-fd"


def _make_folders(workspace: Path, repository: str) -> None:
    """What is not there cannot be mounted, and a command would make it."""
    with _folder(workspace, repository.split("/")) as folder:
        for name in GIT_FOLDERS:
            with suppress(OSError):  # it is there, as whatever, or may not be made
                os.mkdir(name, dir_fd=folder)


def _opened(workspace: Path, path: str) -> int:
    """What is there and no link, whatever another command has put in its place by now."""
    *folders, name = path.split("/")
    with _folder(workspace, folders) as folder:
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    if stat.S_ISLNK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(ELOOP, "it has become a link", path)
    return descriptor


@contextmanager
def _folder(workspace: Path, names: list[str]) -> Iterator[int]:
    folder = open_folder(workspace, names)
    try:
        yield folder
    finally:
        os.close(folder)


def _hiding(paths: Iterable[Path], kept: Iterable[Path]) -> Mounts:
    """Mounts over what the paths lead to; never over, or around, what is ``kept``."""
    hidden: Mounts = {}
    for given in paths:
        try:
            path = given.resolve(strict=True)
            is_folder = path.is_dir()
        except (OSError, RuntimeError):  # not there, out of reach, links in a circle
            continue
        if not any(other.is_relative_to(path) for other in kept):
            source = ["--tmpfs"] if is_folder else ["--ro-bind", "/dev/null"]
            hidden[path] = [*source, str(path)]
    return hidden
