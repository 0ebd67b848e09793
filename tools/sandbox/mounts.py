"""What is mounted in the sandbox, and where."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import ELOOP
from pathlib import Path

from tools.sandbox.closed_folders import MAX_MOUNTS, ROOT, above, outside
from tools.sandbox.scan import Closed, Scan
from tools.workspace.openat import open_folder

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
GIT_FOLDERS = ("hooks", "info", "modules", "worktrees")
GIT_READ_ONLY = ("config", "config.worktree", *GIT_FOLDERS)
"""In a ``.git``: what makes git run programs."""

Mounts = dict[Path, list[str]]
"""bubblewrap's options for what is mounted at a path."""


def machine(*, has_network: bool, can_bound_tmp: bool, hidden: Iterable[Path]) -> Mounts:
    """The machine, read-only, without secrets; ``hidden`` are more of them."""
    mounts: Mounts = {
        Path("/"): ["--ro-bind", "/", "/"],
        Path("/dev"): ["--dev", "/dev"],
        Path("/proc"): ["--proc", "/proc"],
        Path(os.path.realpath("/run")): ["--tmpfs", "/run"],  # where services listen
    }
    for name, size in ROOM.items():
        folder = os.path.realpath(name)
        bound = ["--size", str(size)] if can_bound_tmp else []
        mounts[Path(folder)] = ["--perms", "1777", *bound, "--tmpfs", folder]
    if has_network:
        resolver = os.path.realpath("/etc/resolv.conf")  # often in /run
        mounts[Path(resolver)] = ["--ro-bind-try", resolver, resolver]
    home = Path.home()
    secrets = [home / name for name in SECRETS_AT_HOME]
    return mounts | hiding([*secrets, *hidden], list(mounts))


def in_order(mounts: Mounts) -> Iterator[str]:
    """All options."""
    # Parents first: what is mounted later hides what is below it.
    for place in sorted(mounts, key=lambda place: place.parts):
        yield from mounts[place]
    # At last, for mounts have been made in them. In /proc/sys root could change the machine.
    for place, how in mounts.items():
        if how[0] in ("--tmpfs", "--dev", "--proc"):
            yield from ("--remount-ro", str(place))


def whole(workspace: Path, closed: Closed, *, writable: bool) -> Mounts:
    """The workspace itself; where it is closed, what else is in it stays as it is."""
    bind = "--bind" if writable else "--ro-bind"
    if ROOT in closed.hidden:
        mount = ["--tmpfs", str(workspace)]
    elif ROOT in closed.read_only and writable:
        mount = ["--ro-bind", str(workspace), str(workspace)]
    else:
        return {workspace: [bind, str(workspace), str(workspace)]}
    left = [workspace / name for name in sorted(closed.plain)[:MAX_MOUNTS]]
    return {workspace: mount} | {path: [bind, str(path), str(path)] for path in left}


def hidden_secrets(workspace: Path, found: Scan, kept: Iterable[Path]) -> Mounts:
    """Mounts over what the survey found."""
    hidden = hiding((workspace / path for path in found.secrets), kept)
    # A link of that name may lead to any folder: /usr, say.
    return {
        path: how
        for path, how in hidden.items()
        if how[0] != "--tmpfs" or path.is_relative_to(workspace)
    }


def kept_in_place(workspace: Path, found: Scan) -> Mounts:
    """The folders above what was found: a mount cannot be renamed, and its place be forgotten."""
    names = {
        name
        for path in (*found.secrets, *found.steering, *found.repositories)
        for name in above(path)
    }
    # What is in a folder that is closed stays where it is.
    places = (workspace / name for name in outside(names, found.steering))
    return {place: ["--bind", str(place), str(place)] for place in places}


def protected(workspace: Path, found: Scan) -> Iterator[tuple[str, str]]:
    """Paths in the workspace, and how they are mounted."""
    for path in found.steering | found.linked:
        if path != ROOT and not (workspace / path).is_symlink():
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


def opened(workspace: Path, path: str) -> int:
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


def hiding(paths: Iterable[Path], kept: Iterable[Path]) -> Mounts:
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
