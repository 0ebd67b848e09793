"""What a command must not read or change, and every way around that we know of."""

import asyncio
import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest

from modeshift.modes.errors import InvalidCallError, ToolFailedError
from modeshift.sandbox.bubblewrap import find_bubblewrap
from modeshift.sandbox.mounts import choose_protection, mount_workspace
from modeshift.tools.processes.background import Calling
from modeshift.tools.processes.sandboxes import SandboxOptions
from modeshift.tools.workspace.workspace import Workspace
from tests.tools.racing import swapping
from tests.tools.sandbox.commands import (
    READ_ONLY,
    REPOSITORY,
    Run,
    needs_sandbox,
    read_tree,
    runner,
    scan,
    write,
)

pytestmark = needs_sandbox
STEERING = {
    ".vscode/tasks.json": ".vscode",
    ".gitea/workflows/x.yml": ".gitea",
    **{name: name for name in (".envrc", ".kilocodemodes", "AGENTS.md", "sub/mcp.json")},
    **{name: name for name in ("sub/.cargo/config.toml", ".hg/hgrc", "a/mise/config.toml")},
}
"""Files, and what of them is protected."""


async def test_what_steers_is_read_only_or_told_of(run: Run, workspace: Path) -> None:
    made = [f"mkdir -p $(dirname {name}); echo x > {name}" for name in STEERING]
    assert f"[made {', '.join(sorted(STEERING.values()))}:" in await run("; ".join(made))
    before = read_tree(workspace)
    for name in STEERING:
        top = name.split("/", maxsplit=1)[0]
        attempts = (
            f"echo evil > {name}", f"rm -rf {top}", f"mv {top} other", f"ln -sf /etc/passwd {name}",
            f"chmod 777 {name}", f"mv {top} o && mkdir {top} && echo evil > {name}",
        )  # fmt: skip
        shown = await run(
            "; ".join(f"( {attempt} ) && echo DONE '{attempt}'" for attempt in attempts)
        )
        assert "DONE" not in shown
        assert read_tree(workspace) == before, name


async def test_what_makes_git_run_programs_stays_and_links_are(run: Run, workspace: Path) -> None:
    await run("git init -q; rm -rf .git/hooks")
    for attempt in (
        "git config core.fsmonitor evil",
        "echo evil > .git/hooks/pre-commit",
        "mv .git other && mkdir .git && cp -r other/. .git && echo evil >> .git/config",
        *("rm -rf .git", "ln -s /tmp/evil .git/hooks/post-commit"),
        *("mkdir -p evil && mv evil .git/hooks", "printf '* filter=x' > .git/info/attributes"),
    ):
        await run(attempt)
        assert "evil" not in (workspace / ".git/config").read_text(), attempt
        assert not list((workspace / ".git/hooks").iterdir()), attempt
        assert not (workspace / ".git/info/attributes").exists(), attempt
    assert "[made .git/commondir:" in await run("echo ../evil > .git/commondir")
    write(workspace, "AGENTS.md", text="theirs")
    (workspace / "CLAUDE.md").symlink_to("AGENTS.md")
    assert await run("cat CLAUDE.md") == "theirs\n[exit code 0]"
    assert "[made CLAUDE.md:" in await run("rm CLAUDE.md; echo evil > CLAUDE.md")


TRICKS = [
    *("mkdir m", "mkfifo p", ": > f", "exec 3<>f; echo x >&3", "sh <<'X'\nrm f\nX"),
    *("(setsid rm f &) ; sleep 0.2", "ln -s $PWD /tmp/w && rm /tmp/w/f", "umount $PWD && rm f"),
    *("rm /proc/self/cwd/f", "rm /proc/1/root$PWD/f", "exec 3<.; cd /proc/self/fd/3 && rm f"),
    *("mount -o remount,rw $PWD && rm f", "mount --bind /tmp $PWD && touch f", "chroot / rm f"),
    *("unshare -Ur rm f", 'unshare -Urm sh -c "umount -l $PWD; rm f"', "git init -q ."),
]
"""Besides those of ``test_read_only``."""


async def test_read_only_means_read_only(run: Run, workspace: Path) -> None:
    write(workspace, "f", "folder/in", text="one\n")
    before = read_tree(workspace)
    tricks = iter(TRICKS)
    while some := list(islice(tricks, 8)):
        shown = await run("\n".join(f"( {trick}\n)" for trick in some), edits=False)
        assert shown.endswith(READ_ONLY)
        assert read_tree(workspace) == before, some
    shown = await run("cat f; sort f > /tmp/s; cat /tmp/s; git status 2>&1 | head -1", edits=False)
    assert shown.startswith("one\none\n")


async def test_nothing_outside_can_be_changed(run: Run, workspace: Path, outside: Path) -> None:
    (workspace / "link").symlink_to(outside)
    await run(f"ln -s {outside.parent} folder; ln -s {outside} planted")
    targets = ("link", "folder/file", "../outside/file", "~/f", "/etc/f", "/usr/f", str(outside))
    for target in targets:
        await run(
            f"echo evil > {target}; echo evil > {target}.new; chmod 777 {target}; rm {target}"
        )
    for path in ("planted", "folder/file"):
        with pytest.raises(InvalidCallError):
            Workspace(workspace).resolve(path)
    assert outside.read_text() == "mine"
    assert stat.S_IMODE(outside.stat().st_mode) != 0o777
    assert [file.name for file in outside.parent.iterdir()] == ["file"]
    assert not [path for path in ("/etc/f", "/usr/f", Path.home() / "f") if Path(path).exists()]


async def test_secrets_are_hidden_and_what_steers_in_folders_below(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    home = workspace  # outside of /tmp there is none that a test may use
    write(home, ".ssh/id_rsa", ".netrc", "own.json", ".env", "elsewhere/credentials", text="s3cret")
    write(home, "plain", text="shown")
    (home / ".aws").symlink_to(home / "elsewhere")
    monkeypatch.setenv("HOME", str(home))
    run = runner(home, hidden=(home / "own.json",))
    shown = await run(
        "cat ~/plain ~/.ssh/id_rsa ~/.netrc ~/own.json .env ~/.aws/* ~/elsewhere/*; grep -r . ~"
    )
    assert "shown" in shown
    assert "s3cret" not in shown
    await run("rm -f .env; mv .env x; echo evil > .env")
    assert (home / ".env").read_text() == "s3cret"
    write(workspace, "app/.env", "app/.ssh/id_rsa", "app/deep/prod.env", text="s3cret")
    write(workspace, "app/node_modules/x/ca.pem", text="public")
    steering = ("app/.vscode/tasks.json", "app/AGENTS.md", "sub/.git/config", "sub/.git/HEAD")
    write(workspace, *steering, text="theirs")
    shown = await run("cat app/.env app/.ssh/id_rsa app/deep/*; grep -r . ; mv app/.env app/plain")
    assert "s3cret" not in shown
    assert "public" in shown
    for name in steering[:3]:
        await run(f"echo evil > {name}; rm -f {name}; mv {name} x; touch sub/.git/hooks/x")
        assert (workspace / name).read_text() == "theirs"
    assert not list((workspace / "sub/.git/hooks").iterdir())
    assert "[made app/new/.envrc:" in await run("mkdir app/new; touch app/new/.envrc")
    shows = runner(workspace, shows_secrets=True)
    assert "s3cret" in await shows("cat app/.env; echo evil > app/.env")
    assert (workspace / "app/.env").read_text() == "s3cret"


async def test_what_is_protected_cannot_be_moved_out_of_sight(run: Run, workspace: Path) -> None:
    write(workspace, "app/sub/.env", "app/AGENTS.md", "deep/x/y", text="s3cret")
    for away in ("node_modules", "venv", "other", "../x", "$TMPDIR/x", "deep/x"):
        shown = await run(f"mv app {away}; mv app/sub {away}")
        shown += await run(
            f"cat {away}/sub/.env {away}/.env app/sub/.env; grep -rs s3c . | grep env"
        )
        assert "s3cret" not in shown
        await run(f"for f in app {away}; do echo evil > $f/AGENTS.md; done")
        assert (workspace / "app/AGENTS.md").read_text() == "s3cret"


@pytest.mark.skipif(os.geteuid() == 0, reason="root looks into every folder")
async def test_a_folder_that_cannot_be_looked_into(run: Run, workspace: Path) -> None:
    (workspace / "app").mkdir(mode=0o311)
    with pytest.raises(ToolFailedError, match="cannot be looked into"):
        await run("true")
    (workspace / "app").chmod(0o755)


MANY = {
    "a vendored folder": ("vendor/m{}/.github/x", 1000, "vendor"),
    "folders of their own": ("m{}/AGENTS.md", 301, "m1, m10, "),
    "more than that": ("m{}/AGENTS.md", 1000, ". but for plain, src"),
    "secrets in a folder": ("certs/{}.pem", 1000, "certs"),
    "secrets at the top": ("{}.pem", 1000, ". but for plain, src"),
}


@pytest.mark.parametrize("many", MANY)
async def test_more_than_can_be_protected_one_by_one(run: Run, workspace: Path, many: str) -> None:
    """Made by a command, perhaps to have no other one run."""
    pattern, count, whole = MANY[many]
    write(workspace, *(pattern.format(number + 1) for number in range(count)), text="s3cret")
    write(workspace, "src/old", "plain")
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
def deep(workspace: Path) -> Iterator[Path]:
    """Is removed in the end, which Python cannot do with folders that are so deep."""
    yield workspace / "dd"
    subprocess.run(["rm", "-rf", workspace / "dd"], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [60, 1500])
async def test_very_deep_folders(run: Run, workspace: Path, deep: Path, depth: int) -> None:
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
    assert "s3cret" not in await run("python3 r.py; python3 w.py; mv dd away; touch kept")
    assert (workspace / "kept").exists()
    command = ["grep", "-rh", "--include", "AGENTS.md", ".", str(deep)]
    lines = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)
    assert lines.stdout == b"s3cret\n"


async def test_files_with_a_name_outside(run: Run, workspace: Path, outside: Path) -> None:
    os.link(outside, workspace / "linked")
    for name in ("built", "node_modules/source"):  # with both names in the workspace
        write(workspace, name, text="old")
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


async def test_what_is_odd_is_no_obstacle(workspace: Path, run: Run) -> None:
    """A secret, and what steers, that are odd links; odd folders of git's."""
    for number in range(1500):
        (workspace / f"many{number}").symlink_to(f"many{number + 1}")
    for target in (".", "..", "/", "/tmp", ".env", "missing", "/root/x", "many0"):  # noqa: S108
        for name in (".env", ".vscode"):
            (workspace / name).unlink(missing_ok=True)
            (workspace / name).symlink_to(target)
        assert await run(f"echo {target} > file") == "[exit code 0]"
        assert (workspace / "file").read_text() == f"{target}\n"
    hooks = workspace / ".git/hooks"
    write(workspace, ".git/hooks")
    assert await run("true") == "[exit code 0]"
    hooks.unlink()
    hooks.symlink_to("/missing")
    assert await run("true") == "[exit code 0]"
    (workspace / ".git/config").mkdir()
    assert await run("true") == "[exit code 0]"


def test_what_has_become_a_link_is_not_mounted(workspace: Path, outside: Path) -> None:
    """bubblewrap follows a relative one: the folder outside could then be written to."""
    write(workspace, ".git/config")
    protection = choose_protection(scan(workspace))
    (workspace / ".git").rename(workspace / "moved")
    (workspace / ".git").symlink_to(os.path.relpath(outside.parent, workspace))
    with pytest.raises(OSError, match="it has become a link"):
        mount_workspace({}, protection, str, Calling(edits_freely=True))


async def test_what_another_command_swaps(run: Run, workspace: Path, outside: Path) -> None:
    """With a link out of the workspace, all the time, while commands are prepared and started."""
    write(workspace, ".git/config", "AGENTS.md", text="theirs")
    (workspace / "folder").symlink_to(outside.parent)
    (workspace / "link").symlink_to(outside)
    names = ((".git", "folder"), ("AGENTS.md", "link"))
    pairs = [(workspace / name, workspace / other) for name, other in names]
    mounted = set()
    with swapping(*pairs):
        for _ in range(400):
            with suppress(ToolFailedError, OSError):
                protection = choose_protection(scan(workspace))
                program = find_bubblewrap().build_program(
                    SandboxOptions(), protection, "true", workspace, Calling(edits_freely=True)
                )
                files = map(Path, (f"/proc/self/fd/{file}" for file in program.descriptors))
                mounted |= {str(file.readlink()) for file in files}
                program.close()
        for _ in range(20):
            with suppress(ToolFailedError, OSError):
                await run("for f in .git/* folder/*; do echo evil > $f; done; touch folder/x")
    assert any(path.startswith(str(workspace)) for path in mounted)
    assert not [path for path in mounted if path.startswith(str(outside.parent))]
    assert outside.read_text() == "mine"
    assert [file.name for file in outside.parent.iterdir()] == ["file"]


# What ignore files name.


async def test_commands_do_not_see_it(workspace: Path) -> None:
    shut = ("shut/in.txt", "deep/key.pem", ".github/token.txt")
    write(workspace, *shut, text="needle")
    write(workspace, "open.txt", "node_modules/m/key.pem", text="shown")
    write(workspace, ".rooignore", text="/shut/\n*.pem\ntoken.txt\nnode_modules/\n.git\n")
    run = runner(workspace)
    output = await run("cat open.txt node_modules/*/*; cat " + " ".join(shut) + "; ls -A shut")
    assert output.startswith("shownshown")
    assert output.count("ermission denied") == len(shut) + 1
    assert "needle" not in output
    assert "[hidden from commands: .github/token.txt, deep/key.pem, shut]" in output
    for attempt in ("mv shut x", "rm -r shut", "echo x > shut/in.txt", "echo x > .rooignore",
                    "rm deep/key.pem", "mv deep x", "chmod 777 shut", "rm .rooignore"):  # fmt: skip
        assert "[exit code 0]" not in await run(attempt), attempt
    assert "[exit code 0]" in await run("git init")
    with pytest.raises(InvalidCallError, match="out of reach"):
        await run("true", cwd="shut")


async def test_git_neither_shows_nor_deletes_it(workspace: Path) -> None:
    """Not even what is no longer there, which the mode ask could look at unasked."""
    write(workspace, "shut/in.txt", "one.dat", "gone.dat", "open.txt", text="needle\n")
    await runner(workspace)(f"{REPOSITORY}; git add -A; git commit -qm one")
    (workspace / "gone.dat").unlink()
    write(workspace, "open.txt", text="changed\n")
    write(workspace, ".rooignore", text="shut/\n*.dat\n")
    looks = await runner(workspace)("git diff", looks=True)
    assert "+changed" in looks
    assert "-needle" in looks  # of open.txt
    assert looks.count("needle") == 1, looks
    run = runner(workspace)
    assert " D shut" not in await run("git status --porcelain")
    await run("git commit -qam two; git add -A; git commit -qm three")
    kept = await run("git ls-tree -r --name-only HEAD")
    assert "shut/in.txt" in kept
    assert "one.dat" in kept
