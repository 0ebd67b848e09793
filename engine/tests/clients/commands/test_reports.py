"""``make modes``, ``trust``, ``usage``, ``diagram``, ``clean-data``: what they print or refuse."""

import asyncio
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from modeshift.testing.plugin import Snapshot
from tests.clients.commands.conftest import Run, Shown
from tests.graph.models.test_model_server import saying
from tests.harness import prefork
from tests.harness.clone import git, make_repository
from tests.harness.conversation import SECONDS, Conversation, make_agent
from tests.harness.place import UserFolders, modes_file
from tests.harness.root import TEMPLATE
from tests.harness.scripted import ScriptedModel
from tests.tools.sandbox.commands import needs_sandbox

PERMISSIONS = "    permissions:\n      execute_command: {'make *': allow, 'rm *': deny}\n"


def test_modes_says_what_holds_and_why(place: UserFolders, run: Run, snapshot: Snapshot) -> None:
    place.permissions.write_text("execute_command: {'git push *': deny}\n")
    place.global_modes.write_text(
        modes_file("mine", groups=r"read, [edit, {fileRegex: '\.md$'}], command", rest=PERMISSIONS)
    )
    shown = {"modes": run("modes").text}
    place.project_modes.write_text(modes_file("theirs"))
    place.rule("AGENTS.md", "Be brief.\x1b]0;owned\x07")
    shown["the same of one mode"] = run("modes", "--mode", "mine").text
    auto = run("modes", "--mode", "mine", APPROVALS="auto", TRUST_WORKSPACE="true")
    shown["approvals auto, trusted"] = auto.text
    prompt = run("modes", "--mode", "code", "--prompt", TRUST_WORKSPACE="true").stdout
    assert r"  | Be brief.\u001b]0;owned\u0007" in prompt
    ways = "switches: [{to: code, when: asked_user}, {to: ask, ask: never}]"
    lines = (ways, "subtasks: [ask]", "enterFrom: []")
    edges = "".join(f"    {line}\n" for line in lines)
    place.global_modes.write_text(modes_file("mine", groups="read, mcp", rest=edges))
    shown["with edges"] = run("modes", "--mode", "mine").text
    place.global_modes.write_text(modes_file("mine", rest="    switches: []\n"))
    shown["without"] = run("modes", "--mode", "mine").text
    failed = run("modes", "--mode", "theirs")
    assert failed.stdout == ""
    shown["an unknown mode"] = failed.stderr
    snapshot("modes.txt", shown)


@pytest.mark.parametrize(
    ("options", "problem"),
    [((), "say which: make remove MODE=slug"), (("--mode", "nope"), "MODE='nope' has no file")],
)
def test_without_a_mode_nothing_is_removed(
    run: Run, options: tuple[str, ...], problem: str
) -> None:
    assert f"modeshift: {problem}; there are: architect, " in run("remove", *options).stderr


def test_trust_shows_and_records(place: UserFolders, run: Run, snapshot: Snapshot) -> None:
    record = place.root / "trusted.json"
    shown = {"nothing to trust": run("trust").text, "nothing to show": run("trust", "--show").text}
    shown["no folder"] = run("trust", WORKSPACE=str(place.root / "none")).text
    place.project_modes.write_text(modes_file("theirs", groups="command", rest=PERMISSIONS))
    place.rule("AGENTS.md", "One.\n\t\x1b[2JTwo.")
    shown["show"] = run("trust", "--show").text
    assert not record.exists()
    shown["trust"] = run("trust").text
    trusted = run("modes", "--mode", "theirs").text
    assert "theirs  N Theirs  (project: .kilocodemodes)" in trusted
    assert "notice" not in trusted
    shown["revoke"] = run("trust", "--revoke").text
    assert "N Theirs" not in run("modes").stdout
    shown["revoke again"] = run("trust", "--revoke").text
    shown["of no folder"] = run("trust", "--revoke", WORKSPACE=str(place.root / "none")).text
    before = record.read_text()
    for heading, text in (
        ("a broken file", ": :"),
        ("a list that is none", "customModes: 5"),
        ("a terminal's codes", '"\\e[2J": 5'),
        ("no character", modes_file("a", rest='    permissions: {"\\ud800": allow}\n')),
    ):
        place.project_modes.write_text(text)
        failed = run("trust")
        assert failed.stdout == ""
        assert "\x1b" not in failed.stderr
        shown[heading] = failed.stderr
    assert record.read_text() == before
    record.write_text("[]")
    shown["a broken record"] = run("trust").text
    assert record.read_text() == "[]"
    snapshot("trust.txt", shown)


def test_a_closed_pipe(place: UserFolders, tmp_path: Path) -> None:
    reading, closed = os.pipe()
    os.close(reading)
    with (tmp_path / "errors").open("w+") as errors:
        streams = (errors.fileno(), closed, errors.fileno())
        process = prefork.start("modeshift", "modes", env=place.environment(), streams=streams)
        os.close(closed)
        process.wait(SECONDS)
        assert errors.read() == ""


def test_diagram_has_the_custom_modes(place: UserFolders, run: Run, snapshot: Snapshot) -> None:
    place.global_modes.write_text(modes_file("mine"))
    place.project_modes.write_text(modes_file("theirs"))
    snapshot("diagram.txt", {"diagram": run("diagram").text})


def test_clean_data_removes_a_database_and_nothing_else(
    place: UserFolders, run: Run, snapshot: Snapshot
) -> None:
    threads, sessions = place.root / "checkpoints.sqlite", place.root / "sessions.sqlite"
    shown = {"nothing": run("clean-data").text}
    for file in (threads, sessions):
        file.write_text("my only copy of something")
        shown[f"{file.stem} that are something else"] = run("clean-data").text
        file.unlink()
    with closing(sqlite3.connect(threads)) as connection:
        connection.execute("create table a (b)")
    Path(f"{threads}-wal").write_text("")
    shown["a database"] = run("clean-data").text
    assert not list(place.root.glob("checkpoints*"))
    snapshot("clean-data.txt", shown)


def rows(shown: Shown) -> list[tuple[str, str]]:
    lines = [line.split(maxsplit=1) for line in shown.stdout.splitlines()[3:]]
    return [(status, text) for status, text in lines if status in ("yes", "no", "partly")]


def test_doctor_with_the_sandbox_turned_off(run: Run, place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("mine", groups="read, command"))
    path = str(place.global_modes.parent)
    shown = run("doctor", SANDBOX="off", AUTH_TOKEN="0123456789abcdef", PATH=path)  # noqa: S106
    assert ("no", "commands run without a sandbox, and every one asks: SANDBOX=off") in rows(shown)
    assert "commands in mine mode can change the workspace, if you approve them" in shown.stdout
    assert "the mode has no 'edit' tools" in shown.stdout
    assert ("yes", "the server on 127.0.0.1 asks for a token") in rows(shown)
    assert "0123456789abcdef" not in shown.stdout


def test_doctor_says_what_the_models_server_says(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(props: dict[str, object] | None) -> list[str]:
        with saying(monkeypatch, {} if props is None else {"/props?model=qwen3": props}):
            given = {"OPENAI_API_BASE": os.environ["OPENAI_API_BASE"], "OPENAI_API_KEY": "any"}
            lines = run("doctor", MODEL="openai:qwen3", **given).stdout.splitlines()
        (number,) = [at for at, line in enumerate(lines) if "openai:qwen3" in line]
        return lines[number : number + 2]

    def props(window: int) -> dict[str, object]:
        return {"default_generation_settings": {"n_ctx": window}}

    known, way = ask(props(16_384))
    assert known == "yes     openai:qwen3 reads 16,384 tokens"
    assert re.fullmatch(r" +a change of mode: append: all tools take about 1,... tokens .*", way)
    small, way = ask(props(1024))
    assert re.match(r"partly  the model 'openai:qwen3' reads 1,024 tokens.*no mode fits", small)
    assert way.endswith("; at most a 6th is room for append")
    unknown, way = ask(None)
    assert unknown == "partly  openai:qwen3: no window is known"
    assert way.endswith("its server does not say its window, and CONTEXT_WINDOW is not set")
    toolless, _ = ask({**props(16_384), "chat_template_caps": {"supports_tools": False}})
    assert toolless.startswith("no      the model 'openai:qwen3' is shown no tools")


def test_doctor_finds_repositories_that_are_not_their_own(run: Run, place: UserFolders) -> None:
    """What it says to do mends them."""
    spaces, source = place.root / "work spaces", place.workspace
    make_repository(source, f="x")
    for name, how in (("linked", "--local"), ("borrows", "--shared"), ("own", "--no-hardlinks")):
        (spaces / "alice").mkdir(parents=True, exist_ok=True)
        assert git(source, "clone", "-q", how, ".", str(spaces / "alice" / name)).returncode == 0

    def check() -> dict[str, str]:
        shown = run("doctor", SANDBOX="off", WORKSPACES=str(spaces)).stdout.splitlines()
        rows = ((text, more) for text, more in pairwise(shown) if text[:1] != " ")
        return {text: more for text, more in rows if f"{spaces}/alice" in text}

    told = check()
    assert [text.split("alice/")[1].split(":")[0] for text in told] == ["borrows", "linked"]
    for remedy in told.values():
        line = remedy.partition("while nobody works there: ")[2]
        subprocess.run(line, shell=True, check=True)  # noqa: S602  # as a person would
    shutil.rmtree(source)
    assert check() == {}
    for folder in (spaces / "alice").iterdir():
        assert git(folder, "fsck", "--full", "--strict").returncode == 0
        assert git(folder, "status", "--short").stdout == ""


@needs_sandbox
def test_doctor_says_what_cannot_be_written(place: UserFolders) -> None:
    """With a workspace and a clone that are mounted so that nobody may write, root neither."""
    (place.root / "trusted.json").write_text("{}")
    texts = (
        f"no      the workspace: the agent can only read, since '{place.workspace}' cannot",
        f"no      the clone: make dev does not start, since '{TEMPLATE}' cannot be written",
        f"no      CHECKPOINTS: '{place.workspace}/threads' cannot be written: Read-only",
        f"no      SESSIONS: '{place.root}/trusted.json/s' cannot be written: File exists; see",
    )
    mounts = [
        part for folder in (TEMPLATE, place.workspace) for part in ("--ro-bind", folder, folder)
    ]
    program = ("bwrap", "--dev-bind", "/", "/", *mounts, sys.executable, "-m", "modeshift")
    places = {"SESSIONS": place.root / "trusted.json/s", "CHECKPOINTS": place.workspace / "threads"}
    env = place.environment(**{name: str(path) for name, path in places.items()})
    done = subprocess.run(
        [*program, "doctor"], cwd=TEMPLATE, env=env, capture_output=True, text=True, check=False
    )
    assert [text for text in texts if text not in done.stdout] == []
    assert done.stderr == ""


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


async def make_threads(file: Path, workspace: Path, *models: ScriptedModel) -> None:
    """A thread with one turn for each model."""
    talks = []
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        for number, model in enumerate(models):
            talks.append(Conversation(make_agent(workspace, model, saver=saver)))
            talks[-1].config["configurable"]["thread_id"] = f"{file.stem}-{number}"
            await talks[-1].say("hello")
        first = (await talks[0].agent.aget_state(talks[0].config)).config
        await talks[0].say("and more")
        talks[0].config = first  # the person goes back, and on from there
        await talks[0].say("something else")


def test_usage_of_both_stores(place: UserFolders, run: Run, snapshot: Snapshot) -> None:
    shown = {"none": run("usage").text}
    sessions, prices = place.root / "sessions.sqlite", place.home / "prices.yaml"
    models = (took("x:a", 1000, 600), took("x:b", 20))
    asyncio.run(make_threads(place.root / "checkpoints.sqlite", place.workspace, *models))
    asyncio.run(make_threads(sessions, place.workspace, took("x:a", 3)))
    shown["the abandoned branch was paid too"] = run("usage").text
    row = "{input: 3, output: 15, cache_read: 0.3, cache_write: 3.75}"
    prices.write_text(f"x:a: {row}\nx:b: {row}\n")
    shown["with prices"] = run("usage").text
    usage = json.loads(run("usage", "--json", "--thread", "sessions-0").stdout)
    (thread,) = usage["threads"]
    assert (usage["currency"], thread["cost"]) == ("USD", "0.000072")
    assert usage["all"] == {"taken": thread["taken"], "cost": thread["cost"]}
    assert (thread["turn"]["x:a"]["answers"], thread["last"]["used"]) == (1, 4)
    prices.write_text(f"scripted: {row}\n")
    sessions.unlink()
    asyncio.run(make_threads(sessions, place.workspace, ScriptedModel(answers=[])))
    shown["answers without a count"] = run("usage", "--thread", "sessions-0").text
    shown["no such thread"] = run("usage", "--thread", "no-such").text
    prices.write_text("x:a: free\n")
    shown["a price that is none"] = run("usage").text
    prices.unlink()
    sessions.write_text("no database, whatever its name says " * 100)
    shown["no database"] = run("usage").text
    snapshot("usage.txt", shown)
