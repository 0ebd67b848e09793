"""What is not installed, and what does not load, is not there; everything else runs."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.clone import change, copy_template
from tests.harness.installed import Installed
from tests.harness.place import environment
from tests.harness.server import free_port
from tests.tools.mcp.servers import RAW

EXTRAS = ("editor", "mcp", "server", "terminal")
LIBRARIES = {
    "editor": {"acp"},
    "mcp": {"mcp", "mcp_types"},
    "server": {"langgraph_api", "langgraph_cli", "markdown_it", "pygments"},
    "terminal": {"prompt_toolkit"},
}
COMMANDS = {"editor": "acp", "server": "dev", "terminal": "chat"}
CONVERSATION = """
import asyncio, sys
from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.settings import load_settings
from modeshift.modes.policy import Approvals, verdict
from modeshift.project import load_project

loader = AgentLoader(load_settings())
deps = loader.deps()
agent = load_project().build(deps)
said = {"messages": [{"role": "user", "content": "write notes.txt: hello"}]}
asyncio.run(agent.ainvoke({**said, "mode": "code", "approvals": "auto"}))
command = deps.toolbox["execute_command"].spec
found = verdict(deps.catalog["code"], command, {"command": "git status"}, Approvals.AUTO)
print(f"git status: {found.kind}: {found.reason}")
print("imported", *sys.modules)
"""
"""With the model that needs no network; says what has been imported then."""


class Clone:
    """A copy of the clone without the engine, whose Python has what was chosen."""

    def __init__(self, folder: Path, extras: tuple[str, ...]) -> None:
        self.root, self.workspace = folder / "clone", folder / "workspace"
        self.workspace.mkdir()
        copy_template(self.root)
        self.installed = Installed(folder / "installed", extras)
        variables = environment(
            folder, WORKSPACE=str(self.workspace), SANDBOX="auto", MODEL="offline"
        )
        self.environment = {**variables, "MODES_FOLDER": str(self.root / "modes")}
        server = {"command": "/usr/bin/env", "args": ["python3", "-S", str(RAW), "well"]}
        file = Path(variables["CONFIG_FOLDER"]) / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"raw": {"type": "stdio", **server}}}))

    def start(self, *arguments: object) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            list(map(str, arguments)), cwd=self.root, env=self.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, *arguments: object, said: str = "") -> str:
        """What a program prints, on both streams."""
        return self.start(*arguments).communicate(said)[0]

    def command(self, *arguments: str) -> str:
        return self.run(self.installed.python, "-m", "modeshift", *arguments)

    def talk(self) -> list[str]:
        """Have a file written; what the conversation's process printed."""
        lines = self.run(self.installed.python, "-c", CONVERSATION).splitlines()
        notes = self.workspace / "notes.txt"
        assert notes.exists(), lines
        assert notes.read_text().strip() == "hello"
        notes.unlink()
        return lines

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The dev server, once it answers; what it has printed by then."""
        process = self.start(self.installed.python, "-m", "modeshift", "dev", "--port", free_port())
        assert process.stdout is not None
        printed = []
        try:
            for line in process.stdout:
                printed.append(line)
                if line.startswith("address"):
                    break
            yield "".join(printed)
        finally:
            process.kill()
            process.communicate()


def check_what_is_missing(clone: Clone, missing: set[str]) -> None:
    """Of each extra that was not chosen: one line that says how to get it, nothing imported."""
    report = clone.command("doctor")
    for extra in missing & COMMANDS.keys():
        name = COMMANDS[extra]
        line = f"{name} is not installed: make add EXTRA={extra}"
        (told,) = clone.command(name).splitlines()
        assert told == f"modeshift: {line}"
        assert f"no      {line}" in report
    for extra in COMMANDS.keys() - missing:
        assert f"{COMMANDS[extra]} is not installed" not in report
    assert ("mcp is not installed" in report) == ("mcp" in missing)
    assert ("the dev server" in report) == ("server" not in missing)
    assert "does not load" not in report
    *_, imported = clone.talk()
    tops = {name.partition(".")[0] for name in imported.split()}
    for extra in missing:
        assert not LIBRARIES[extra] & tops
        assert f"modeshift.{extra}" not in imported.split()


def check_what_is_there(clone: Clone, chosen: set[str]) -> None:
    modes = clone.command("modes", "--start")
    assert ("tools: 1" in modes) == ("mcp" in chosen), modes
    assert ("no MCP server is started ('raw'): mcp is not installed" in modes) == (
        "mcp" not in chosen
    )
    if "terminal" in chosen:
        assert "make chat needs a terminal" in clone.command("chat")
    editor = clone.installed.python.with_name("modeshift-acp")
    asked = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    )
    answer = clone.run(editor, "--project", clone.root, said=f"{asked}\n")
    if "editor" in chosen:
        assert json.loads(answer)["result"]["protocolVersion"] == 1
        assert f"command    {editor} --project {clone.root}\n" in clone.command("acp")
    else:
        assert answer.startswith(
            "modeshift-acp: modeshift-acp is not installed: make add EXTRA=editor"
        )
    if "server" in chosen:
        with clone.serving() as printed:
            assert "\nmodes      " in printed


@pytest.mark.parametrize(
    "chosen",
    [(), pytest.param(("editor", "server", "terminal"), marks=pytest.mark.slow)],
    ids=lambda chosen: "+".join(chosen) or "none",
)
def test_each_choice_of_extras_works(chosen: tuple[str, ...], tmp_path: Path) -> None:
    clone = Clone(tmp_path, chosen)
    check_what_is_missing(clone, set(EXTRAS) - set(chosen))
    check_what_is_there(clone, set(chosen))


BROKEN = """
[modeshift.commands]
chat = broken:chat
doctor = broken:doctor

[modeshift.sandboxes]
another = nowhere.at.all:find_sandbox

[modeshift.server_pools]
mcp = broken:pool
"""
MINE = """
[modeshift.commands]
acp = mine:main
doctor = mine:main
"""


@pytest.mark.slow
def test_what_other_distributions_offer_that_load_and_that_do_not(tmp_path: Path) -> None:
    """One that does not costs what it offers; one that does is used before ours."""
    clone = Clone(tmp_path, ("editor", "mcp"))
    clone.installed.add("broken", BROKEN, "raise SystemExit('I am \\x1b[31m broken')")
    clone.installed.add(
        "mine", MINE, "def main(**options):\n    yield f'mine, with {[*options]}'\n"
    )
    report = clone.command("doctor")
    for told in (
        "chat of broken (modeshift.commands: broken:chat) does not load: SystemExit: I am ",
        "another of broken (modeshift.sandboxes: nowhere.at.all:find_sandbox) does not load: "
        "ModuleNotFoundError: No module named 'nowhere'",
        "mcp of broken (modeshift.server_pools: broken:pool) does not load",
    ):
        assert f"no      {told}" in report
    assert "\x1b" not in report
    assert "tools: 1" in clone.command("modes", "--start")
    clone.talk()
    assert clone.command("acp") == "mine, with []\n", "before ours"
    assert "mine" not in report, "what is of the core stays"


def test_without_a_sandbox_that_loads_every_command_asks(tmp_path: Path) -> None:
    """Another's is what there is: ours is taken out."""
    clone = Clone(tmp_path, ())
    change(
        clone.installed.info / "entry_points.txt",
        "bubblewrap = modeshift.sandbox.sandbox:find_bubblewrap_sandbox",
        "bubblewrap = modeshift.sandbox.nothing:find_sandbox",
    )
    decided, imported = clone.talk()
    assert decided.startswith("git status: ask: runs a command, not sandboxed")
    assert "modeshift.sandbox.sandbox" not in imported.split()
    report = clone.command("doctor")
    assert "commands run without a sandbox, and every one asks: bubblewrap of modeshift" in report
