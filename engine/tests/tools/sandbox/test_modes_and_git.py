"""Commands of a mode: which may change the workspace, and what git shows unasked."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph.agent import build as build_agent
from modeshift.models.loading import Models
from modeshift.models.offline import OfflineModel
from modeshift.modes.catalog import Catalog
from modeshift.modes.mode import Grant, SourcedPermissions
from modeshift.modes.policy import Approvals
from modeshift.sandbox.mounts import ROOM
from modeshift.threads.deps import AgentDeps
from modeshift.tools.processes.sandboxes import Commands
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from modeshift.turns.briefing import describe_environment
from tests.harness.clone import git
from tests.harness.conversation import APPROVE, Conversation
from tests.harness.modes import load_catalog
from tests.harness.root import TEMPLATE
from tests.tools.sandbox.commands import (
    READ_ONLY,
    REPOSITORY,
    Run,
    needs_sandbox,
    runner,
    sandbox,
    write,
)

pytestmark = needs_sandbox
ONLY_X = Grant.model_validate({"group": "edit", "fileRegex": "x"})
RULES: dict[str, tuple[bool, dict[str, Any]]] = {
    "a rule of its own": (False, {"permissions": {"write_file": {"docs/": "ask"}}}),
    "a denial": (False, {"denials": (SourcedPermissions({"edit_file": {"x": "deny"}}, "p.yaml"),)}),
    "a default": (
        False,
        {"defaults": (SourcedPermissions({"write_file": {"x": "ask"}}, "p.yaml"),)},
    ),
    "a file restriction": (False, {"groups": (ONLY_X, Grant(group="command"))}),
    "no edit group": (False, {"groups": (Grant(group="command"),)}),
    "no rule": (True, {}),
    "a rule that allows": (True, {"permissions": {"write_file": {"docs/": "allow"}}}),
    "a rule for another tool": (True, {"permissions": {"read_file": {"docs/": "deny"}}}),
    "a replaced rule": (True, {"denials": (SourcedPermissions({"edit_file": {"x": "ask"}}, "p"),)}),
}
"""Whether commands may change the workspace with it."""


def make_deps(workspace: Path, catalog: Catalog, approvals: Approvals) -> AgentDeps:
    toolbox = build_toolbox(Workspace(workspace), catalog, Commands(sandbox()))
    return AgentDeps(catalog, toolbox, Models(OfflineModel()), approvals)


@pytest.mark.parametrize("rule", RULES)
async def test_a_rule_on_edits_makes_commands_read_only(workspace: Path, rule: str) -> None:
    is_free, fields = RULES[rule]
    mode = load_catalog()["code"].model_copy(update=fields)
    deps = make_deps(workspace, Catalog([mode], mode.slug), Approvals.AUTO)
    await Conversation(build_agent(deps, InMemorySaver())).say("run touch made")
    assert (workspace / "made").exists() is is_free
    assert (deps.seat("code").edit_restriction is None) is is_free


@pytest.mark.parametrize("mode", ["ask", "architect"])
async def test_a_mode_with_read_only_commands_may_look(workspace: Path, mode: str) -> None:
    await runner(workspace)("git init -q")
    deps = make_deps(workspace, load_catalog(), Approvals.MANUAL)
    assert "Commands can only look" in deps.seat(mode).words
    talk = Conversation(build_agent(deps, InMemorySaver()))
    await talk.say("run git status | head -3; touch made\nrun touch made", mode=mode)
    assert not await talk.waiting(), "nothing asks"
    for id in ("offline_0_0", "offline_1_0"):
        text = (await talk.results())[id].text
        assert "Read-only file system" in text
        assert READ_ONLY in text
    assert "No commits yet" in (await talk.results())["offline_0_0"].text
    assert not (workspace / "made").exists()
    assert not (await talk.values())["facts"].get("conversation")


async def test_a_limit_leaves_read_only_commands_and_denials_hold_in_them(workspace: Path) -> None:
    """Whatever the mode may, and whoever approves."""
    deps = make_deps(workspace, load_catalog(), Approvals.AUTO)
    talk = Conversation(build_agent(deps, InMemorySaver()))
    await talk.say("run touch made", mode="code", limit="ask")
    assert "Read-only file system" in (await talk.results())["offline_0_0"].text
    assert "Commands can only look" in deps.seat("code", "ask").words
    manual = make_deps(workspace, load_catalog(), Approvals.MANUAL)
    talk = Conversation(build_agent(manual, InMemorySaver()))
    await talk.say("run touch made", mode="code", limit="ask")
    (asked,) = await talk.waiting()
    assert "It cannot change the workspace, and has no network" in asked["description"]
    await talk.decide({"type": "approve", "remember": True})
    await talk.say("run touch made")
    assert not await talk.waiting(), "it is remembered"
    assert not (workspace / "made").exists()
    deny = SourcedPermissions({"execute_command": {"git push *": "deny"}}, "permissions.yaml")
    mode = load_catalog()["ask"].model_copy(update={"denials": (deny,)})
    deps = make_deps(workspace, Catalog([mode], mode.slug), Approvals.AUTO)
    talk = Conversation(build_agent(deps, InMemorySaver()))
    await talk.say("run true && git push x")
    assert "'git push *'" in (await talk.results())["offline_0_0"].text
    talk = Conversation(build_agent(deps, InMemorySaver()))
    await talk.say("run eval $X; touch made")
    (asked,) = await talk.waiting()
    assert "It cannot change the workspace, and has no network" in asked["description"]
    await talk.decide(APPROVE)
    assert not (workspace / "made").exists()


async def test_read_only_commands_beside_free_edits(workspace: Path) -> None:
    """Neither the group nor its absence opens the other; without a sandbox there is none."""
    groups = [Grant(group="edit"), Grant(group="command", sandbox="read-only")]
    mode = load_catalog()["code"].model_copy(update={"groups": tuple(groups), "permissions": {}})
    deps = make_deps(workspace, Catalog([mode], mode.slug), Approvals.AUTO)
    talk = Conversation(build_agent(deps, InMemorySaver()))
    await talk.say("run touch made\nwrite a.txt: x")
    assert not (workspace / "made").exists()
    assert (workspace / "a.txt").exists()
    assert "execute_command" in deps.list_tools("code")
    bare = replace(deps, toolbox=build_toolbox(Workspace(workspace), deps.catalog, Commands()))
    assert "execute_command" not in bare.list_tools("code")
    without = mode.model_copy(update={"groups": (Grant(group="edit"),)})
    assert "execute_command" not in make_deps(
        workspace, Catalog([without], "code"), Approvals.AUTO
    ).list_tools("code")


HOSTILE = {
    "a filter": '[filter "x"]\nclean = ./evil\nrequired = true',
    "a textconv": '[diff "x"]\ntextconv = ./evil',
    "a driver": '[diff "x"]\ncommand = ./evil',
    "an external diff": "[diff]\nexternal = ./evil",
    "a check of signatures": "[log]\nshowSignature = true\n[gpg]\nprogram = ./evil",
    "another file": "[include]\npath = ../included",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_nothing_runs_of_the_repository(run: Run, workspace: Path, name: str) -> None:
    write(workspace, "f", text="one\n")
    write(workspace, ".gitattributes", text="f filter=x diff=x\n")
    write(workspace, "evil", text="#!/bin/sh\nprintf 'it %s\\n' ran >&2\ncat $1\n")
    (workspace / "evil").chmod(0o755)
    write(workspace, "included", text=HOSTILE["a filter"])
    await run(f"{REPOSITORY}; git add .; git commit -qm one")
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


async def test_changes_are_told_and_no_program_starts(run: Run, workspace: Path) -> None:
    """One that did would not end in time."""
    write(workspace, "f", text="one\n")
    write(workspace, ".gitattributes", text="f filter=x diff=x\n")
    write(workspace, "evil", text="#!/bin/sh\nsleep 60\n")
    (workspace / "evil").chmod(0o755)
    await run(f"{REPOSITORY}; git add .; git commit -qm one")
    with (workspace / ".git/config").open("a") as file:
        file.write('[filter "x"]\nclean = ./evil\n[core]\nfsmonitor = ./evil\n')
    box = build_toolbox(Workspace(workspace), load_catalog(), Commands(sandbox()))
    assert (await describe_environment(box)).endswith(", clean")
    (workspace / "f").write_text("two\n")
    assert (await describe_environment(box)).endswith(", with changes that are not committed")


async def test_what_runs_unasked_works_beside_submodules(run: Run, workspace: Path) -> None:
    await run(f"mkdir sub; cd sub; {REPOSITORY}; touch f; git add f; git commit -qm one")
    await run(f"{REPOSITORY}; git -c core.hooksPath=/x add sub 2>&1; git commit -qm one")
    (workspace / "sub/f").write_text("two\n")
    shown = [
        await run(line, looks=True) for line in ("git status --short", "git diff", "ls", "pwd")
    ]
    assert all("[exit code 0]" in each for each in shown), shown


async def test_git_shows_changes_and_no_secret(run: Run, workspace: Path) -> None:
    """Whether it is asked about or not; of secrets of old and of those that are hidden."""
    for name in ("f", ".env", "deep/Prod.ENV", ".aws/config", ".env.example"):
        write(workspace, name, text="public one\n" if name[-1] in "fe" else "s3cret one\n")
    await run(f"{REPOSITORY}; git add -Af .")
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
    write(workspace, "f")
    write(workspace, "other/f", text="of another folder\n")
    await run(f"{REPOSITORY}; git add f; git commit -qm one")
    config = workspace / ".git/config"
    config.write_text(f"{config.read_text()}[core]\n\tworktree = {workspace / 'other'}\n")
    assert "+of another folder" in await run("git diff")
    shown = await run("git diff", looks=True)
    assert "[exit code 0]" in shown
    assert "of another folder" not in shown


@pytest.fixture
def other() -> Iterator[Path]:
    """Another repository, where commands can see it unless this clone is below /tmp itself."""
    folder = Path(mkdtemp(prefix=".other-", dir=TEMPLATE))
    (folder / "f").write_text("of another repository\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "one"), ("repack", "-adq")):
        assert git(folder, *words).returncode == 0
    yield folder
    rmtree(folder)


def borrow(other: Path, name: str, git_folder: Path) -> None:
    """Make the workspace's repository another one that has or borrows the commit."""
    if name in ("commondir", "objects/info/alternates"):
        (git_folder / name).write_text(f"{other}/.git{'/objects' if '/' in name else ''}\n")
    elif name == "objects/":
        (other / "g").write_text("of another repository, and in no pack\n")
        for words in (("rm", "-q", "f"), ("add", "g"), ("commit", "-q", "--amend", "-m", "two")):
            assert git(other, *words).returncode == 0
        for path in (other / ".git/objects").glob("??/*"):
            link = git_folder / "objects" / path.parent.name / path.name
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(path)
    else:
        (git_folder / name).rmdir()
        (git_folder / name).symlink_to(other / ".git" / name)
    head = git(other, "rev-parse", "HEAD").stdout
    (git_folder / "refs/heads").mkdir(exist_ok=True)
    (git_folder / (git_folder / "HEAD").read_text().split()[1]).write_text(head)


async def show_in_code_mode(workspace: Path) -> Conversation:
    deps = make_deps(workspace, load_catalog(), Approvals.MANUAL)
    talk = Conversation(build_agent(deps, InMemorySaver()))
    await talk.say("run git show", mode="code")
    return talk


@pytest.mark.parametrize(
    "name", ["file", "link", "commondir", "objects/info/alternates", "objects/pack", "objects/"]
)
async def test_git_asks_before_it_shows_another(workspace: Path, other: Path, name: str) -> None:
    if name == "file":
        (workspace / ".git").write_text(f"gitdir: {other}/.git\n")
    elif name == "link":
        (workspace / ".git").symlink_to(other / ".git")
    else:
        git(workspace, "init", "-q")
        borrow(other, name, workspace / ".git")
    talk = await show_in_code_mode(workspace)
    (asked,) = await talk.waiting()
    path = ".git" if name in ("file", "link") else f".git/{name}"
    told = f"may show another repository: '{path}"
    assert told + ("" if name == "objects/" else "' leads there") in asked["description"]
    assert await talk.approve_all() == ["execute_command"]
    if not any(other.is_relative_to(hidden) for hidden in ROOM):
        assert "+of another repository" in (await talk.results())["offline_0_0"].text


async def test_git_does_not_ask_in_a_repository_of_its_own(workspace: Path, other: Path) -> None:
    (workspace / "f").write_text("ours\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "one")):
        git(workspace, *words)
    (workspace / ".git/hooks/post-commit").symlink_to(other / "f")
    (workspace / ".git/here").symlink_to("HEAD")
    talk = await show_in_code_mode(workspace)
    assert "+ours" in (await talk.results())["offline_0_0"].text
