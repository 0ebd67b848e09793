"""``make modes``, ``trust``, ``usage``, ``diagram``, ``clean-data``: what they print or refuse."""

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from modeshift.__main__ import COMMANDS
from modeshift.tools.processes.sandboxes import NoSandbox, find_sandbox
from tests.clients.commands.conftest import Run, Shown
from tests.harness import prefork
from tests.harness.conversation import SECONDS, Conversation, make_agent
from tests.harness.place import UserFolders, modes_file
from tests.harness.root import ROOT
from tests.harness.scripted import ScriptedModel

PERMISSIONS = "    permissions:\n      execute_command: {'make *': allow, 'rm *': deny}\n"


def test_modes_says_what_holds_and_why(place: UserFolders, run: Run) -> None:
    place.permissions.write_text("execute_command: {'git push *': deny}\n")
    place.global_modes.write_text(
        modes_file("mine", groups=r"read, [edit, {fileRegex: '\.md$'}], command", rest=PERMISSIONS)
    )
    place.project_modes.write_text(modes_file("theirs"))
    shown = run("modes").stdout
    assert "approvals  manual" in shown
    assert f"make trust WORKSPACE={place.workspace}" in shown
    assert "N Theirs" not in shown
    lines = shown[shown.index("mine  N Mine  (") :].splitlines()
    assert lines[0] == f"mine  N Mine  (global: {place.global_modes})"
    assert lines[1] == "  model offline"
    rows = [" ".join(line.split()) for line in lines]
    assert r"write_file ask changes a file; only on files that match '\.md$'" in rows
    held = r"it may change files anyway: the mode edits only files that match '\.md$'"
    command = rows.index(f"execute_command ask runs a command, not sandboxed; {held}")
    assert rows[command + 1 : command + 4] == [
        f"allow 'make *' ({place.global_modes})",
        f"deny 'git push *' ({place.permissions}, always)",
        f"deny 'rm *' ({place.global_modes}, always)",
    ]
    assert "ask  Ask  (built-in: modes/ask.yaml, the default)" in shown
    auto = " ".join(run("modes", APPROVALS="auto").stdout.split())
    assert "write_file allow changes a file, approvals are 'auto'" in auto
    assert "write_file deny no group 'edit'" in " ".join(shown.split())


def test_modes_of_one_mode_and_its_prompt(place: UserFolders, run: Run) -> None:
    place.rule("AGENTS.md", "Be brief.\x1b]0;owned\x07")
    shown = run("modes", "--mode", "code", "--prompt", TRUST_WORKSPACE="true").stdout
    assert r"  | Be brief.\u001b]0;owned\u0007" in shown
    assert "ask  Ask" not in shown
    place.project_modes.write_text(modes_file("theirs"))
    failed = run("modes", "--mode", "theirs")
    assert failed.stdout == ""
    notice, error = failed.stderr.splitlines()
    assert notice.startswith("notice     ")
    assert "ignored until you trust" in notice
    assert error.startswith("modeshift: unknown mode 'theirs'; the modes are: ")


def test_trust_shows_and_records(place: UserFolders, run: Run) -> None:
    place.project_modes.write_text(modes_file("theirs", groups="command", rest=PERMISSIONS))
    place.rule("AGENTS.md", "Be brief.")
    assert "N Theirs" not in run("modes").stdout
    shown = run("trust").stdout
    assert "mode theirs: command" in shown
    assert "allow execute_command 'make *'" in shown
    assert "AGENTS.md (9 characters)" in shown
    after = run("modes").stdout
    assert "theirs  N Theirs  (project: .kilocodemodes)" in after
    assert "notice" not in after
    assert "  rules: " in after
    assert "is no longer trusted" in run("trust", "--revoke").stdout
    assert "N Theirs" not in run("modes").stdout
    assert "was not trusted" in run("trust", "--revoke").stdout


def test_trust_shows_the_texts_and_records_nothing(place: UserFolders, run: Run) -> None:
    place.rule("AGENTS.md", "One.\n\t\x1b[2JTwo.")
    shown = "AGENTS.md:\n  | One.\n  |         \\u001b[2JTwo.\n"
    assert run("trust", "--show").stdout == shown
    assert not (place.root / "trusted.json").exists()


def test_trust_of_nothing(place: UserFolders, run: Run) -> None:
    for show in ((), ("--show",)):
        assert "there is nothing to trust" in run("trust", *show).stdout
    assert not (place.root / "trusted.json").exists()
    failed = run("trust", WORKSPACE=str(place.root / "none"))
    assert "is not a folder" in failed.stderr
    (place.root / "trusted.json").write_text("[]")
    place.project_modes.write_text(": :")
    failed = run("trust")
    assert "fix the file or remove it" in failed.stderr
    assert (place.root / "trusted.json").read_text() == "[]"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("customModes: 5", "customModes is a list"),
        ('"\\e[2J": 5', r"\x1b[2J"),
        (modes_file("a", rest='    permissions: {"\\ud800": allow}\n'), ".kilocodemodes"),
    ],
)
def test_what_does_not_load_is_not_trusted(
    place: UserFolders, run: Run, text: str, says: str
) -> None:
    place.rule("AGENTS.md", "Obey me.")
    place.project_modes.write_text(text)
    failed = run("trust")
    assert says in failed.stderr
    assert failed.stdout == ""
    assert "\x1b" not in failed.stderr
    assert not (place.root / "trusted.json").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_make_passes_every_option_on(command: str) -> None:
    _, options = COMMANDS[command]
    names = [option.partition("=")[0] for option in options]

    def show(value: str) -> str:
        variables = [f"{name.upper()}={value}" for name in names]
        run = subprocess.run(["make", "-n", command, *variables], cwd=ROOT, stdout=-1, check=True)
        return run.stdout.decode()

    assert re.findall(r" --(\w+)", show("1")) == names
    flags = {option for option in options if "=" not in option}
    assert not flags & {*re.findall(r" --(\w+)", show("0"))}


def test_a_closed_pipe(place: UserFolders, tmp_path: Path) -> None:
    reading, closed = os.pipe()
    os.close(reading)
    with (tmp_path / "errors").open("w+") as errors:
        streams = (errors.fileno(), closed, errors.fileno())
        process = prefork.start("modeshift", "modes", env=place.environment(), streams=streams)
        os.close(closed)
        process.wait(SECONDS)
        assert errors.read() == ""


def test_diagram_has_the_custom_modes(place: UserFolders, run: Run, tmp_path: Path) -> None:
    place.global_modes.write_text(modes_file("mine"))
    place.project_modes.write_text(modes_file("theirs"))
    shown = run("diagram")
    assert shown.stdout.startswith("stateDiagram-v2\n")
    assert 'state "N Mine" as m_' in shown.stdout
    assert "Theirs" not in shown.stdout
    assert "ignored until you trust" in shown.stderr
    out = tmp_path / "modes.mmd"
    assert run("diagram", "--out", str(out)).stdout == f"{out}: written\n"
    assert out.read_text() == shown.stdout
    failed = run("diagram", "--out", str(tmp_path))
    assert "cannot be written" in failed.stderr


def test_clean_data_removes_a_database_and_nothing_else(place: UserFolders, run: Run) -> None:
    file = place.root / "checkpoints.sqlite"
    assert run("clean-data").stdout.count("nothing to remove") == 2
    file.write_text("my only copy of something")
    assert "is not an SQLite database; left alone" in run("clean-data").stderr
    assert file.exists()
    file.unlink()
    sessions = place.root / "sessions.sqlite"
    sessions.write_text("something else")
    assert f"SESSIONS='{sessions}' is not an SQLite database" in run("clean-data").stderr
    sessions.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("create table a (b)")
    Path(f"{file}-wal").write_text("")
    said = f"{file}: removed\n{file}-wal: removed\n{sessions} is not there; nothing to remove\n"
    assert run("clean-data").stdout == said
    assert not list(place.root.glob("checkpoints*"))


def rows(shown: Shown) -> list[tuple[str, str]]:
    lines = [line.split(maxsplit=1) for line in shown.stdout.splitlines()[3:]]
    return [(status, text) for status, text in lines if status in ("yes", "no", "partly")]


def test_doctor_with_the_sandbox_turned_off(run: Run, place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("mine", groups="read, command"))
    path = str(place.global_modes.parent)
    shown = run("doctor", SANDBOX="off", AUTH_TOKEN="0123456789abcdef", PATH=path)  # noqa: S106
    assert ("no", "the tests of the page are skipped: there is no Chromium here") in rows(shown)
    assert ("no", "commands run without a sandbox, and every one asks: SANDBOX=off") in rows(shown)
    assert "commands in mine mode can change the workspace, if you approve them" in shown.stdout
    assert "the mode has no 'edit' tools" in shown.stdout
    assert ("yes", "the server on 127.0.0.1 asks for a token") in rows(shown)
    assert "0123456789abcdef" not in shown.stdout


@pytest.mark.skipif(isinstance(find_sandbox(), NoSandbox), reason="no bubblewrap to mount with")
@pytest.mark.parametrize(
    ("command", "texts"),
    [
        (
            ("doctor",),
            [
                "no      the workspace: the agent can only read, since '{place}/workspace' cannot",
                f"no      the clone: make dev does not start, since '{ROOT}' cannot be written",
                "no      CHECKPOINTS: '{place}/workspace/threads' cannot be written: Read-only",
                "no      SESSIONS: '{place}/trusted.json/s' cannot be written: File exists; see",
            ],
        ),
        (
            ("dev", "CHECKPOINTS"),
            [f"modeshift: '{ROOT}/.langgraph_api/server.lock' cannot be written: Read-only file"],
        ),
    ],
)
def test_what_cannot_be_written(
    place: UserFolders, command: tuple[str, ...], texts: list[str]
) -> None:
    """With a workspace and a clone that are mounted so that nobody may write, root neither."""
    (place.root / "trusted.json").write_text("{}")
    writable = {name: str(place.root / name) for name in command[1:]}
    given = {"CHECKPOINTS": str(place.workspace / "threads"), **writable}
    mounts = [part for folder in (ROOT, place.workspace) for part in ("--ro-bind", folder, folder)]
    program = ("bwrap", "--dev-bind", "/", "/", *mounts, sys.executable, "-m", "modeshift")
    env = place.environment(SESSIONS=str(place.root / "trusted.json/s"), **given)
    done = subprocess.run(
        [*program, command[0]], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    printed = done.stdout + done.stderr
    assert [text for text in texts if text.format(place=place.root) not in printed] == []
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == len(texts) % 2


def took(model: str, tokens: int, cached: int = 0) -> ScriptedModel:
    """A model whose every answer took that much."""
    taken = UsageMetadata(input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1)
    taken["input_token_details"] = {"cache_read": cached}
    answers = [AIMessage("said", usage_metadata=taken) for _ in range(9)]

    class Named(ScriptedModel):
        @property
        def _llm_type(self) -> str:
            return model

    return Named(answers=answers)


async def make_threads(file: Path, workspace: Path, *models: ScriptedModel) -> list[Conversation]:
    """A thread with one turn for each model."""
    talks = []
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        for model in models:
            talks.append(Conversation(make_agent(workspace, model, saver=saver)))
            await talks[-1].say("hello")
        first = (await talks[0].agent.aget_state(talks[0].config)).config
        await talks[0].say("and more")
        talks[0].config = first  # the person goes back, and on from there
        await talks[0].say("something else")
    return talks


def test_usage_of_both_stores(place: UserFolders, run: Run) -> None:
    assert run("usage").stdout.splitlines() == [
        f"threads of the dev server: none  ({place.root / 'checkpoints.sqlite'})",
        f"sessions of editors: none  ({place.root / 'sessions.sqlite'})",
    ]
    models = (took("x:a", 1000, 600), took("x:b", 20))
    file = place.root / "checkpoints.sqlite"
    one, _ = asyncio.run(make_threads(file, place.workspace, *models))
    (own,) = asyncio.run(
        make_threads(place.root / "sessions.sqlite", place.workspace, took("x:a", 3))
    )
    lines = [" ".join(line.split()) for line in run("usage").stdout.splitlines()]
    assert lines[1].startswith("threads of the dev server: 2 (")
    at = lines.index(one.config["configurable"]["thread_id"])
    assert lines[at + 1] == "x:a 3 3,000 1,800 0 3", "the abandoned branch was paid too"
    assert lines[at + 2].startswith("in the window: 1,001 of a size not known")
    assert lines[-3:-1] == ["x:a 6 3,009 1,800 0 6", "x:b 1 20 0 0 1"]
    prices = place.home / "prices.yaml"
    assert lines[-1] == f"cost: not known; {prices} may give a price for x:a, x:b"

    row = "{input: 3, output: 15, cache_read: 0.3, cache_write: 3.75}"
    prices.write_text(f"x:a: {row}\nx:b: {row}\n")
    assert run("usage").stdout.endswith("cost: 0.004332 USD\n")
    usage = json.loads(
        run("usage", "--json", "--thread", own.config["configurable"]["thread_id"]).stdout
    )
    (thread,) = usage["editors"]
    assert (usage["server"], usage["currency"], thread["cost"]) == ([], "USD", "0.000072")
    assert usage["all"] == {"taken": thread["taken"], "cost": thread["cost"]}
    assert (thread["turn"]["x:a"]["answers"], thread["last"]["used"]) == (1, 4)


def test_usage_says_what_is_not_known(place: UserFolders, run: Run) -> None:
    row = "{input: 1, output: 1, cache_read: 1, cache_write: 1}"
    (place.home / "prices.yaml").write_text(f"scripted: {row}\n")
    asyncio.run(
        make_threads(place.root / "sessions.sqlite", place.workspace, ScriptedModel(answers=[]))
    )
    shown = run("usage").stdout
    assert shown.count("and 3 without a count: what they took is not known") == 2
    assert "in the window" not in shown
    assert shown.endswith("cost: not known, because some answers came without a count\n")


def test_usage_refuses_what_is_wrong(place: UserFolders, run: Run) -> None:
    assert "there is no thread 'no-such' in" in run("usage", "--thread", "no-such").stderr
    prices = place.home / "prices.yaml"
    prices.write_text("x:a: free\n")
    assert f"modeshift: {prices}: x:a 'free': " in run("usage").stderr
    prices.unlink()
    (place.root / "sessions.sqlite").write_text("no database, whatever its name says " * 100)
    assert f"{place.root / 'sessions.sqlite'} cannot be used now: file is" in run("usage").stderr
