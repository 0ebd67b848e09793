"""Commands in the real sandbox, and every way out of it that we know of."""

import asyncio
import ctypes
import os
import platform
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph.agent import build_agent
from graph.deps import AgentDeps
from graph.models.loading import Models
from graph.models.offline import OfflineModel
from modes.catalog import Catalog
from modes.errors import InvalidCallError, ToolFailedError
from modes.mode import Grant, UserRules
from modes.policy import Approvals
from tests.harness.conversation import APPROVE, Conversation
from tests.harness.modes import load_test_catalog
from tools.calling import Calling, calling
from tools.deps import Commands
from tools.processes.process import Limits, Program
from tools.processes.process import run as run_program
from tools.processes.sandboxes import NoSandbox, Sandbox, SandboxOptions, find_sandbox
from tools.sandbox.bubblewrap import find_bubblewrap
from tools.toolbox import build_toolbox
from tools.workspace.workspace import Workspace

PROBLEM = find_bubblewrap().problem
pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)
STEERING = {
    ".vscode/tasks.json": ".vscode",
    ".gitea/workflows/x.yml": ".gitea",
    **{name: name for name in (".envrc", ".kilocodemodes", "AGENTS.md", "sub/mcp.json")},
    **{name: name for name in ("sub/.cargo/config.toml", ".hg/hgrc", "a/mise/config.toml")},
}
"""Files, and what of them is protected."""
Run = Callable[..., Coroutine[Any, Any, str]]
READ_ONLY = "[this command could not change the workspace]"


def sandbox(**given: Any) -> Sandbox:
    found = find_sandbox(SandboxOptions(**given))
    assert not isinstance(found, NoSandbox)
    return found


def runner(workspace: Path, **given: Any) -> Run:
    limits = given.pop("limits", Limits())
    commands = Commands(sandbox(**given), limits)
    tool = build_toolbox(Workspace(workspace), load_test_catalog(), commands)["execute_command"]

    async def run(
        command: str, *, edits: bool = True, looks: bool = False, emit: Any = print, **args: Any
    ) -> str:
        before = calling.set(Calling(edits and not looks, looks, emit))
        try:
            return str(await tool.runnable.ainvoke({"command": command, **args}))
        finally:
            calling.reset(before)

    return run


@pytest.fixture
def run(workspace: Path) -> Run:
    return runner(workspace)


def open_descriptors() -> set[int]:
    listed = os.listdir("/proc/self/fd")  # one of them is the listing's own
    return {int(name) for name in listed if os.path.lexists(f"/proc/self/fd/{name}")}


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All that a command might change: names, kinds, permissions, contents, targets of links."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            bytes(path.readlink())
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else b"",
        )
        for path in sorted(folder.rglob("*"))
    }


async def test_a_command_works_as_usual(run: Run, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    assert await run("echo out; echo err >&2; pwd; exit 3", cwd="sub") == (
        f"out\nerr\n{workspace / 'sub'}\n[exit code 3]"
    )
    await run("echo text > new; mkdir -p a/b; mv new a/b/; echo x > $TMPDIR/private")
    assert (workspace / "a/b/new").read_text() == "text\n"
    assert not Path("/tmp/private").exists()  # noqa: S108
    with pytest.raises(InvalidCallError):
        await run("pwd", cwd="..")


async def test_git_commits(run: Run, workspace: Path) -> None:
    identity = "git config user.email a@b.c; git config user.name a"
    assert "[made .git, .git/config:" in await run(f"git init -q; {identity}; touch f")
    shown = await run("git add f; git commit -qm one; git status --short; git log --format=%s")
    assert shown == "one\n[exit code 0]"


@pytest.mark.parametrize("name", STEERING)
async def test_what_steers_is_read_only_where_it_is_there_and_told_of_where_it_is_not(
    run: Run, workspace: Path, name: str
) -> None:
    top = name.split("/", maxsplit=1)[0]
    assert f"[made {STEERING[name]}:" in await run(f"mkdir -p $(dirname {name}); echo x > {name}")
    before = tree(workspace)
    for attempt in (
        f"echo evil > {name}", f"rm -rf {top}", f"mv {top} other", f"ln -sf /etc/passwd {name}",
        f"chmod 777 {name}", f"mv {top} o && mkdir {top} && echo evil > {name}",
    ):  # fmt: skip
        shown = await run(attempt)
        assert "[exit code 0]" not in shown, attempt
        assert tree(workspace) == before, attempt


@pytest.mark.parametrize(
    "attempt",
    [
        "git config core.fsmonitor evil",
        "echo evil > .git/hooks/pre-commit",
        "mv .git other && mkdir .git && cp -r other/. .git && echo evil >> .git/config",
        "rm -rf .git",
        "ln -s /tmp/evil .git/hooks/post-commit",
        "mkdir -p evil && mv evil .git/hooks",
        "printf '* filter=x' > .git/info/attributes",
    ],
)
async def test_what_makes_git_run_programs_stays(run: Run, workspace: Path, attempt: str) -> None:
    await run("git init -q; rm -rf .git/hooks")
    await run(attempt)
    config = (workspace / ".git/config").read_text()
    assert "evil" not in config
    assert not list((workspace / ".git/hooks").iterdir())
    assert not (workspace / ".git/info/attributes").exists()


async def test_another_git_folder_is_told_of(run: Run, workspace: Path) -> None:
    await run("git init -q")
    assert "[made .git/commondir:" in await run("echo ../evil > .git/commondir")


TRICKS = [
    "echo x > new",
    "echo x >| f",
    "cp /etc/passwd f",
    "rm -f f",
    "rm -rf folder",
    "mv f g",
    "ln f hard",
    "ln -s /etc soft",
    "mkdir m",
    "mkfifo p",
    "chmod 777 f",
    "touch -d 2001-01-01 f",
    "truncate -s 0 f",
    ": > f",
    "sed -i s/o/x/ f",
    "dd if=/dev/zero of=f count=1",
    "tee f < /dev/null",
    "exec 3<>f; echo x >&3",
    "eval $(printf '\\x72\\x6d\\x20f')",
    "IFS=,; a=rm,f; $a",
    "sh -c 'rm f'",
    "sh <<'X'\nrm f\nX",
    "find . -name f -delete",
    "find . -name f -exec rm {} ;",
    "xargs rm < f",
    "cd /; cd -; rm f",
    "cd folder && rm ../f",
    'cd "$(pwd)" && rm f',
    "env rm f",
    "(setsid rm f &) ; sleep 0.2",
    "python3 -c \"import os; os.unlink('f')\"",
    "python3 -c \"import mmap,os; fd=os.open('f',os.O_RDWR); mmap.mmap(fd,1)[0]=120\"",
    "ln -s $PWD /tmp/w && rm /tmp/w/f",
    "rm /proc/self/cwd/f",
    "rm /proc/1/root$PWD/f",
    "rm /proc/self/root$PWD/f",
    "exec 3<.; cd /proc/self/fd/3 && rm f",
    "mount -o remount,rw $PWD && rm f",
    "mount -o remount,rw,bind $PWD && rm f",
    "umount $PWD && rm f",
    "mount --bind /tmp $PWD && touch f",
    'unshare -Urm sh -c "mount -o remount,rw,bind $PWD; rm f"',
    'unshare -Urm sh -c "umount -l $PWD; rm f"',
    "unshare -Ur rm f",
    "chroot / rm f",
    "nsenter -t 1 -m rm f",
    "mknod d b 8 0",
    "git init -q .",
    "tar cf f.tar folder",
    "tar xf archive.tar",
]


@pytest.mark.parametrize("trick", TRICKS)
async def test_read_only_means_read_only(run: Run, workspace: Path, trick: str) -> None:
    (workspace / "f").write_text("one\n")
    (workspace / "folder").mkdir()
    (workspace / "folder/in").write_text("two\n")
    before = tree(workspace)
    shown = await run(trick, edits=False)
    assert shown.endswith(READ_ONLY)
    assert tree(workspace) == before, shown


async def test_tools_that_only_look_work_read_only(run: Run, workspace: Path) -> None:
    (workspace / "f").write_text("one\n")
    shown = await run("cat f; sort f > /tmp/s; cat /tmp/s; git status 2>&1 | head -1", edits=False)
    assert shown.startswith("one\none\n")


async def test_without_being_told_the_workspace_is_read_only(workspace: Path) -> None:
    commands = Commands(sandbox())
    tool = build_toolbox(Workspace(workspace), load_test_catalog(), commands)["execute_command"]
    assert READ_ONLY in str(await tool.runnable.ainvoke({"command": "touch x"}))
    assert tree(workspace) == {}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file of somebody else's beside the workspace."""
    file = tmp_path / "outside" / "file"
    file.parent.mkdir()
    file.write_text("mine")
    return file


async def test_nothing_outside_can_be_changed(run: Run, workspace: Path, outside: Path) -> None:
    (workspace / "link").symlink_to(outside)
    (workspace / "folder").symlink_to(outside.parent)
    for target in (
        str(outside),
        "link",
        "folder/file",
        "../outside/file",
        "~/f",
        "/etc/f",
        "/usr/f",
    ):
        await run(
            f"echo evil > {target}; echo evil > {target}.new; chmod 777 {target}; rm {target}"
        )
    assert outside.read_text() == "mine"
    assert stat.S_IMODE(outside.stat().st_mode) != 0o777
    assert [file.name for file in outside.parent.iterdir()] == ["file"]
    assert not [path for path in ("/etc/f", "/usr/f", Path.home() / "f") if Path(path).exists()]


async def test_a_link_planted_by_a_command_leads_no_tool_outside(
    run: Run, workspace: Path, outside: Path
) -> None:
    await run(f"ln -s {outside} planted; ln -s {outside.parent} folder")
    for path in ("planted", "folder/file"):
        with pytest.raises(InvalidCallError):
            Workspace(workspace).write(path, "evil")
        with pytest.raises(InvalidCallError):
            Workspace(workspace).read(path)
    assert outside.read_text() == "mine"


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
async def test_no_network(run: Run, workspace: Path, family: int) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.socket(family) as server:
        server.bind((host, 0))
        server.listen()
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(({host!r}, {port}), 3); print('in')"
        (workspace / "s.py").write_text(script)
        assert "in\n" not in await run("python3 s.py")
        assert "in\n" in await runner(workspace, has_network=True)("python3 s.py")


@pytest.mark.parametrize("name", ["\0modeshift-test", "{folder}/s"])
async def test_no_socket_of_another_program(run: Run, workspace: Path, name: str) -> None:
    address = name.format(folder=workspace)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        script = f"import socket; s = socket.socket(1); s.connect({address!r}); print('in')"
        (workspace / "s.py").write_text(script)
        assert "in\n" not in await run("python3 s.py")


async def test_the_environment_holds_no_secret(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hidden-key")
    shown = await run("env; cat /proc/*/environ | tr '\\0' '\\n'; set")
    assert "PATH=" in shown
    assert "hidden" not in shown


async def test_no_other_process_is_seen(run: Run) -> None:
    shown = await run(f"ls -d /proc/{os.getpid()} /proc/[0-9]*; kill -0 {os.getpid()}")
    assert f"/proc/{os.getpid()}\n" not in shown
    assert len([line for line in shown.splitlines() if line.startswith("/proc/")]) < 6


async def test_secrets_are_hidden(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = workspace  # outside of /tmp there is none that a test may use
    (home / ".ssh").mkdir()
    for name in (".ssh/id_rsa", ".netrc", "own.json", ".env"):
        (home / name).write_text("s3cret")
    (home / ".aws").symlink_to(home / "elsewhere")
    (home / "elsewhere").mkdir()
    (home / "elsewhere/credentials").write_text("s3cret")
    (home / "plain").write_text("shown")
    monkeypatch.setenv("HOME", str(home))
    run = runner(home, hidden=(home / "own.json",))
    shown = await run(
        "cat ~/plain ~/.ssh/id_rsa ~/.netrc ~/own.json .env ~/.aws/* ~/elsewhere/*; grep -r . ~"
    )
    assert "shown" in shown
    assert "s3cret" not in shown
    await run("rm -f .env; mv .env x; echo evil > .env")
    assert (home / ".env").read_text() == "s3cret"


async def test_secrets_and_what_steers_in_folders_below(run: Run, workspace: Path) -> None:
    for name in ("app/.env", "app/.ssh/id_rsa", "app/deep/prod.env", "app/node_modules/x/ca.pem"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("s3cret" if "node_modules" not in name else "public")
    for name in ("app/.vscode/tasks.json", "app/AGENTS.md", "sub/.git/config", "sub/.git/HEAD"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("theirs")
    shown = await run("cat app/.env app/.ssh/id_rsa app/deep/*; grep -r . ; mv app/.env app/plain")
    assert "s3cret" not in shown
    assert "public" in shown
    for name in ("app/.vscode/tasks.json", "app/AGENTS.md", "sub/.git/config"):
        await run(f"echo evil > {name}; rm -f {name}; mv {name} x; touch sub/.git/hooks/x")
        assert (workspace / name).read_text() == "theirs"
    assert not list((workspace / "sub/.git/hooks").iterdir())
    assert "[made app/new/.envrc:" in await run("mkdir app/new; touch app/new/.envrc")
    shows = runner(workspace, shows_secrets=True)
    assert "s3cret" in await shows("cat app/.env; echo evil > app/.env")
    assert (workspace / "app/.env").read_text() == "s3cret"


@pytest.mark.parametrize("away", ["node_modules", "venv", "other", "../x", "$TMPDIR/x", "deep/x"])
async def test_what_is_protected_cannot_be_moved_out_of_sight(
    run: Run, workspace: Path, away: str
) -> None:
    for name in ("app/sub/.env", "app/AGENTS.md", "deep/x/y"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("s3cret")
    shown = await run(f"mv app {away}; mv app/sub {away}")
    shown += await run(f"cat {away}/sub/.env {away}/.env app/sub/.env; grep -rs s3c . | grep env")
    assert "s3cret" not in shown
    await run(f"for f in app {away}; do echo evil > $f/AGENTS.md; done")
    assert (workspace / "app/AGENTS.md").read_text() == "s3cret"


@pytest.mark.skipif(os.geteuid() == 0, reason="root looks into every folder")
async def test_a_folder_that_cannot_be_looked_into(run: Run, workspace: Path) -> None:
    (workspace / "app").mkdir()
    (workspace / "app").chmod(0o311)
    with pytest.raises(ToolFailedError, match="cannot be looked into"):
        await run("true")
    (workspace / "app").chmod(0o755)


async def test_a_link_that_steers_and_is_replaced_is_told_of(run: Run, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("theirs")
    (workspace / "CLAUDE.md").symlink_to("AGENTS.md")
    assert await run("cat CLAUDE.md") == "theirs\n[exit code 0]"
    shown = await run("rm CLAUDE.md; echo evil > CLAUDE.md")
    assert "[made CLAUDE.md:" in shown


async def test_one_command_at_a_time(run: Run, workspace: Path) -> None:
    line = "test ! -e busy || echo both; touch busy; sleep 0.2; rm busy"
    shown = await asyncio.gather(*(run(line) for _ in range(4)))
    assert set(shown) == {"[exit code 0]"}
    heard: list[str] = []
    await asyncio.gather(run("sleep 1.6"), run("true", emit=heard.append))
    assert heard == ["[waits for another command in this workspace]\n"]


async def test_a_call_that_is_cancelled_while_it_is_prepared(run: Run, workspace: Path) -> None:
    (workspace / "AGENTS.md").touch()
    await run("true")
    before = len(open_descriptors())
    for number in range(30):
        task = asyncio.create_task(run("true"))
        await asyncio.sleep(0.0003 * number)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    await asyncio.sleep(0.5)
    assert len(open_descriptors()) <= before + 2


async def test_a_call_that_is_cancelled_while_it_is_started(workspace: Path) -> None:
    for steps in range(12):
        handed_over = os.open(workspace, os.O_RDONLY)
        before = open_descriptors()
        program = Program(["/bin/true"], {}, descriptors=(handed_over,))
        task = asyncio.create_task(run_program(program, 10, Limits(), print))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if not steps:  # a task that never began has nothing to close
            continue
        async with asyncio.timeout(10):
            while open_descriptors() != before - {handed_over}:
                await asyncio.sleep(0.01)


MANY = {
    "a vendored folder": ("vendor/m{}/.github/x", 1000, "vendor"),
    "folders of their own": ("m{}/AGENTS.md", 301, "m1, m10, "),
    "more than that": ("m{}/AGENTS.md", 1000, ". but for plain, src"),
    "secrets in a folder": ("certs/{}.pem", 1000, "certs"),
    "secrets all over": ("m{}/.env", 1000, ". but for plain, src"),
    "secrets at the top": ("{}.pem", 1000, ". but for plain, src"),
}


@pytest.mark.parametrize("many", MANY)
async def test_more_than_can_be_protected_one_by_one(run: Run, workspace: Path, many: str) -> None:
    """Made by a command, perhaps to have no other one run."""
    pattern, count, whole = MANY[many]
    (workspace / "make.py").write_text(
        f"from pathlib import Path\nfor number in range(1, {count + 1}):\n"
        f"    path = Path({pattern!r}.format(number))\n"
        "    path.parent.mkdir(parents=True, exist_ok=True)\n    path.write_text('s3cret')\n"
    )
    await run("mkdir src; echo old > src/old; python3 make.py; mv make.py plain")
    attempts = "; ".join(
        f"echo evil > {name}; rm -rf {name}; mv {name.partition('/')[0]} away"
        for name in map(pattern.format, (1, 77, count))
    )
    shown = await run(
        f"grep -rhs s3cret [!p]* | head -1; {attempts}; rm src/old; echo plain > src/new"
    )
    assert ("s3cret" in shown) is (many in list(MANY)[:3])
    assert {(workspace / pattern.format(i + 1)).read_text() for i in range(count)} == {"s3cret"}
    assert [path.name for path in (workspace / "src").iterdir()] == ["new"]
    assert "commands as a whole, since there is too much" in shown
    told = shown.partition("must be protected: ")[2]
    assert told.startswith(whole), told
    shown = await run("cat src/new; grep -rhs s3cret [!p]* | head -1; touch src/x", edits=False)
    assert shown.startswith("plain\n")
    assert "s3cret" not in shown or many in list(MANY)[:3]


@pytest.fixture
def below(workspace: Path) -> Iterator[Callable[[str], str]]:
    """What the one file of a name says; Python cannot remove folders that are so deep."""

    def text(name: str) -> str:
        command = ["grep", "-rh", "--include", name, ".", str(workspace / "dd")]
        return subprocess.check_output(command, text=True).strip()

    yield text
    subprocess.run(["rm", "-rf", workspace / "dd"], check=True)


@pytest.mark.parametrize("depth", [60, 1500])
async def test_very_deep_folders(
    run: Run, workspace: Path, below: Callable[[str], str], depth: int
) -> None:
    (workspace / "d.py").write_text(
        "import os, sys\n"
        f"for _ in range({depth}):\n    os.mkdir('dd')\n    os.chdir('dd')\n"
        "for name in sys.argv[1:]:\n    open(name, 'w').write('s3cret')\n"
    )
    if depth < 1000:  # else nobody looks into it, and it is hidden from the next command
        assert await run("python3 d.py") == "[exit code 0]"
        assert await run("rm -r dd") == "[exit code 0]"
        assert not (workspace / "dd").exists()
    assert "[made dd/dd/" in await run("python3 d.py AGENTS.md .env")
    read = "import os\nwhile os.path.exists('dd'):\n    os.chdir('dd')\n"
    (workspace / "r.py").write_text(f"{read}print(open('.env').read())")
    (workspace / "w.py").write_text(f"{read}open('AGENTS.md', 'w').write('evil')")
    shown = await run("python3 r.py; python3 w.py; mv dd away; touch kept")
    assert "s3cret" not in shown
    assert (workspace / "kept").exists()
    assert below("AGENTS.md") == "s3cret"


async def test_files_with_a_name_outside(run: Run, workspace: Path, outside: Path) -> None:
    (workspace / "node_modules").mkdir()
    os.link(outside, workspace / "linked")
    for name in ("built", "node_modules/source"):  # with both names in the workspace
        (workspace / name).write_text("old")
        os.link(workspace / name, workspace / f"{Path(name).name}2")
    shown = await run("echo evil > linked; mv linked x; rm -f linked")
    assert outside.read_text() == "mine"
    assert "[read-only for commands: linked]" in shown
    line = "echo new > built; rm built2; echo new > source2; touch done"
    assert await run(line) == "[exit code 0]"
    # By a file tool the link is not followed, but replaced.
    Workspace(workspace).write("linked", "ours")
    assert (workspace / "linked").read_text() == "ours"
    assert outside.read_text() == "mine"


@pytest.mark.parametrize("target", [".", "..", "/", "/tmp", ".env", "missing", "/root/x", "many"])  # noqa: S108
async def test_a_secret_that_is_an_odd_link(run: Run, workspace: Path, target: str) -> None:
    if target == "many":
        for number in range(1500):
            (workspace / f"many{number}").symlink_to(f"many{number + 1}")
        target = "many0"
    (workspace / ".env").symlink_to(target)
    (workspace / ".vscode").symlink_to(target)
    assert await run("echo kept > file") == "[exit code 0]"
    assert (workspace / "file").read_text() == "kept\n"


@pytest.mark.parametrize("odd", ["file", "link", "folder"])
async def test_odd_git_folders(run: Run, workspace: Path, odd: str) -> None:
    (workspace / ".git").mkdir()
    if odd == "file":
        (workspace / ".git/hooks").touch()
    elif odd == "link":
        (workspace / ".git/hooks").symlink_to("/missing")
    else:
        (workspace / ".git/config").mkdir()
    assert await run("echo kept > file") == "[exit code 0]"


async def test_a_folder_that_another_command_swaps(workspace: Path, outside: Path) -> None:
    """Between a folder and a link out of the workspace, while other commands are started."""
    (workspace / ".git").mkdir()
    (workspace / "link").symlink_to(outside.parent)
    exchange = ctypes.CDLL(None).renameat2
    stop = threading.Event()

    def swap() -> None:
        names = (os.fsencode(workspace / ".git"), os.fsencode(workspace / "link"))
        while not stop.is_set():
            exchange(-100, names[0], -100, names[1], 2)

    thread = threading.Thread(target=swap)
    thread.start()
    run = runner(workspace)
    try:
        for _ in range(60):
            with suppress(ToolFailedError, OSError):
                await run("for f in .git/* link/*; do echo evil > $f; done; touch .git/x link/x")
    finally:
        stop.set()
        thread.join()
    assert outside.read_text() == "mine"
    assert [file.name for file in outside.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("family", ["unix", "vsock"])
async def test_sockets_that_need_no_network(run: Run, workspace: Path, family: str) -> None:
    number = {"unix": 1, "vsock": 40}[family]
    (workspace / "s.py").write_text(f"import socket; socket.socket({number}, 1); print('made')")
    assert "PermissionError" in await run("python3 s.py")
    pair = "python3 -c 'import socket; socket.socketpair(); print(1)'"
    assert (await run(pair)).startswith("1")


async def test_system_calls_that_are_for_an_attack(run: Run, workspace: Path) -> None:
    """Of the kernel's keyrings, memory without a name, io_uring; on x86-64."""
    numbers = (250, 319, 425, 308, 321, 29)
    (workspace / "s.py").write_text(
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"print([libc.syscall(n, 0, 0, 0, 0, 0) for n in {numbers}])"
    )
    if platform.machine() == "x86_64":
        assert "[-1, -1, -1, -1, -1, -1]" in await run("python3 s.py")


async def test_common_tools(run: Run, workspace: Path) -> None:
    (workspace / "p.py").write_text(
        "import multiprocessing, sqlite3, subprocess, tempfile, threading, asyncio, socket\n"
        "if __name__ == '__main__':\n"
        "    print(multiprocessing.Pool(2).map(abs, [-1, -2]))\n"
        "    sqlite3.connect('db').execute('create table t (x)')\n"
        "    tempfile.TemporaryFile().write(b'x')\n"
        "    asyncio.run(asyncio.sleep(0))\n"
        "    server = socket.create_server(('127.0.0.1', 0))\n"
        "    socket.create_connection(server.getsockname())\n"
        "    print(subprocess.check_output(['git', '--version'])[:3])\n"
    )
    assert (await run("python3 p.py")) == "[1, 2]\nb'git'\n[exit code 0]"
    assert "exit code 0" in await run("printf 'a:\\n\\ttouch made\\n' > Makefile; make a; ls made")


async def test_no_room_that_nobody_counts(run: Run, workspace: Path) -> None:
    (workspace / "x.env").mkdir()
    shown = await run("for d in /dev /run x.env; do touch $d/x && echo made in $d; done; true")
    assert "made in" not in shown
    if find_bubblewrap().can_bound_tmp:
        assert "No space left" in await run("head -c 1200000000 /dev/zero > /tmp/full")


async def test_the_machines_own_settings(run: Run) -> None:
    file = Path("/proc/sys/kernel/core_pattern")
    before = file.read_text()
    shown = await run(f"cat {file} > /tmp/same; cat /tmp/same > {file} && echo WRITTEN")
    assert "WRITTEN" not in shown
    assert "Read-only file system" in shown or "ermission denied" in shown
    assert file.read_text() == before


def sleepers(mark: str) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                found += [folder.name] * (mark in (folder / "cmdline").read_text())
            except OSError:
                continue
    return found


async def ended(mark: str) -> None:
    async with asyncio.timeout(10):
        while sleepers(mark):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "leaving",
    [
        "sleep {mark} &",
        "nohup sleep {mark} >/dev/null 2>&1 &",
        "(setsid sleep {mark} &)",
        "(setsid sh -c '(setsid sleep {mark} &) &' &)",
        "python3 -c 'import os\nif not os.fork():\n os.setsid()\n if not os.fork():\n"
        '  os.execvp("sleep", ["sleep", "{mark}"])\'',
    ],
)
async def test_whatever_is_left_ends_with_the_call(run: Run, leaving: str) -> None:
    mark = f"3{time.monotonic_ns() % 10**7}"
    start = time.monotonic()
    shown = await run(leaving.format(mark=mark) + "\nsleep 0.3; echo done")
    assert shown == "done\n[exit code 0]"
    assert time.monotonic() - start < 10
    await ended(mark)


async def test_a_cancelled_call_ends_them_too(run: Run) -> None:
    mark = f"4{time.monotonic_ns() % 10**7}"
    task = asyncio.create_task(run(f"(setsid sleep {mark} &); sleep {mark}"))
    while not sleepers(mark):
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended(mark)


async def test_the_end_of_the_agent_ends_them_too(workspace: Path) -> None:
    mark = f"5{time.monotonic_ns() % 10**7}"
    program = (
        "import asyncio; from pathlib import Path\n"
        "from tests.tools.sandbox.test_sandbox import runner\n"
        f"asyncio.run(runner(Path({str(workspace)!r}))('(setsid sleep {mark} &); sleep {mark}'))"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    while not sleepers(f"sleep\0{mark}"):
        await asyncio.sleep(0.05)
    process.kill()
    await process.wait()
    await ended(mark)


async def test_the_timeout_ends_it(run: Run) -> None:
    start = time.monotonic()
    shown = await run("echo begun; trap '' TERM INT; sleep 60", timeout=1)
    assert shown.startswith("begun\n[ended after 1 s")
    assert time.monotonic() - start < 20


async def test_a_fork_bomb_is_ended(workspace: Path) -> None:
    run = runner(workspace, limits=Limits(processes=50))
    bomb = "import os, time\nwhile True:\n    if not os.fork():\n        time.sleep(60)"
    (workspace / "bomb.py").write_text(bomb)
    shown = await run("python3 bomb.py", timeout=60)
    assert "[ended: it had more than 50 processes]" in shown


async def test_memory_of_all_processes_is_limited(workspace: Path) -> None:
    run = runner(workspace, limits=Limits(memory=200))
    hog = 'python3 -c "import time; x = bytearray(80_000_000); time.sleep(30)"'
    shown = await run(f"{hog} & {hog} & {hog} & wait", timeout=60)
    assert "[ended: it used more than 200 MiB of memory]" in shown


async def test_output_is_shown_as_it_comes(run: Run) -> None:
    heard: list[tuple[float, str]] = []
    start = time.monotonic()
    await run(
        "echo one; sleep 1; echo two; sleep 1; echo three",
        emit=lambda text: heard.append((time.monotonic() - start, text)),
    )
    assert [text for _, text in heard] == ["one\n", "two\n", "three\n"]
    assert heard[0][0] < heard[1][0] - 0.5 < heard[2][0] - 1


async def test_what_is_shown_is_bounded(run: Run) -> None:
    heard: list[str] = []
    text = await run("yes 0123456789 | head -c 30000000", emit=heard.append)
    assert len(text) < 25_000
    assert sum(map(len, heard)) < 250_000
    assert "not shown as it comes" in heard[-1]
    assert len(heard) < 60


async def test_many_at_once_leave_nothing(run: Run) -> None:
    def used() -> tuple[int, int]:
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    await asyncio.gather(*(run("true") for _ in range(8)))
    before = used()
    shown = await asyncio.gather(*(run("echo $$ > $(mktemp); true") for _ in range(40)))
    assert set(shown) == {"[exit code 0]"}
    assert used()[0] <= before[0] + 2
    assert used()[1] <= before[1] + 8


ONLY_X = Grant.model_validate({"group": "edit", "fileRegex": "x"})
RULES: dict[str, dict[str, Any]] = {
    "a rule of its own": {"permissions": {"write_file": {"docs/": "ask"}}},
    "a denial of the user's": {"denials": (UserRules({"edit_file": {"x": "deny"}}, "p.yaml"),)},
    "a default of the user's": {"defaults": (UserRules({"write_file": {"x": "ask"}}, "p.yaml"),)},
    "a file restriction": {
        "groups": (
            Grant.model_validate({"group": "edit", "fileRegex": "x"}),
            Grant(group="command"),
        )
    },
    "no edit group": {"groups": (Grant(group="command"),)},
}
FREE: dict[str, dict[str, Any]] = {
    "no rule": {},
    "a rule that allows": {"permissions": {"write_file": {"docs/": "allow"}}},
    "a rule for another tool": {"permissions": {"read_file": {"docs/": "deny"}}},
    "a user's rule that is replaced": {"denials": (UserRules({"edit_file": {"x": "ask"}}, "p"),)},
}


@pytest.mark.parametrize("rule", [*RULES, *FREE])
async def test_a_mode_with_a_rule_on_edits_runs_commands_read_only(
    workspace: Path, rule: str
) -> None:
    built_in = load_test_catalog()
    mode = built_in["code"].model_copy(update={**RULES, **FREE}[rule])
    catalog = Catalog([mode], mode.slug)
    toolbox = build_toolbox(Workspace(workspace), catalog, Commands(sandbox()))
    deps = AgentDeps(catalog, toolbox, Models(OfflineModel()), Approvals.AUTO)
    talk = Conversation(build_agent(deps, InMemorySaver()))
    await talk.say("run touch made")
    assert (workspace / "made").exists() is (rule in FREE)
    assert (deps.edit_restriction("code") is None) is (rule in FREE)


def harness_of(workspace: Path) -> AgentDeps:
    catalog = load_test_catalog()
    toolbox = build_toolbox(Workspace(workspace), catalog, Commands(sandbox()))
    return AgentDeps(catalog, toolbox, Models(OfflineModel()))


@pytest.mark.parametrize("mode", ["ask", "architect"])
async def test_a_mode_without_commands_may_look(workspace: Path, mode: str) -> None:
    await runner(workspace)("git init -q")
    deps = harness_of(workspace)
    assert "`git diff --stat`" in deps.bound_model(mode).prompt.text
    talk = Conversation(build_agent(deps, InMemorySaver()))
    await talk.say("run git status\nrun touch made", mode=mode)
    assert "No commits yet" in (await talk.results())["offline_0_0"].text
    (asked,) = await talk.waiting()
    assert "to Code mode?" in asked["description"]
    assert "execute_command" in asked["description"], "for all commands"
    assert not (workspace / "made").exists()
    await talk.decide(APPROVE)
    assert await talk.approve_all() == ["execute_command"]
    assert (workspace / "made").exists()


HOSTILE = {
    "a filter": '[filter "x"]\nclean = ./evil\nrequired = true',
    "a long filter": '[filter "x"]\nprocess = ./evil',
    "a textconv": '[diff "x"]\ntextconv = ./evil',
    "a driver": '[diff "x"]\ncommand = ./evil',
    "an external diff": "[diff]\nexternal = ./evil",
    "a check of signatures": "[log]\nshowSignature = true\n[gpg]\nprogram = ./evil",
    "another file": "[include]\npath = ../included",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_what_runs_unasked_starts_no_program_of_the_repository(
    run: Run, workspace: Path, name: str
) -> None:
    made = "git init -q . && git config user.email a@b.c && git config user.name a && git add . "
    (workspace / "f").write_text("one\n")
    (workspace / ".gitattributes").write_text("f filter=x diff=x\n")
    (workspace / "evil").write_text("#!/bin/sh\nprintf 'it %s\\n' ran >&2\ncat $1\n")
    (workspace / "evil").chmod(0o755)
    (workspace / "included").write_text(HOSTILE["a filter"])
    await run(f"{made} && git commit -qm one")
    if "signatures" in name:  # git asks the program only about a commit that has one
        await run(
            "git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----' "
            "> /tmp/c; git reset -q --soft $(git hash-object -wt commit /tmp/c)"
        )
    (workspace / "f").write_text("two\n")
    with (workspace / ".git/config").open("a") as file:
        file.write(HOSTILE[name] + "\n")
    lines = ["git status", "git diff", "git show", "git log --oneline", "git branch"]
    assert "it ran" in "".join([await run(line) for line in lines])
    assert "it ran" not in "".join([await run(line, looks=True) for line in lines])


async def test_what_runs_unasked_works_beside_submodules(run: Run, workspace: Path) -> None:
    identity = "git config user.email a@b.c; git config user.name a"
    await run(f"git init -q sub; cd sub; {identity}; touch f; git add f; git commit -qm one")
    await run(f"git init -q; {identity}; git -c core.hooksPath=/x add sub 2>&1; git commit -qm one")
    (workspace / "sub/f").write_text("two\n")
    shown = [
        await run(line, looks=True) for line in ("git status --short", "git diff", "ls", "pwd")
    ]
    assert all("[exit code 0]" in each for each in shown), shown


async def test_git_shows_changes_and_no_secret(run: Run, workspace: Path) -> None:
    """Whether it is asked about or not; of secrets of old and of those that are hidden."""
    for name in ("f", ".env", "deep/Prod.ENV", ".aws/config", ".env.example"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text("public one\n" if name[-1] in "fe" else "s3cret one\n")
    await run("git init -q; git config user.email a@b.c; git config user.name a; git add -Af .")
    shows = runner(workspace, shows_secrets=True)  # what else could put it there
    await shows("git add -f .; git commit -qm one")
    assert "s3cret one" in await shows("git cat-file -p HEAD:.env; git show --text")
    for name in ("f", ".env", ".env.example"):
        (workspace / name).write_text((workspace / name).read_text().replace("one", "two"))
    for looks in (True, False):
        shown = await run("git show", looks=looks)
        assert shown.count("+public one") == 2
        assert shown.count("Binary files /dev/null and ") == 3
        shown += await run("git diff", looks=looks)
        assert shown.count("+public two") == 2
        assert "Binary files a/.env and b/.env differ" in shown
        assert "[hidden from commands, empty for git: .aws, .env, deep/Prod.ENV]" in shown
        shown += await run("git diff --stat", looks=looks) + await run("git status", looks=looks)
        assert shown.count("[exit code 0]") == 4
        assert "s3cret" not in shown
    assert "[exit code 0]" in await run("git diff HEAD -- .")
    shown = await run("git diff | cat; git add -A")
    assert "cannot hash" in shown
    assert "[exit code 0]" not in shown, "an empty file is not to be committed"


async def test_git_looks_at_no_other_folder_unasked(run: Run, workspace: Path) -> None:
    (workspace / "f").touch()
    (workspace / "other").mkdir()
    (workspace / "other/f").write_text("of another folder\n")
    await run("git init -q; git config user.email a@b.c; git config user.name a; git add f")
    await run("git commit -qm one")
    config = workspace / ".git/config"
    config.write_text(f"{config.read_text()}[core]\n\tworktree = {workspace / 'other'}\n")
    assert "+of another folder" in await run("git diff")
    shown = await run("git diff", looks=True)
    assert "[exit code 0]" in shown
    assert "of another folder" not in shown


async def test_a_built_in_rule_lets_nothing_change_the_workspace(
    workspace: Path,
) -> None:
    """A repository whose own settings name a program for ``git diff``, and manual approvals."""
    run = runner(workspace)
    await run("git init -q; git config user.email a@b.c; git config user.name a; echo a > f")
    await run("git add f; git commit -qm one; echo b > f")
    config = workspace / ".git/config"
    config.write_text(config.read_text() + '[diff]\n\texternal = "touch PWNED; true"\n')
    talk = Conversation(build_agent(harness_of(workspace), InMemorySaver()))
    await talk.say("run git diff", mode="code")
    assert await talk.waiting() == []
    assert not (workspace / "PWNED").exists()
    await talk.say("run touch made")
    await talk.decide(APPROVE)
    assert (workspace / "made").exists()
