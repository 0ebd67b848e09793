"""How the agent is started, and the check of messages that the other tests end with."""

import json
import subprocess
import sys
from pathlib import Path

from tests.clients.editor.test_wire import INITIALIZE
from tests.harness import prefork
from tests.harness.place import environment
from tests.harness.root import TEMPLATE

COMMAND = Path(sys.executable).with_name("modeshift-acp")
ROOMS = ("configuration", "turns", "calls", "threads", "models", "messages", "tools")
LATER = dict.fromkeys(
    ("graph", "tools", "langchain_core", "langgraph", *(f"modeshift.{room}" for room in ROOMS))
)
"""What cannot be imported in a process that has None for it."""


def test_without_an_editor_it_says_what_it_is(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = prefork.run("modeshift.editor.main", env=environment(tmp_path), stdin=file)
    assert done.returncode == 1
    assert "talks JSON-RPC to an editor" in done.stderr
    assert not done.stdout


def test_a_folder_that_is_no_project_is_named(tmp_path: Path) -> None:
    for command in (COMMAND, COMMAND.with_name("modeshift")):
        more = () if command == COMMAND else ("modes",)
        done = subprocess.run(
            [command, "--project", tmp_path, *more], capture_output=True, text=True, check=False
        )
        text = f"--project '{tmp_path}' is no project: it has no langgraph.json\n"
        assert (done.returncode, done.stderr.partition(": ")[2]) == (1, text)


def test_it_is_started_as_an_editor_does(tmp_path: Path) -> None:
    """In a project, which may hold anything; and it answers before it imports the agent.

    The other tests fork what has its imports.
    """
    for name in ("modes", "tools", "acp", "graph"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('of the project')")
    (tmp_path / "none").mkdir()
    (tmp_path / "none/sitecustomize.py").write_text(f"import sys; sys.modules |= {LATER}")
    done = subprocess.run(
        [COMMAND, "--project", TEMPLATE], cwd=tmp_path, input=json.dumps(INITIALIZE) + "\n",
        capture_output=True, text=True, check=True,
        env=environment(tmp_path, PYTHONPATH=str(tmp_path / "none")),
    )  # fmt: skip
    assert json.loads(done.stdout)["result"]["agentInfo"]["name"] == "modeshift"


def test_it_prints_what_to_put_into_an_editors_settings(tmp_path: Path) -> None:
    done = prefork.run("modeshift", "acp", env=environment(tmp_path))
    assert f"command    {COMMAND} --project {TEMPLATE}\n" in done.stdout
    snippets = done.stdout.split("\n{")[1:]
    assert len(snippets) == 2
    for found in snippets:
        snippet = json.loads("{" + found.partition("\n}\n")[0] + "\n}")
        assert snippet["agent_servers"]["Modeshift"]["command"] == str(COMMAND)
        assert snippet["agent_servers"]["Modeshift"]["args"] == ["--project", str(TEMPLATE)]
    keys = {"use_idea_mcp": True, "use_custom_mcp": True}
    assert snippet["default_mcp_settings"] == keys, "off by default at JetBrains"
    wrong = environment(tmp_path, MODEL="openai:gpt-5.5")
    done = prefork.run("modeshift", "acp", env=wrong)
    assert "OPENAI_API_KEY" in done.stderr
