"""Ignore files: what they name is hidden from commands, and git neither shows nor deletes it."""

from pathlib import Path

import pytest

from modeshift.modes.errors import InvalidCallError
from tests.tools.sandbox.commands import REPOSITORY, needs_sandbox, runner, write

pytestmark = needs_sandbox


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
