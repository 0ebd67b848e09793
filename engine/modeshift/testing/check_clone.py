"""Checks of a clone beside that of its graph: modes and tools, imports, the server."""

import ast
import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from modeshift.agent import open_agent
from modeshift.modes.limits import cut_verdict
from modeshift.modes.policy import Approvals, verdict
from modeshift.project import load_project
from modeshift.testing.agent import load_modes, make_agent
from modeshift.testing.check import expect
from modeshift.thread import APPROVE

PUBLIC = ("modeshift", "modeshift.tools", "modeshift.testing")
"""The modules whose names a clone may use: those in their ``__all__``."""
SECONDS = 120
STRICTNESS = ("deny", "ask", "allow")
FOREIGN = "https://evil.example"


def check_modes() -> None:
    """Try each tool in each mode of the clone, and under each mode as the host's limit.

    Raises ``AssertionError`` that names what is open: a mode that did not load, a tool that a mode
    without its group does not refuse, a limit under which more may run than in the limit's mode, a
    group that no mode has.
    """
    loaded = load_modes()
    expect(not loaded.notices, "; ".join(loaded.notices))
    with TemporaryDirectory() as folder:
        specs = make_agent(Path(folder), is_sandboxed=True).live.deps.toolbox.specs
    modes = loaded.catalog
    for tool in (spec for spec in specs if spec.group is not None):
        kinds = {slug: verdict(modes[slug], tool, None, Approvals.AUTO) for slug in modes}
        for slug, ruling in kinds.items():
            has_it = any(grant.group == tool.group for grant in modes[slug].groups)
            may_run = has_it or tool.name in modes[slug].permissions or ruling.kind == "deny"
            expect(may_run, f"{tool.name} runs in {slug} mode, which lacks its group")
            for limit in modes.values():
                under = cut_verdict(ruling, limit, kinds[limit.slug])
                holds = STRICTNESS.index(under.kind) <= STRICTNESS.index(kinds[limit.slug].kind)
                expect(holds, f"{tool.name} may do more under the limit {limit.slug} than there")
    named = {grant.group for mode in modes.values() for grant in mode.groups}
    unused = {group for group, _ in load_project().tools if group} - named
    expect(not unused, f"no mode has the groups {sorted(unused)}: name them in modes/*.yaml")


def check_imports() -> None:
    """Raise ``AssertionError`` with the names of the engine that the clone uses and may change."""
    for file, names in find_strangers(load_project().root).items():
        expect(not names, f"{file} uses what may change at any upgrade: {', '.join(sorted(names))}")


def find_strangers(root: Path) -> dict[str, set[str]]:
    """The files of a clone that use names of the engine that are not public, with the names."""
    public = {f"{module}.{name}" for module in PUBLIC for name in import_module(module).__all__}
    # "import modeshift.tools" binds modeshift, of which tools is an attribute then.
    public |= {*PUBLIC}
    folders = (root / name for name in ("graph", "tools", "tests"))
    used = {
        file.relative_to(root).as_posix(): {*_list_imports(file.read_text("utf-8"))} - public
        for folder in folders
        for file in sorted(folder.rglob("*.py"))
    }
    return {file: names for file, names in used.items() if names}


def _list_imports(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    modules: dict[str, str | None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and _is_engine(node.module or ""):
            names = {
                alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names
            }
            modules |= {local: name for local, name in names.items() if name in PUBLIC}
            yield from names.values()
        elif isinstance(node, ast.Import):
            named = [alias for alias in node.names if _is_engine(alias.name)]
            modules |= {alias.asname or "modeshift": alias.asname and alias.name for alias in named}
            yield from (alias.name for alias in named)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := ast.unparse(node)).count(".") == 1:
            local, _, attribute = name.partition(".")
            if local in modules:
                yield f"{modules[local] or 'modeshift'}.{attribute}"


def _is_engine(module: str) -> bool:
    return module.partition(".")[0] == "modeshift"


async def check_server() -> None:
    """Start the clone's server as ``make dev`` does, with a workspace and threads of its own.

    Raises ``AssertionError`` unless a web page is refused, and a switch of the mode waits for a
    person and takes effect once it is approved.
    """
    with TemporaryDirectory() as folder:
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            port = int(listening.getsockname()[1])
        process = await _start(Path(folder), port)
        assert process.stdout is not None
        reading = asyncio.create_task(process.stdout.read())  # or the server waits at a full pipe
        try:
            await _talk(f"http://127.0.0.1:{port}")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            await reading


async def _start(folder: Path, port: int) -> asyncio.subprocess.Process:
    root = load_project().root
    for path in root.iterdir():
        if not path.name.startswith(".") and path.name != "workspace":
            (folder / path.name).symlink_to(path)  # the server writes beside langgraph.json
    for name in ("workspace", "home"):
        (folder / name).mkdir(exist_ok=True)
    places = {"WORKSPACE": "workspace", "CONFIG_FOLDER": "home", "CHECKPOINTS": "threads.sqlite"}
    env = {**os.environ, **{name: str(folder / place) for name, place in places.items()}}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "modeshift", "dev", "--port", str(port), cwd=folder,
        env={**env, "MODEL": "offline", "DATABASE_URL": "", "AUTH_TOKEN": ""},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    said = []
    async with asyncio.timeout(SECONDS):
        while line := await process.stdout.readline():
            said.append(line.decode(errors="replace"))
            if line.startswith(b"address"):
                return process
    raise AssertionError("".join(said))


async def _talk(address: str) -> None:
    async with httpx.AsyncClient(timeout=60) as http:
        refused = await http.get(f"{address}/modes", headers={"Origin": FOREIGN})
    expect(refused.status_code == 403, f"a web page of {FOREIGN} may read /modes")
    first, *others = load_modes().catalog
    async with open_agent(address=address) as agents:
        thread = agents.thread()
        for target in others:
            question = await thread.say(f"switch to {target}: a check", mode=first)
            while question and question.value["action_requests"][0]["name"] != "switch_mode":
                question = await thread.answer(question, [APPROVE])  # the clone's own
            if question is None:
                continue  # there is no edge
            mode = (await thread.state()).values["mode"]
            expect(mode == first, "a switch takes effect before anybody says yes")
            await thread.answer(question, [APPROVE])
            changes = (await thread.state()).values["mode_changes"]
            reached = [change["target"] for change in changes]
            expect(target in reached, f"an approved switch does not lead to {target} mode")
            return
