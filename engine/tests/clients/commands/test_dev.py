"""``make dev``: it refuses what cannot be served; once the server answers, it says where it is."""

import shutil
import socket
from pathlib import Path

import pytest

from modeshift.commands import dev
from modeshift.modes.errors import UserError
from tests.clients.server.test_gate import ask
from tests.harness.clone import change
from tests.harness.conversation import SECONDS, until
from tests.harness.root import TEMPLATE
from tests.harness.server import Server


@pytest.mark.parametrize(
    ("settings", "texts"),
    [
        ({"MODEL": "anthropic:claude-sonnet-5-5"}, ["ANTHROPIC_API_KEY", ".env"]),
        ({"WORKSPACE": "/nowhere/at/all"}, ["'/nowhere/at/all'", "not a folder"]),
        ({"DEFAULT_MODE": "kode"}, ["'kode'", "the modes are: "]),
        (
            {"CHECKPOINTS": str(TEMPLATE / "langgraph.json/no")},
            ["langgraph.json/no' cannot be written: File exists"],
        ),
    ],
)
def test_what_it_refuses(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    texts: list[str],
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"WORKSPACE": str(tmp_path), **settings}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError) as caught:
        # With a port that is none: where a check is lost, the test fails rather than serves.
        dev.main(env_file=tmp_path / "none", port="x")
    for expected in texts:
        assert expected in str(caught.value)


def test_a_port_is_a_number_and_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """`langgraph dev` would use another one, and the user's client would not find it."""
    with pytest.raises(UserError, match="PORT='70000' is no port"):
        dev.check_port("127.0.0.1", "70000")
    monkeypatch.setenv("PORT", "abc")  # as .env's is, once it has been read
    with pytest.raises(UserError, match="PORT='abc' is no port"):
        dev.check_port("127.0.0.1", None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"PORT='{port}' cannot be used: "):
            dev.check_port("127.0.0.1", str(port))


@pytest.mark.parametrize(
    ("listen", "url"),
    [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]"), ("10.0.0.1", "10.0.0.1")],  # noqa: S104
)
def test_the_address_is_one_that_opens(listen: str, url: str) -> None:
    """A browser opens none that means all of them, and the gate lets no such Host in."""
    assert dev.format_address(listen, 2024) == f"http://{url}:2024"


def get_refusal(server: Server, *options: str, **settings: str) -> str:
    """What ``make dev`` prints when it does not start."""
    before = server.log.read_text() if server.log.exists() else ""
    process = server.command("modeshift", "dev", *options, **settings)
    try:
        assert process.wait(SECONDS) == 1
    finally:
        process.kill()
    text = server.log.read_text().removeprefix(before)
    assert text.startswith("modeshift: ")
    assert text.count("\n") == 1
    return text


def test_a_graph_by_another_name_is_refused(tmp_path: Path) -> None:
    """It would be served, and found by nobody."""
    clone, listed = Server(tmp_path), tmp_path / "langgraph.json"
    text = listed.read_text().replace('"agent":', '"till":')
    listed.unlink()
    listed.write_text(text)
    assert "langgraph.json names no graph 'agent'" in get_refusal(clone)


def test_a_graph_that_lacks_a_node_is_refused(tmp_path: Path) -> None:
    """It was served, and each run was a 422."""
    clone = Server(tmp_path)
    (tmp_path / "graph").unlink()
    shutil.copytree(TEMPLATE / "graph", tmp_path / "graph")
    change(tmp_path / "graph/agent.py", '    graph.add_node("act", nodes.act)\n', "")
    assert "graph/agent.py adds no node 'act'" in get_refusal(clone)


def test_what_a_person_needs_comes_last_and_nothing_else(server: Server) -> None:
    text = server.log.read_text().partition(f"address    {server.url}  (")[0]
    lines = text.split("\n")
    assert lines[:2] == ["Starting the server ...", ""]
    assert lines[2].startswith("model      offline  (no language model; set MODEL in .env")
    assert [line.split()[0] for line in lines[2:] if line] == [
        "model", "modes", "workspace", "approvals", "commands", "token", "threads", "studio",
    ]  # fmt: skip
    assert f"workspace  {server.workspace}\n" in text
    assert f"threads    {server.folder / 'checkpoints.sqlite'}\n" in text


def test_a_second_server_of_one_clone_or_on_its_data_is_refused(
    server: Server, tmp_path: Path
) -> None:
    assert server.process is not None
    running = f"{server.url}, process {server.process.pid}"
    assert running in get_refusal(server)
    assert running in get_refusal(server, "--port", "0")
    clone, data = Server(tmp_path), server.folder / "checkpoints.sqlite"
    (tmp_path / ".env").write_text(f"CHECKPOINTS=/elsewhere\nWORKSPACE={tmp_path}\n")
    text = get_refusal(clone, CHECKPOINTS=str(data))
    assert f"{data} has a server already: {running}, clone {server.folder}, " in text
    assert "set CHECKPOINTS" in text
    assert ask(server, "GET", "/ok")[0] == 200


@pytest.mark.slow
async def test_verbose_shows_what_the_server_logs_and_a_browser_opens(tmp_path: Path) -> None:
    server = Server(tmp_path)
    command = ("modeshift", "dev", "--port", str(server.port), "--verbose", "--browser")
    server.process = server.command(*command, BROWSER="echo opens %s")
    try:
        await until(lambda: f"opens {server.url}" in server.log.read_text())
    finally:
        server.kill()
    assert "Using custom authentication" in server.log.read_text()
