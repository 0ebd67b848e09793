"""Attacks from the sandbox of a mode whose commands run unasked and read-only; each has to fail."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import yaml

from modeshift.modes.errors import ModelError, ToolFailedError
from modeshift.sandbox.mounts import ROOM
from tests.harness.clone import git
from tests.harness.root import TEMPLATE
from tests.tools.sandbox.commands import READ_ONLY, Run, needs_sandbox, runner, write

pytestmark = needs_sandbox
SECRET = "s3cret"  # noqa: S105  # what is not to be shown
ATTACKS: dict[str, dict[str, str]] = yaml.safe_load(
    Path(__file__).with_name("attacks.yaml").read_text(encoding="utf-8")
)
PYTHON = "python3 - <<'END'\nimport contextlib, os, socket\n{}\nEND"
CONNECT = PYTHON.format(
    "s = socket.socket(socket.{0})\ns.settimeout(3)\ns.connect({1})\ns.send(b'x')\nprint('REACHED')"
)
HUNDRED = "\n".join([*(f"x{number}={number}" for number in range(99)), "echo x > made"])

WRITES = {
    **ATTACKS["writes"],
    **{name: PYTHON.format(code) for name, code in ATTACKS["writes_in_python"].items()},
    "a hundred lines": HUNDRED,
    "a line of 10,000 characters": f": {'x' * 9980}; echo x > made",
}
LEAKS = {
    **ATTACKS["leaks"],
    **{name: PYTHON.format(code) for name, code in ATTACKS["leaks_in_python"].items()},
    "a server on this machine": CONNECT.format("AF_INET", "('127.0.0.1', {tcp})"),
    "a socket of a service": CONNECT.format("AF_UNIX", "'{outside}/docker.sock'"),
    "a socket in the workspace": CONNECT.format("AF_UNIX", "'agent.sock'"),
    "a socket of X11": CONNECT.format("AF_UNIX", "'{tmp}/X0'"),
    "a socket without a file": CONNECT.format("AF_UNIX", "'\\0{abstract}'"),
}
OUTSIDE = (
    *("the home folder", "another user's file", "a link that leads outside"),
    *("what is above", "a socket of a service"),
)
FAIL_ANYWHERE = {  # in a sandbox where all may be written, and with the network, too
    *("a device", "extended attributes", "descriptors that are open", "another mount"),
    *("namespaces of its own", "the first process's", "a sandbox in it", "a hook"),
    *("the modes of the workspace", "the environment", "the environment of the agent"),
    *("the memory of the agent", "other processes", "where services listen"),
    *("disks", "a name to look up", "a socket of X11", "a socket of virtual machines", "packets"),
}


@dataclass
class Place:
    """A workspace, what is around it, and servers that listen."""

    workspace: Path
    outside: Path
    home: Path
    names: dict[str, object]
    servers: list[socket.socket] = field(default_factory=list)

    def read(self) -> dict[str, tuple[object, ...]]:
        """All that an attack might change, with times."""
        folders = (self.workspace, self.outside, self.home)
        return {
            str(path): _read(path) for folder in folders for path in [folder, *folder.rglob("*")]
        }

    def has_heard(self) -> bool:
        """Whether somebody has reached one of the servers."""
        for server in self.servers:
            try:
                if server.type == socket.SOCK_DGRAM:
                    server.recv(1)
                else:
                    server.accept()[0].close()
            except BlockingIOError:
                continue
            return True
        return False


def _read(path: Path) -> tuple[object, ...]:
    details = path.lstat()
    content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    return details.st_mode, details.st_mtime_ns, details.st_nlink, content


def _listen(server: socket.socket, address: Any, patch: pytest.MonkeyPatch) -> None:
    server.setblocking(False)
    if isinstance(address, Path):  # which may be longer than an address
        patch.chdir(address.parent)
        address = address.name
    server.bind(address)
    if server.type == socket.SOCK_STREAM:
        server.listen()


@pytest.fixture
def place(tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Outside is below the clone, as /tmp is another folder in the sandbox anyway."""
    with ExitStack() as stack:
        beside = Path(mkdtemp(prefix=".other-", dir=TEMPLATE))
        stack.callback(shutil.rmtree, beside)
        here = Place(workspace, beside / "outside", beside / "home", {})
        for name in ("outside/notes", "home/notes", "home/.ssh/id"):
            write(beside, name, text=SECRET)
        for name in (".env", "deep/id_rsa"):
            write(workspace, name, text=f"KEY={SECRET}\n")
        write(workspace, "f", text="one\n")
        write(workspace, "modes/ask.yaml", text="groups: [[command, {sandbox: read-only}]]\n")
        write(workspace, ".kilocodemodes", text="customModes: []\n")
        write(workspace, ".gitattributes", text="f diff=x\n")
        write(workspace, "evil", text="#!/bin/sh\nprintf x > made\ncat .env\n")
        (workspace / "evil").chmod(0o755)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
            assert git(workspace, *words).returncode == 0
        for words in (["alias.evil", "!./evil"], ["diff.x.textconv", "./evil"]):
            git(workspace, "config", *words)
        write(workspace, "f", text="two\n")
        (workspace / "shown").symlink_to(".env")
        (workspace / "away").symlink_to(here.outside)
        here.names["abstract"] = f"{tmp_path.name}-{os.getpid()}"
        unix = (here.outside / "docker.sock", workspace / "agent.sock", tmp_path / "X0")
        for family, kind, address in (
            (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            *((socket.AF_UNIX, socket.SOCK_STREAM, path) for path in unix),
            (socket.AF_UNIX, socket.SOCK_STREAM, f"\0{here.names['abstract']}"),
        ):
            server = stack.enter_context(socket.socket(family, kind))
            with monkeypatch.context() as inside:
                _listen(server, address, inside)
            here.servers.append(server)
        tcp, udp = (server.getsockname()[1] for server in here.servers[:2])
        here.names.update(tcp=tcp, udp=udp, tmp=tmp_path, pid=os.getpid())
        here.names.update(outside=here.outside, home=here.home)
        monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(here.outside / "docker.sock"))
        monkeypatch.setenv("HOME", str(here.home))
        yield here


async def succeeds(place: Place, run: Run, name: str, *, closed: bool) -> str:
    """What the attack has changed, shown or reached; empty for nothing."""
    line = WRITES.get(name) or LEAKS[name]
    for word, value in place.names.items():
        line = line.replace(f"{{{word}}}", str(value))
    before = place.read()
    shown = await run(line, closed=closed)
    if place.has_heard() or "REACHED" in shown:
        return f"reached: {shown}"
    if SECRET in shown:
        return f"shown: {shown}"
    after = place.read()
    return ", ".join(path for path in before | after if before.get(path) != after.get(path))


@pytest.mark.parametrize("name", [*WRITES, *LEAKS])
async def test_an_attack_fails_whatever_the_settings_say(place: Place, name: str) -> None:
    run = runner(place.workspace, has_network=True, shows_secrets=True)
    assert await succeeds(place, run, name, closed=True) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WRITES, *LEAKS])
async def test_the_attack_is_one(place: Place, name: str) -> None:
    """Where commands may write, have the network and see secrets it succeeds, or never does."""
    if name in OUTSIDE and any(place.outside.is_relative_to(hidden) for hidden in ROOM):
        pytest.skip("this clone is where the sandbox hides all files anyway")
    run = runner(place.workspace, has_network=True, shows_secrets=True)
    await run("true")  # makes the folders that git would use
    assert (await succeeds(place, run, name, closed=False) != "") is (name not in FAIL_ANYWHERE)


async def test_nothing_is_left_between_commands_and_no_other_process_ends(run: Run) -> None:
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):  # noqa: S108
        assert "left\n" in await run(f"echo left > {folder}/x; cat {folder}/x", closed=True)
        assert "left" not in await run(f"cat {folder}/x", closed=True)
    shown = await run(f"kill -9 {os.getpid()}; kill -9 {os.getppid()}; kill -9 -1", closed=True)
    assert "o such process" in shown


async def test_not_in_the_background_and_not_outside(run: Run, workspace: Path) -> None:
    (workspace / "away").symlink_to("/usr")
    with pytest.raises(ToolFailedError, match="cannot run in the background"):
        await run("true", closed=True, background=True)
    for folder in ("..", "/", "away", "missing"):
        with pytest.raises(ModelError):
            await run("pwd", closed=True, cwd=folder)


async def test_nothing_runs_without_its_filter(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert "[exit code 0]" in await run("true")
    with pytest.raises(ToolFailedError, match="no filter of system calls"):
        await run("true", closed=True)


async def test_what_looks_does_so_with_other_programs(run: Run, workspace: Path) -> None:
    """Pipes, several lines, git and its children; /tmp is there to be written."""
    write(workspace, "a.py", "b.py", text="one\ntwo\n")
    git(workspace, "init", "-q")
    line = (
        "grep -c o *.py | sort > /tmp/x && wc -l < /tmp/x\n"
        "git status --short | head -1; python3 -c 'print(1)'"
    )
    shown = await run(line, closed=True, edits=False)
    assert shown == f"2\n?? a.py\n1\n[exit code 0]\n{READ_ONLY}"
